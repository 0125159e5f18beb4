/*
 * The host of a fuzzed device: 1 MiB of memory behind PCIe ports; it answers reads of that at once
 * or late, out of order, with an error or not at all, and holds its receive buffers for as long as
 * it likes. All else is unsupported.
 */
#ifndef TESTS_FUZZ_FUZZ_WORLD_H
#define TESTS_FUZZ_FUZZ_WORLD_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "models/base/model.h"
#include "models/ether/ether.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "models/pcie/link/port.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_MEMORY_BYTES (UINT64_C(1) << 20)
#define FUZZ_PAGES        (FUZZ_MEMORY_BYTES / 4096)
#define FUZZ_PORTS_MAX    4u
#define FUZZ_MSI          UINT64_C(0xfee00000)
/* BARs of port p: */
#define FUZZ_BAR(p)     (UINT64_C(0x4000000000) + ((uint64_t)(p) << 32))
#define FUZZ_BAR_2(p)   (FUZZ_BAR(p) + (UINT64_C(1) << 28))
#define FUZZ_BAR_VFS(p) (FUZZ_BAR(p) + (UINT64_C(2) << 28))
#define FUZZ_ID(p)      pcie_id(1 + (p), 0, 0)
#define FUZZ_DEVCTL_FLR 0x8000u

enum fuzz_answer {
    FUZZ_ANSWER,
    FUZZ_UNSUPPORTED,
    FUZZ_ABORT,
    FUZZ_SILENT,
    FUZZ_POISONED,
    N_FUZZ_ANSWERS
};

/* What the devices have in common. Functions are numbered across ports: the physical one of a port
 * first, then its virtual ones. */
struct fuzz_functions {
    unsigned n_vfs;             /* of each port */
    unsigned n_bars;            /* 64-bit, of a physical function: BAR 0, BAR 2 */
    uint64_t bar_bytes;         /* of BAR 0 */
    uint64_t msix_table;        /* in BAR 0 */
    unsigned n_vectors;         /* that are set up */
    unsigned pcie, msix, sriov; /* offsets of capabilities; sriov 0: there is none */
};

struct fuzz_world {
    struct sim *sim;
    struct pcie_context *pcie;
    struct sim_error_list errors;
    struct config *config;
    struct model host;
    struct model *device; /* of the first port */
    struct pcie_port port[FUZZ_PORTS_MAX];
    struct pcie_link *link[FUZZ_PORTS_MAX];
    unsigned n_ports;
    struct fuzz_functions functions; /* set by the target */
    uint8_t *memory;
    bool dirty[FUZZ_PAGES];
    /* How it behaves. */
    enum fuzz_answer answers;
    bool shuffles; /* answers of different reads change places */
    bool blank;    /* bulk payload is zeros, whatever lies there: one stream */
    sim_time hold_ps;
    uint64_t n_irqs;
    bool answered;
    uint64_t answer; /* of the last register or configuration read */
    uint64_t events_begin;
};

/* ---- Life ------------------------------------------------------------------------------------ */

/* An empty host; the caller makes the device and plugs it in. Zeroed memory. */
void fuzz_world_open(struct fuzz_world *world);
struct fuzz_setting {
    const char *key, *value;
};
/* A device; settings end with NULL; path: its group. */
struct model *fuzz_world_device(struct fuzz_world *world, const struct model_ops *ops,
                                const char *path, const struct fuzz_setting *settings);
/* Joins port `port` of the device with the host's next one. */
void fuzz_world_plug(struct fuzz_world *world, struct model *device, unsigned port);
/* Models and wires were not freed yet: checks that nothing is under way. */
void fuzz_world_check(struct fuzz_world *world);
/* Behind the models and wires, which the caller has freed. */
void fuzz_world_close(struct fuzz_world *world);
/* Makes a world by the first operation, does the others, checks the world and frees it. */
void fuzz_world_play(const struct fuzz_target *target, const struct fuzz_op *op, size_t n);

/* The other end of a wire: counts what comes out. */
struct fuzz_peer {
    struct model model;
    struct ether_port end;
    struct ether_wire *wire; /* the caller frees it */
    uint64_t n_frames;
};
/* Joins it with the first Ethernet port of a NIC. */
void fuzz_peer_plug(struct fuzz_peer *peer, struct fuzz_world *world, struct model *nic,
                    double gbit_s, uint32_t mtu_bytes);

/* ---- Time ------------------------------------------------------------------------------------ */

void fuzz_world_run(struct fuzz_world *world, sim_time ps);
/* The input has had its share of events: the rest of it is left out. */
bool fuzz_world_spent(const struct fuzz_world *world);
/* Of an operation that waits for long: no longer than the input has events left. */
void fuzz_world_wait(struct fuzz_world *world, sim_time ps);
/* Until nothing happens any more; aborts if that takes too many events. */
void fuzz_world_drain(struct fuzz_world *world);

/* ---- Access ---------------------------------------------------------------------------------- */

/* These send and return. At most 128 bytes, within 4 KiB. */
void fuzz_write(struct fuzz_world *world, unsigned port, uint64_t address, const void *from,
                unsigned bytes);
void fuzz_write32(struct fuzz_world *world, unsigned port, uint64_t address, uint32_t value);
void fuzz_write64(struct fuzz_world *world, unsigned port, uint64_t address, uint64_t value);
void fuzz_read(struct fuzz_world *world, unsigned port, uint64_t address, unsigned bytes);
/* A deferrable write (ENQCMD), whose answer is not waited for. */
void fuzz_enqueue(struct fuzz_world *world, unsigned port, uint64_t address, const void *from,
                  unsigned bytes);
void fuzz_config_write(struct fuzz_world *world, unsigned port, uint16_t id, unsigned offset,
                       uint32_t value);
/* Waits for the answer; all ones if there is none. */
uint32_t fuzz_config_read(struct fuzz_world *world, unsigned port, uint16_t id, unsigned offset);
uint32_t fuzz_ask32(struct fuzz_world *world, unsigned port, uint64_t address);

/* ---- Functions ------------------------------------------------------------------------------- */

unsigned fuzz_port_of(const struct fuzz_world *world, unsigned function);
/* Of a port. */
unsigned fuzz_physical(const struct fuzz_world *world, unsigned port);
bool fuzz_is_virtual(const struct fuzz_world *world, unsigned function);
uint64_t fuzz_bar_of(const struct fuzz_world *world, unsigned function);
void fuzz_set_config(struct fuzz_world *world, unsigned function, unsigned offset, uint32_t value);
/* Where the physical function of port 0 has it. */
unsigned fuzz_capability(struct fuzz_world *world, unsigned id);
/* Looks where the physical function of port 0 has its capabilities, which all others have there,
 * too. */
void fuzz_find_capabilities(struct fuzz_world *world);
/* Sends what sets up the functions of a port: BARs, Bus Master, device control, vectors (unmasked),
 * virtual functions. */
void fuzz_set_up_port(struct fuzz_world *world, unsigned port);
/* Sends a function-level reset. */
void fuzz_function_reset(struct fuzz_world *world, unsigned function);
/* Takes Bus Master and resets. */
void fuzz_function_stop(struct fuzz_world *world, unsigned function);
/* What a driver may do to function 0 as a whole, by op->a: Bus Master off or on, a function-level
 * reset, set_up() with or without one before. Returns true if it has taken `device` away, for
 * good. */
bool fuzz_op_reset(struct fuzz_world *world, struct model *device, const struct fuzz_op *op,
                   void (*set_up)(struct fuzz_world *world));

/* ---- Memory ---------------------------------------------------------------------------------- */

/* What lies outside is left out. */
void fuzz_put(struct fuzz_world *world, uint64_t address, const void *from, uint64_t bytes);
void fuzz_get(const struct fuzz_world *world, uint64_t address, void *to, uint64_t bytes);
/* Of a code of fuzz_any_address(). BAR addresses are of port 0. */
uint64_t fuzz_address(uint32_t code);

/* ---- Operations that all targets have -------------------------------------------------------- */

/* 1 ns .. 65 us. */
void fuzz_op_time(struct fuzz_world *world, const struct fuzz_op *op);
/* How the host behaves. */
void fuzz_op_host(struct fuzz_world *world, const struct fuzz_op *op);
/* It answers everything at once from here on. */
void fuzz_host_behave(struct fuzz_world *world);
/* y, z at the address of x. */
void fuzz_op_memory(struct fuzz_world *world, const struct fuzz_op *op);
/* A read or write of any size within the 4 KiB of `address`. */
void fuzz_op_access(struct fuzz_world *world, unsigned port, uint64_t address,
                    const struct fuzz_op *op);

#define FUZZ_ASSERT(cond, ...)                                                       \
    do {                                                                             \
        if (!(cond)) {                                                               \
            fprintf(stderr, "%s:%d: fuzz: not so: %s: ", __FILE__, __LINE__, #cond); \
            fprintf(stderr, __VA_ARGS__);                                            \
            fputc('\n', stderr);                                                     \
            abort();                                                                 \
        }                                                                            \
    } while (0)

#endif
