/*
 * The life of a virtual machine, and its memory.
 *
 * Models: a guest with CPUs of its own (pinned, nobody else's) and memory of its own in pages of 2
 *   MiB of the host, anywhere there; low memory below the registers, high memory from 4 GiB, as
 *   QEMU's `pc` machine has it.
 * Does not model: memory that is not backed from the start, swapping, ballooning; several guests on
 *   a CPU; NUMA within a guest; exits by halts and interrupt controllers.
 * Timing: an access takes as long as one of the host to the host-physical line, and before that
 *   what its translation takes (vm_mmu.c).
 * Sources: docs/sources.md#kvm; docs/models/vm.md.
 */
#include <errno.h>
#include <stdlib.h>

#include "models/vm/vm_internal.h"

#define GIB       (UINT64_C(1) << 30)
#define LOW_MAX   UINT64_C(0xe0000000) /* memory that is larger ... */
#define LOW_SPLIT UINT64_C(0xc0000000) /* ... is split here */
#define HIGH_BASE UINT64_C(0x100000000)
#define STEP_PS   (10 * SIM_PS_PER_US)
#define STOP_PS   (1000 * SIM_PS_PER_MS)

const struct param_desc vm_params_table[] = {
    PARAM("exit_cycles", PARAM_U32, struct vm_params, exit_cycles, 700, 300, 2000, PROV_ESTIMATE,
          "docs/sources.md#kvm", "leaving the guest for the host's kernel"),
    PARAM("entry_cycles", PARAM_U32, struct vm_params, entry_cycles, 700, 300, 2000, PROV_ESTIMATE,
          "docs/sources.md#kvm", "going back into the guest"),
    PARAM("user_exit_cycles", PARAM_U32, struct vm_params, user_exit_cycles, 4000, 1200, 20000,
          PROV_ESTIMATE, "docs/sources.md#kvm",
          "more of an exit that QEMU handles: to user space and back, dispatch, one system call"),
    PARAM("eventfd_cycles", PARAM_U32, struct vm_params, eventfd_cycles, 1000, 300, 4000,
          PROV_ESTIMATE, "docs/sources.md#kvm",
          "signalling an eventfd that raises an interrupt of a guest"),
    PARAM("posted_interrupts", PARAM_BOOL, struct vm_params, posted_interrupts, 1, 0, 1,
          PROV_ESTIMATE, "docs/sources.md#kvm",
          "a running guest takes an interrupt without leaving"),
    PARAM("guest_page_bytes", PARAM_BYTES, struct vm_params, guest_page_bytes, 2097152, 4096,
          1073741824, PROV_ESTIMATE, "docs/sources.md#kvm",
          "pages of the guest's kernel's map of memory: 4 KiB, 2 MiB or 1 GiB"),
    PARAM("host_page_bytes", PARAM_BYTES, struct vm_params, host_page_bytes, 2097152, 4096, 2097152,
          PROV_ESTIMATE, "docs/sources.md#kvm",
          "pages of the host under the guest: 4 KiB or 2 MiB"),
    PARAM("tlb_4k_entries", PARAM_U32, struct vm_params, tlb_4k_entries, 64, 0, 1024,
          PROV_DATASHEET, "docs/sources.md#kvm", "first-level data TLB for pages of 4 KiB"),
    PARAM("tlb_2m_entries", PARAM_U32, struct vm_params, tlb_2m_entries, 32, 0, 1024,
          PROV_DATASHEET, "docs/sources.md#kvm", "first-level data TLB for pages of 2 MiB"),
    PARAM("tlb_ways", PARAM_U32, struct vm_params, tlb_ways, 4, 1, 1024, PROV_DATASHEET,
          "docs/sources.md#kvm", "ways of the first level"),
    PARAM("tlb_l2_entries", PARAM_U32, struct vm_params, tlb_l2_entries, 1536, 0, 16384,
          PROV_DATASHEET, "docs/sources.md#kvm", "second-level TLB, for both sizes"),
    PARAM("tlb_l2_ways", PARAM_U32, struct vm_params, tlb_l2_ways, 6, 1, 16384, PROV_DATASHEET,
          "docs/sources.md#kvm", "ways of the second level"),
    PARAM("tlb_l2_cycles", PARAM_U32, struct vm_params, tlb_l2_cycles, 7, 0, 50, PROV_ESTIMATE,
          "docs/sources.md#kvm", "what is found in the second level, or not, takes so much longer"),
    PARAM("pde_cache_entries", PARAM_U32, struct vm_params, pde_cache_entries, 24, 0, 128,
          PROV_ESTIMATE, "docs/sources.md#kvm",
          "paging-structure cache of entries that cover 2 MiB, of each kind of table"),
    PARAM("pdpte_cache_entries", PARAM_U32, struct vm_params, pdpte_cache_entries, 4, 0, 128,
          PROV_ESTIMATE, "docs/sources.md#kvm", "of entries that cover 1 GiB"),
    PARAM("pml4e_cache_entries", PARAM_U32, struct vm_params, pml4e_cache_entries, 2, 0, 128,
          PROV_ESTIMATE, "docs/sources.md#kvm", "of entries that cover 512 GiB"),
    { .type = PARAM_END },
};

struct vm_config vm_config_default(void)
{
    struct vm_config config = { .n_cpus = 1 };
    param_defaults(vm_params_table, &config.params);
    return config;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void layout(struct os_guest *place, uint64_t bytes)
{
    place->low_bytes = bytes >= LOW_MAX ? LOW_SPLIT : bytes;
    place->high_bytes = bytes - place->low_bytes;
    const uint64_t end = place->high_bytes != 0 ? HIGH_BASE + place->high_bytes : place->low_bytes;
    place->n_backing = end / OS_HUGE_BYTES;
}

/* Nothing is to be found between low and high memory: piece by piece all of it is taken, and what
 * is memory given back. */
static struct physmem *make_space(const struct os_guest *place)
{
    const uint64_t all = place->n_backing * OS_HUGE_BYTES, piece = GIB / 4;
    struct physmem *space = physmem_new(1, &all);
    struct hpa taken[(HIGH_BASE - LOW_SPLIT) / (GIB / 4)], given = { 0 };
    struct hpa *memory = sim_zalloc(all / piece + 1, sizeof *memory);
    size_t n_taken = 0, n_memory = 0;
    while (place->high_bytes != 0 && physmem_alloc(space, 0, piece, piece, &given))
        if (given.v >= LOW_SPLIT && given.v < HIGH_BASE && n_taken < SIM_N_ELEMENTS(taken))
            taken[n_taken++] = given;
        else
            memory[n_memory++] = given;
    while (n_memory > 0)
        physmem_release(space, memory[--n_memory], piece);
    free(memory);
    physmem_set_high_first(space, true);
    return space;
}

static bool is_memory(const struct os_guest *place, uint64_t guest)
{
    return guest < place->low_bytes ||
           (guest >= HIGH_BASE && guest - HIGH_BASE < place->high_bytes);
}

static void memory_release(struct k_vm *vm)
{
    struct physmem *mem = host_physmem(vm->host->host);
    vm_mmu_tables_release(vm);
    for (uint64_t i = 0; i < vm->place.n_backing; i++) {
        if (vm->backing[i].v == 0)
            continue;
        SIM_ASSERT(vm->pins[i] == 0, "%s: memory at %llx is still pinned", vm->config.name,
                   (unsigned long long)(i * OS_HUGE_BYTES));
        physmem_release(mem, vm->backing[i], OS_HUGE_BYTES);
        vm->backing[i].v = 0;
    }
}

static int memory_get(struct k_vm *vm)
{
    struct physmem *mem = host_physmem(vm->host->host);
    const unsigned n_nodes = physmem_nodes(mem);
    for (uint64_t i = 0; i < vm->place.n_backing; i++) {
        bool there = !is_memory(&vm->place, i * OS_HUGE_BYTES);
        for (unsigned n = 0; n < n_nodes && !there; n++)
            there = physmem_alloc(mem, (vm->config.node + n) % n_nodes, OS_HUGE_BYTES,
                                  OS_HUGE_BYTES, &vm->backing[i]);
        if (!there) {
            memory_release(vm);
            return -ENOMEM;
        }
        if (vm->backing[i].v != 0)
            physmem_clear(mem, vm->backing[i], OS_HUGE_BYTES);
    }
    return 0;
}

bool vm_resolve(const struct k_vm *vm, uint64_t guest, uint64_t *address)
{
    const uint64_t i = guest / OS_HUGE_BYTES;
    if (i >= vm->place.n_backing || vm->backing[i].v == 0)
        return false;
    *address = vm->backing[i].v + guest % OS_HUGE_BYTES;
    return true;
}

int k_vm_pin(struct k_vm *vm, uint64_t guest, uint64_t *page, uint64_t *bytes)
{
    const struct k_costs *costs = &vm->host->params.costs;
    k_compute(vm->host, costs->pin_cycles + costs->pin_page_cycles);
    if (!vm_resolve(vm, guest & ~(OS_HUGE_BYTES - 1), page))
        return -EFAULT;
    *bytes = OS_HUGE_BYTES;
    vm->pins[guest / OS_HUGE_BYTES]++;
    vm->stats.pins++;
    return 0;
}

void k_vm_unpin(struct k_vm *vm, uint64_t guest)
{
    const uint64_t i = guest / OS_HUGE_BYTES;
    SIM_ASSERT(i < vm->place.n_backing && vm->pins[i] > 0, "%s: %llx is unpinned but not pinned",
               vm->config.name, (unsigned long long)guest);
    vm->pins[i]--;
    vm->stats.pins--;
}

bool k_vm_memory(const struct k_vm *vm, unsigned i, uint64_t *guest, uint64_t *bytes)
{
    return k_memory_range(vm->guest, i, guest, bytes);
}

const char *k_vm_name(const struct k_vm *vm)
{
    return vm->config.name;
}

/* ---- Life ------------------------------------------------------------------------------------ */

bool vm_pages_possible(uint64_t guest_page_bytes, uint64_t host_page_bytes)
{
    return (guest_page_bytes == PAGE_BYTES || guest_page_bytes == OS_HUGE_BYTES ||
            guest_page_bytes == GIB) &&
           (host_page_bytes == PAGE_BYTES || host_page_bytes == OS_HUGE_BYTES);
}

static int check(struct kernel *host, const struct vm_config *config)
{
    if (config->n_cpus == 0 || config->n_cpus > VM_CPUS_MAX || config->first_cpu >= host->n_cpus ||
        config->n_cpus > host->n_cpus - config->first_cpu || config->memory_bytes == 0 ||
        config->memory_bytes % OS_HUGE_BYTES != 0 || config->node >= host->n_nodes ||
        !vm_pages_possible(config->params.guest_page_bytes, config->params.host_page_bytes))
        return -EINVAL;
    for (unsigned c = 0; c < config->n_cpus; c++)
        if (host->cpu[config->first_cpu + c].isolated)
            return -EBUSY;
    return 0;
}

static void discard(struct k_vm *vm)
{
    if (vm->guest != NULL) /* knows its devices to the end */
        os_free(vm->guest);
    for (unsigned i = 0; i < VM_FUNCTIONS_MAX; i++)
        free(vm->function[i]);
    vm_mmu_free(vm);
    if (vm->place.space != NULL)
        physmem_free(vm->place.space);
    free(vm->backing);
    free(vm->pins);
    free(vm->cpu);
    free(vm);
}

int vm_new(struct kernel *host, const struct vm_config *config, struct k_vm **result)
{
    int status = check(host, config);
    if (status != 0)
        return status;
    struct k_vm *vm = k_zalloc(sizeof *vm);
    vm->host = host;
    vm->config = *config;
    /* A timer's interrupt is an exit to program it and one when it is due. If the CPU has halted by
     * then, the host's timer wakes its thread instead, which enters again. */
    const uint32_t round_cycles = config->params.exit_cycles + config->params.entry_cycles;
    vm->place = (struct os_guest){
        .name = config->name,
        .first_core = config->first_cpu,
        .n_cpus = config->n_cpus,
        .timer_cycles = 2 * round_cycles,
        .timer_halted_cycles = round_cycles + config->params.entry_cycles +
                               host->params.costs.context_switch_cycles,
    };
    layout(&vm->place, config->memory_bytes);
    vm->backing = k_zalloc(vm->place.n_backing * sizeof vm->backing[0]);
    vm->pins = k_zalloc(vm->place.n_backing * sizeof vm->pins[0]);
    vm->cpu = k_zalloc(config->n_cpus * sizeof vm->cpu[0]);
    vm->place.backing = vm->backing;
    vm->place.space = make_space(&vm->place);
    status = memory_get(vm);
    if (status == 0)
        status = vm_mmu_new(vm);
    if (status == 0)
        status = vm_cpus_start(vm);
    if (status != 0) {
        memory_release(vm);
        discard(vm);
        return status;
    }
    vm->guest = os_guest_new(host->host, &host->params, &vm->place);
    vm->running = true;
    *result = vm;
    return 0;
}

struct kernel *vm_kernel(struct k_vm *vm)
{
    return vm->guest;
}

bool vm_running(const struct k_vm *vm)
{
    return vm->running;
}

static bool idle(const struct kernel *guest)
{
    for (unsigned c = 0; c < guest->n_cpus; c++)
        if (!guest->cpu[c].asleep || guest->cpu[c].ready != NULL)
            return false;
    return true;
}

int vm_shutdown(struct k_vm *vm)
{
    const uint64_t until_ps = k_now_ps(vm->host) + STOP_PS;
    if (!vm->running)
        return 0;
    for (unsigned i = 0; i < VM_FUNCTIONS_MAX; i++)
        if (vm->function[i] != NULL)
            vm_unplug(vm->function[i]);
    while (!idle(vm->guest)) {
        if (k_now_ps(vm->host) >= until_ps)
            return -EBUSY;
        k_sleep(vm->host, STEP_PS);
    }
    for (struct os_timer *timer = vm->guest->timers; timer != NULL; timer = timer->all_next)
        os_timer_cancel(timer);
    for (struct k_thread *thread = vm->guest->threads; thread != NULL; thread = thread->all_next)
        os_timer_cancel(&thread->timer);
    vm->running = false;
    vm_cpus_stop(vm);
    memory_release(vm);
    return 0;
}

void vm_free(struct k_vm *vm)
{
    discard(vm);
}

#define STAT_VM(NAME, FIELD, HELP) STAT(NAME, STAT_COUNTER, struct vm_stats, FIELD, "1", 0, HELP)
const struct stat_desc vm_stats_table[] = {
    STAT_VM("exits", exits, "accesses that left the guest for QEMU"),
    STAT_VM("interrupts", interrupts, "injected"),
    STAT_VM("wakeups", woken, "interrupts to a CPU that had halted"),
    STAT_VM("tlb_hits", tlb_hits, "accesses that found their page in the first level"),
    STAT_VM("tlb_l2_hits", tlb_l2_hits, "of the others, in the second level"),
    STAT_VM("tlb_misses", tlb_walks, "in neither: two-dimensional page walks"),
    STAT_VM("walk_reads", tlb_reads, "entries of page tables that these walks read"),
    { .kind = STAT_END },
};

struct vm_stats vm_stats(const struct k_vm *vm)
{
    return vm->stats;
}

void vm_stats_clear(struct k_vm *vm)
{
    stat_clear(vm_stats_table, &vm->stats);
}
