/*
 * Device lending as seen by a service that is built on it (logic/sisci): requests to other hosts
 * along lending's connections, notice of their ends, and devices of this host that the service has
 * instead of a borrower. A host has at most one service.
 *
 * Calls marked [thread] may sleep. Those marked [locked] are made under the lender's lock, which
 * lend_service_lock() takes and which the server holds while it calls serve(). Whoever holds it
 * must not wait for another host.
 */
#ifndef LOGIC_LENDING_SERVICE_H
#define LOGIC_LENDING_SERVICE_H

#include "logic/lending/lending.h"

struct lend_connection;
struct lend_lease;
struct lend_mapping;

/* Bytes of a request or a reply. */
#define LEND_SERVICE_BYTES 448u

struct lend_service_ops {
    /* [thread] [locked] Answers a request of the peer. `body` has LEND_SERVICE_BYTES, with zeros
     * behind the request. 0: *bytes of `reply` (at most LEND_SERVICE_BYTES) go back; negative
     * errno: the text of *error does. */
    int (*serve)(void *context, struct lend_connection *connection, const void *body, void *reply,
                 size_t *bytes, struct lend_error *error);
    /* [thread] The connection has just ended; requests of the peer's CPUs do not pass any more.
     * Must not wait for other hosts. lost(), from a thread of its own, comes later and may. */
    void (*cut)(void *context, struct lend_connection *connection);
    void (*lost)(void *context, struct lend_connection *connection);
    /* [thread] The link of an adapter has changed. Must not wait for other hosts. */
    void (*link)(void *context, unsigned adapter, bool up);
    /* [thread] The host wants a claimed device back: ends the claim. */
    void (*take_back)(void *context, struct lend_lease *lease);
    /* [thread] The host is about to close its connections: gives back all devices. */
    void (*stop)(void *context);
    /* The host is freed, and the context with it. */
    void (*release)(void *context);
};
/* Before lend_start(). */
void lend_service_register(struct lend_host *host, const struct lend_service_ops *ops,
                           void *context);
void lend_service_lock(struct lend_host *host);
void lend_service_unlock(struct lend_host *host);
struct kernel *lend_kernel(const struct lend_host *host);
const struct lend_options *lend_options_of(const struct lend_host *host);

/* ---- Connections ----------------------------------------------------------------------------- */

/* [thread] Finds the best path to the peer (LEND_ANY: any adapter, of ours and the peer's),
 * discovers the cluster if none is known, and connects. 0: the caller is a user of the connection
 * until lend_service_put(). -EHOSTUNREACH: no path, also if one of the wanted adapters is not on
 * any; or an error of the connection. */
int lend_service_connect(struct lend_host *host, uint32_t peer, unsigned adapter,
                         unsigned peer_adapter, struct lend_connection **connection,
                         struct lend_error *error);
/* One more user of a connection. */
void lend_service_get(struct lend_connection *connection);
void lend_service_put(struct lend_connection *connection);
/* [thread] Sends a request and waits for the answer, or for the peer to be lost. The peer's result;
 * -ECONNRESET; -EPROTO: the reply has not reply_bytes. */
int lend_service_call(struct lend_connection *connection, const void *request, size_t request_bytes,
                      void *reply, size_t reply_bytes, struct lend_error *error);
bool lend_service_up(const struct lend_connection *connection);
uint32_t lend_service_peer(const struct lend_connection *connection);
/* Of the connection: our adapter, the peer's node and the index of its adapter. */
struct lend_adapter *lend_service_adapter(const struct lend_connection *connection);
uint32_t lend_service_node(const struct lend_connection *connection);
unsigned lend_service_peer_adapter(const struct lend_connection *connection);
/* Differs after each start of the peer; never 0. */
uint32_t lend_service_incarnation(const struct lend_connection *connection);
/* A connection with the peer, in this incarnation (0: any), that is up; rather one whose link is
 * not down. NULL: none. The caller does not become a user. */
struct lend_connection *lend_service_find(struct lend_host *host, uint32_t peer,
                                          uint32_t incarnation);
/* Max_Payload_Size of the tree that the adapter is in. [thread] */
unsigned lend_adapter_payload(struct lend_adapter *adapter);

/* ---- Switches -------------------------------------------------------------------------------- */

#define LEND_SWITCHES_MAX 32u
/* All cluster switches that an adapter leads to, nearest first; none: back to back. */
struct lend_switches {
    struct lend_adapter *adapter;
    unsigned n;
    uint16_t node[LEND_SWITCHES_MAX];
};
/* [thread] Finds them and takes entries for our CPUs in their requester tables, until
 * lend_switches_close(). -ENOSPC: there are more, or a table is full; -EHOSTUNREACH. */
int lend_switches_open(struct lend_host *host, unsigned adapter, struct lend_switches *switches,
                       struct lend_error *error);
void lend_switches_close(struct lend_host *host, struct lend_switches *switches);
/* [thread] A register (hw/ntb_regs.h) of the i-th. Reads all ones if nobody answers; false: the
 * register does not hold the value afterwards. */
uint64_t lend_switch_read(const struct lend_switches *switches, unsigned i, uint64_t offset,
                          unsigned bytes);
bool lend_switch_write(const struct lend_switches *switches, unsigned i, uint64_t offset,
                       unsigned bytes, uint64_t value);

/* ---- Devices of this host -------------------------------------------------------------------- */

/* What is known of the i-th device that this host offers. False: it offers fewer. */
bool lend_offered(struct lend_host *host, unsigned i, struct lend_info *info,
                  struct k_pci_dev **pci);
/* [thread] [locked] Takes a device, as a borrower would: it is not lent meanwhile. It has an IOMMU
 * domain of its own, with nothing in it, if this host has an IOMMU. It is stopped until
 * lend_claim_enable(). 0; -ENOENT, -EBUSY (lent, or claimed), -EAGAIN (being reset), -ENOMEM (no
 * domain). */
int lend_claim(struct lend_host *host, uint16_t id, struct lend_lease **lease,
               struct lend_error *error);
/* [thread] [locked] Stops the device, undoes all mappings and gives it back. forced: a thread
 * resets it as well, if it has function-level reset. */
void lend_claim_end(struct lend_lease *lease, bool forced);
/* [thread] [locked] Enables Bus Master. */
void lend_claim_enable(struct lend_lease *lease);
/* [thread] [locked] Limits the device's payloads to those of a borrower's tree. All borrowers must
 * have the same. -EMSGSIZE. */
int lend_claim_payload(struct lend_lease *lease, unsigned bytes, struct lend_error *error);
/* [thread] [locked] A thread resets the device, in 100 ms, and enables Bus Master again;
 * lend_claim_resetting() until then. -EOPNOTSUPP: no function-level reset. */
int lend_claim_reset(struct lend_lease *lease, struct lend_error *error);
bool lend_claim_resetting(const struct lend_lease *lease);
struct k_pci_dev *lend_claim_pci(const struct lend_lease *lease);
/* It has an IOMMU domain. */
bool lend_claim_isolated(const struct lend_lease *lease);
/* Max_Payload_Size of the device, and of the tree that it is in. */
unsigned lend_claim_payload_of(const struct lend_lease *lease);
unsigned lend_claim_tree_payload(const struct lend_lease *lease);
/* [thread] [locked] The best path to a host, preferably from our adapter `near` and to the peer's
 * first; discovers the cluster if none is known. */
int lend_claim_path(struct lend_host *host, unsigned near, uint32_t peer, struct lend_path *path,
                    struct lend_error *error);
/* Index of the adapter that is nearest to the device. */
unsigned lend_claim_near(const struct lend_lease *lease);
/* The device that device lending has lent to `peer` with this requester ID, or that is claimed;
 * NULL: neither. */
struct k_pci_dev *lend_leased_to(struct lend_host *host, uint16_t id, uint32_t peer);
/* The lender and requester ID there of a shadow device of this host. False: it is none, or it is
 * going back. */
bool lend_borrowed_from(struct lend_host *host, const struct k_pci_dev *pci, uint32_t *lender,
                        uint16_t *id);

/* ---- What a claimed device reaches ----------------------------------------------------------- */

/* The device as requester on the fabric. */
struct lend_requester {
    unsigned adapter;          /* of this host, by index */
    unsigned peer_adapter;     /* at which requests arrive */
    uint32_t node;             /* of the adapter */
    uint16_t device, function; /* on that node */
    unsigned n_cpus;        /* this host's root complexes may ask in its place: 0 .. n_cpus - 1 */
    unsigned payload_bytes; /* of its tree */
};
/* [thread] [locked] Opens a way for the device to a node, through our adapter. *mapping has no
 * bytes yet. 0, or an error of the tables here and of the switches on the way. */
int lend_claim_open(struct lend_lease *lease, const struct lend_path *path,
                    struct lend_mapping **mapping, struct lend_requester *requester,
                    struct lend_error *error);
/* [thread] [locked] Likewise to the multicast groups. */
int lend_claim_open_multicast(struct lend_lease *lease, unsigned adapter,
                              struct lend_mapping **mapping, struct lend_error *error);
/* [thread] [locked] Maps bytes of that node, once per mapping, in whole pages. *dma: where the
 * device finds the first. After an error the mapping is still to be closed. */
int lend_claim_map(struct lend_lease *lease, struct lend_mapping *mapping, uint64_t fabric,
                   uint64_t bytes, enum k_dma_direction direction, uint64_t *dma,
                   struct lend_error *error);
/* [thread] [locked] Maps bytes of our own tree. */
int lend_claim_map_here(struct lend_lease *lease, uint64_t address, uint64_t bytes,
                        enum k_dma_direction direction, struct lend_mapping **mapping,
                        uint64_t *dma, struct lend_error *error);
/* [thread] [locked] Undoes any of these: at return the device does not reach the bytes, unless
 * another mapping covers them, or the window, and there is no IOMMU. */
void lend_claim_close(struct lend_lease *lease, struct lend_mapping *mapping);

#endif
