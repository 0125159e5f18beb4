/*
 * Capsules of NVM Express over Fabrics 1.0 and their transport by RDMA, as far as our target and
 * our initiator use them. All fields are little endian. What is not here is as in hw/nvme_regs.h.
 */
#ifndef HW_NVMEOF_REGS_H
#define HW_NVMEOF_REGS_H

#include "hw/nvme_regs.h"

/* ---- Command capsules (2.1): a submission queue entry, then data ----------------------------- */
#define NVMEOF_COMMAND_BYTES  64u
#define NVMEOF_RESPONSE_BYTES 16u

#define NVMEOF_OPCODE 0x7fu /* of Fabrics commands (3) */
enum nvmeof_type {          /* byte 4 */
                   NVMEOF_PROPERTY_SET = 0x00,
                   NVMEOF_CONNECT = 0x01,
                   NVMEOF_PROPERTY_GET = 0x04,
};
#define NVME_ADMIN_KEEP_ALIVE 0x18u /* NVM Express 1.3, 5.16 */

/* An SGL descriptor in bytes 24 to 39 of a command (2.3.3, 7.3.5). */
#define NVMEOF_SGL_OFFSET 24u
struct nvmeof_sgl {
    uint64_t address; /* of the peer's memory, or an offset in the capsule's data */
    uint8_t bytes[3];
    uint8_t key[4]; /* of keyed ones; of others the highest byte of their length, then zeros */
    uint8_t type;
};
_Static_assert(sizeof(struct nvmeof_sgl) == NVME_SGL_BYTES, "an SGL descriptor");
_Static_assert(offsetof(struct nvmeof_sgl, key) == 11, "key");
enum nvmeof_sgl_type {
    NVMEOF_SGL_IN_CAPSULE = 0x01, /* data block, offset */
    NVMEOF_SGL_KEYED = 0x40,      /* keyed data block, address */
};

/* Connect (3.3). */
struct nvmeof_connect {
    uint8_t opcode, flags;
    uint16_t cid;
    uint8_t type, reserved1[19];
    struct nvmeof_sgl data; /* NVMEOF_CONNECT_BYTES */
    uint16_t format;        /* 0 */
    uint16_t qid;           /* 0: the admin queue, which makes a controller */
    uint16_t entries;       /* of the submission queue, less one */
    uint8_t attributes, reserved2;
    uint32_t keep_alive_ms; /* 0: none */
    uint8_t reserved3[12];
};
_Static_assert(sizeof(struct nvmeof_connect) == NVMEOF_COMMAND_BYTES, "Connect");
_Static_assert(offsetof(struct nvmeof_connect, data) == NVMEOF_SGL_OFFSET, "SGL");
_Static_assert(offsetof(struct nvmeof_connect, format) == 40, "format");
_Static_assert(offsetof(struct nvmeof_connect, keep_alive_ms) == 48, "keep alive");

#define NVMEOF_CONNECT_BYTES  1024u
#define NVMEOF_NQN_BYTES      256u
#define NVMEOF_CNTLID_DYNAMIC 0xffffu
struct nvmeof_connect_data {
    uint8_t host_id[16];
    uint16_t cntlid; /* NVMEOF_CNTLID_DYNAMIC of admin queues */
    uint8_t reserved1[238];
    char subsystem[NVMEOF_NQN_BYTES], host[NVMEOF_NQN_BYTES];
    uint8_t reserved2[256];
};
_Static_assert(sizeof(struct nvmeof_connect_data) == NVMEOF_CONNECT_BYTES, "data of Connect");
_Static_assert(offsetof(struct nvmeof_connect_data, subsystem) == 256, "subsystem");

/* Property Get and Set (3.4, 3.5): registers of the controller by their offsets. */
struct nvmeof_property {
    uint8_t opcode, flags;
    uint16_t cid;
    uint8_t type, reserved1[35];
    uint8_t size; /* 0: 4 bytes, 1: 8 */
    uint8_t reserved2[3];
    uint32_t offset;
    uint64_t value; /* of Set */
    uint8_t reserved3[8];
};
_Static_assert(sizeof(struct nvmeof_property) == NVMEOF_COMMAND_BYTES, "a property command");
_Static_assert(offsetof(struct nvmeof_property, size) == 40, "size");
_Static_assert(offsetof(struct nvmeof_property, value) == 48, "value");

/* ---- Response capsules (2.2): a completion queue entry without phase ------------------------- */
struct nvmeof_response {
    uint64_t result;
    uint16_t sq_head, reserved;
    uint16_t cid;
    uint16_t status; /* bits 15:1: enum nvme_status, enum nvmeof_status */
};
_Static_assert(sizeof(struct nvmeof_response) == NVMEOF_RESPONSE_BYTES, "a response");
_Static_assert(offsetof(struct nvmeof_response, cid) == 12, "cid");

enum nvmeof_status { /* 3.3.2, and NVM Express 1.3, 4.6.1.2.1 */
                     NVMEOF_SC_SGL_OFFSET_INVALID = 0x016,
                     NVMEOF_SC_KEEP_ALIVE_EXPIRED = 0x019,
                     NVMEOF_SC_INCOMPATIBLE_FORMAT = 0x180,
                     NVMEOF_SC_CONTROLLER_BUSY = 0x181,
                     NVMEOF_SC_INVALID_PARAMETERS = 0x182,
};

/* ---- Identify Controller, what Fabrics adds (4.1) -------------------------------------------- */
enum nvmeof_id_ctrl_offset {
    NVMEOF_ID_CTRL_KAS = 320,     /* granularity of keep-alive, 100 ms */
    NVMEOF_ID_CTRL_IOCCSZ = 1792, /* 4 bytes: command capsule of I/O queues, 16 bytes */
    NVMEOF_ID_CTRL_IORCSZ = 1796, /* 4 bytes: response capsule, 16 bytes */
    NVMEOF_ID_CTRL_ICDOFF = 1800, /* 2 bytes: where in-capsule data begins, 16 bytes */
    NVMEOF_ID_CTRL_MSDBD = 1803,  /* SGL descriptors of a command at most */
};
#define NVMEOF_SGLS_KEYED  0x4u
#define NVMEOF_SGLS_OFFSET 0x100000u

#endif
