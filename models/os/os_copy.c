/*
 * Copies of bulk data, and the payload that they move.
 *
 * Models: `rep movsb`: line by line through the caches (models/host/core.h), data of one call
 *   having arrived at its end; the content by tags (models/base/payload.h).
 *   k_copy_nt(): the same with stores that go past the caches in whole lines, and a fence.
 * Does not model: page faults; write-combining buffers that two calls or pages fill together.
 * Timing: copy_call_cycles, then at least copy_line_cycles a line; interrupts come in after each
 *   4 KiB.
 * Sources: docs/sources.md#a6.
 */
#include <string.h>

#include "models/base/payload.h"
#include "models/os/os_memory.h"

/* ---- Content --------------------------------------------------------------------------------- */

/* Bytes of a stream put into memory; within a page. */
static void put_run(uint8_t *page, uint64_t in_page, uint64_t tag, uint64_t bytes)
{
    const uint64_t in_line = in_page % LINE_BYTES;
    uint64_t at = 0;

    page += in_page;
    if (in_line != 0) {
        at = SIM_MIN(bytes, LINE_BYTES - in_line);
        payload_line_put(page - in_line, (unsigned)in_line, tag, (unsigned)at);
    }
    struct payload_words w = payload_words(payload_mark_add(tag, at));
    for (; at + LINE_BYTES <= bytes; at += LINE_BYTES, payload_words_line(&w)) {
        const uint64_t word = payload_words_here(&w);
        memset(page + at, 0, LINE_BYTES);
        memcpy(page + at, &word, sizeof(word));
    }
    if (at < bytes)
        payload_line_put(page + at, 0, payload_mark_add(tag, at), (unsigned)(bytes - at));
}

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* How many of the bytes go on from each other, and their tag; 0: they are what they are. Within a
 * page. */
static uint64_t find_run(const uint8_t *page, uint64_t in_page, uint64_t bytes, uint64_t *tag)
{
    const uint64_t in_line = in_page % LINE_BYTES, here = SIM_MIN(bytes, LINE_BYTES - in_line);
    uint64_t at;

    page += in_page;
    at = payload_line_run(page - in_line, (unsigned)in_line, (unsigned)here, tag);
    if (at < here || *tag == 0)
        return at;
    struct payload_words w = payload_words(payload_mark_add(*tag, at));
    for (; at < bytes; at += LINE_BYTES, payload_words_line(&w)) /* lines are whole in a page */
        if (!payload_same(word_at(page + at), payload_words_here(&w),
                          (unsigned)SIM_MIN(bytes - at, PAYLOAD_MARK_BYTES)))
            break;
    return SIM_MIN(at, bytes);
}

/* Within a page on both sides. Runs of a stream are written out; what is none stays what it is. */
static void copy_runs(uint8_t *to, uint64_t to_in_page, const uint8_t *from, uint64_t from_in_page,
                      uint64_t bytes)
{
    for (uint64_t at = 0, here; at < bytes; at += here) {
        uint64_t tag;
        here = find_run(from, from_in_page + at, bytes - at, &tag);
        if (tag != 0)
            put_run(to, to_in_page + at, tag, here);
        else
            memcpy(to + to_in_page + at, from + from_in_page + at, here);
    }
}

static void copy_in_pages(uint8_t *to, uint64_t to_in_page, const uint8_t *from,
                          uint64_t from_in_page, uint64_t bytes)
{
    const uint64_t in_line = from_in_page % LINE_BYTES;
    uint64_t at = bytes;

    /* Lines that lie the same on both sides are copied as they are, but for a part of the first:
     * what it goes on from stays behind. */
    if (in_line == to_in_page % LINE_BYTES)
        at = in_line != 0 ? SIM_MIN(bytes, LINE_BYTES - in_line) : 0;
    copy_runs(to, to_in_page, from, from_in_page, at);
    memcpy(to + to_in_page + at, from + from_in_page + at, bytes - at);
}

/* Addresses are the host's, the source lies in one page. */
static void copy_content(struct physmem *mem, uint64_t to, uint64_t from, uint64_t bytes)
{
    while (bytes > 0) {
        const uint64_t in_page = to % PAGE_BYTES, here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        uint8_t *page = physmem_bytes_made(mem, (struct hpa){ to - in_page });
        const uint8_t *source = physmem_bytes(mem, (struct hpa){ from & ~(PAGE_BYTES - 1) });
        copy_in_pages(page, in_page, source, from % PAGE_BYTES, here);
        to += here;
        from += here;
        bytes -= here;
    }
}

/* Lets the host machine fetch content that is to be copied; within a page. */
static void announce_content(struct physmem *mem, struct hpa from, uint64_t bytes)
{
    const uint8_t *content = physmem_bytes(mem, from);

    for (uint64_t at = 0; at < bytes; at += LINE_BYTES)
        __builtin_prefetch(content + at);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static void copy(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes,
                 bool past_caches)
{
    struct k_thread *self = os_self(kernel);
    const struct k_costs *costs = &kernel->params.costs;
    const struct os_memory *memory = kernel->memory;
    const sim_time line_ps = costs->copy_line_cycles * kernel->cycle_ps;
    struct numa_result arrived = { 0 };

    os_charge_cycles(self, costs->copy_call_cycles);
    while (bytes > 0) {
        const uint64_t in_page = SIM_MIN(bytes, PAGE_BYTES - from.v % PAGE_BYTES);
        const uint64_t here = os_touched_run(self, to, in_page);
        const struct hpa hpa = os_hpa(memory, to), source = os_touched(self, from);
        announce_content(memory->mem, source, here);
        core_copy(self->on->core, self->task, hpa, source, here, line_ps, past_caches, &arrived);
        copy_content(memory->mem, hpa.v, source.v, here);
        if (SIM_UNLIKELY(memory->n_polled != 0))
            physmem_stored(memory->mem, hpa, here);
        to.v += here;
        from.v += here;
        bytes -= here;
        if (bytes > 0)
            os_interrupts_of(self);
    }
    core_wait(self->on->core, self->task, arrived);
    os_interrupts_of(self);
}

void k_copy(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes)
{
    copy(kernel, to, from, bytes, false);
}

void k_copy_nt(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes)
{
    copy(kernel, to, from, bytes, true);
}

/* ---- Payload that is checked ----------------------------------------------------------------- */

void payload_fill(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes)
{
    while (bytes > 0) {
        const uint64_t in_page = at.v % PAGE_BYTES, here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        const struct hpa hpa = os_hpa(kernel->memory, (struct kaddr){ at.v - in_page });
        put_run(physmem_bytes_made(kernel->memory->mem, hpa), in_page, tag, here);
        tag = payload_mark_add(tag, here);
        at.v += here;
        bytes -= here;
    }
}

/* What lies in the first bytes of a part of a line is no stream's, or another's. */
static void differ(const uint8_t *line, unsigned in_line, unsigned bytes, uint64_t expected,
                   struct payload_difference *difference)
{
    uint64_t tag;

    payload_line_run(line, in_line, bytes, &tag);
    *difference = (struct payload_difference){ tag, expected };
    if (tag == 0)
        memcpy(&difference->found, line + in_line, SIM_MIN(bytes, PAYLOAD_MARK_BYTES));
}

/* The part of a line, without what lies in it behind the first eight bytes. */
static bool check_part(const uint8_t *line, unsigned in_line, unsigned bytes, uint64_t tag,
                       struct payload_difference *difference)
{
    const unsigned known = SIM_MIN(bytes, PAYLOAD_MARK_BYTES);

    for (unsigned at = 0, n; at < known; at += n) {
        uint64_t here, word = 0;
        n = payload_line_run(line, in_line + at, bytes - at, &here);
        n = SIM_MIN(n, known - at);
        memcpy(&word, line + in_line + at, n);
        if (here != 0)
            word = payload_word(here);
        if (!payload_same(word, payload_word(payload_mark_add(tag, at)), n)) {
            differ(line, in_line + at, bytes - at, payload_mark_add(tag, at), difference);
            return false;
        }
    }
    return true;
}

/* Of a range within a page. */
static bool check_in_page(const uint8_t *page, uint64_t in_page, uint64_t tag, uint64_t bytes,
                          struct payload_difference *difference)
{
    const uint64_t in_line = in_page % LINE_BYTES;
    uint64_t at = in_line != 0 ? SIM_MIN(bytes, LINE_BYTES - in_line) : 0;

    page += in_page;
    if (!check_part(page - in_line, (unsigned)in_line, (unsigned)at, tag, difference))
        return false;
    struct payload_words w = payload_words(payload_mark_add(tag, at));
    for (; at < bytes; at += LINE_BYTES, payload_words_line(&w)) {
        const unsigned here = (unsigned)SIM_MIN(bytes - at, LINE_BYTES);
        if (!payload_same(word_at(page + at), payload_words_here(&w),
                          SIM_MIN(here, PAYLOAD_MARK_BYTES)) &&
            !check_part(page + at, 0, here, payload_mark_add(tag, at), difference))
            return false;
    }
    return true;
}

bool payload_check(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes,
                   struct payload_difference *difference)
{
    while (bytes > 0) {
        const uint64_t in_page = at.v % PAGE_BYTES, here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        const struct hpa hpa = os_hpa(kernel->memory, (struct kaddr){ at.v - in_page });
        const uint8_t *page = physmem_bytes(kernel->memory->mem, hpa);
        if (!check_in_page(page, in_page, tag, here, difference))
            return false;
        tag = payload_mark_add(tag, here);
        at.v += here;
        bytes -= here;
    }
    return true;
}
