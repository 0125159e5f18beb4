/*
 * hw/pci_regs.h against Linux' <linux/pci_regs.h>, which others typed from the same specifications;
 * what Linux does not name, against numbers typed from the specification that is named beside them.
 */
#include "hw/pci_regs.h"
#include "tests/hw/hw_vectors.h"

/* X(constant of hw/pci_regs.h, the same by Linux). Some names are in both headers, so this list is
 * expanded twice: for the left column before Linux' header is included, for the right one
 * behind. */
#define BY_LINUX(X)                                                                              \
    X(PCI_VENDOR_ID, PCI_VENDOR_ID)                                                              \
    X(PCI_DEVICE_ID, PCI_DEVICE_ID)                                                              \
    X(PCI_COMMAND, PCI_COMMAND)                                                                  \
    X(PCI_STATUS, PCI_STATUS)                                                                    \
    X(PCI_REVISION, PCI_REVISION_ID)                                                             \
    X(PCI_CLASS, PCI_CLASS_PROG)                                                                 \
    X(PCI_CACHE_LINE, PCI_CACHE_LINE_SIZE)                                                       \
    X(PCI_HEADER_TYPE, PCI_HEADER_TYPE)                                                          \
    X(PCI_BAR0, PCI_BASE_ADDRESS_0)                                                              \
    X(PCI_CAP_POINTER, PCI_CAPABILITY_LIST)                                                      \
    X(PCI_INTERRUPT, PCI_INTERRUPT_LINE)                                                         \
    X(PCI_HEADER_BYTES, PCI_STD_HEADER_SIZEOF)                                                   \
    X(PCI_STANDARD_END, PCI_CFG_SPACE_SIZE)                                                      \
    X(PCI_CONFIG_BYTES, PCI_CFG_SPACE_EXP_SIZE)                                                  \
    X(PCI_COMMAND_MEMORY, PCI_COMMAND_MEMORY)                                                    \
    X(PCI_COMMAND_BUS_MASTER, PCI_COMMAND_MASTER)                                                \
    X(PCI_COMMAND_PARITY, PCI_COMMAND_PARITY)                                                    \
    X(PCI_COMMAND_SERR, PCI_COMMAND_SERR)                                                        \
    X(PCI_COMMAND_INTX_DISABLE, PCI_COMMAND_INTX_DISABLE)                                        \
    X(PCI_STATUS_CAP_LIST, PCI_STATUS_CAP_LIST)                                                  \
    X(PCI_STATUS_MASTER_PARITY, PCI_STATUS_PARITY)                                               \
    X(PCI_STATUS_SIGNALED_TARGET_ABORT, PCI_STATUS_SIG_TARGET_ABORT)                             \
    X(PCI_STATUS_RECEIVED_TARGET_ABORT, PCI_STATUS_REC_TARGET_ABORT)                             \
    X(PCI_STATUS_RECEIVED_MASTER_ABORT, PCI_STATUS_REC_MASTER_ABORT)                             \
    X(PCI_STATUS_SIGNALED_SYSTEM_ERROR, PCI_STATUS_SIG_SYSTEM_ERROR)                             \
    X(PCI_STATUS_PARITY, PCI_STATUS_DETECTED_PARITY)                                             \
    X(PCI_STATUS_W1C, PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT |                          \
                          PCI_STATUS_REC_TARGET_ABORT | PCI_STATUS_REC_MASTER_ABORT |            \
                          PCI_STATUS_SIG_SYSTEM_ERROR | PCI_STATUS_DETECTED_PARITY)              \
    X(PCI_HEADER_TYPE_MASK, PCI_HEADER_TYPE_MASK)                                                \
    X(PCI_HEADER_TYPE_BRIDGE, PCI_HEADER_TYPE_BRIDGE)                                            \
    X(PCI_N_BARS_ENDPOINT, (PCI_BASE_ADDRESS_5 - PCI_BASE_ADDRESS_0) / 4 + 1)                    \
    X(PCI_BARS_END, PCI_BASE_ADDRESS_5 + 4)                                                      \
    X(PCI_N_BARS_BRIDGE, (PCI_PRIMARY_BUS - PCI_BASE_ADDRESS_0) / 4)                             \
    X(PCI_BAR_IO, PCI_BASE_ADDRESS_SPACE_IO)                                                     \
    X(PCI_BAR_TYPE_MASK, PCI_BASE_ADDRESS_MEM_TYPE_MASK)                                         \
    X(PCI_BAR_TYPE_64, PCI_BASE_ADDRESS_MEM_TYPE_64)                                             \
    X(PCI_BAR_PREFETCH, PCI_BASE_ADDRESS_MEM_PREFETCH)                                           \
    X(PCI_BAR_FLAGS_MASK, ~PCI_BASE_ADDRESS_MEM_MASK)                                            \
    X(PCI_SUBSYSTEM_VENDOR_ID, PCI_SUBSYSTEM_VENDOR_ID)                                          \
    X(PCI_SUBSYSTEM_ID, PCI_SUBSYSTEM_ID)                                                        \
    X(PCI_PRIMARY_BUS, PCI_PRIMARY_BUS)                                                          \
    X(PCI_SECONDARY_BUS, PCI_SECONDARY_BUS)                                                      \
    X(PCI_SUBORDINATE_BUS, PCI_SUBORDINATE_BUS)                                                  \
    X(PCI_SECONDARY_STATUS, PCI_SEC_STATUS)                                                      \
    X(PCI_MEMORY_BASE, PCI_MEMORY_BASE)                                                          \
    X(PCI_MEMORY_LIMIT, PCI_MEMORY_LIMIT)                                                        \
    X(PCI_PREFETCH_BASE, PCI_PREF_MEMORY_BASE)                                                   \
    X(PCI_PREFETCH_LIMIT, PCI_PREF_MEMORY_LIMIT)                                                 \
    X(PCI_PREFETCH_BASE_UPPER, PCI_PREF_BASE_UPPER32)                                            \
    X(PCI_PREFETCH_LIMIT_UPPER, PCI_PREF_LIMIT_UPPER32)                                          \
    X(PCI_BRIDGE_CONTROL, PCI_BRIDGE_CONTROL)                                                    \
    X(PCI_WINDOW_ADDRESS_MASK, PCI_MEMORY_RANGE_MASK & 0xffff)                                   \
    X(PCI_WINDOW_TYPE_MASK, PCI_PREF_RANGE_TYPE_MASK)                                            \
    X(PCI_WINDOW_TYPE_64, PCI_PREF_RANGE_TYPE_64)                                                \
    X(PCI_BRIDGE_CONTROL_PARITY, PCI_BRIDGE_CTL_PARITY)                                          \
    X(PCI_BRIDGE_CONTROL_SERR, PCI_BRIDGE_CTL_SERR)                                              \
    X(PCI_BRIDGE_CONTROL_BUS_RESET, PCI_BRIDGE_CTL_BUS_RESET)                                    \
    X(PCI_CAPS_MAX, (PCI_CFG_SPACE_SIZE - PCI_STD_HEADER_SIZEOF) / PCI_CAP_SIZEOF)               \
    X(PCI_CAP_ID_MSI, PCI_CAP_ID_MSI)                                                            \
    X(PCI_CAP_ID_PCIE, PCI_CAP_ID_EXP)                                                           \
    X(PCI_CAP_ID_MSIX, PCI_CAP_ID_MSIX)                                                          \
    X(PCI_MSI_CONTROL, PCI_MSI_FLAGS)                                                            \
    X(PCI_MSI_ADDRESS, PCI_MSI_ADDRESS_LO)                                                       \
    X(PCI_MSI_ADDRESS_UPPER, PCI_MSI_ADDRESS_HI)                                                 \
    X(PCI_MSI_DATA, PCI_MSI_DATA_64)                                                             \
    X(PCI_MSI_MASK, PCI_MSI_MASK_64)                                                             \
    X(PCI_MSI_PENDING, PCI_MSI_PENDING_64)                                                       \
    X(PCI_MSI_BYTES, PCI_MSI_PENDING_64 + 4)                                                     \
    X(PCI_MSI_CONTROL_ENABLE, PCI_MSI_FLAGS_ENABLE)                                              \
    X(PCI_MSI_CONTROL_CAPABLE_SHIFT, __builtin_ctz(PCI_MSI_FLAGS_QMASK))                         \
    X(PCI_MSI_CONTROL_ENABLED_SHIFT, __builtin_ctz(PCI_MSI_FLAGS_QSIZE))                         \
    X(PCI_MSI_CONTROL_ENABLED_MASK, PCI_MSI_FLAGS_QSIZE)                                         \
    X(PCI_MSI_CONTROL_64, PCI_MSI_FLAGS_64BIT)                                                   \
    X(PCI_MSI_CONTROL_MASKABLE, PCI_MSI_FLAGS_MASKBIT)                                           \
    X(PCI_MSIX_CONTROL, PCI_MSIX_FLAGS)                                                          \
    X(PCI_MSIX_TABLE, PCI_MSIX_TABLE)                                                            \
    X(PCI_MSIX_PBA, PCI_MSIX_PBA)                                                                \
    X(PCI_MSIX_BYTES, PCI_CAP_MSIX_SIZEOF)                                                       \
    X(PCI_MSIX_CONTROL_SIZE_MASK, PCI_MSIX_FLAGS_QSIZE)                                          \
    X(PCI_MSIX_CONTROL_FUNCTION_MASK, PCI_MSIX_FLAGS_MASKALL)                                    \
    X(PCI_MSIX_CONTROL_ENABLE, PCI_MSIX_FLAGS_ENABLE)                                            \
    X(PCI_MSIX_VECTORS_MAX, PCI_MSIX_FLAGS_QSIZE + 1)                                            \
    X(PCI_MSIX_BAR_MASK, PCI_MSIX_TABLE_BIR)                                                     \
    X(PCI_MSIX_ENTRY_BYTES, PCI_MSIX_ENTRY_SIZE)                                                 \
    X(PCI_MSIX_ENTRY_ADDRESS, PCI_MSIX_ENTRY_LOWER_ADDR)                                         \
    X(PCI_MSIX_ENTRY_DATA, PCI_MSIX_ENTRY_DATA)                                                  \
    X(PCI_MSIX_ENTRY_CONTROL, PCI_MSIX_ENTRY_VECTOR_CTRL)                                        \
    X(PCI_MSIX_ENTRY_MASKED, PCI_MSIX_ENTRY_CTRL_MASKBIT)                                        \
    X(PCIE_CAPABILITIES, PCI_EXP_FLAGS)                                                          \
    X(PCIE_DEVCAP, PCI_EXP_DEVCAP)                                                               \
    X(PCIE_DEVCTL, PCI_EXP_DEVCTL)                                                               \
    X(PCIE_DEVSTA, PCI_EXP_DEVSTA)                                                               \
    X(PCIE_LNKCAP, PCI_EXP_LNKCAP)                                                               \
    X(PCIE_LNKCTL, PCI_EXP_LNKCTL)                                                               \
    X(PCIE_LNKSTA, PCI_EXP_LNKSTA)                                                               \
    X(PCIE_ROOTCTL, PCI_EXP_RTCTL)                                                               \
    X(PCIE_ROOTSTA, PCI_EXP_RTSTA)                                                               \
    X(PCIE_DEVCAP2, PCI_EXP_DEVCAP2)                                                             \
    X(PCIE_DEVCTL2, PCI_EXP_DEVCTL2)                                                             \
    X(PCIE_LNKCAP2, PCI_EXP_LNKCAP2)                                                             \
    X(PCIE_LNKCTL2, PCI_EXP_LNKCTL2)                                                             \
    X(PCIE_CAPABILITIES_VERSION, PCI_EXP_FLAGS_VERS & 2)                                         \
    X(PCIE_CAPABILITIES_TYPE_SHIFT, __builtin_ctz(PCI_EXP_FLAGS_TYPE))                           \
    X(PCIE_CAPABILITIES_TYPE_MASK, PCI_EXP_FLAGS_TYPE)                                           \
    X(PCIE_DEVCAP_MPS_MASK, PCI_EXP_DEVCAP_PAYLOAD)                                              \
    X(PCIE_DEVCAP_EXTENDED_TAG, PCI_EXP_DEVCAP_EXT_TAG)                                          \
    X(PCIE_DEVCAP_ROLE_BASED, PCI_EXP_DEVCAP_RBER)                                               \
    X(PCIE_DEVCAP_FLR, PCI_EXP_DEVCAP_FLR)                                                       \
    X(PCIE_DEVCTL_REPORT,                                                                        \
      PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE | PCI_EXP_DEVCTL_FERE | PCI_EXP_DEVCTL_URRE)    \
    X(PCIE_DEVCTL_RELAXED_ORDERING, PCI_EXP_DEVCTL_RELAX_EN)                                     \
    X(PCIE_DEVCTL_MPS_SHIFT, __builtin_ctz(PCI_EXP_DEVCTL_PAYLOAD))                              \
    X(PCIE_DEVCTL_MPS_MASK, PCI_EXP_DEVCTL_PAYLOAD)                                              \
    X(PCIE_DEVCTL_EXTENDED_TAG, PCI_EXP_DEVCTL_EXT_TAG)                                          \
    X(PCIE_DEVCTL_NO_SNOOP, PCI_EXP_DEVCTL_NOSNOOP_EN)                                           \
    X(PCIE_DEVCTL_MRRS_SHIFT, __builtin_ctz(PCI_EXP_DEVCTL_READRQ))                              \
    X(PCIE_DEVCTL_MRRS_MASK, PCI_EXP_DEVCTL_READRQ)                                              \
    X(PCIE_DEVCTL_FLR, PCI_EXP_DEVCTL_BCR_FLR)                                                   \
    X(PCIE_SIZE_CODE_512, PCI_EXP_DEVCTL_PAYLOAD_512B >> __builtin_ctz(PCI_EXP_DEVCTL_PAYLOAD))  \
    X(PCIE_SIZE_CODE_MAX, PCI_EXP_DEVCTL_PAYLOAD_4096B >> __builtin_ctz(PCI_EXP_DEVCTL_PAYLOAD)) \
    X(PCIE_DEVSTA_CORRECTABLE, PCI_EXP_DEVSTA_CED)                                               \
    X(PCIE_DEVSTA_NON_FATAL, PCI_EXP_DEVSTA_NFED)                                                \
    X(PCIE_DEVSTA_FATAL, PCI_EXP_DEVSTA_FED)                                                     \
    X(PCIE_DEVSTA_UNSUPPORTED, PCI_EXP_DEVSTA_URD)                                               \
    X(PCIE_LNKCAP_WIDTH_SHIFT, __builtin_ctz(PCI_EXP_LNKCAP_MLW))                                \
    X(PCIE_LNKCTL_RCB_128, PCI_EXP_LNKCTL_RCB)                                                   \
    X(PCIE_LNKCTL_WRITABLE, PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_LD | PCI_EXP_LNKCTL_CCC |      \
                                PCI_EXP_LNKCTL_ES | PCI_EXP_LNKCTL_HAWD | PCI_EXP_LNKCTL_LBMIE | \
                                PCI_EXP_LNKCTL_LABIE)                                            \
    X(PCIE_LNKCTL_FLR_KEEPS, PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC |    \
                                 PCI_EXP_LNKCTL_ES | PCI_EXP_LNKCTL_CLKREQ_EN |                  \
                                 PCI_EXP_LNKCTL_HAWD)                                            \
    X(PCIE_LNKSTA_SPEED_MASK, PCI_EXP_LNKSTA_CLS)                                                \
    X(PCIE_LNKSTA_WIDTH_SHIFT, PCI_EXP_LNKSTA_NLW_SHIFT)                                         \
    X(PCIE_LNKSTA_WIDTH_MASK, PCI_EXP_LNKSTA_NLW)                                                \
    X(PCIE_LNKSTA_DLL_ACTIVE, PCI_EXP_LNKSTA_DLLLA)                                              \
    X(PCIE_LNKCAP2_SPEED_SHIFT, __builtin_ctz(PCI_EXP_LNKCAP2_SLS_2_5GB))                        \
    X(PCIE_LNKCTL2_SPEED_MASK, PCI_EXP_LNKCTL2_TLS)                                              \
    X(PCIE_ROOTCTL_WRITABLE,                                                                     \
      PCI_EXP_RTCTL_SECEE | PCI_EXP_RTCTL_SENFEE | PCI_EXP_RTCTL_SEFEE | PCI_EXP_RTCTL_PMEIE)    \
    X(PCIE_ROOTSTA_PME, PCI_EXP_RTSTA_PME)                                                       \
    X(PCIE_DEVCAP2_TIMEOUT_DISABLE, PCI_EXP_DEVCAP2_COMP_TMOUT_DIS)                              \
    X(PCIE_DEVCTL2_TIMEOUT_DISABLE, PCI_EXP_DEVCTL2_COMP_TMOUT_DIS)                              \
    X(PCIE_DEVCTL2_IDO_REQUEST, PCI_EXP_DEVCTL2_IDO_REQ_EN)                                      \
    X(PCIE_DEVCTL2_IDO_COMPLETION, PCI_EXP_DEVCTL2_IDO_CMP_EN)                                   \
    X(PCI_ECAP_ID_AER, PCI_EXT_CAP_ID_ERR)                                                       \
    X(PCI_ECAP_ID_ACS, PCI_EXT_CAP_ID_ACS)                                                       \
    X(PCI_ECAP_ID_MULTICAST, PCI_EXT_CAP_ID_MCAST)                                               \
    X(PCI_ECAP_ID_ATS, PCI_EXT_CAP_ID_ATS)                                                       \
    X(PCI_ECAP_ID_SRIOV, PCI_EXT_CAP_ID_SRIOV)                                                   \
    X(PCI_AER_UNCORRECTABLE, PCI_ERR_UNCOR_STATUS)                                               \
    X(PCI_AER_UNCORRECTABLE_MASK, PCI_ERR_UNCOR_MASK)                                            \
    X(PCI_AER_SEVERITY, PCI_ERR_UNCOR_SEVER)                                                     \
    X(PCI_AER_CORRECTABLE, PCI_ERR_COR_STATUS)                                                   \
    X(PCI_AER_CORRECTABLE_MASK, PCI_ERR_COR_MASK)                                                \
    X(PCI_AER_CONTROL, PCI_ERR_CAP)                                                              \
    X(PCI_AER_ECRC_GENERATION, PCI_ERR_CAP_ECRC_GENC)                                            \
    X(PCI_AER_ECRC_GENERATION_ENABLE, PCI_ERR_CAP_ECRC_GENE)                                     \
    X(PCI_AER_ECRC_CHECK, PCI_ERR_CAP_ECRC_CHKC)                                                 \
    X(PCI_AER_ECRC_CHECK_ENABLE, PCI_ERR_CAP_ECRC_CHKE)                                          \
    X(PCI_AER_DATA_LINK, PCI_ERR_UNC_DLP)                                                        \
    X(PCI_AER_SURPRISE_DOWN, PCI_ERR_UNC_SURPDN)                                                 \
    X(PCI_AER_POISONED, PCI_ERR_UNC_POISON_TLP)                                                  \
    X(PCI_AER_FLOW_CONTROL, PCI_ERR_UNC_FCP)                                                     \
    X(PCI_AER_COMPLETION_TIMEOUT, PCI_ERR_UNC_COMP_TIME)                                         \
    X(PCI_AER_COMPLETER_ABORT, PCI_ERR_UNC_COMP_ABORT)                                           \
    X(PCI_AER_UNEXPECTED, PCI_ERR_UNC_UNX_COMP)                                                  \
    X(PCI_AER_OVERFLOW, PCI_ERR_UNC_RX_OVER)                                                     \
    X(PCI_AER_MALFORMED, PCI_ERR_UNC_MALF_TLP)                                                   \
    X(PCI_AER_ECRC, PCI_ERR_UNC_ECRC)                                                            \
    X(PCI_AER_UNSUPPORTED, PCI_ERR_UNC_UNSUP)                                                    \
    X(PCI_AER_ACS_VIOLATION, PCI_ERR_UNC_ACSV)                                                   \
    X(PCI_AER_UNCORRECTABLE_ALL, PCI_ERR_UNC_DLP | PCI_ERR_UNC_SURPDN | PCI_ERR_UNC_POISON_TLP | \
                                     PCI_ERR_UNC_FCP | PCI_ERR_UNC_COMP_TIME |                   \
                                     PCI_ERR_UNC_COMP_ABORT | PCI_ERR_UNC_UNX_COMP |             \
                                     PCI_ERR_UNC_RX_OVER | PCI_ERR_UNC_MALF_TLP |                \
                                     PCI_ERR_UNC_ECRC | PCI_ERR_UNC_UNSUP | PCI_ERR_UNC_ACSV)    \
    X(PCI_AER_SEVERITY_DEFAULT, PCI_ERR_UNC_DLP | PCI_ERR_UNC_SURPDN | PCI_ERR_UNC_FCP |         \
                                    PCI_ERR_UNC_RX_OVER | PCI_ERR_UNC_MALF_TLP)                  \
    X(PCI_AER_CORRECTABLE_ALL, PCI_ERR_COR_RCVR | PCI_ERR_COR_BAD_TLP | PCI_ERR_COR_BAD_DLLP |   \
                                   PCI_ERR_COR_REP_ROLL | PCI_ERR_COR_REP_TIMER |                \
                                   PCI_ERR_COR_ADV_NFAT)                                         \
    X(PCI_AER_CORRECTABLE_MASKED, PCI_ERR_COR_ADV_NFAT)                                          \
    X(PCI_ACS_CAPABILITY, PCI_ACS_CAP)                                                           \
    X(PCI_ACS_CONTROL, PCI_ACS_CTRL)                                                             \
    X(PCI_ACS_BYTES, PCI_ACS_EGRESS_CTL_V)                                                       \
    X(PCI_ACS_SOURCE_VALIDATION, PCI_ACS_SV)                                                     \
    X(PCI_ACS_TRANSLATION_BLOCK, PCI_ACS_TB)                                                     \
    X(PCI_ACS_REQUEST_REDIRECT, PCI_ACS_RR)                                                      \
    X(PCI_ACS_COMPLETION_REDIRECT, PCI_ACS_CR)                                                   \
    X(PCI_ACS_UPSTREAM_FORWARDING, PCI_ACS_UF)                                                   \
    X(PCI_ACS_DIRECT_TRANSLATED, PCI_ACS_DT)                                                     \
    X(PCI_SRIOV_CONTROL, PCI_SRIOV_CTRL)                                                         \
    X(PCI_SRIOV_INITIAL_VFS, PCI_SRIOV_INITIAL_VF)                                               \
    X(PCI_SRIOV_TOTAL_VFS, PCI_SRIOV_TOTAL_VF)                                                   \
    X(PCI_SRIOV_NUM_VFS, PCI_SRIOV_NUM_VF)                                                       \
    X(PCI_SRIOV_OFFSET, PCI_SRIOV_VF_OFFSET)                                                     \
    X(PCI_SRIOV_STRIDE, PCI_SRIOV_VF_STRIDE)                                                     \
    X(PCI_SRIOV_VF_DEVICE_ID, PCI_SRIOV_VF_DID)                                                  \
    X(PCI_SRIOV_PAGE_SIZES, PCI_SRIOV_SUP_PGSIZE)                                                \
    X(PCI_SRIOV_SYSTEM_PAGE, PCI_SRIOV_SYS_PGSIZE)                                               \
    X(PCI_SRIOV_BAR0, PCI_SRIOV_BAR)                                                             \
    X(PCI_SRIOV_BYTES, PCI_EXT_CAP_SRIOV_SIZEOF)                                                 \
    X(PCI_SRIOV_CONTROL_ENABLE, PCI_SRIOV_CTRL_VFE)                                              \
    X(PCI_SRIOV_CONTROL_MEMORY, PCI_SRIOV_CTRL_MSE)

/* X(constant, number typed from the section above it). */
#define BY_SPECIFICATION(X)                                                                  \
    /* PCI 3.0, 6.1: vendor ID of a slot without a function; 6.2.1: multi-function */        \
    X(PCI_NO_DEVICE, 0xffff)                                                                 \
    X(PCI_HEADER_MULTI_FUNCTION, 0x80)                                                       \
    /* PCI 3.0, 6.7: the bottom two bits of pointers are reserved */                         \
    X(PCI_CAP_POINTER_MASK, 0xff - 3)                                                        \
    /* PCI-to-PCI Bridge 1.2, 3.2.5.8: windows of 1 MiB */                                   \
    X(PCI_WINDOW_GRANULE_LOG2, 20)                                                           \
    /* PCIe 3.1, 7.8: registers up to Slot Status 2; 7.8.6, bit 22 */                        \
    X(PCIE_CAP_BYTES, 0x3c)                                                                  \
    X(PCIE_LNKCAP_ASPM_OPTIONAL, 1u << 22)                                                   \
    /* PCIe 3.1, 7.9.3: 15:0 id, 19:16 version, 31:20 next */                                \
    X(PCI_ECAP_VERSION_SHIFT, 16)                                                            \
    X(PCI_ECAP_NEXT_SHIFT, 20)                                                               \
    /* PCIe 3.1, 7.10: version 2, up to the TLP prefix log at 38h to 47h; 7.16 */            \
    X(PCI_AER_VERSION, 2)                                                                    \
    X(PCI_AER_BYTES, 0x38 + 16)                                                              \
    X(PCI_ACS_VERSION, 1)                                                                    \
    /* SR-IOV 1.1, 3.3.1, 3.3.12: 4, 8, 64, 256 KiB, 1, 4 MiB as bit n for 2^(n+12) bytes */ \
    X(PCI_SRIOV_VERSION, 1)                                                                  \
    X(PCI_SRIOV_PAGE_SIZES_MUST, 1 << 0 | 1 << 1 | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 10)       \
    X(PCI_SRIOV_PAGE_4K, 1 << 0)                                                             \
    /* PCIe 3.1, 7.21 */                                                                     \
    X(PCI_MC_VERSION, 1)                                                                     \
    X(PCI_MC_CAPABILITY, 0x04)                                                               \
    X(PCI_MC_CONTROL, 0x06)                                                                  \
    X(PCI_MC_BASE, 0x08)                                                                     \
    X(PCI_MC_RECEIVE, 0x10)                                                                  \
    X(PCI_MC_BLOCK_ALL, 0x18)                                                                \
    X(PCI_MC_BLOCK_UNTRANSLATED, 0x20)                                                       \
    X(PCI_MC_OVERLAY, 0x28)                                                                  \
    X(PCI_MC_BYTES, 0x30)                                                                    \
    X(PCI_MC_GROUP_MASK, 0x3f)                                                               \
    X(PCI_MC_CONTROL_ENABLE, 1 << 15)                                                        \
    X(PCI_MC_POSITION_MASK, 0x3f)                                                            \
    X(PCI_MC_POSITION_MIN, 12)                                                               \
    X(PCI_MC_OVERLAY_MIN, 6)

/* The left column now. */
#define LEFT(constant, value) { #constant, (uint64_t)(constant), 0 },
static struct hw_vector vectors[] = { BY_LINUX(LEFT) BY_SPECIFICATION(HW_VECTOR) };

#include <linux/pci_regs.h>

#define RIGHT(constant, value) (uint64_t)(value),
static const uint64_t by_linux[] = { BY_LINUX(RIGHT) };

static void test_constants_are_those_of_linux_and_the_specification(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(by_linux); i++)
        vectors[i].theirs = by_linux[i];
    hw_vectors_compare(vectors, N_OF(vectors));
}

static void test_every_constant_is_compared(void **state)
{
    (void)state;
    hw_vectors_cover("hw/pci_regs.h", vectors, N_OF(vectors));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_are_those_of_linux_and_the_specification),
        cmocka_unit_test(test_every_constant_is_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
