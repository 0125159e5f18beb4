/* Two ends of a wire with the unchanged NIC driver and TCP between them, every byte checked; for
 * tests of NICs in unusual places (guests). */
#ifndef TESTS_SUPPORT_PARTY_H
#define TESTS_SUPPORT_PARTY_H

#include "logic/net/net.h"
#include "logic/net/xps.h"
#include "logic/nic/nic_driver.h"
#include "models/base/payload.h"
#include "models/nic/nic.h"
#include "models/os/os.h"
#include "tests/support/kernel_call.h"
#include "tests/support/test.h"
#include "tests/support/world_fixture.h"

#define KIB 1024u
#define MIB (KIB * KIB)

struct party {
    struct kernel *kernel;
    uint32_t ip;
    struct net *net;
    struct nic_driver *driver;
    struct net_device *dev;
    unsigned done;
};

extern const struct k_pci_id party_nic_ids[];

/* Threads of the party's kernel. */
void party_register(void *arg);
void party_open(void *arg);
/* Its devices are gone. */
void party_end(void *arg);
void party_remove(void *arg);

void party_know(struct party *p, const struct party *other);

struct party_stream {
    struct party *from, *to;
    uint64_t bytes, received;
    uint16_t number;
    unsigned done;
};

/* bytes: whole 64 KiB. */
void party_stream(struct world_fixture *w, struct party *from, struct party *to, uint64_t bytes,
                  uint16_t number);

#endif
