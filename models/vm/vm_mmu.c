/*
 * What a guest's CPU pays for addresses: its TLBs, and the two-dimensional walk of a miss.
 *
 * Models: page tables of the guest (its kernel's map of all memory, in the guest's memory) and of
 *   the host (EPT, in the host's), as real entries; per CPU a data TLB by page size, a second level
 *   that both sizes share, and the paging-structure caches of both tables ("combined mappings" and
 *   "guest-physical mappings" of the SDM, 28.3.1). A walk reads the entries that these do not have,
 *   one after the other, through the caches of the core. A translation is cached by the smaller of
 *   the guest's and the host's page.
 * Does not model: TLBs of instructions and of hosts; guest-physical translations in TLBs; several
 *   walkers, walks ahead of time or beside other work; what the host's own work evicts; accessed
 *   and dirty bits (they are set when the tables are made); changes of a table while its guest runs
 *   (there are none); addresses of devices; programs' own pages (all is in the kernel's map).
 * Timing: found in the first level: nothing. Found in the second: tlb_l2_cycles. Else tlb_l2_cycles
 *   and a load that waits for each entry read: without paging-structure caches g (h + 1) + h of
 *   them, with g and h levels of the guest's and the host's tables.
 * Sources: docs/sources.md#kvm.
 */
#include <errno.h>
#include <stdlib.h>

#include "models/vm/vm_internal.h"

/* SDM 3A, 4.5, and 3C, 28.2.2. */
#define ENTRY_PRESENT    UINT64_C(0x1) /* EPT: may be read */
#define ENTRY_WRITE      UINT64_C(0x2)
#define ENTRY_EXECUTE    UINT64_C(0x4)  /* EPT */
#define ENTRY_WRITE_BACK UINT64_C(0x30) /* EPT, leaves: memory type */
#define ENTRY_USED       UINT64_C(0x60) /* guest's: accessed, dirty */
#define ENTRY_PAGE       UINT64_C(0x80) /* a page of 2 MiB or 1 GiB */
#define ENTRY_ADDRESS    UINT64_C(0x000ffffffffff000)
#define GUEST_TABLE      (ENTRY_PRESENT | ENTRY_WRITE | ENTRY_USED)
#define EPT_TABLE        (ENTRY_PRESENT | ENTRY_WRITE | ENTRY_EXECUTE)

#define PAGE_OFFSET UINT64_C(0x880000000000) /* of the kernel's map, the upper 16 bits left out */
#define TABLE_BYTES UINT64_C(4096)
#define TABLE_PIECE (UINT64_C(64) * TABLE_BYTES) /* that memory for tables is taken in */
#define TOP_LEVEL   4u

static unsigned level_shift(unsigned level)
{
    return 12 + 9 * (level - 1);
}

/* The level whose entries are pages of this size: 1 (4 KiB) to 3 (1 GiB). */
static unsigned leaf_level(uint64_t page_bytes)
{
    unsigned level = 1;
    while (UINT64_C(1) << level_shift(level) < page_bytes)
        level++;
    return level;
}

/* ---- Making the tables ----------------------------------------------------------------------- */

/* A table, zero. */
static bool new_table(struct k_vm *vm, struct vm_tables *tables, uint64_t *at)
{
    struct hpa piece;
    if (tables->used == tables->n_pieces * TABLE_PIECE) {
        if (tables->n_pieces == tables->pieces_max ||
            !physmem_alloc(tables->space, tables->node, TABLE_PIECE, TABLE_PIECE, &piece))
            return false;
        tables->piece[tables->n_pieces++] = piece.v;
    }
    *at = tables->piece[tables->n_pieces - 1] + tables->used % TABLE_PIECE;
    tables->used += TABLE_BYTES;
    physmem_clear(host_physmem(vm->host->host), vm_table_at(vm, tables, *at), TABLE_BYTES);
    return true;
}

struct hpa vm_table_at(const struct k_vm *vm, const struct vm_tables *tables, uint64_t at)
{
    uint64_t hpa = at;
    if (tables->of_guest && !vm_resolve(vm, at, &hpa))
        SIM_ASSERT(false, "%s: no memory at its page table", vm->config.name);
    return (struct hpa){ hpa };
}

static struct hpa entry_at(struct hpa table, uint64_t address, unsigned level)
{
    return (struct hpa){ table.v + (address >> level_shift(level)) % 512 * 8 };
}

static bool map_page(struct k_vm *vm, struct vm_tables *tables, uint64_t address, uint64_t to)
{
    struct physmem *mem = host_physmem(vm->host->host);
    uint64_t table = tables->root;
    for (unsigned level = TOP_LEVEL; level > tables->leaf; level--) {
        const struct hpa at = entry_at(vm_table_at(vm, tables, table), address, level);
        const uint64_t entry = physmem_read64(mem, at);
        if (entry != 0) {
            table = entry & ENTRY_ADDRESS;
            continue;
        }
        if (!new_table(vm, tables, &table))
            return false;
        physmem_write64(mem, at, table | (tables->of_guest ? GUEST_TABLE : EPT_TABLE));
    }
    const uint64_t kind = tables->of_guest ? GUEST_TABLE : EPT_TABLE | ENTRY_WRITE_BACK;
    physmem_write64(mem, entry_at(vm_table_at(vm, tables, table), address, tables->leaf),
                    to | kind | (tables->leaf > 1 ? ENTRY_PAGE : 0));
    return true;
}

/* All of the guest's memory, piece by piece as it lies in the host. */
static bool map_memory(struct k_vm *vm, struct vm_tables *tables)
{
    const uint64_t page = UINT64_C(1) << level_shift(tables->leaf);
    const uint64_t step = SIM_MIN(page, OS_HUGE_BYTES);
    if (!new_table(vm, tables, &tables->root))
        return false;
    for (uint64_t i = 0; i < vm->place.n_backing; i++) {
        for (uint64_t at = 0; at < OS_HUGE_BYTES && vm->backing[i].v != 0; at += step) {
            const uint64_t guest = (i * OS_HUGE_BYTES + at) & ~(page - 1);
            if (!map_page(vm, tables, tables->of_guest ? PAGE_OFFSET + guest : guest,
                          tables->of_guest ? guest : vm->backing[i].v + at))
                return false;
        }
    }
    return true;
}

/* ---- Walks ----------------------------------------------------------------------------------- */

struct walk {
    struct k_vm *vm;
    struct vm_mmu_cpu *mmu;
    struct core *core;
    struct sim_task *task;
};

static uint64_t read_entry(const struct walk *w, struct hpa table, uint64_t address, unsigned level)
{
    const struct hpa at = entry_at(table, address, level);
    core_load(w->core, w->task, at, NULL);
    w->vm->stats.tlb_reads++;
    const uint64_t entry = physmem_read64(host_physmem(w->vm->host->host), at);
    SIM_ASSERT((entry & ENTRY_PRESENT) != 0, "%s: no translation of %llx", w->vm->config.name,
               (unsigned long long)address);
    return entry;
}

static bool is_page(uint64_t entry, unsigned level)
{
    return level == 1 || (entry & ENTRY_PAGE) != 0;
}

static uint64_t page_address(uint64_t entry, uint64_t address, unsigned level)
{
    const uint64_t in_page = (UINT64_C(1) << level_shift(level)) - 1;
    return (entry & ENTRY_ADDRESS & ~in_page) | (address & in_page);
}

/* Where the walk begins: below the lowest entry that a paging-structure cache has, or at the top.
 * Returns the level of *table. */
static unsigned begin(struct vm_tlb *cache, const struct vm_tables *tables, uint64_t address,
                      struct hpa *table)
{
    for (unsigned level = tables->leaf + 1; level <= TOP_LEVEL; level++)
        if (vm_tlb_find(&cache[level], address >> level_shift(level), &table->v))
            return level - 1;
    return TOP_LEVEL;
}

static struct hpa walk_host(const struct walk *w, uint64_t guest)
{
    const struct vm_tables *tables = &w->vm->tables[VM_TABLES_HOST];
    struct hpa table = { tables->root };
    for (unsigned level = begin(w->mmu->host_cache, tables, guest, &table);; level--) {
        const uint64_t entry = read_entry(w, table, guest, level);
        if (is_page(entry, level))
            return (struct hpa){ page_address(entry, guest, level) };
        table.v = entry & ENTRY_ADDRESS;
        vm_tlb_insert(&w->mmu->host_cache[level], guest >> level_shift(level), table.v);
    }
}

static struct hpa walk_guest(const struct walk *w, uint64_t linear)
{
    const struct vm_tables *tables = &w->vm->tables[VM_TABLES_GUEST];
    struct hpa table;
    unsigned level = begin(w->mmu->guest_cache, tables, linear, &table);
    if (level == TOP_LEVEL)
        table = walk_host(w, tables->root);
    for (;; level--) {
        const uint64_t entry = read_entry(w, table, linear, level);
        if (is_page(entry, level))
            return walk_host(w, page_address(entry, linear, level));
        table = walk_host(w, entry & ENTRY_ADDRESS);
        vm_tlb_insert(&w->mmu->guest_cache[level], linear >> level_shift(level), table.v);
    }
}

/* os_guest.touch */
static void touch(const struct os_guest *place, unsigned cpu, struct core *core,
                  struct sim_task *task, uint64_t guest)
{
    struct k_vm *vm = SIM_CONTAINER(place, struct k_vm, place);
    struct vm_mmu_cpu *mmu = &vm->mmu[cpu];
    const uint64_t page = guest >> vm->page_shift;
    uint64_t there = 0;
    if (vm_tlb_find(&mmu->l1, page, NULL)) {
        vm->stats.tlb_hits++;
        return;
    }
    core_compute(core, task, vm->config.params.tlb_l2_cycles);
    if (vm_tlb_find(&mmu->l2, page, NULL)) {
        vm->stats.tlb_l2_hits++;
    } else {
        const struct walk w = { .vm = vm, .mmu = mmu, .core = core, .task = task };
        vm->stats.tlb_walks++;
        const struct hpa hpa = walk_guest(&w, PAGE_OFFSET + guest);
        SIM_ASSERT(vm_resolve(vm, guest, &there) && there == hpa.v, "%s: %llx is at %llx, not %llx",
                   vm->config.name, (unsigned long long)guest, (unsigned long long)there,
                   (unsigned long long)hpa.v);
        vm_tlb_insert(&mmu->l2, page, 0);
    }
    vm_tlb_insert(&mmu->l1, page, 0);
}

/* ---- Making it ------------------------------------------------------------------------------- */

static void cpu_init(struct vm_mmu_cpu *mmu, const struct vm_params *params, unsigned page_shift)
{
    const uint32_t caches[TOP_LEVEL + 1] = { 0, 0, params->pde_cache_entries,
                                             params->pdpte_cache_entries,
                                             params->pml4e_cache_entries };
    vm_tlb_init(&mmu->l1, page_shift == 12 ? params->tlb_4k_entries : params->tlb_2m_entries,
                params->tlb_ways);
    vm_tlb_init(&mmu->l2, params->tlb_l2_entries, params->tlb_l2_ways);
    for (unsigned level = 2; level <= TOP_LEVEL; level++) {
        vm_tlb_init(&mmu->guest_cache[level], caches[level], caches[level]);
        vm_tlb_init(&mmu->host_cache[level], caches[level], caches[level]);
    }
}

int vm_mmu_new(struct k_vm *vm)
{
    const struct vm_params *params = &vm->config.params;
    const unsigned guest_leaf = leaf_level(params->guest_page_bytes);
    const unsigned host_leaf = leaf_level(params->host_page_bytes);
    vm->tables[VM_TABLES_GUEST] =
        (struct vm_tables){ .space = vm->place.space, .leaf = guest_leaf, .of_guest = true };
    vm->tables[VM_TABLES_HOST] = (struct vm_tables){ .space = host_physmem(vm->host->host),
                                                     .node = vm->config.node,
                                                     .leaf = host_leaf };
    for (unsigned i = 0; i < VM_TABLES; i++) { /* a table of the lowest level per 2 MiB at most */
        const uint64_t n_tables = vm->place.n_backing + vm->place.n_backing / 512 + 8;
        vm->tables[i].pieces_max = n_tables * TABLE_BYTES / TABLE_PIECE + 1;
        vm->tables[i].piece = k_zalloc(vm->tables[i].pieces_max * sizeof(uint64_t));
    }
    vm->page_shift = level_shift(SIM_MIN(guest_leaf, host_leaf));
    vm->mmu = k_zalloc(vm->config.n_cpus * sizeof vm->mmu[0]);
    for (unsigned c = 0; c < vm->config.n_cpus; c++)
        cpu_init(&vm->mmu[c], params, vm->page_shift);
    vm->place.touch = touch;
    for (unsigned i = 0; i < VM_TABLES; i++)
        if (!map_memory(vm, &vm->tables[i]))
            return -ENOMEM;
    return 0;
}

void vm_mmu_free(struct k_vm *vm)
{
    for (unsigned c = 0; vm->mmu != NULL && c < vm->config.n_cpus; c++) {
        struct vm_mmu_cpu *mmu = &vm->mmu[c];
        vm_tlb_release(&mmu->l1);
        vm_tlb_release(&mmu->l2);
        for (unsigned level = 0; level <= TOP_LEVEL; level++) {
            vm_tlb_release(&mmu->guest_cache[level]);
            vm_tlb_release(&mmu->host_cache[level]);
        }
    }
    free(vm->mmu);
    for (unsigned i = 0; i < VM_TABLES; i++)
        free(vm->tables[i].piece);
}

void vm_mmu_tables_release(struct k_vm *vm)
{
    struct vm_tables *tables = &vm->tables[VM_TABLES_HOST];
    while (tables->n_pieces > 0)
        physmem_release(tables->space, (struct hpa){ tables->piece[--tables->n_pieces] },
                        TABLE_PIECE);
}
