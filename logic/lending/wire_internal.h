/*
 * What two hosts exchange: words in the scratchpads of an adapter, doorbells, and messages in
 * mailboxes. Both ends are little-endian and of the same version; every structure is copied as it
 * stands, so its size is part of the protocol and unused words are named `zero`.
 */
#ifndef LOGIC_LENDING_WIRE_INTERNAL_H
#define LOGIC_LENDING_WIRE_INTERNAL_H

#include "logic/lending/lending.h"

/* ---- Scratchpads ----------------------------------------------------------------------------- */
/* A started host publishes itself in the scratchpads of each of its adapters. */

#define LEND_MAGIC 0x4c454e44u
enum {
    PAD_MAGIC, /* LEND_MAGIC; written last */
    PAD_HOST,
    PAD_SHAPE,       /* index of the adapter 7:0, CPUs in its outgoing table 15:8, log2 of the pool
                * 23:16 */
    PAD_INCARNATION, /* differs after each start of the host */
    PAD_POOL_LOW,    /* address of the pool on the fabric */
    PAD_POOL_HIGH,
    PAD_ACK_NUMBERS,  /* of the answer: our number of the connection 31:16, the peer's 15:0 */
    PAD_HELLO,        /* N_HELLOS words, written by peers that open or close a connection */
    PAD_ACK = 11,     /* written by a peer: its answer to our hello */
    PAD_HELLO_NUMBER, /* of each word: node of the sender 31:16, its number of the connection
                       * 15:0 */
};
#define N_HELLOS 4u
_Static_assert(PAD_HELLO + N_HELLOS == PAD_ACK, "pads");
_Static_assert(PAD_HELLO_NUMBER + N_HELLOS <= NTB_N_SCRATCHPADS, "pads");
/* A word and its number are two writes: the writer clears the word, writes the number, then the
 * word; the reader reads the number first, so a word that it finds is as new as the number. */
/* A hello: node of the sender 31:16, its mailbox for the receiver 15:4, kind 3:0. */
enum { HELLO_CONNECT = 1, HELLO_BYE = 2, HELLO_REFUSED = 3 };
#define HELLO(node, mailbox, kind) ((uint32_t)(node) << 16 | (uint32_t)(mailbox) << 4 | (kind))

#define HELLO_NUMBER(node, number) ((uint32_t)(node) << 16 | (uint32_t)(number))
#define HELLO_NUMBER_OF_WORD \
    (PAD_HELLO_NUMBER - PAD_HELLO) /* pads from a word to its
                                                                   * number */

enum { DOORBELL_HELLO, DOORBELL_REQUEST, DOORBELL_REPLY, DOORBELL_EVENT, N_DOORBELLS };

/* ---- Mailboxes ------------------------------------------------------------------------------- */
/* Each end of a connection has a mailbox for its peer in its own pool; only the peer writes it. */

/* 8 bytes: our number of the connection 63:48, and a counter; the peer is alive as long as the
 * counter changes. */
#define BOX_HEARTBEAT 0u
#define BOX_REQUEST   64u   /* the peer's request to us */
#define BOX_REPLY     576u  /* the peer's reply to our request */
#define BOX_EVENTS    1088u /* N_EVENTS counters of 8 bytes: interrupts of the peer's devices */
#define BODY_BYTES    448u
#define N_EVENTS      120u

/* A message is written body first, then status, then the word with the sequence number. */
struct lend_header {
    uint32_t sequence; /* 0: no message yet */
    uint16_t type, bytes;
    int32_t status; /* of a reply; negative errno: the body is a text */
    /* The receiver's number of the connection: a message of an earlier one is not read. */
    uint16_t connection;
    uint16_t attempt; /* of a request: it is repeated, with the same sequence, until the reply */
};
_Static_assert(sizeof(struct lend_header) == 16, "two words of 8 bytes");
_Static_assert(BOX_REQUEST + sizeof(struct lend_header) + BODY_BYTES <= BOX_REPLY, "no overlap");
_Static_assert(BOX_REPLY + sizeof(struct lend_header) + BODY_BYTES <= BOX_EVENTS, "no overlap");
_Static_assert(BOX_EVENTS + 8 * N_EVENTS <= LEND_MAILBOX_BYTES, "fits");

/* ---- Requests -------------------------------------------------------------------------------- */

enum {
    MSG_LIST = 1, /* body: index; reply: struct lend_info */
    MSG_OPEN,     /* a lease begins */
    MSG_CLOSE,    /* the borrower ends it */
    MSG_CONFIG_READ,
    MSG_CONFIG_WRITE,
    MSG_RECLAIM,     /* the lender asks the borrower to end a lease */
    MSG_SEGMENT,     /* body: number; reply: struct msg_range */
    MSG_PEER_OPEN,   /* to the lender of the source of a peer-to-peer mapping */
    MSG_PEER_MAP,    /* to the same */
    MSG_PEER_CLOSE,  /* to the same */
    MSG_PEER_ALLOW,  /* to the lender of the target */
    MSG_PEER_REVOKE, /* to the same */
    MSG_VM_MAP,      /* to the lender of a device that a virtual machine uses */
    MSG_VM_UNMAP,    /* of all that VM_MAP has mapped */
    MSG_VM_IRQ,
    MSG_DMA_ENGINE,
    MSG_SERVICE /* body: what the service of both hosts has agreed upon; any length */
};

struct msg_range {
    uint64_t fabric, bytes; /* an address on the fabric */
};
struct msg_open { /* MSG_OPEN */
    uint16_t id;
    uint16_t mps_bytes; /* largest payload in the borrower's tree */
    uint32_t n_ranges;  /* 0: for a virtual machine, whose memory MSG_VM_MAP adds */
    union {
        struct msg_range
            range[LEND_DMA_RANGES]; /* the borrower's memory that the device may reach */
        uint64_t guest;             /* without ranges: the number of the virtual machine */
    };
};
struct msg_opened {
    uint32_t lease;            /* number of the lease */
    uint16_t device, function; /* the device as requester on the fabric */
    uint16_t vendor_id, device_id;
    uint32_t class_code;
    uint64_t dma[LEND_DMA_RANGES]; /* where the device finds each range */
    uint64_t msi;                  /* where it finds the borrower's MSI_BASE */
    struct msg_range bar[K_PCI_BARS];
    char name[LEND_NAME_BYTES];
};
struct msg_config { /* MSG_CONFIG_*; of MSG_CLOSE and MSG_RECLAIM `lease` alone counts */
    uint32_t lease;
    uint16_t offset, bytes;
    uint32_t value, zero;
};

struct msg_peer_open { /* MSG_PEER_OPEN: the source's lender finds a path to the target's host */
    uint32_t lease;    /* of the source */
    uint32_t host;     /* of the target */
    uint32_t adapter;  /* preferred adapter of that host */
    /* If `host` is this lender itself it maps the bytes at once: */
    uint32_t target; /* lease of the target */
    uint32_t bar, direction;
    uint64_t offset, bytes;
    uint64_t at; /* where the source shall find them; 0: anywhere */
};
struct msg_peer_opened {
    uint32_t mapping;          /* number of the mapping */
    uint32_t adapter;          /* of the target's host, at which the path ends */
    uint32_t node;             /* of the adapter at which it begins */
    uint16_t device, function; /* the source as requester there */
    uint32_t n_cpus;           /* this host's root complexes are devices 0 .. n_cpus - 1 there */
    uint32_t zero;
    uint64_t dma; /* if the lender has mapped the bytes itself */
};
struct msg_peer_map { /* MSG_PEER_MAP, whose reply is the DMA address; MSG_PEER_CLOSE */
    uint32_t lease, mapping;
    uint32_t direction, zero;
    uint64_t fabric, bytes; /* at the target's host */
    uint64_t at;            /* as in msg_peer_open */
};
struct msg_peer_allow { /* MSG_PEER_ALLOW: requests of another host may reach the target */
    uint32_t lease;     /* of the target */
    uint32_t adapter;   /* at which they arrive; LEND_ANY: the one that the lease uses */
    uint32_t node;      /* of the requester's host */
    uint16_t device, function;
    uint32_t n_cpus; /* root complexes of that host, which may ask in the device's place */
    uint32_t bar;
    uint64_t offset, bytes; /* to be exported; 0 bytes: nothing */
};
struct msg_peer_allowed {
    uint32_t requester, zero; /* number, for MSG_PEER_REVOKE */
    uint64_t fabric;          /* of the bytes, by that adapter */
};
struct msg_peer_revoke { /* MSG_PEER_REVOKE */
    uint32_t lease, requester;
};

struct msg_vm_map { /* MSG_VM_MAP; of MSG_VM_UNMAP `lease` alone counts */
    uint32_t lease, zero;
    uint64_t guest_address; /* guest-physical: where the device shall find the memory */
    uint64_t fabric, bytes; /* the memory, at the borrower */
};
struct msg_vm_irq { /* MSG_VM_IRQ: forwards an entry of the MSI-X table as an event, or stops */
    uint32_t lease;
    uint16_t index, on;
    uint32_t event, zero; /* counter in the borrower's mailbox for us */
};
struct msg_dma_engine { /* MSG_DMA_ENGINE: the caller's DMA engine may reach us, or no longer */
    uint16_t device, function; /* as requester on the fabric */
    uint32_t allow;
};

/* No padding: the sizes are the sums of the fields'. */
_Static_assert(sizeof(struct msg_open) == 8 + 16 * LEND_DMA_RANGES, "layout");
_Static_assert(sizeof(struct msg_opened) ==
                   24 + 8 * LEND_DMA_RANGES + 16 * K_PCI_BARS + LEND_NAME_BYTES,
               "layout");
_Static_assert(sizeof(struct msg_config) == 16, "layout");
_Static_assert(sizeof(struct msg_peer_open) == 48, "layout");
_Static_assert(sizeof(struct msg_peer_opened) == 32, "layout");
_Static_assert(sizeof(struct msg_peer_map) == 40, "layout");
_Static_assert(sizeof(struct msg_peer_allow) == 40, "layout");
_Static_assert(sizeof(struct msg_peer_allowed) == 16, "layout");
_Static_assert(sizeof(struct msg_peer_revoke) == 8, "layout");
_Static_assert(sizeof(struct msg_vm_map) == 32, "layout");
_Static_assert(sizeof(struct msg_vm_irq) == 16, "layout");
_Static_assert(sizeof(struct msg_dma_engine) == 8, "layout");
_Static_assert(sizeof(struct lend_info) == 16 + LEND_NAME_BYTES, "layout");

/* Every host takes interrupt messages at these addresses. */
#define MSI_BASE  UINT64_C(0xfee00000)
#define MSI_BYTES UINT64_C(0x100000)

#endif
