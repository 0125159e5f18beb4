/*
 * The root complex of one socket: root ports, conversion between TLPs and cache-line accesses, peer
 * to peer between root ports, DMA remapping, and accesses of cores to devices (MMIO,
 * configuration). models/pcie/ and models/numa/ meet here alone.
 *
 * All root complexes of a host share a struct root_complex_host: the memory system, the root
 * complexes themselves, the receiver of interrupts.
 */
#ifndef MODELS_PCIE_ROOT_ROOT_COMPLEX_H
#define MODELS_PCIE_ROOT_ROOT_COMPLEX_H

#include "models/base/model.h"
#include "models/numa/numa.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/iommu/iommu.h"
#include "models/pcie/link/port.h"
#include "sim/engine/task.h"

#define ROOT_COMPLEX_SOCKETS_MAX 8u
#define ROOT_COMPLEX_PORTS_MAX   16u
/* Devices integrated into a root complex; with the root ports they are devices 1 .. 24 of its
 * bus. */
#define ROOT_COMPLEX_INTEGRATED_MAX 8u

/* Delivers a message-signalled interrupt to the processors. destination: APIC ID. */
typedef void root_complex_interrupt_fn(void *context, uint32_t destination, uint8_t vector);

struct root_complex_host {
    struct numa *numa;
    unsigned n_sockets;
    struct model *rc[ROOT_COMPLEX_SOCKETS_MAX]; /* set by root_complex_attach() */
    root_complex_interrupt_fn *interrupt;       /* NULL: interrupts are counted and dropped */
    void *interrupt_context;
    unsigned redirected; /* the CPU that got the last interrupt of lowest priority */
};

struct root_complex_params {
    sim_time inbound_ps;           /* last byte received to first line request */
    sim_time outbound_ps;          /* last line back (or MMIO request made) to first byte sent */
    sim_time integrated_ps;        /* for integrated endpoints in place of both; 0: these */
    sim_time line_interval_ps;     /* between line requests of the socket to the memory system */
    sim_time p2p_ps;               /* peer-to-peer forwarding instead of inbound + outbound */
    sim_time p2p_line_interval_ps; /* of posted writes, lines of all ports of a socket */
    sim_time p2p_socket_ps;        /* to another socket: besides p2p_ps and the interconnect */
    uint64_t p2p_chunk_bytes;      /* peer-to-peer reads are cut at multiples of this; 0: whole */
    uint32_t p2p_reads_max;        /* pieces in flight at an egress port; 0: see the table */
    sim_time completion_timeout_ps;
    uint64_t completion_bytes_max; /* reads are answered in completions of at most this and MPS */
    uint64_t combine_above_bytes;  /* shorter reads get their first line at once */
    uint32_t mps_bytes;
    bool ecrc;                     /* root ports can add digests */
    uint32_t tx_queue_tlps;        /* per root port and class */
    uint32_t write_lines;          /* of inbound writes, of a stack; 0: not bound */
    uint32_t read_lines;           /* the same of reads */
    struct pcie_credits advertise; /* per root port */
};
extern const struct param_desc root_complex_params_table[];
extern const struct model_ops root_complex_ops;

/* A root port as the platform describes it. */
struct root_port_desc {
    const char *name; /* "rp0"; outlives the model */
    uint8_t max_generation, max_lanes;
    uint8_t stack; /* ports of a stack share its buffers; < ROOT_COMPLEX_PORTS_MAX */
};

/* Completes a root complex of model_new(&root_complex_ops): sets its place in the host and creates
 * its ports, which are devices 1, 2, ... on root bus number `bus`. iommu may be NULL. */
void root_complex_attach(struct model *rc, struct root_complex_host *host, unsigned socket,
                         unsigned bus, const struct root_port_desc *ports, unsigned n_ports,
                         struct iommu *iommu);
/* Puts an endpoint into the root complex: its functions appear on the root bus, as the device
 * behind the root ports and those that were put there before, and its TLPs pass no link. It belongs
 * to stack 0, whether root ports do or not. After root_complex_attach(), before time starts. False:
 * there is no room for more. */
bool root_complex_integrate(struct model *rc, struct pcie_port *endpoint);
/* Returns the memory access of the socket's IOMMU, for iommu_new(). */
struct iommu_memory root_complex_iommu_memory(struct root_complex_host *host, unsigned socket);
/* Sets the MMIO windows of the socket: addresses in them are routed to its root ports. */
void root_complex_set_windows(struct model *rc, struct cfg_window memory,
                              struct cfg_window prefetchable);
unsigned root_complex_bus(const struct model *rc);
void root_complex_set_last_bus(struct model *rc, unsigned last_bus);

/*
 * A core of `socket` reads or writes memory-mapped registers. Called from a task, which the
 * function synchronises first. Requests to root ports of another socket, and their answers, cross
 * the interconnect. A read suspends the task for the round trip and returns all ones on unsupported
 * requests and time-outs. A write is posted: the task waits only while too many writes are under
 * way or the root port takes no more. The function returns when the root port will have the write;
 * callers that must order something behind it wait until then. Later requests of cores to the port
 * do not pass it. bytes: 1, 2, 4 or 8 within an aligned 8. stamp: NULL, or started by the caller at
 * the task's time; its parts then sum to the round trip.
 */
uint64_t root_complex_mmio_read(struct root_complex_host *host, unsigned socket,
                                struct sim_task *task, struct hpa address, unsigned bytes,
                                struct sim_stamp *stamp);
sim_time root_complex_mmio_write(struct root_complex_host *host, unsigned socket,
                                 struct sim_task *task, struct hpa address, unsigned bytes,
                                 uint64_t value);
/* Likewise, a write-combining buffer that a core evicts: 1 .. 64 bytes within a cache line. */
sim_time root_complex_mmio_write_line(struct root_complex_host *host, unsigned socket,
                                      struct sim_task *task, struct hpa address, unsigned bytes,
                                      const void *data);
/* A core sends a cache line as one deferrable memory write (ENQCMD) and waits for the answer. True:
 * the device has taken it; false: it refused, or nobody takes such a write there. */
bool root_complex_mmio_enqueue(struct root_complex_host *host, unsigned socket,
                               struct sim_task *task, struct hpa address, const void *line);
/* A core accesses configuration space (the ECAM window): 1, 2 or 4 bytes of the function `id`.
 * Suspends the task until the completion is back, for writes too. */
uint32_t root_complex_config_read(struct root_complex_host *host, unsigned socket,
                                  struct sim_task *task, uint16_t id, unsigned offset,
                                  unsigned bytes);
void root_complex_config_write(struct root_complex_host *host, unsigned socket,
                               struct sim_task *task, uint16_t id, unsigned offset, unsigned bytes,
                               uint32_t value);

#endif
