/*
 * The data sheet of our non-transparent bridge and of the switches between bridges: what software
 * writes and reads and the models act on. It is laid out like the bridge functions of PLX and
 * Microsemi chips (apertures cut into windows, an address table, tables of requesters in both
 * directions, doorbells, scratchpads). The numbers are our own, but for the DMA engine, which is
 * PLX's. All fields are little endian. Drivers: logic/lending/adapter.c, ntb_dmaengine.c. Models:
 * models/pcie/ntb/.
 *
 * The fabric between bridges has an address space of its own, which belongs to no host: every
 * bridge is a node, and node n owns the 2^48 bytes from n << 48 on:
 *
 *   63        48 47 46                     0
 *   +-----------+--+------------------------+
 *   | node      |R | address                |
 *   +-----------+--+------------------------+
 *
 * R clear: the address in the host of that node. R set: registers of the bridge itself (or, if the
 * node is a switch, of the switch), NTB_FABRIC_* and CLUSTER_*. Node 0 is the other end of the
 * cable. Node 0xffff is every subscriber of the multicast group.
 *
 * A requester on the fabric is (node, device 0..31, function): the device is its index in the table
 * of outgoing requesters of its node's bridge. Bits 23:8, 7:3 and 2:0 of the entries below.
 */
#ifndef HW_NTB_REGS_H
#define HW_NTB_REGS_H

#include <stddef.h>
#include <stdint.h>

#define NTB_NODE_SHIFT          48u
#define NTB_NODE_PARTNER        0u /* the other end of the cable */
#define NTB_NODE_MULTICAST      0xffffu
#define NTB_NODE_MAX            0xfffeu
#define NTB_FABRIC_REGISTERS    (UINT64_C(1) << 47)
#define NTB_FABRIC_ADDRESS_MASK (NTB_FABRIC_REGISTERS - 1)

/* ---- BAR 0: registers, written and read as whole 4 or 8 bytes -------------------------------- */
#define NTB_VENDOR_ID 0x10b5u /* PLX */
#define NTB_DEVICE_ID 0x87b0u /* bridge function of a PEX87xx, virtual side */
#define NTB_BAR_BYTES 0x20000u

#define NTB_REG_ID          0x0000u /* NTB_ID; read only */
#define NTB_REG_CONTROL     0x0004u
#define NTB_REG_STATUS      0x0008u
#define NTB_REG_NODE        0x000cu /* own node on the fabric; read only */
#define NTB_REG_WINDOWS     0x0010u /* of BAR 2 in 15:0, of BAR 4 in 31:16; read only */
#define NTB_REG_WINDOW_LOG2 0x0014u /* bytes per window, log2: 7:0 and 15:8; read only */
#define NTB_REG_REQUESTERS  0x0018u /* entries: outgoing 15:0, incoming 31:16; read only */
#define NTB_REG_DOORBELL    0x0020u /* rung and not cleared; writing 1 clears */
/* 1: this doorbell raises no interrupt until the bit is cleared. All ones at reset. */
#define NTB_REG_DOORBELL_MASK 0x0024u
/* Incoming multicast: enable 31, index position 13:8, last group 5:0. */
#define NTB_REG_MC_CONTROL 0x0030u
#define NTB_REG_MC_RECEIVE 0x0038u /* 64 bits: groups that this host has subscribed to */
/* 64 bits: bits 63:6 of the host address replace the upper bits of the group's; 5:0: log2 of the
 * bytes that remain (at least 6; less: overlay off, the bridge refuses multicast). */
#define NTB_REG_MC_OVERLAY 0x0040u
#define NTB_REG_SCRATCHPAD 0x0080u /* 16 of 4 bytes, visible on the fabric as well */
#define NTB_REG_OUTGOING   0x1000u /* 4 bytes per requester of this host */
#define NTB_REG_INCOMING   0x1400u /* 4 bytes per requester of other hosts */
#define NTB_REG_MSIX_TABLE 0x2000u
#define NTB_REG_MSIX_PBA   0x3000u
#define NTB_REG_LUT2       0x10000u /* 8 bytes per window of BAR 2 */
#define NTB_REG_LUT4       0x18000u /* 8 bytes per window of BAR 4 */

#define NTB_ID 0x4e544201u

#define NTB_CONTROL_SEND   0x1u /* requests from this host pass */
#define NTB_CONTROL_ACCEPT 0x2u /* requests from the fabric pass */

#define NTB_STATUS_LINK_UP     0x1u
#define NTB_STATUS_LINK_CHANGE 0x2u /* writing 1 clears */

#define NTB_N_DOORBELLS   32u
#define NTB_N_SCRATCHPADS 16u
#define NTB_VECTOR_LINK   32u /* MSI-X: doorbell n raises vector n, a change of the link this one */
#define NTB_N_VECTORS     33u
#define NTB_WINDOWS_MAX   4096u /* per BAR */
#define NTB_OUTGOING_MAX  32u
#define NTB_INCOMING_MAX  248u
#define NTB_MC_GROUPS_MAX 64u
#define NTB_MC_LOG2_MIN   12u /* smallest group and overlay that the fabric passes on: 4 KiB */

/* Address table: an entry holds the fabric address of its window, a multiple of the window size. */
#define NTB_LUT_VALID UINT64_C(1)

/* Outgoing requesters: bus and device in this host (15:3), for all functions of the device. The
 * CPUs of a socket appear as their root complex. The index is the device number on the fabric. */
#define NTB_OUTGOING_VALID   (UINT32_C(1) << 31)
#define NTB_OUTGOING_ID_MASK 0xfff8u

/* Incoming requesters: (node, device, function) on the fabric. In this host, entry i appears as
 * function number 8 + i (device:function, 8 bits) of the bridge's bus. */
#define NTB_INCOMING_VALID         (UINT32_C(1) << 31)
#define NTB_INCOMING_ID_MASK       0xffffffu
#define NTB_INCOMING_NODE_SHIFT    8u
#define NTB_INCOMING_DEVICE_SHIFT  3u
#define NTB_INCOMING_FUNCTION_BASE 8u

/* ---- A bridge's registers as the fabric sees them -------------------------------------------- */
#define NTB_FABRIC_ID         0x00u /* NTB_ID; read only */
#define NTB_FABRIC_NODE       0x04u /* read only */
#define NTB_FABRIC_DOORBELL   0x08u /* writing 1 rings */
#define NTB_FABRIC_SCRATCHPAD 0x40u

/* ---- A switch's registers, on the fabric ----------------------------------------------------- */
#define CLUSTER_ID         0x00u  /* CLUSTER_SWITCH_ID; read only */
#define CLUSTER_NODE       0x04u  /* read only */
#define CLUSTER_PORTS      0x08u  /* read only */
#define CLUSTER_REQUESTERS 0x0cu  /* entries in use 15:0, there are 31:16; read only */
#define CLUSTER_LINKS      0x10u  /* 64 bits: ports with a cable whose link is up; read only */
#define CLUSTER_MC_CONTROL 0x18u  /* as NTB_REG_MC_CONTROL */
#define CLUSTER_MC_RECEIVE 0x400u /* 8 bytes per port: groups that the port sends */
#define CLUSTER_MC_BLOCK   0x800u /* 8 bytes per port: groups that the port refuses */
/* 4 bytes per port: what the port is, and the node at the other end of its cable; read only. */
#define CLUSTER_NEIGHBOUR   0xc00u
#define CLUSTER_ROUTE       0x100000u /* 4 bytes per node: valid 31, port 7:0 */
#define CLUSTER_REQUESTER   0x200000u /* 4 bytes per node: its devices that hold an entry */
#define CLUSTER_SWITCH_ID   0x4e544301u
#define CLUSTER_ROUTE_VALID (UINT32_C(1) << 31)
/* Its link is up; the neighbour is a switch; Max_Payload_Size that the port supports (128 bytes <<
 * x); the neighbour's number. */
#define CLUSTER_NEIGHBOUR_VALID     (UINT32_C(1) << 31)
#define CLUSTER_NEIGHBOUR_SWITCH    (UINT32_C(1) << 30)
#define CLUSTER_NEIGHBOUR_MPS_SHIFT 24u
#define CLUSTER_NEIGHBOUR_MPS_MASK  7u
#define CLUSTER_NEIGHBOUR_NODE_MASK 0xffffu

#define NTB_MC_ENABLE          (UINT32_C(1) << 31)
#define NTB_MC_POSITION_SHIFT  8u
#define NTB_MC_POSITION_MASK   0x3fu
#define NTB_MC_LAST_GROUP_MASK 0x3fu

/* ---- Function 1: the DMA engine of the chip -------------------------------------------------- */
/* As in the DMA functions of PLX 87xx: channels, each with a ring of descriptors in host memory
 * that the chip fetches, executes in order and writes back. Addresses are those of the host's PCIe
 * tree; one in an aperture of the bridge goes to the fabric within the chip, with the requester ID
 * of this function, which needs entries in the tables of requesters like any other.
 *
 * BAR 0, written and read as whole 4 bytes: */
#define NTB_DMA_DEVICE_ID      0x87d0u
#define NTB_DMA_CLASS          0x088000u /* other system peripheral */
#define NTB_DMA_FUNCTION       1u
#define NTB_DMA_BAR_BYTES      0x2000u
#define NTB_DMA_CHANNELS_MAX   4u
#define NTB_DMA_REG_CHANNELS   0x01f8u /* how many; read only */
#define NTB_DMA_REG_MSIX_TABLE 0x1000u /* vector n is that of channel n */
#define NTB_DMA_REG_MSIX_PBA   0x1800u
#define NTB_DMA_CHANNEL(n)     (0x0200u + 0x100u * (n))
/* Of a channel. */
#define NTB_DMA_RING_LOW  0x14u /* address of the ring, a multiple of 64; written while stopped */
#define NTB_DMA_RING_HIGH 0x18u
#define NTB_DMA_NEXT_LOW  0x1cu /* the next descriptor to fetch; writable */
#define NTB_DMA_RING_SIZE 0x20u /* descriptors */
#define NTB_DMA_LAST_LOW  0x24u /* the last descriptor executed; read only */
#define NTB_DMA_LAST_SIZE 0x28u /* bytes that it moved; read only */
#define NTB_DMA_PREFETCH  0x34u /* descriptors fetched ahead, 1 to NTB_DMA_PREFETCH_MAX */
#define NTB_DMA_CONTROL   0x38u
#define NTB_DMA_INTERRUPT 0x3cu

#define NTB_DMA_PREFETCH_MAX 8u

#define NTB_DMA_CONTROL_PAUSE       0x00000001u /* stop fetching, finish the fetched descriptors */
#define NTB_DMA_CONTROL_START       0x00000008u /* fetch from the ring (again) */
#define NTB_DMA_CONTROL_INVALID     0x00000100u /* stopped at an invalid descriptor; 1 clears */
#define NTB_DMA_CONTROL_PAUSE_DONE  0x00000200u /* 1 clears */
#define NTB_DMA_CONTROL_STATUS      0x00000300u
#define NTB_DMA_CONTROL_SIZE_SHIFT  16u /* largest read: 64 bytes << this, 0 to 5; writable */
#define NTB_DMA_CONTROL_SIZE_MASK   0x00070000u
#define NTB_DMA_CONTROL_IN_PROGRESS 0x40000000u /* read only */
#define NTB_DMA_SIZE_MIN            64u
#define NTB_DMA_SIZE_MAX            2048u

#define NTB_DMA_INTERRUPT_ERROR_ENABLE 0x00000001u
#define NTB_DMA_INTERRUPT_ENABLES      0x00000001u
#define NTB_DMA_INTERRUPT_ERROR        0x00010000u /* this and the next: writing 1 clears */
#define NTB_DMA_INTERRUPT_DONE         0x00040000u
#define NTB_DMA_INTERRUPT_STATUS       0x00050000u

/* A descriptor. When the last byte has left the chip, it writes the first word back: valid clear,
 * one of the results, the number of bytes. After a failure the channel stops before the next
 * one. */
struct ntb_dma_descriptor {
    uint32_t flags_bytes;
    uint16_t destination_high, source_high; /* bits 47:32 */
    uint32_t destination_low, source_low;
};
_Static_assert(sizeof(struct ntb_dma_descriptor) == 16, "descriptor");
_Static_assert(offsetof(struct ntb_dma_descriptor, flags_bytes) == 0, "flags_bytes");
_Static_assert(offsetof(struct ntb_dma_descriptor, destination_high) == 4, "destination_high");
_Static_assert(offsetof(struct ntb_dma_descriptor, source_high) == 6, "source_high");
_Static_assert(offsetof(struct ntb_dma_descriptor, destination_low) == 8, "destination_low");
_Static_assert(offsetof(struct ntb_dma_descriptor, source_low) == 12, "source_low");
#define NTB_DMA_VALID      (UINT32_C(1) << 31)
#define NTB_DMA_NOTIFY     (UINT32_C(1) << 30) /* raise the channel's vector when done */
#define NTB_DMA_OK         (UINT32_C(1) << 30) /* written back: these three */
#define NTB_DMA_READ_FAIL  (UINT32_C(1) << 29)
#define NTB_DMA_WRITE_FAIL (UINT32_C(1) << 28)
#define NTB_DMA_BYTES_MASK UINT32_C(0x7ffffff)

#endif
