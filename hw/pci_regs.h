/*
 * Registers of the PCI configuration space and their bits. Offsets are in bytes; bits are masks of
 * the register's own width.
 *
 * Sources: PCI Local Bus 3.0, chapter 6 (header, MSI, MSI-X); PCI-to-PCI Bridge 1.2, chapter 3
 * (type 1 header); PCI Express Base 3.1, sections 7.5 (header as PCIe sees it), 7.8 (PCI Express
 * capability), 7.10 (advanced error reporting), 7.16 (access control services); SR-IOV 1.1, 3.3.
 */
#ifndef HW_PCI_REGS_H
#define HW_PCI_REGS_H

/* ---- Header, both types (PCI 3.0, 6.1) ------------------------------------------------------- */
#define PCI_VENDOR_ID    0x00u
#define PCI_DEVICE_ID    0x02u
#define PCI_COMMAND      0x04u
#define PCI_STATUS       0x06u
#define PCI_REVISION     0x08u
#define PCI_CLASS        0x09u /* three bytes: interface, subclass, base class */
#define PCI_CACHE_LINE   0x0cu
#define PCI_HEADER_TYPE  0x0eu
#define PCI_BAR0         0x10u
#define PCI_CAP_POINTER  0x34u
#define PCI_INTERRUPT    0x3cu
#define PCI_HEADER_BYTES 0x40u
#define PCI_STANDARD_END 0x100u  /* extended configuration space begins here */
#define PCI_CONFIG_BYTES 0x1000u /* both */
#define PCI_NO_DEVICE    0xffffu

#define PCI_COMMAND_MEMORY       0x0002u
#define PCI_COMMAND_BUS_MASTER   0x0004u
#define PCI_COMMAND_PARITY       0x0040u
#define PCI_COMMAND_SERR         0x0100u
#define PCI_COMMAND_INTX_DISABLE 0x0400u

#define PCI_STATUS_CAP_LIST              0x0010u
#define PCI_STATUS_MASTER_PARITY         0x0100u
#define PCI_STATUS_SIGNALED_TARGET_ABORT 0x0800u
#define PCI_STATUS_RECEIVED_TARGET_ABORT 0x1000u
#define PCI_STATUS_RECEIVED_MASTER_ABORT 0x2000u
#define PCI_STATUS_SIGNALED_SYSTEM_ERROR 0x4000u
#define PCI_STATUS_PARITY                0x8000u
#define PCI_STATUS_W1C                   0xf900u /* the six above */

#define PCI_HEADER_TYPE_MASK      0x7fu
#define PCI_HEADER_TYPE_BRIDGE    0x01u
#define PCI_HEADER_MULTI_FUNCTION 0x80u

/* ---- Base address registers (PCI 3.0, 6.2.5.1) ----------------------------------------------- */
#define PCI_N_BARS_ENDPOINT 6u
#define PCI_BARS_END        0x28u /* of a type 0 header */
#define PCI_N_BARS_BRIDGE   2u
#define PCI_BAR_IO          0x1u
#define PCI_BAR_TYPE_MASK   0x6u
#define PCI_BAR_TYPE_64     0x4u
#define PCI_BAR_PREFETCH    0x8u
#define PCI_BAR_FLAGS_MASK  0xfu

/* ---- Type 0 header --------------------------------------------------------------------------- */
#define PCI_SUBSYSTEM_VENDOR_ID 0x2cu
#define PCI_SUBSYSTEM_ID        0x2eu

/* ---- Type 1 header (PCI-to-PCI Bridge 1.2, 3.2) ---------------------------------------------- */
#define PCI_PRIMARY_BUS          0x18u
#define PCI_SECONDARY_BUS        0x19u
#define PCI_SUBORDINATE_BUS      0x1au
#define PCI_SECONDARY_STATUS     0x1eu
#define PCI_MEMORY_BASE          0x20u
#define PCI_MEMORY_LIMIT         0x22u
#define PCI_PREFETCH_BASE        0x24u
#define PCI_PREFETCH_LIMIT       0x26u
#define PCI_PREFETCH_BASE_UPPER  0x28u
#define PCI_PREFETCH_LIMIT_UPPER 0x2cu
#define PCI_BRIDGE_CONTROL       0x3eu
/* Bits 15:4 of a base or limit are address bits 31:20; the low digit tells the window's width. */
#define PCI_WINDOW_ADDRESS_MASK      0xfff0u
#define PCI_WINDOW_TYPE_MASK         0x000fu
#define PCI_WINDOW_TYPE_64           0x0001u
#define PCI_WINDOW_GRANULE_LOG2      20u
#define PCI_BRIDGE_CONTROL_PARITY    0x0001u
#define PCI_BRIDGE_CONTROL_SERR      0x0002u
#define PCI_BRIDGE_CONTROL_BUS_RESET 0x0040u

/* ---- Capabilities: identity, then the offset of the next ------------------------------------- */
#define PCI_CAP_POINTER_MASK 0xfcu /* of the pointer in the header and of those in capabilities */
#define PCI_CAPS_MAX         48u   /* the header leaves room for so many of 4 bytes */

#define PCI_CAP_ID_MSI  0x05u
#define PCI_CAP_ID_PCIE 0x10u
#define PCI_CAP_ID_MSIX 0x11u

/* MSI with 64-bit address and per-vector mask (PCI 3.0, 6.8.1) */
#define PCI_MSI_CONTROL               0x02u
#define PCI_MSI_ADDRESS               0x04u
#define PCI_MSI_ADDRESS_UPPER         0x08u
#define PCI_MSI_DATA                  0x0cu
#define PCI_MSI_MASK                  0x10u
#define PCI_MSI_PENDING               0x14u
#define PCI_MSI_BYTES                 0x18u
#define PCI_MSI_CONTROL_ENABLE        0x0001u
#define PCI_MSI_CONTROL_CAPABLE_SHIFT 1u /* log2 of the vectors offered */
#define PCI_MSI_CONTROL_ENABLED_SHIFT 4u /* log2 of the vectors granted */
#define PCI_MSI_CONTROL_ENABLED_MASK  0x0070u
#define PCI_MSI_CONTROL_64            0x0080u
#define PCI_MSI_CONTROL_MASKABLE      0x0100u

/* MSI-X (PCI 3.0, 6.8.2) */
#define PCI_MSIX_CONTROL               0x02u
#define PCI_MSIX_TABLE                 0x04u /* offset; bits 2:0 number the BAR */
#define PCI_MSIX_PBA                   0x08u
#define PCI_MSIX_BYTES                 0x0cu
#define PCI_MSIX_CONTROL_SIZE_MASK     0x07ffu /* vectors - 1 */
#define PCI_MSIX_CONTROL_FUNCTION_MASK 0x4000u
#define PCI_MSIX_CONTROL_ENABLE        0x8000u
#define PCI_MSIX_VECTORS_MAX           2048u
#define PCI_MSIX_BAR_MASK              0x7u
#define PCI_MSIX_ENTRY_BYTES           16u
#define PCI_MSIX_ENTRY_ADDRESS         0u
#define PCI_MSIX_ENTRY_DATA            8u
#define PCI_MSIX_ENTRY_CONTROL         12u
#define PCI_MSIX_ENTRY_MASKED          0x1u

/* ---- PCI Express capability, version 2 (PCIe 3.1, 7.8) --------------------------------------- */
#define PCIE_CAPABILITIES 0x02u
#define PCIE_DEVCAP       0x04u
#define PCIE_DEVCTL       0x08u
#define PCIE_DEVSTA       0x0au
#define PCIE_LNKCAP       0x0cu
#define PCIE_LNKCTL       0x10u
#define PCIE_LNKSTA       0x12u
#define PCIE_ROOTCTL      0x1cu
#define PCIE_ROOTSTA      0x20u
#define PCIE_DEVCAP2      0x24u
#define PCIE_DEVCTL2      0x28u
#define PCIE_LNKCAP2      0x2cu
#define PCIE_LNKCTL2      0x30u
#define PCIE_CAP_BYTES    0x3cu

#define PCIE_CAPABILITIES_VERSION    0x0002u
#define PCIE_CAPABILITIES_TYPE_SHIFT 4u
#define PCIE_CAPABILITIES_TYPE_MASK  0x00f0u

#define PCIE_DEVCAP_MPS_MASK     0x00000007u /* 128 bytes << code */
#define PCIE_DEVCAP_EXTENDED_TAG 0x00000020u
#define PCIE_DEVCAP_ROLE_BASED   0x00008000u
#define PCIE_DEVCAP_FLR          0x10000000u

#define PCIE_DEVCTL_REPORT           0x000fu /* correctable, non-fatal, fatal, unsupported */
#define PCIE_DEVCTL_RELAXED_ORDERING 0x0010u
#define PCIE_DEVCTL_MPS_SHIFT        5u
#define PCIE_DEVCTL_MPS_MASK         0x00e0u
#define PCIE_DEVCTL_EXTENDED_TAG     0x0100u
#define PCIE_DEVCTL_NO_SNOOP         0x0800u
#define PCIE_DEVCTL_MRRS_SHIFT       12u
#define PCIE_DEVCTL_MRRS_MASK        0x7000u
#define PCIE_DEVCTL_FLR              0x8000u /* initiate; reads as 0 */
#define PCIE_SIZE_CODE_512           2u      /* 128 bytes << 2 */
#define PCIE_SIZE_CODE_MAX           5u      /* 4096 bytes; 6 and 7 are reserved */

#define PCIE_DEVSTA_CORRECTABLE 0x0001u
#define PCIE_DEVSTA_NON_FATAL   0x0002u
#define PCIE_DEVSTA_FATAL       0x0004u
#define PCIE_DEVSTA_UNSUPPORTED 0x0008u

#define PCIE_LNKCAP_WIDTH_SHIFT   4u
#define PCIE_LNKCAP_ASPM_OPTIONAL 0x00400000u /* must be set since 3.0 */
#define PCIE_LNKCTL_RCB_128       0x0008u     /* read completion boundary; 64 bytes if clear */
#define PCIE_LNKCTL_WRITABLE      0x0ed3u     /* ASPM, disable, clocks, sync, interrupt enables */
#define PCIE_LNKCTL_FLR_KEEPS     0x03cbu     /* what a function-level reset leaves alone (6.6.2) */
#define PCIE_LNKSTA_SPEED_MASK    0x000fu
#define PCIE_LNKSTA_WIDTH_SHIFT   4u
#define PCIE_LNKSTA_WIDTH_MASK    0x03f0u
#define PCIE_LNKSTA_DLL_ACTIVE    0x2000u
#define PCIE_LNKCAP2_SPEED_SHIFT  1u
#define PCIE_LNKCTL2_SPEED_MASK   0x000fu
#define PCIE_ROOTCTL_WRITABLE     0x000fu
#define PCIE_ROOTSTA_PME          0x00010000u

#define PCIE_DEVCAP2_TIMEOUT_DISABLE 0x00000010u
#define PCIE_DEVCTL2_TIMEOUT_DISABLE 0x0010u
#define PCIE_DEVCTL2_IDO_REQUEST     0x0100u
#define PCIE_DEVCTL2_IDO_COMPLETION  0x0200u

/* ---- Extended capabilities: id 15:0, version 19:16, next 31:20 (PCIe 3.1, 7.9) --------------- */
#define PCI_ECAP_ID_AER        0x0001u
#define PCI_ECAP_ID_ACS        0x000du
#define PCI_ECAP_ID_MULTICAST  0x0012u
#define PCI_ECAP_ID_ATS        0x000fu
#define PCI_ECAP_ID_SRIOV      0x0010u
#define PCI_ECAP_VERSION_SHIFT 16u
#define PCI_ECAP_NEXT_SHIFT    20u

/* Advanced error reporting (7.10) */
#define PCI_AER_VERSION                2u
#define PCI_AER_UNCORRECTABLE          0x04u
#define PCI_AER_UNCORRECTABLE_MASK     0x08u
#define PCI_AER_SEVERITY               0x0cu
#define PCI_AER_CORRECTABLE            0x10u
#define PCI_AER_CORRECTABLE_MASK       0x14u
#define PCI_AER_CONTROL                0x18u
#define PCI_AER_BYTES                  0x48u
#define PCI_AER_DATA_LINK              0x00000010u
#define PCI_AER_SURPRISE_DOWN          0x00000020u
#define PCI_AER_POISONED               0x00001000u
#define PCI_AER_FLOW_CONTROL           0x00002000u
#define PCI_AER_COMPLETION_TIMEOUT     0x00004000u
#define PCI_AER_COMPLETER_ABORT        0x00008000u
#define PCI_AER_UNEXPECTED             0x00010000u
#define PCI_AER_OVERFLOW               0x00020000u
#define PCI_AER_MALFORMED              0x00040000u
#define PCI_AER_ECRC                   0x00080000u
#define PCI_AER_UNSUPPORTED            0x00100000u
#define PCI_AER_ACS_VIOLATION          0x00200000u
#define PCI_AER_ECRC_GENERATION        0x00000020u /* of PCI_AER_CONTROL: can */
#define PCI_AER_ECRC_GENERATION_ENABLE 0x00000040u
#define PCI_AER_ECRC_CHECK             0x00000080u
#define PCI_AER_ECRC_CHECK_ENABLE      0x00000100u
#define PCI_AER_UNCORRECTABLE_ALL      0x003ff030u
#define PCI_AER_SEVERITY_DEFAULT       0x00062030u /* data link, down, flow, overflow, malformed */
#define PCI_AER_CORRECTABLE_ALL        0x000031c1u
#define PCI_AER_CORRECTABLE_MASKED     0x00002000u /* advisory non-fatal is masked at reset */

/* Access control services (7.16) */
#define PCI_ACS_VERSION             1u
#define PCI_ACS_CAPABILITY          0x04u
#define PCI_ACS_CONTROL             0x06u
#define PCI_ACS_BYTES               0x08u
#define PCI_ACS_SOURCE_VALIDATION   0x0001u
#define PCI_ACS_TRANSLATION_BLOCK   0x0002u
#define PCI_ACS_REQUEST_REDIRECT    0x0004u
#define PCI_ACS_COMPLETION_REDIRECT 0x0008u
#define PCI_ACS_UPSTREAM_FORWARDING 0x0010u
#define PCI_ACS_DIRECT_TRANSLATED   0x0040u

/* Single root I/O virtualization (SR-IOV 1.1, 3.3) */
#define PCI_SRIOV_VERSION         1u
#define PCI_SRIOV_CONTROL         0x08u
#define PCI_SRIOV_INITIAL_VFS     0x0cu
#define PCI_SRIOV_TOTAL_VFS       0x0eu
#define PCI_SRIOV_NUM_VFS         0x10u
#define PCI_SRIOV_OFFSET          0x14u /* requester ID of the first VF less the PF's */
#define PCI_SRIOV_STRIDE          0x16u
#define PCI_SRIOV_VF_DEVICE_ID    0x1au
#define PCI_SRIOV_PAGE_SIZES      0x1cu
#define PCI_SRIOV_SYSTEM_PAGE     0x20u
#define PCI_SRIOV_BAR0            0x24u
#define PCI_SRIOV_BYTES           0x40u
#define PCI_SRIOV_CONTROL_ENABLE  0x0001u
#define PCI_SRIOV_CONTROL_MEMORY  0x0008u
#define PCI_SRIOV_PAGE_SIZES_MUST 0x00000553u /* 4, 8, 64, 256 KiB, 1, 4 MiB */
#define PCI_SRIOV_PAGE_4K         0x00000001u

/* Multicast (PCIe 3.1, 7.21); as ports of switches and root ports have it. */
#define PCI_MC_VERSION            1u
#define PCI_MC_CAPABILITY         0x04u
#define PCI_MC_CONTROL            0x06u
#define PCI_MC_BASE               0x08u /* 63:12; index position in 5:0 */
#define PCI_MC_RECEIVE            0x10u
#define PCI_MC_BLOCK_ALL          0x18u
#define PCI_MC_BLOCK_UNTRANSLATED 0x20u
#define PCI_MC_OVERLAY            0x28u /* 63:6; size as log2 in 5:0 */
#define PCI_MC_BYTES              0x30u
#define PCI_MC_GROUP_MASK         0x003fu /* last group, in capability and control */
#define PCI_MC_CONTROL_ENABLE     0x8000u
#define PCI_MC_POSITION_MASK      0x3fu
#define PCI_MC_POSITION_MIN       12u
#define PCI_MC_OVERLAY_MIN        6u

#endif
