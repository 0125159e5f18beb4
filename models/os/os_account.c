/*
 * Cache accesses by what software does.
 *
 * Models: counters of the core's L2 accesses, of its misses in the L2 and in all caches of its
 *   socket, and of what its prefetcher did, that are read whenever the software says that it does
 *   something else now (k_account()), at interrupts and at switches between threads.
 * Does not model: the cost of reading a counter.
 * Sources: what PAPI_L2_TCA, PAPI_L2_TCM and PAPI_L3_TCM count: data and, where there is an L1I,
 *   instructions; on Core the prefetcher's requests and lines, too (docs/sources.md#e1).
 */
#include "models/os/os_internal.h"

void os_account_settle(struct os_cpu *cpu, unsigned account)
{
    const struct numa_private_count now = numa_private_count(cpu->core->numa, cpu->core->idx);

    cpu->account[account].l2_accesses += now.l2_accesses - cpu->counted.l2_accesses;
    cpu->account[account].l2_misses += now.l2_misses - cpu->counted.l2_misses;
    cpu->account[account].llc_misses += now.llc_misses - cpu->counted.llc_misses;
    cpu->account[account].prefetches += now.prefetches - cpu->counted.prefetches;
    cpu->account[account].prefetched += now.prefetched - cpu->counted.prefetched;
    cpu->counted = now;
}

unsigned k_account(struct kernel *kernel, unsigned account)
{
    struct k_thread *self = os_self(kernel);
    const unsigned before = self->account;

    SIM_ASSERT(account < K_ACCOUNTS, "account %u of %u", account, K_ACCOUNTS);
    if (account != before)
        os_account_settle(self->on, before);
    self->account = (uint8_t)account;
    return before;
}

struct numa_private_count os_account(struct kernel *kernel, unsigned account)
{
    struct numa_private_count sum = { 0 };

    SIM_ASSERT(account < K_ACCOUNTS, "account %u of %u", account, K_ACCOUNTS);
    for (unsigned c = 0; c < kernel->n_cpus; c++) {
        struct os_cpu *cpu = &kernel->cpu[c];
        os_account_settle(cpu, cpu->running->account);
        sum.l2_accesses += cpu->account[account].l2_accesses;
        sum.l2_misses += cpu->account[account].l2_misses;
        sum.llc_misses += cpu->account[account].llc_misses;
        sum.prefetches += cpu->account[account].prefetches;
        sum.prefetched += cpu->account[account].prefetched;
    }
    return sum;
}
