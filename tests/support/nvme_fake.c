#include "tests/support/nvme_fake.h"

struct later {
    struct nvme_fake *nvme;
    unsigned queue;
    uint16_t cid, status;
    uint32_t result;
    uint64_t number;
};

/* ---- Completions ----------------------------------------------------------------------------- */

void nvme_fake_complete(struct nvme_fake *nvme, unsigned number, uint16_t cid, uint16_t status,
                        uint32_t result)
{
    struct nvme_fake_queue *q = &nvme->queue[number];
    const struct nvme_cqe cqe = { .result = result,
                                  .sq_head = (uint16_t)q->sq_head,
                                  .sq_id = (uint16_t)number,
                                  .cid = cid,
                                  .status = (uint16_t)(status << 1 | q->phase) };
    const uint32_t next = (q->cq_tail + 1) % q->cq_entries;
    assert_true(q->has_cq);
    assert_int_not_equal(next, q->cq_head); /* as large as the submission queue: never full */
    if (!q->lost)
        k_poke(nvme->kernel, (struct kaddr){ q->cq + q->cq_tail * sizeof cqe }, &cqe, sizeof cqe);
    q->cq_tail = next;
    if (next == 0)
        q->phase ^= 1;
}

static void complete_later(void *arg)
{
    struct later *later = arg;
    struct nvme_fake *nvme = later->nvme;
    if (!nvme->gone && (nvme->csts & NVME_CSTS_RDY) && nvme->queue[later->queue].has_cq) {
        nvme->passed |= later->number < nvme->last_done;
        nvme->last_done = later->number;
        nvme->queue[later->queue].n_unfinished--;
        nvme_fake_complete(nvme, later->queue, later->cid, later->status, later->result);
    }
    free(later);
}

/* ---- Data ------------------------------------------------------------------------------------ */

/* One page at most, of the disk's bytes at `from` on. */
static void move_page(struct nvme_fake *nvme, bool write, uint64_t bus, uint8_t *disk,
                      uint64_t bytes)
{
    if (write)
        k_peek(nvme->kernel, (struct kaddr){ bus }, disk, bytes);
    else
        k_poke(nvme->kernel, (struct kaddr){ bus }, disk, bytes);
}

static void move(struct nvme_fake *nvme, const struct nvme_sqe *sqe, bool write, uint8_t *disk,
                 uint64_t bytes)
{
    const uint64_t first = NVME_PAGE_BYTES - sqe->prp1 % NVME_PAGE_BYTES;
    uint64_t done = bytes < first ? bytes : first, list = sqe->prp2, entry;
    assert_int_equal(sqe->prp1 % 4, 0);
    move_page(nvme, write, sqe->prp1, disk, done);
    const bool is_list = bytes - done > NVME_PAGE_BYTES;
    if (is_list)
        assert_int_equal(list % 8, 0);
    while (done < bytes) {
        const uint64_t n = bytes - done < NVME_PAGE_BYTES ? bytes - done : NVME_PAGE_BYTES;
        entry = list;
        if (is_list) {
            k_peek(nvme->kernel, (struct kaddr){ list }, &entry, sizeof entry);
            list += sizeof entry;
            assert_true(list % NVME_PAGE_BYTES != 0 || done + n == bytes); /* one page of list */
        }
        assert_int_equal(entry % NVME_PAGE_BYTES, 0);
        move_page(nvme, write, entry, disk + done, n);
        done += n;
    }
}

/* ---- Commands -------------------------------------------------------------------------------- */

static uint16_t identify(struct nvme_fake *nvme, const struct nvme_sqe *sqe)
{
    static uint8_t data[NVME_IDENTIFY_BYTES];
    const uint64_t blocks = NVME_FAKE_BLOCKS;
    const uint32_t one = 1, lbaf = 9u << 16;
    memset(data, 0, sizeof data);
    if (sqe->cdw10 == NVME_IDENTIFY_CONTROLLER) {
        data[NVME_ID_CTRL_MDTS] = nvme->mdts;
        memcpy(&data[NVME_ID_CTRL_NN], &one, sizeof one);
    } else if (sqe->cdw10 == NVME_IDENTIFY_NAMESPACE && sqe->nsid == 1) {
        memcpy(&data[NVME_ID_NS_SIZE], &blocks, sizeof blocks);
        memcpy(&data[NVME_ID_NS_LBAF0], &lbaf, sizeof lbaf);
    } else {
        return NVME_SC_INVALID_FIELD | NVME_STATUS_DNR;
    }
    move(nvme, sqe, false, data, sizeof data);
    return NVME_SC_SUCCESS;
}

static uint16_t create(struct nvme_fake *nvme, const struct nvme_sqe *sqe, bool cq)
{
    const unsigned id = sqe->cdw10 & 0xffff;
    const uint32_t entries = (sqe->cdw10 >> 16) + 1;
    if (id == 0 || id >= NVME_FAKE_QUEUES)
        return NVME_SC_QUEUE_ID_INVALID;
    struct nvme_fake_queue *q = &nvme->queue[id];
    assert_true(sqe->cdw11 & NVME_QUEUE_CONTIGUOUS);
    assert_int_equal(sqe->prp1 % NVME_PAGE_BYTES, 0);
    if (cq) {
        assert_false(q->has_cq);
        *q = (struct nvme_fake_queue){
            .has_cq = true, .cq_entries = entries, .cq = sqe->prp1, .phase = 1
        };
        return NVME_SC_SUCCESS;
    }
    assert_int_equal(sqe->cdw11 >> 16, id);
    assert_true(q->has_cq && !q->has_sq);
    if (nvme->refuse_create_sq != 0)
        return nvme->refuse_create_sq;
    q->has_sq = true;
    q->sq_entries = entries;
    q->sq = sqe->prp1;
    return NVME_SC_SUCCESS;
}

static uint16_t destroy(struct nvme_fake *nvme, const struct nvme_sqe *sqe, bool cq)
{
    struct nvme_fake_queue *q = &nvme->queue[sqe->cdw10 % NVME_FAKE_QUEUES];
    if (cq && q->has_sq)
        return NVME_SC_QUEUE_DELETION_INVALID;
    if (cq ? !q->has_cq : !q->has_sq)
        return NVME_SC_QUEUE_ID_INVALID;
    if (cq)
        q->has_cq = false;
    else
        q->has_sq = false;
    nvme->n_deleted_cqs += cq;
    nvme->n_deleted_sqs += !cq;
    return NVME_SC_SUCCESS;
}

static uint16_t administer(struct nvme_fake *nvme, const struct nvme_sqe *sqe, uint32_t *result)
{
    switch (sqe->opcode) {
    case NVME_ADMIN_IDENTIFY: return identify(nvme, sqe);
    case NVME_ADMIN_CREATE_CQ: return create(nvme, sqe, true);
    case NVME_ADMIN_CREATE_SQ: return create(nvme, sqe, false);
    case NVME_ADMIN_DELETE_CQ: return destroy(nvme, sqe, true);
    case NVME_ADMIN_DELETE_SQ: return destroy(nvme, sqe, false);
    case NVME_ADMIN_SET_FEATURES:
        *result = (NVME_FAKE_QUEUES - 2) << 16 | (NVME_FAKE_QUEUES - 3);
        return NVME_SC_SUCCESS;
    default: return NVME_SC_INVALID_OPCODE | NVME_STATUS_DNR;
    }
}

static uint16_t transfer(struct nvme_fake *nvme, const struct nvme_sqe *sqe)
{
    const uint64_t block = sqe->cdw10, n = (sqe->cdw12 & 0xffff) + 1;
    if (sqe->opcode != NVME_READ && sqe->opcode != NVME_WRITE)
        return NVME_SC_INVALID_OPCODE | NVME_STATUS_DNR;
    if (sqe->nsid != 1)
        return NVME_SC_INVALID_NAMESPACE | NVME_STATUS_DNR;
    if (block + n > NVME_FAKE_BLOCKS)
        return NVME_SC_LBA_OUT_OF_RANGE | NVME_STATUS_DNR;
    if (nvme->bad_block != 0 && block == nvme->bad_block && sqe->opcode == NVME_READ)
        return NVME_SC_UNRECOVERED_READ | NVME_STATUS_DNR;
    move(nvme, sqe, sqe->opcode == NVME_WRITE, nvme->disk + block * NVME_FAKE_BLOCK_BYTES,
         n * NVME_FAKE_BLOCK_BYTES);
    return NVME_SC_SUCCESS;
}

static void execute(struct nvme_fake *nvme, unsigned number, const struct nvme_sqe *sqe)
{
    struct later *later = calloc(1, sizeof *later);
    *later =
        (struct later){ .nvme = nvme, .queue = number, .cid = sqe->cid, .number = ++nvme->fetched };
    later->status = number == 0 ? administer(nvme, sqe, &later->result) : transfer(nvme, sqe);
    if (nvme->mute) {
        free(later);
        return;
    }
    nvme->queue[number].n_unfinished++;
    const uint64_t delay_ps = nvme->delay_ps != 0 ? fake_random(nvme->kernel, nvme->delay_ps) : 0;
    fake_at(nvme->kernel, nvme->kernel->now_ps + 1000 + delay_ps, complete_later, later);
}

static void fetch(struct nvme_fake *nvme, unsigned number)
{
    struct nvme_fake_queue *q = &nvme->queue[number];
    struct nvme_sqe sqe;
    while (q->sq_head != q->sq_tail) {
        k_peek(nvme->kernel, (struct kaddr){ q->sq + q->sq_head * sizeof sqe }, &sqe, sizeof sqe);
        q->sq_head = (q->sq_head + 1) % q->sq_entries;
        execute(nvme, number, &sqe);
    }
}

/* ---- Registers ------------------------------------------------------------------------------- */

static void doorbell(struct nvme_fake *nvme, uint64_t at, uint32_t value)
{
    const uint64_t stride = 4u << nvme->stride_log2, n = (at - NVME_REG_DOORBELLS) / stride;
    assert_int_equal(at % stride, 0);
    assert_true(n / 2 < NVME_FAKE_QUEUES);
    struct nvme_fake_queue *q = &nvme->queue[n / 2];
    if (n % 2 == 0) {
        assert_true(q->has_sq && value < q->sq_entries && value != q->sq_tail);
        q->sq_tail = value;
        nvme->n_sq_doorbells++;
        fetch(nvme, (unsigned)(n / 2));
        return;
    }
    assert_true(q->has_cq && value < q->cq_entries);
    /* No further than what was posted. */
    assert_true((value + q->cq_entries - q->cq_head) % q->cq_entries <=
                (q->cq_tail + q->cq_entries - q->cq_head) % q->cq_entries);
    q->cq_head = value;
    nvme->n_cq_doorbells++;
}

static void configure(struct nvme_fake *nvme, uint32_t value)
{
    const bool was = nvme->cc & NVME_CC_EN, is = value & NVME_CC_EN;
    nvme->cc = value;
    if (is && !was) {
        const uint32_t sq = (nvme->aqa & 0xfff) + 1, cq = (nvme->aqa >> 16 & 0xfff) + 1;
        nvme->queue[0] = (struct nvme_fake_queue){ .has_cq = true,
                                                   .has_sq = true,
                                                   .sq_entries = sq,
                                                   .cq_entries = cq,
                                                   .sq = nvme->asq,
                                                   .cq = nvme->acq,
                                                   .phase = 1 };
        nvme->csts = NVME_CSTS_RDY;
    } else if (!is) {
        memset(nvme->queue, 0, sizeof nvme->queue);
        nvme->csts = 0;
    }
    if (is && NVME_CC_SHN(value) != 0)
        nvme->csts |= NVME_CSTS_SHST_COMPLETE;
}

static uint64_t mmio_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    const struct nvme_fake *nvme = dev->private_data;
    fake_charge(nvme->kernel, 500 * K_NS);
    if (nvme->gone)
        return bytes == 8 ? UINT64_MAX : UINT32_MAX;
    switch (address - dev->bar_base[0]) {
    case NVME_REG_CAP:
        assert_int_equal(bytes, 8);
        return NVME_CAP_CSS_NVM | NVME_CAP_CQR | 4095u | (uint64_t)nvme->stride_log2 << 32;
    case NVME_REG_CC: return nvme->cc;
    case NVME_REG_CSTS: return nvme->csts;
    default: fail_msg("read of register %#llx", (unsigned long long)address); return 0;
    }
}

static void mmio_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value)
{
    struct nvme_fake *nvme = dev->private_data;
    const uint64_t at = address - dev->bar_base[0];
    if (!nvme->gone && at >= NVME_REG_DOORBELLS)
        doorbell(nvme, at, (uint32_t)value);
    else if (!nvme->gone && at == NVME_REG_CC)
        configure(nvme, (uint32_t)value);
    else if (!nvme->gone && at == NVME_REG_AQA)
        nvme->aqa = (uint32_t)value;
    else if (!nvme->gone && at == NVME_REG_ASQ)
        nvme->asq = value;
    else if (!nvme->gone && at == NVME_REG_ACQ)
        nvme->acq = value;
    else if (!nvme->gone)
        fail_msg("write of %u bytes to register %#llx", bytes, (unsigned long long)at);
    fake_charge(nvme->kernel, 20 * K_NS);
}

void nvme_fake_init(struct nvme_fake *nvme, struct kernel *kernel)
{
    static const struct k_pci_ops ops = { .mmio_read = mmio_read, .mmio_write = mmio_write };
    memset(nvme, 0, sizeof *nvme);
    nvme->kernel = kernel;
    nvme->delay_ps = 3 * K_US;
    fake_device_init(kernel, &nvme->pci.device, 0, "nvme");
    nvme->pci.vendor_id = NVME_VENDOR_INTEL;
    nvme->pci.device_id = NVME_DEVICE_P4800X;
    nvme->pci.bar_base[0] = UINT64_C(0xf0000000);
    nvme->pci.bar_bytes[0] = NVME_BAR_BYTES;
    nvme->pci.ops = &ops;
    nvme->pci.private_data = nvme;
}
