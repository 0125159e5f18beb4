/*
 * Models: the 4 KiB register window, fault recording (8 records, overflow, pending) and the two
 *     events' interrupt messages. Which bits of a register can be written, or cleared by writing
 *     ones, is a table.
 * Does not model: protected memory ranges, advanced fault logging, performance registers; fault
 *     compression (an option); time: commands are done when their write returns.
 * Sources: VT-d 3.0, 7.2 (fault recording), chapter 10.
 */
#include "models/pcie/iommu/iommu_internal.h"

static const struct reg_rule {
    uint16_t offset, count; /* of 32-bit words, `stride` bytes apart */
    uint16_t stride;
    uint32_t write_mask, clear_mask;
} reg_rules[] = {
    { VTD_RTADDR, 1, 0, 0xfffff000, 0 },
    { VTD_RTADDR + 4, 1, 0, 0xffffffff, 0 },
    { VTD_CCMD, 1, 0, 0xffffffff, 0 },
    { VTD_CCMD + 4, 1, 0, 0xe0000003, 0 },
    { VTD_FSTS, 1, 0, 0, VTD_FSTS_PFO | VTD_FSTS_IQE },
    { VTD_FECTL, 1, 0, VTD_EVENT_IM, 0 },
    { VTD_FEDATA, 1, 0, 0xffffffff, 0 },
    { VTD_FEADDR, 1, 0, 0xfffffffc, 0 },
    { VTD_FEUADDR, 1, 0, 0xffffffff, 0 },
    { VTD_IQT, 1, 0, (uint32_t)VTD_IQ_POINTER, 0 },
    { VTD_IQA, 1, 0, 0xfffff000 | (uint32_t)VTD_IQA_QS, 0 },
    { VTD_IQA + 4, 1, 0, 0xffffffff, 0 },
    { VTD_ICS, 1, 0, 0, VTD_ICS_IWC },
    { VTD_IECTL, 1, 0, VTD_EVENT_IM, 0 },
    { VTD_IEDATA, 1, 0, 0xffffffff, 0 },
    { VTD_IEADDR, 1, 0, 0xfffffffc, 0 },
    { VTD_IEUADDR, 1, 0, 0xffffffff, 0 },
    { VTD_IRTA, 1, 0, 0xfffff000 | (uint32_t)(VTD_IRTA_S | VTD_IRTA_EIME), 0 },
    { VTD_IRTA + 4, 1, 0, 0xffffffff, 0 },
    { VTD_FRCD + 12, VTD_N_FRCD, VTD_FRCD_BYTES, 0, 1u << 31 },
    { VTD_IVA, 1, 0, 0xfffff07f, 0 },
    { VTD_IVA + 4, 1, 0, 0xffffffff, 0 },
    { VTD_IOTLB + 4, 1, 0, 0xb003ffff, 0 },
};

static const struct reg_rule *rule_find(unsigned offset)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(reg_rules); i++)
        for (unsigned n = 0; n < reg_rules[i].count; n++)
            if (reg_rules[i].offset + n * reg_rules[i].stride == offset)
                return &reg_rules[i];
    return NULL;
}

static uint32_t *word(struct iommu *iommu, unsigned offset)
{
    return &iommu->reg[offset / 4];
}

uint64_t iommu_reg64(const struct iommu *iommu, unsigned offset)
{
    return (uint64_t)iommu->reg[offset / 4 + 1] << 32 | iommu->reg[offset / 4];
}

static void reg64_set(struct iommu *iommu, unsigned offset, uint64_t value)
{
    *word(iommu, offset) = (uint32_t)value;
    *word(iommu, offset + 4) = (uint32_t)(value >> 32);
}

void iommu_regs_reset(struct iommu *iommu)
{
    if (!iommu->params.enabled)
        return;
    unsigned levels = iommu->params.levels;
    uint64_t widths = VTD_CAP_SAGAW_3 | (levels >= 4 ? VTD_CAP_SAGAW_4 : 0) |
                      (levels >= 5 ? VTD_CAP_SAGAW_5 : 0);
    *word(iommu, VTD_VER) = 0x10;
    reg64_set(iommu, VTD_CAP,
              VTD_CAP_ND_64K | widths |
                  (uint64_t)(VTD_WIDTH_OF_LEVELS(levels) - 1) << VTD_CAP_MGAW_SHIFT | VTD_CAP_ZLR |
                  (uint64_t)(VTD_FRCD / 16) << VTD_CAP_FRO_SHIFT | VTD_CAP_SLLPS_2M |
                  VTD_CAP_SLLPS_1G | VTD_CAP_PSI | (uint64_t)(VTD_N_FRCD - 1) << VTD_CAP_NFR_SHIFT |
                  (uint64_t)IOMMU_MAMV << VTD_CAP_MAMV_SHIFT | VTD_CAP_DWD | VTD_CAP_DRD);
    reg64_set(iommu, VTD_ECAP,
              VTD_ECAP_C | VTD_ECAP_QI | VTD_ECAP_IR | VTD_ECAP_EIM | VTD_ECAP_PT | VTD_ECAP_SC |
                  (uint64_t)(VTD_IVA / 16) << VTD_ECAP_IRO_SHIFT);
    *word(iommu, VTD_FECTL) = VTD_EVENT_IM;
    *word(iommu, VTD_IECTL) = VTD_EVENT_IM;
}

/* Control, data, address and upper address of an event lie one after the other. */
void iommu_event_raise(struct iommu *iommu, unsigned control_offset)
{
    uint32_t *control = word(iommu, control_offset);
    if ((*control & VTD_EVENT_IM) != 0) {
        *control |= VTD_EVENT_IP;
        return;
    }
    *control &= ~VTD_EVENT_IP;
    uint32_t data = control[1];
    uint64_t address = iommu_reg64(iommu, control_offset + 8);
    iommu->memory.write(iommu->memory.context, (struct hpa){ address }, &data, sizeof(data));
}

/* PPF is the OR of all F; it goes to zero when software has cleared the last record. */
static void fault_pending_update(struct iommu *iommu)
{
    uint32_t *status = word(iommu, VTD_FSTS);
    *status &= ~VTD_FSTS_PPF;
    for (unsigned i = 0; i < VTD_N_FRCD; i++)
        if ((iommu_reg64(iommu, VTD_FRCD + i * VTD_FRCD_BYTES + 8) & VTD_FRCD_F) != 0)
            *status |= VTD_FSTS_PPF;
    if (*status == (*status & VTD_FSTS_FRI))
        *word(iommu, VTD_FECTL) &= ~VTD_EVENT_IP;
}

void iommu_fault_record(struct iommu *iommu, uint16_t requester_id, uint64_t info, bool read,
                        enum iommu_fault fault)
{
    uint32_t *status = word(iommu, VTD_FSTS);
    bool raised = (*status & ~VTD_FSTS_FRI) != 0; /* the event, by an earlier fault */
    unsigned record = VTD_FRCD + iommu->fault_idx * VTD_FRCD_BYTES;
    if ((*status & VTD_FSTS_PFO) != 0 || (iommu_reg64(iommu, record + 8) & VTD_FRCD_F) != 0) {
        *status |= VTD_FSTS_PFO;
        iommu->stats.faults_lost++;
        return;
    }
    reg64_set(iommu, record, info);
    reg64_set(iommu, record + 8,
              VTD_FRCD_F | (read ? VTD_FRCD_T1 : 0) | (uint64_t)fault << VTD_FRCD_FR_SHIFT |
                  requester_id);
    if ((*status & VTD_FSTS_PPF) == 0)
        *status = (*status & ~VTD_FSTS_FRI) | iommu->fault_idx << VTD_FSTS_FRI_SHIFT;
    *status |= VTD_FSTS_PPF;
    iommu->fault_idx = (iommu->fault_idx + 1) % VTD_N_FRCD;
    if (!raised)
        iommu_event_raise(iommu, VTD_FECTL);
}

static void command_write(struct iommu *iommu, uint32_t value)
{
    uint32_t *status = word(iommu, VTD_GSTS);
    const uint32_t lasting = VTD_GCMD_TE | VTD_GCMD_QIE | VTD_GCMD_IRE | VTD_GCMD_CFI;
    uint32_t before = *status;
    if ((value & VTD_GCMD_SRTP) != 0)
        iommu->root_table = iommu_reg64(iommu, VTD_RTADDR) & VTD_RTADDR_MASK;
    if ((value & VTD_GCMD_SIRTP) != 0)
        iommu->interrupt_table = iommu_reg64(iommu, VTD_IRTA);
    *status = (before & ~lasting) | (value & (lasting | VTD_GCMD_SRTP | VTD_GCMD_SIRTP));
    iommu->translating = (*status & VTD_GCMD_TE) != 0;
    if ((*status & (VTD_GCMD_TE | VTD_GCMD_IRE)) == 0)
        iommu->fault_idx = 0;
    if ((*status & ~before & VTD_GCMD_QIE) != 0) {
        *word(iommu, VTD_IQH) = 0;
        iommu_queue_run(iommu);
    }
}

/* The register-based commands; after them the actual granularity is the requested one, or 0: the
 * command made no sense and was ignored (10.4.7, 10.4.8.1). */
static void context_command(struct iommu *iommu)
{
    uint64_t command = iommu_reg64(iommu, VTD_CCMD);
    if ((command & VTD_CCMD_ICC) == 0)
        return;
    uint64_t granularity = vtd_get(command, 62, 61);
    if (granularity != 0)
        iommu_invalidate_context(iommu, (unsigned)granularity, (uint16_t)command,
                                 (uint16_t)(command >> 16), (unsigned)vtd_get(command, 33, 32));
    command &= ~(VTD_CCMD_ICC | VTD_BITS(60, 59));
    reg64_set(iommu, VTD_CCMD, command | granularity << VTD_CCMD_CAIG_LSB);
}

static void iotlb_command(struct iommu *iommu)
{
    uint64_t command = iommu_reg64(iommu, VTD_IOTLB);
    if ((command & VTD_IOTLB_IVT) == 0)
        return;
    uint64_t granularity = vtd_get(command, 61, 60);
    uint64_t address = iommu_reg64(iommu, VTD_IVA), mask_log2 = vtd_get(address, 5, 0);
    if (granularity == VTD_SELECTIVE && mask_log2 > IOMMU_MAMV)
        granularity = 0;
    if (granularity != 0)
        iommu_invalidate_iotlb(iommu, (unsigned)granularity, (uint16_t)vtd_get(command, 47, 32),
                               address & VTD_BITS(63, 12), (unsigned)mask_log2,
                               (address & VTD_QI_IOTLB_IH) != 0);
    command &= ~(VTD_IOTLB_IVT | VTD_BITS(58, 57));
    reg64_set(iommu, VTD_IOTLB, command | granularity << VTD_IOTLB_IAIG_LSB);
}

static void event_control(struct iommu *iommu, unsigned offset)
{
    if ((*word(iommu, offset) & VTD_EVENT_IP) != 0)
        iommu_event_raise(iommu, offset);
}

/* What a write to a word sets off. */
static void word_written(struct iommu *iommu, unsigned offset)
{
    switch (offset) {
    case VTD_FSTS:
        fault_pending_update(iommu);
        iommu_queue_run(iommu);
        break;
    case VTD_FECTL:
    case VTD_IECTL: event_control(iommu, offset); break;
    case VTD_IQT: iommu_queue_run(iommu); break;
    case VTD_ICS:
        if ((*word(iommu, VTD_ICS) & VTD_ICS_IWC) == 0)
            *word(iommu, VTD_IECTL) &= ~VTD_EVENT_IP;
        break;
    case VTD_CCMD + 4: context_command(iommu); break;
    case VTD_IOTLB + 4: iotlb_command(iommu); break;
    default:
        if (offset >= VTD_FRCD && offset < VTD_FRCD + VTD_N_FRCD * VTD_FRCD_BYTES)
            fault_pending_update(iommu);
    }
}

static void word_write(struct iommu *iommu, unsigned offset, uint32_t value)
{
    const struct reg_rule *rule = rule_find(offset);
    if (rule == NULL)
        return;
    uint32_t *at = word(iommu, offset);
    *at = (*at & ~rule->write_mask) | (value & rule->write_mask);
    *at &= ~(value & rule->clear_mask);
}

uint64_t iommu_reg_read(struct iommu *iommu, unsigned offset, unsigned bytes)
{
    SIM_ASSERT((bytes == 4 || bytes == 8) && offset % bytes == 0 &&
                   offset + bytes <= VTD_WINDOW_BYTES,
               "%s: register read of %u bytes at %#x", iommu->name, bytes, offset);
    return bytes == 8 ? iommu_reg64(iommu, offset) : *word(iommu, offset);
}

void iommu_reg_write(struct iommu *iommu, unsigned offset, unsigned bytes, uint64_t value)
{
    SIM_ASSERT((bytes == 4 || bytes == 8) && offset % bytes == 0 &&
                   offset + bytes <= VTD_WINDOW_BYTES,
               "%s: register write of %u bytes at %#x", iommu->name, bytes, offset);
    if (!iommu->params.enabled)
        return;
    if (offset == VTD_GCMD) {
        command_write(iommu, (uint32_t)value);
        return;
    }
    word_write(iommu, offset, (uint32_t)value);
    if (bytes == 8)
        word_write(iommu, offset + 4, (uint32_t)(value >> 32));
    word_written(iommu, offset);
    if (bytes == 8)
        word_written(iommu, offset + 4);
}
