/*
 * Several fake hosts (tests/support/fake/fake_kapi.h, a kernel each) with NTBs as in the data sheet
 * hw/ntb_regs.h and a small device with DMA and MSI-X, for tests of device lending without
 * a simulator. An access goes the way it would: base addresses, windows, tables of requesters,
 * IOMMU, memory or registers at the end; what is refused gives ones. Kernels run in turn, in steps.
 */
#ifndef TESTS_SUPPORT_LEND_FAKE_H
#define TESTS_SUPPORT_LEND_FAKE_H

#include "logic/lending/lending_internal.h"
#include "tests/support/fake/fake_kapi.h"
#include "tests/support/test.h"

#define LF_HOSTS   6u
#define LF_NTBS    2u
#define LF_DEVICES 4u
#define LF_WINDOWS 64u

/* The device: vendor 0x1234, device 0x0001. BAR 0: */
#define LF_VENDOR      0x1234u
#define LF_DEVICE      0x0001u
#define LF_BAR_BYTES   0x4000u
#define LF_REG_ADDRESS 0x00u /* 8 bytes */
#define LF_REG_BYTES   0x08u
#define LF_REG_COMMAND 0x0cu /* 1: read into the buffer, 2: write from it; then vector 0 */
#define LF_REG_STATUS  0x10u /* 1: good, 2: refused */
#define LF_TABLE       0x1000u
#define LF_BUFFER      0x2000u /* 4 KiB, shown here */
#define LF_CAP_MSI     0x50u
#define LF_CAP_MSIX    0x70u
#define LF_CAP_PCIE    0x80u

struct lf_rig;
struct lf_host;
struct lf_function {
    struct k_pci_dev pci;
    struct lf_host *host;
    char name[24];
    uint8_t config[256];
    bool flr; /* it has function-level reset */
    unsigned n_resets;
};
struct lf_device {
    struct lf_function f;
    uint8_t reg[LF_BAR_BYTES];
    uint64_t n_refused;
};
struct lf_ntb {
    struct lf_function f;
    bool cut;    /* its cable is out */
    bool silent; /* a cable beyond is out, which the NTB does not see */
    bool link_changed;
    uint32_t node, n_windows, window_log2, n_outgoing, n_incoming;
    uint32_t control, doorbell, mask;
    uint64_t lut[LF_WINDOWS];
    uint32_t outgoing[32], incoming[248], pad[NTB_N_SCRATCHPADS];
    uint64_t n_unmapped, n_unknown_out, n_unknown_in, n_disabled;
};
struct lf_host {
    struct lf_rig *rig;
    struct kernel *kernel;
    unsigned number, n_ntbs, n_devices;
    struct lf_ntb ntb[LF_NTBS];
    struct lf_device device[LF_DEVICES];
    struct lend_host *lend;
    bool dead;
};
struct lf_rig {
    struct lf_host host[LF_HOSTS];
    unsigned n_hosts, n_nodes;
    bool through_switch;
    unsigned n_rings,
        lost_ring; /* interrupts of doorbells so far; the one that gets lost, 0: none */
    /* The switch's requester table: a word per node, and how many entries there are (0: 512). */
    uint32_t requester[LF_HOSTS * LF_NTBS + 1], n_requesters;
};
#define LF_SWITCH_NODE 5000u

uint64_t lf_load(const void *from, unsigned bytes);

/* ---- Configuration space --------------------------------------------------------------------- */

void lf_put(struct lf_function *f, unsigned offset, unsigned bytes, uint64_t value);

/* ---- The device ------------------------------------------------------------------------------ */

/* A write of the device itself; false: refused. */
bool lf_device_dma(struct lf_device *d, uint64_t address, bool write, unsigned bytes, void *data);

/* ---- Making ---------------------------------------------------------------------------------- */

void lf_bar(struct lf_function *f, unsigned bar, uint64_t base, uint64_t bytes);

void lf_device_add(struct lf_host *host);

/* What tests change before lf_host_start(). */
struct lf_host *lf_host_add(struct lf_rig *rig, const struct fake_options *options, unsigned n_ntbs,
                            unsigned n_devices);

extern const struct k_pci_id lf_ids[];
extern const struct k_pci_driver *lf_driver_now; /* for what is borrowed; of the test that runs */
;

bool lf_is_ours(const struct k_pci_dev *dev, void *context);

struct lend_options lf_options(const struct lf_host *host);

/* From the test itself. */
void lf_host_start(struct lf_host *host, const struct lend_options *options);

/* ---- Time ------------------------------------------------------------------------------------ */

/* All kernels, in steps, until `while_true` says no or the time is over. */
void lf_run(struct lf_rig *rig, uint64_t for_ps, bool (*busy)(void *), void *arg);

/* A body in a thread of a host, to its end. */
struct lf_call {
    struct lf_host *host;
    void (*body)(struct lf_host *host, void *arg);
    void *arg;
    bool done;
};

void lf_call_body(void *p);

void lf_call(struct lf_host *host, void (*body)(struct lf_host *, void *), void *arg);

void lf_cut(struct lf_ntb *b, bool cut);

/* Crash or power cut: nothing of the host runs any more. Its devices and NTBs stay as they are.
 */
void lf_kill(struct lf_host *host);

void lf_close(struct lf_rig *rig);

/* Entries that are valid in the chip. */
struct lf_entries {
    unsigned windows, outgoing, incoming;
};
struct lf_entries lf_entries_of(const struct lf_ntb *b);

#endif
