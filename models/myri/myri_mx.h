/* The inside of the firmware of Myrinet Express: for models/myri/myri_mx*.c. */
#ifndef MODELS_MYRI_MYRI_MX_H
#define MODELS_MYRI_MYRI_MX_H

#include "hw/myri_mx.h"
#include "models/myri/myri_internal.h"

#define MX_PULLS_MAX  1024u
#define MX_BLOCKS_MAX 4u

struct mx_fw_region {
    uint8_t sequence;
    bool closing;   /* a command waits for its last user */
    uint32_t users; /* packets that are read from it */
    uint64_t bytes;
    uint32_t n_pieces;
    struct myri_mx_piece piece[];
};

struct mx_fw_endpoint {
    uint8_t id;
    bool open;    /* its memory is known */
    bool closing; /* a command waits for its last user */
    uint32_t users;
    uint32_t written[2], read[2]; /* slots of its event queues */
    uint32_t next_slot;
    uint8_t sequence[MYRI_MX_REGIONS];
    struct mx_fw_region *region[MYRI_MX_REGIONS];
    uint8_t data[2 * MYRI_LINE_BYTES]; /* of a small message, until its request comes */
    uint8_t request[MYRI_LINE_BYTES];
    struct myri_mx_memory memory;
};

struct mx_fw_block {
    uint32_t first, n, missing; /* frames; a bit for each that has not come */
    bool again;                 /* asked for again since the timer ran */
};
struct mx_fw_pull {
    struct myri *nic;
    struct mx_fw_endpoint *endpoint; /* NULL: free */
    struct mx_fw_pull *next;         /* among free ones */
    uint32_t number, generation;
    struct myri_mx_request request;
    uint32_t n_frames, next_frame, n_done;
    unsigned n_blocks, resends;
    struct mx_fw_block block[MX_BLOCKS_MAX];
    sim_time progress_ps;
    struct sim_event timer;
};

/* One that waits until another has ended. */
struct mx_fw_wait {
    struct mx_fw_wait *next;
    struct mx_fw_endpoint *endpoint;
    struct myri_mx_request request;
};

/* A command under way that reads memory. */
struct mx_fw_read {
    struct pcie_dma_request request;
    struct myri *nic;
    uint32_t command, which;
    union {
        struct myri_mx_memory memory;
        struct myri_mx_table table;
    };
};

struct myri_mx {
    struct mx_fw_endpoint *endpoint[MYRI_MX_ENDPOINTS];
    bool was_open[MYRI_MX_ENDPOINTS];
    struct mx_fw_pull *pull[MX_PULLS_MAX], *free_pulls;
    uint32_t n_pulls;
    struct mx_fw_wait *waiting; /* in order */
    struct mx_fw_read read;
};

/* myri_mx.c */
void mx_fw_post(struct myri *nic, struct mx_fw_endpoint *endpoint, unsigned queue,
                const union mx_event *event);
/* False: the queue is full. */
bool mx_fw_has_room(const struct mx_fw_endpoint *endpoint, unsigned queue);
struct mx_fw_endpoint *mx_fw_open_endpoint(const struct myri *nic, uint8_t id);
/* A packet of the endpoint with this header; the caller adds data and submits it. */
struct myri_tx *mx_fw_packet(struct myri *nic, const uint8_t to[6], const void *header,
                             uint32_t bytes);
void mx_fw_submit(struct myri *nic, struct myri_tx *tx);
/* The packet is read from a region of the endpoint: neither goes before it has left. */
void mx_fw_hold_region(struct myri_tx *tx, struct mx_fw_endpoint *endpoint, unsigned region);
/* Tells the sender of a packet that waits for something. */
void mx_fw_refuse(struct myri *nic, const struct ether_frame *frame, enum mx_nack nack);
/* The pieces of bytes of a region; their number, or 0: more than `most`. */
unsigned mx_fw_pieces(const struct mx_fw_region *region, uint64_t offset, uint32_t bytes,
                      struct myri_piece *piece, unsigned most);

/* myri_mx_pull.c */
void mx_fw_pull_begin(struct myri *nic, struct mx_fw_endpoint *endpoint,
                      const struct myri_mx_request *request);
/* Both free rx. */
void mx_fw_pull_reply(struct myri *nic, struct mx_fw_endpoint *endpoint, struct myri_rx *rx);
void mx_fw_pull_answer(struct myri *nic, struct mx_fw_endpoint *endpoint, struct myri_rx *rx);
void mx_fw_pull_refused(struct myri *nic, struct mx_fw_endpoint *endpoint,
                        const struct mx_nack_pull_header *nack);
/* Ends those into a region, or all (region < 0), of an endpoint, or of all (NULL), without an
 * event. */
void mx_fw_pulls_end(struct myri *nic, const struct mx_fw_endpoint *endpoint, int region);
void mx_fw_pulls_release(struct myri *nic);

#endif
