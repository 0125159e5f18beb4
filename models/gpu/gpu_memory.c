/*
 * Device memory of gpu.cuda and its aperture, base address register 1.
 *
 * Models: real bytes or tags; reads and writes of others served in order: a read sees all writes
 *   that came before it; completions as large as Max_Payload_Size allows.
 * Does not model: banks and refresh (that GPU memory's latency varies more than a host's), page
 *   tables behind the aperture: it shows the first bytes of memory.
 * Timing: a write is in memory inbound_write_latency after its turn, a read's answer leaves
 *   inbound_read_latency after it came, or when inbound_read_gbyte_s has served those before it.
 * Sources: docs/models/gpu.md.
 */
#include <stdlib.h>
#include <string.h>

#include "models/base/page_store.h"
#include "models/gpu/gpu_internal.h"

#define TAG_BYTES PAYLOAD_MARK_BYTES

/* ---- Contents: pages that appear when they are first written --------------------------------- */

/* The bytes from `offset` on and, in *n, how many of `bytes` lie in its page; NULL: all zero. */
static uint8_t *bytes_at(const struct gpu_device *gpu, uint64_t offset, uint64_t bytes, uint64_t *n)
{
    struct page_region *region = gpu->region[offset >> PAGE_REGION_LOG2];
    const uint32_t idx = (uint32_t)(offset / PAGE_BYTES) % PAGE_REGION_PAGES;
    *n = SIM_MIN(bytes, PAGE_BYTES - offset % PAGE_BYTES);
    if (region == NULL)
        return NULL;
    uint8_t *page = region->page[idx];
    if (page == NULL && page_is_packed(region, idx))
        page = page_store_open(gpu->store, region, idx);
    return page == NULL ? NULL : page + offset % PAGE_BYTES;
}

static uint8_t *bytes_made(struct gpu_device *gpu, uint64_t offset, uint64_t bytes, uint64_t *n)
{
    struct page_region **region = &gpu->region[offset >> PAGE_REGION_LOG2];
    const uint32_t idx = (uint32_t)(offset / PAGE_BYTES) % PAGE_REGION_PAGES;
    if (*region == NULL)
        *region = page_region_new(gpu->store);
    if ((*region)->page[idx] == NULL)
        page_store_open(gpu->store, *region, idx);
    return bytes_at(gpu, offset, bytes, n);
}

/* Of each line that the range overlaps the first min(8, overlap) bytes; writing makes the rest
 * zero, as in a host's memory. */
static void copy_tags(uint8_t *to, const uint8_t *from, uint64_t offset, uint64_t bytes, bool clear)
{
    for (uint64_t at = 0; at < bytes;) {
        uint64_t n = SIM_MIN(bytes - at, LINE_BYTES - ((offset + at) & (LINE_BYTES - 1)));
        uint64_t known = SIM_MIN(n, TAG_BYTES);
        memcpy(to + at, from + at, known);
        if (clear)
            memset(to + at + known, 0, n - known);
        at += n;
    }
}

void gpu_load(const struct gpu_device *gpu, uint64_t offset, void *to, uint64_t bytes, bool bulk)
{
    for (uint64_t at = 0, n; at < bytes; at += n) {
        const uint8_t *from = bytes_at(gpu, offset + at, bytes - at, &n);
        if (from == NULL)
            memset((uint8_t *)to + at, 0, n);
        else if (bulk)
            copy_tags((uint8_t *)to + at, from, offset + at, n, false);
        else
            memcpy((uint8_t *)to + at, from, n);
    }
}

void gpu_store(struct gpu_device *gpu, uint64_t offset, const void *from, uint64_t bytes, bool bulk)
{
    for (uint64_t at = 0, n; at < bytes; at += n) {
        uint8_t *to = bytes_made(gpu, offset + at, bytes - at, &n);
        if (bulk)
            copy_tags(to, (const uint8_t *)from + at, offset + at, n, true);
        else
            memcpy(to, (const uint8_t *)from + at, n);
    }
    gpu_kernel_notice(gpu, offset, bytes);
}

/* ---- Writes of others ------------------------------------------------------------------------ */

static void write_lands(struct sim *sim, struct sim_event *event)
{
    struct gpu_device *gpu = SIM_CONTAINER(event, struct gpu_device, write_event);
    struct tlp *tlp = gpu->write_head;
    gpu->write_head = tlp->next;
    if (gpu->write_head == NULL)
        gpu->write_tail = &gpu->write_head;
    else
        sim_schedule(sim, event, gpu->write_head->tail_ps);
    gpu_store(gpu, tlp->address, tlp->payload, tlp->length_bytes, tlp->bulk);
    tlp_free(gpu->model->pcie, tlp);
}

static void aperture_write(struct gpu_device *gpu, uint64_t offset, struct tlp *tlp)
{
    sim_time start_ps = SIM_MAX(gpu_now(gpu), gpu->write_free_ps);
    gpu->write_free_ps = start_ps +
                         gpu_bytes_ps(tlp->length_bytes, gpu->params.inbound_write_gbyte_s);
    gpu->stats.aperture_write.ps += gpu->write_free_ps - start_ps;
    pcie_function_buffer_free(&gpu->function, tlp, start_ps);
    gpu->stats.aperture_write_bytes += tlp->length_bytes;
    tlp->address = offset;
    tlp->tail_ps = gpu->write_seen_ps = gpu->write_free_ps + gpu->params.inbound_write_ps;
    tlp->next = NULL;
    if (gpu->write_head == NULL)
        sim_schedule(gpu->model->sim, &gpu->write_event, tlp->tail_ps);
    *gpu->write_tail = tlp;
    gpu->write_tail = &tlp->next;
}

/* ---- Reads of others ------------------------------------------------------------------------- */

static void read_leaves(struct sim *sim, struct sim_event *event)
{
    struct gpu_read *read = SIM_CONTAINER(event, struct gpu_read, event);
    struct gpu_device *gpu = read->gpu;
    struct tlp *request = read->request;
    (void)sim;
    for (unsigned at = 0; at < request->length_bytes && !gpu->function.gone;) {
        struct tlp *completion = pcie_function_data(&gpu->function, request, at);
        const unsigned n = completion->length_bytes;
        gpu_load(gpu, read->offset + at, completion->payload, n, request->bulk);
        pcie_function_answer(&gpu->function, completion, 0);
        at += n;
    }
    tlp_free(gpu->model->pcie, request);
    sim_pool_put(gpu->reads, read);
}

static void aperture_read(struct gpu_device *gpu, uint64_t offset, struct tlp *tlp)
{
    struct gpu_read *read = sim_pool_get(gpu->reads);
    sim_time now_ps = gpu_now(gpu), start_ps = SIM_MAX(now_ps, gpu->read_free_ps);
    gpu->read_free_ps = start_ps +
                        gpu_bytes_ps(tlp->length_bytes, gpu->params.inbound_read_gbyte_s);
    gpu->stats.aperture_read.ps += gpu->read_free_ps - start_ps;
    sim_time at_ps = SIM_MAX(gpu->read_free_ps, now_ps + gpu->params.inbound_read_ps);
    /* Not at the same time: the last write's event may come to be after this one. */
    at_ps = SIM_MAX(at_ps, gpu->write_seen_ps + 1);
    pcie_function_buffer_free(&gpu->function, tlp, start_ps);
    gpu->stats.aperture_read_bytes += tlp->length_bytes;
    read->gpu = gpu;
    read->request = tlp;
    read->offset = offset;
    sim_event_init(&read->event, read_leaves);
    sim_schedule(gpu->model->sim, &read->event, at_ps);
}

void gpu_aperture_request(struct pcie_function *function, uint64_t offset, struct tlp *tlp)
{
    if (tlp->type == TLP_MRD)
        aperture_read(gpu_of(function), offset, tlp);
    else
        aperture_write(gpu_of(function), offset, tlp);
}

/* ---- Set-up, checks -------------------------------------------------------------------------- */

void gpu_memory_init(struct gpu_device *gpu)
{
    const uint64_t region_bytes = UINT64_C(1) << PAGE_REGION_LOG2;
    gpu->n_regions = (gpu->params.memory_bytes + region_bytes - 1) >> PAGE_REGION_LOG2;
    gpu->region = sim_zalloc(gpu->n_regions, sizeof(struct page_region *));
    gpu->store = page_store_new(NULL);
    gpu->write_tail = &gpu->write_head;
    sim_event_init(&gpu->write_event, write_lands);
}

void gpu_memory_clear(struct gpu_device *gpu)
{
    sim_cancel(gpu->model->sim, &gpu->write_event);
    tlp_free_list(gpu->model->pcie, gpu->write_head);
    gpu->write_head = NULL;
    gpu->write_tail = &gpu->write_head;
    page_store_free(gpu->store);
    memset(gpu->region, 0, gpu->n_regions * sizeof(*gpu->region));
    gpu->store = page_store_new(NULL);
}

void gpu_memory_release(struct gpu_device *gpu)
{
    sim_cancel(gpu->model->sim, &gpu->write_event);
    page_store_free(gpu->store);
    free(gpu->region);
}

void gpu_memory_stamp(struct model *model, uint64_t offset, uint64_t tag, uint64_t bytes)
{
    struct gpu_device *gpu = gpu_device_of(model);
    SIM_ASSERT((offset | bytes) % LINE_BYTES == 0 && gpu_in_memory(gpu, offset, bytes),
               "%s: lines of its memory", model->name);
    for (uint64_t at = 0; at < bytes; at += LINE_BYTES) {
        const uint64_t word = payload_word(payload_mark_add(tag, at));
        uint8_t whole[LINE_BYTES] = { 0 };
        memcpy(whole, &word, TAG_BYTES);
        gpu_store(gpu, offset + at, whole, LINE_BYTES, false);
    }
}

bool gpu_memory_check(const struct model *model, uint64_t offset, uint64_t tag, uint64_t bytes,
                      struct payload_difference *difference)
{
    const struct gpu_device *gpu = gpu_device_of(model);
    SIM_ASSERT((offset | bytes) % LINE_BYTES == 0 && gpu_in_memory(gpu, offset, bytes),
               "%s: lines of its memory", model->name);
    for (uint64_t at = 0; at < bytes; at += LINE_BYTES) {
        const uint64_t expected = payload_mark_add(tag, at);
        uint64_t word, found;
        gpu_load(gpu, offset + at, &word, TAG_BYTES, false);
        if (word == payload_word(expected))
            continue;
        found = payload_word_mark(word);
        *difference = (struct payload_difference){ found != 0 ? found : word, expected };
        return false;
    }
    return true;
}

void gpu_memory_read(const struct model *model, uint64_t offset, void *to, uint64_t bytes)
{
    SIM_ASSERT(gpu_in_memory(gpu_device_of(model), offset, bytes), "%s: its memory", model->name);
    gpu_load(gpu_device_of(model), offset, to, bytes, false);
}
