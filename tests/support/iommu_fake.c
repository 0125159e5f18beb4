#include "tests/support/iommu_fake.h"

static sim_time fake_read_done_ps(void *context, struct hpa hpa, sim_time at_ps,
                                  struct sim_stamp *stamp)
{
    struct fake *fake = context;
    (void)hpa;
    (void)stamp;
    fake->reads++;
    return at_ps + FAKE_READ_PS;
}

static bool fake_readable(void *context, struct hpa hpa, unsigned bytes)
{
    (void)context;
    return hpa.v < FAKE_BYTES && bytes <= FAKE_BYTES - hpa.v;
}

static uint64_t fake_read64(void *context, struct hpa hpa)
{
    struct fake *fake = context;
    SIM_ASSERT(fake_readable(fake, hpa, 8), "read outside memory");
    uint64_t value;
    memcpy(&value, fake->bytes + hpa.v, sizeof(value));
    return value;
}

static void fake_write(void *context, struct hpa hpa, const void *from, unsigned bytes)
{
    struct fake *fake = context;
    if (hpa.v >> 20 == VTD_MSI_BASE >> 20 && bytes == 4) {
        fake->message_address = hpa.v;
        memcpy(&fake->message_data, from, 4);
        fake->n_messages++;
        return;
    }
    SIM_ASSERT(fake_readable(fake, hpa, bytes), "write outside memory");
    memcpy(fake->bytes + hpa.v, from, bytes);
}

static void fake_write64(void *context, struct hpa hpa, uint64_t value)
{
    fake_write(context, hpa, &value, sizeof(value));
}

/* Reuses pages last in, first out, so that a page used after it was freed shows. */
static bool fake_page_alloc(void *context, struct hpa *hpa)
{
    struct fake *fake = context;
    if (fake->pages_left == 0 || (fake->n_free == 0 && fake->bump == FAKE_BYTES))
        return false;
    if (fake->n_free != 0) {
        hpa->v = fake->free_page[--fake->n_free];
    } else {
        hpa->v = fake->bump;
        fake->bump += PAGE_BYTES;
    }
    memset(fake->bytes + hpa->v, 0, PAGE_BYTES);
    fake->pages_left--;
    fake->n_live++;
    return true;
}

static void fake_page_free(void *context, struct hpa hpa)
{
    struct fake *fake = context;
    memset(fake->bytes + hpa.v, 0xff, PAGE_BYTES);
    fake->free_page[fake->n_free++] = hpa.v;
    fake->pages_left++;
    fake->n_live--;
}

static struct iommu_memory fake_iommu_memory(struct fake *fake)
{
    return (struct iommu_memory){ .context = fake,
                                  .read_done_ps = fake_read_done_ps,
                                  .read64 = fake_read64,
                                  .write = fake_write,
                                  .readable = fake_readable };
}

struct iommu_driver_host fake_driver_host(struct fake *fake)
{
    return (struct iommu_driver_host){ .context = fake,
                                       .page_alloc = fake_page_alloc,
                                       .page_free = fake_page_free,
                                       .read64 = fake_read64,
                                       .write64 = fake_write64 };
}

struct iommu_params fake_params(void)
{
    struct iommu_params params;
    memset(&params, 0, sizeof(params));
    for (const struct param_desc *p = iommu_params_table; p->type != PARAM_END; p++) {
        void *field = (char *)&params + p->offset;
        if (p->type == PARAM_U32)
            *(uint32_t *)field = (uint32_t)p->def;
        else if (p->type == PARAM_TIME)
            *(sim_time *)field = (sim_time)(p->def * 1000.0);
    }
    params.enabled = true;
    params.walk_interval_ps = params.read_piece_ps = 0; /* walks do not hold each other up */
    return params;
}

void iommu_rig_hardware(struct rig *rig, const struct iommu_params *params)
{
    memset(rig, 0, sizeof(*rig));
    rig->fake.bytes = calloc(1, FAKE_BYTES);
    rig->fake.free_page = calloc(FAKE_BYTES / PAGE_BYTES, sizeof(uint64_t));
    rig->fake.bump = PAGE_BYTES;
    rig->fake.pages_left = UINT64_MAX;
    rig->params = *params;
    struct iommu_memory memory = fake_iommu_memory(&rig->fake);
    rig->iommu = iommu_new(NULL, "iommu", params, &memory);
}

void iommu_rig_init(struct rig *rig, const struct iommu_params *params)
{
    iommu_rig_hardware(rig, params);
    struct iommu_driver_host host = fake_driver_host(&rig->fake);
    rig->driver = iommu_driver_new(rig->iommu, &host);
}

void iommu_rig_release(struct rig *rig)
{
    if (rig->driver != NULL)
        iommu_driver_free(rig->driver);
    SIM_ASSERT(rig->fake.n_live == 0, "pages are left");
    iommu_free(rig->iommu);
    free(rig->fake.bytes);
    free(rig->fake.free_page);
}

uint64_t iommu_rig_stat(const struct rig *rig, const char *name)
{
    for (const struct stat_desc *s = iommu_stats_table; s->kind != STAT_END; s++)
        if (strcmp(s->name, name) == 0 && s->kind == STAT_COUNTER)
            return *(const uint64_t *)((const char *)iommu_stats(rig->iommu) + s->offset);
    SIM_ASSERT(false, "no such counter");
    return 0;
}

struct iommu_translation iommu_rig_translate(struct rig *rig, uint16_t id, uint64_t iova,
                                             bool write, sim_time at_ps)
{
    return iommu_translate(rig->iommu, id, (struct iova){ iova }, 64, write, at_ps, NULL);
}

struct iommu_translation iommu_rig_translate_later(struct rig *rig, uint16_t id, uint64_t iova,
                                                   bool write)
{
    rig->now_ps += 100000000;
    return iommu_rig_translate(rig, id, iova, write, rig->now_ps);
}

sim_time iommu_rig_walk_ps(const struct rig *rig, unsigned n_reads)
{
    return rig->params.walk_fixed_ps + n_reads * (rig->params.walk_step_ps + FAKE_READ_PS);
}

uint64_t iommu_rig_entry(struct rig *rig, uint16_t id, uint64_t iova, unsigned level)
{
    struct fake *fake = &rig->fake;
    uint64_t root = iommu_reg_read(rig->iommu, VTD_RTADDR, 8) + 16u * (id >> 8);
    uint64_t context = (fake_read64(fake, (struct hpa){ root }) & ~UINT64_C(0xfff)) +
                       16u * (id & 0xff);
    uint64_t table = fake_read64(fake, (struct hpa){ context }) & ~UINT64_C(0xfff);
    unsigned levels = (unsigned)(fake_read64(fake, (struct hpa){ context + 8 }) & 7) + 2;
    for (; levels > level; levels--) {
        uint64_t at = table + 8 * (iova >> (12 + 9 * (levels - 1)) & 511);
        table = fake_read64(fake, (struct hpa){ at }) & VTD_PTE_ADDR;
    }
    return table + 8 * (iova >> (12 + 9 * (level - 1)) & 511);
}

uint64_t iommu_rig_context(struct rig *rig, uint16_t id)
{
    uint64_t root = iommu_reg_read(rig->iommu, VTD_RTADDR, 8) + 16u * (id >> 8);
    return (fake_read64(&rig->fake, (struct hpa){ root }) & ~UINT64_C(0xfff)) + 16u * (id & 0xff);
}

uint64_t iommu_rig_peek(struct rig *rig, uint64_t at)
{
    return fake_read64(&rig->fake, (struct hpa){ at });
}

void iommu_rig_poke(struct rig *rig, uint64_t at, uint64_t value)
{
    fake_write64(&rig->fake, (struct hpa){ at }, value);
}

void iommu_rig_flush(struct rig *rig)
{
    iommu_reg_write(rig->iommu, VTD_CCMD, 8, VTD_CCMD_ICC | (uint64_t)VTD_GLOBAL << 61);
    iommu_reg_write(rig->iommu, VTD_IOTLB, 8, VTD_IOTLB_IVT | (uint64_t)VTD_GLOBAL << 60);
}
