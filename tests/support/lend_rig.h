/*
 * For tests of device lending on fake hosts (lend_fake.h): an ordinary driver of their device, with
 * a buffer, an interrupt and transfers, and what borrows and gives back.
 */
#ifndef TESTS_SUPPORT_LEND_RIG_H
#define TESTS_SUPPORT_LEND_RIG_H

#include "tests/support/lend_fake.h"
#include "tests/support/test.h"

/* ---- An ordinary driver of the device -------------------------------------------------------- */

#define DRIVERS 64u
struct driver_device {
    struct k_pci_dev *pci;
    struct kaddr page;
    uint64_t dma;
    struct k_irq *irq;
    struct k_wait_queue wait;
    unsigned n_irqs;
    bool busy;
};
extern struct driver_device driver_devices[DRIVERS];
extern unsigned n_driven, n_probed, driver_bits; /* bits: its DMA mask */

extern const struct k_pci_driver lend_driver;

/* One command; the device's status. */
uint32_t driver_run(struct k_pci_dev *pci, uint32_t command, uint64_t dma, uint32_t bytes);

/* Bytes from memory into the device and from there to another place. */
void driver_copies(struct k_pci_dev *pci, uint8_t first);

/* ---- Rigs ------------------------------------------------------------------------------------ */

extern const struct fake_options lend_plain;

/* Bridges of fakes have no MSI-X table: their interrupts are raised by name. */
void lend_rig_init(struct lf_rig *rig);

void two_hosts(struct lf_rig *rig, bool borrower_iommu, bool lender_iommu);

/* Three behind a switch; the second has two devices. Not started. */
void three_hosts(struct lf_rig *rig, bool iommu);

void start_all(struct lf_rig *rig);

#define DEVICE(i) ((uint16_t)((0x20 + (i)) << 8))

void discover(struct lf_host *host, void *arg);

struct attempt {
    uint16_t id;
    uint32_t peer;
    int status;
    struct lend_borrow *borrow;
    struct lend_error error;
};

void try_borrow(struct lf_host *host, void *arg);

void give_back_body(struct lf_host *host, void *arg);

void borrow_one(struct lf_rig *rig, struct attempt *a);

void expect_same(const struct lend_usage *a, const struct lend_usage *b);

/* Some of several calls, up to one without a host, are not done. */
bool any_busy(void *arg);

#endif
