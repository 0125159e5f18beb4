/* Commands of the media's tests: how long one takes, at what rate many are served. */
#ifndef TESTS_MODELS_NVME_NVME_MEDIA_RIG_H
#define TESTS_MODELS_NVME_NVME_MEDIA_RIG_H

#include "tests/models/nvme/nvme_rig.h"

#define NS SIM_PS_PER_NS

/* ---- One command ----------------------------------------------------------------------------- */

/* From the doorbell to the completion's arrival, without what the media take. */
static inline sim_time around_ps(const struct rig *r, bool write)
{
    const sim_time fetch_ps = pcie_port_wire_ps(&r->ports[0], 28) + LINK_PS +
                              pcie_port_wire_ps(&r->ports[0], 20) + LINK_PS + DELAY_PS +
                              pcie_port_wire_ps(&r->ports[0], 84) + LINK_PS;
    const sim_time end_ps = LINK_PS + pcie_port_wire_ps(&r->ports[0], 36);
    sim_time data_ps = 16 * pcie_port_wire_ps(&r->ports[0], 276);
    if (write)
        data_ps += pcie_port_wire_ps(&r->ports[0], 20) + 2 * LINK_PS + DELAY_PS;
    return fetch_ps + data_ps + end_ps;
}

static inline sim_time took_ps(struct rig *r, struct nvme_sqe sqe)
{
    struct nvme_cqe cqe;
    push(r, &r->io, sqe);
    const sim_time start_ps = sim_now(r->sim);
    ring(r, &r->io);
    run_for(r, 2 * SIM_PS_PER_MS);
    assert_true(poll(r, &r->io, &cqe));
    assert_int_equal(cqe.status >> 1, NVME_SC_SUCCESS);
    free_entries(r, &r->io);
    run_for(r, SIM_PS_PER_US);
    return r->write_ps - start_ps;
}

/* Of a page. Acknowledgements on the wire, and times rounded up, are let pass. */
static inline void expect_page_ps(struct rig *r, bool write, uint64_t page, sim_time media_ps)
{
    const sim_time found_ps = took_ps(r, io_at(write, page * 8, 8, alloc(r, 4096), 0));
    const sim_time wanted_ps = around_ps(r, write) + media_ps;
    if (found_ps + 5 * NS < wanted_ps || found_ps > wanted_ps + 5 * NS)
        fail_msg("write %d: %llu ps, expected %llu", write, (unsigned long long)found_ps,
                 (unsigned long long)wanted_ps);
}

/* ---- Many ------------------------------------------------------------------------------------ */

/* n commands of 128 KiB one behind the other, as many at a time as the queue holds: bytes per
 * ns. */
static inline double rate(struct rig *r, bool write, unsigned n)
{
    const uint64_t buffer = alloc(r, 131072), list = alloc(r, 4096);
    struct nvme_cqe cqe;
    unsigned given = 0, done = 0;
    sim_time start_ps = 0;
    for (unsigned i = 1; i < 32; i++)
        physmem_write64(r->memory, (struct hpa){ list + (i - 1) * 8 }, buffer + i * 4096);
    while (done < n) {
        for (; given < n && given - done < 16; given++)
            push(r, &r->io, io_at(write, given * UINT64_C(256), 256, buffer, list));
        ring(r, &r->io);
        run_for(r, SIM_PS_PER_US);
        for (; poll(r, &r->io, &cqe); done++) {
            assert_int_equal(cqe.status >> 1, NVME_SC_SUCCESS);
            if (done == 16)
                start_ps = sim_now(r->sim);
        }
        free_entries(r, &r->io);
    }
    return (n - 17) * 131072.0 / ((double)(sim_now(r->sim) - start_ps) * 1e-3);
}

static inline void expect_near(const char *what, double found, double wanted, double share)
{
    if (!(found >= wanted * (1 - share) && found <= wanted * (1 + share)))
        fail_msg("%s: %g, expected %g", what, found, wanted);
}

#endif
