/*
 * Copies of bulk data, and the payload that they move.
 *
 * Models: `rep movsb`: line by line through the caches (models/host/core.h), data of one call
 * having arrived at its end; the content by tags (models/payload.h). Does not model: copies that
 * skip the caches, page faults. Timing: copy_call_cycles, then at least copy_line_cycles a line;
 * interrupts come in after each 4 KiB. Sources: docs/sources.md#a6.
 */
#include <string.h>

#include "models/host/os_memory.h"
#include "models/payload.h"

#define TAG_BYTES 8u

/* ---- Content -----------------------------------------------------------------------------------
 */

/* Bytes of a stream put into memory; within a page. */
static void put_run(uint8_t *page, uint64_t in_page, uint64_t tag, uint64_t bytes)
{
    uint64_t in_line = in_page % LINE_BYTES, at = 0;

    page += in_page;
    if (in_line != 0) {
        at = SIM_MIN(bytes, LINE_BYTES - in_line);
        payload_line_put(page - in_line, (unsigned)in_line, tag, (unsigned)at);
    }
    const uint64_t step = payload_tag_add(tag, LINE_BYTES) - tag;
    tag = payload_tag_add(tag, at);
    for (; at + LINE_BYTES <= bytes; at += LINE_BYTES, tag += step) {
        memset(page + at, 0, LINE_BYTES);
        memcpy(page + at, &tag, TAG_BYTES);
    }
    if (at < bytes)
        payload_line_put(page + at, 0, tag, (unsigned)(bytes - at));
}

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* How many of the bytes go on from each other, and their tag; within a page. *tag is that which
 * would go on from the bytes before, which were cut off here by the end of a page, or 0. */
static uint64_t find_run(const uint8_t *page, uint64_t in_page, uint64_t bytes, uint64_t *tag)
{
    const uint64_t in_line = in_page % LINE_BYTES;
    uint64_t at = SIM_MIN(bytes, LINE_BYTES - in_line);
    const unsigned known = (unsigned)SIM_MIN(at, TAG_BYTES);
    bool whole = known == TAG_BYTES;

    page += in_page;
    uint64_t first = payload_line_tag(page - in_line, (unsigned)in_line, (unsigned)at,
                                      bytes >= at + TAG_BYTES ? word_at(page + at) : 0);
    if (*tag >> 63 != 0 && (payload_fits(first, *tag, known) || (in_line != 0 && first >> 63 == 0)))
        first = *tag;
    whole = whole || first >> 63 != 0; /* a cut one has no highest bit */
    for (; at < bytes; at += LINE_BYTES) {
        const unsigned n = (unsigned)SIM_MIN(bytes - at, TAG_BYTES);
        const uint64_t word = word_at(page + at); /* lines are whole in a page */
        if (SIM_LIKELY(n == TAG_BYTES && word == payload_tag_add(first, at))) {
            whole = true;
            continue;
        }
        /* What the first line did not tell, or not in whole, the next does. */
        if (at <= LINE_BYTES && n == TAG_BYTES &&
            payload_fits(first, payload_tag_back(word, at), known)) {
            first = payload_tag_back(word, at);
            whole = true;
        } else if (!whole || !payload_fits(word, payload_tag_add(first, at), n)) {
            break;
        }
    }
    *tag = first;
    return SIM_MIN(at, bytes);
}

/* The part of a line that both sides have at the same place. Real bytes stay what they are; a tag
 * that follows from one before is written out. */
static void copy_part_of_line(uint8_t *to, const uint8_t *from, unsigned in_line, unsigned bytes,
                              uint64_t after)
{
    const unsigned known = SIM_MIN(bytes, TAG_BYTES);
    uint64_t here = 0, rest = 0;

    memcpy(&here, from + in_line, known);
    for (unsigned i = known; i < bytes; i++)
        rest |= from[in_line + i];
    const uint64_t tag = payload_line_tag(from, in_line, bytes, after);
    if (tag != here || rest == 0)
        payload_line_put(to, in_line, tag, bytes);
    else
        memcpy(to + in_line, from + in_line, bytes);
}

/* Within a page on both sides. */
static void copy_in_pages(uint8_t *to, uint64_t to_in_page, const uint8_t *from,
                          uint64_t from_in_page, uint64_t bytes, uint64_t *next)
{
    if ((to_in_page ^ from_in_page) % LINE_BYTES == 0) {
        const uint64_t in_line = from_in_page % LINE_BYTES;
        if (in_line != 0) {
            const uint64_t here = SIM_MIN(bytes, LINE_BYTES - in_line);
            const uint8_t *line = from + (from_in_page - in_line);
            copy_part_of_line(to + (to_in_page - in_line), line, (unsigned)in_line, (unsigned)here,
                              bytes >= here + TAG_BYTES ? word_at(line + LINE_BYTES) : 0);
            to_in_page += here;
            from_in_page += here;
            bytes -= here;
        }
        memcpy(to + to_in_page, from + from_in_page, bytes);
        return;
    }
    while (bytes > 0) {
        const uint64_t here = find_run(from, from_in_page, bytes, next);
        put_run(to, to_in_page, *next, here);
        *next = payload_tag_add(*next, here);
        to_in_page += here;
        from_in_page += here;
        bytes -= here;
    }
}

/* Addresses are the host's, the source lies in one page. next: of find_run(). */
static void copy_content(struct physmem *mem, uint64_t to, uint64_t from, uint64_t bytes,
                         uint64_t *next)
{
    const uint8_t *source = physmem_bytes(mem, (struct hpa){ from & ~(PAGE_BYTES - 1) });

    while (bytes > 0) {
        const uint64_t in_page = to % PAGE_BYTES, here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        uint8_t *page = physmem_bytes_made(mem, (struct hpa){ to - in_page });
        /* The page may be the source's and have appeared just now. */
        if ((to ^ from) < PAGE_BYTES)
            source = page;
        copy_in_pages(page, in_page, source, from % PAGE_BYTES, here, next);
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

/* ---- Copies ------------------------------------------------------------------------------------
 */

void k_copy(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes)
{
    struct k_thread *self = os_self(kernel);
    const struct k_costs *costs = &kernel->params.costs;
    const struct os_memory *memory = kernel->memory;
    const sim_time line_ps = costs->copy_line_cycles * kernel->cycle_ps;
    struct numa_result arrived = { 0 };
    uint64_t next = 0;

    os_charge_cycles(self, costs->copy_call_cycles);
    while (bytes > 0) {
        const uint64_t in_page = SIM_MIN(bytes, PAGE_BYTES - from.v % PAGE_BYTES);
        const uint64_t here = os_run(memory, to, in_page);
        const struct hpa hpa = os_hpa(memory, to), source = os_hpa(memory, from);
        announce_content(memory->mem, source, here);
        core_copy(self->on->core, self->task, hpa, source, here, line_ps, &arrived);
        copy_content(memory->mem, hpa.v, source.v, here, &next);
        to.v += here;
        from.v += here;
        bytes -= here;
        if (bytes > 0)
            os_interrupts_of(self);
    }
    core_wait(self->on->core, self->task, arrived);
    os_interrupts_of(self);
}

/* ---- Payload that is checked -------------------------------------------------------------------
 */

void kernel_stamp(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes)
{
    while (bytes > 0) {
        const uint64_t in_page = at.v % PAGE_BYTES, here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        const struct hpa hpa = os_hpa(kernel->memory, (struct kaddr){ at.v - in_page });
        put_run(physmem_bytes_made(kernel->memory->mem, hpa), in_page, tag, here);
        tag = payload_tag_add(tag, here);
        at.v += here;
        bytes -= here;
    }
}

/* Of a range within a page; found: what lies where it is another. */
static bool check_in_page(const uint8_t *page, uint64_t in_page, uint64_t tag, uint64_t bytes,
                          uint64_t *found)
{
    while (bytes > 0) {
        const unsigned in_line = (unsigned)(in_page % LINE_BYTES);
        const unsigned here = (unsigned)SIM_MIN(bytes, LINE_BYTES - in_line);
        const unsigned known = SIM_MIN(here, TAG_BYTES);
        uint64_t word = 0;
        memcpy(&word, page + in_page, known);
        if (!payload_fits(word, tag, known)) {
            word = payload_line_tag(page + (in_page - in_line), in_line, here, tag + here);
            if (!payload_fits(word, tag, known)) {
                *found = word;
                return false;
            }
        }
        tag = payload_tag_add(tag, here);
        in_page += here;
        bytes -= here;
    }
    return true;
}

bool kernel_check(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes,
                  uint64_t *found)
{
    while (bytes > 0) {
        const uint64_t in_page = at.v % PAGE_BYTES, here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        const struct hpa hpa = os_hpa(kernel->memory, (struct kaddr){ at.v - in_page });
        const uint8_t *page = physmem_bytes(kernel->memory->mem, hpa);
        if (!check_in_page(page, in_page, tag, here, found))
            return false;
        tag = payload_tag_add(tag, here);
        at.v += here;
        bytes -= here;
    }
    return true;
}
