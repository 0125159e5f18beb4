/*
 * What it does: Regions: user memory that is pinned while it is registered, so that packets can
 *   carry it and replies can be written into it. One that is given back loses its number at once.
 *   Its pages stay pinned until a grace period of RCU has passed and nothing uses it any more; then
 *   a soft interrupt of the CPU that gave it back, or who used it last, unpins them.
 * Leaves out: pinning in parts while the rendezvous is under way (demand pinning, which is off by
 *   default).
 * Follows: Open-MX 0.9.2 driver/linux/omx_reg.c (omx_ioctl_user_region_destroy, call_rcu).
 * Costs: a system call, pin_cycles and pin_page_cycles; the region's lines; the lines of its pages'
 *   structures.
 */
#include "logic/openmx/openmx_internal.h"

static int pin_all(struct kernel *kernel, const struct mx_segment *segment, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const int result = k_pin(kernel, segment[i].at, segment[i].bytes);
        if (result == 0)
            continue;
        while (i-- > 0)
            k_unpin(kernel, segment[i].at, segment[i].bytes);
        return result;
    }
    return 0;
}

int openmx_region_new(struct mx_port *p, const struct mx_segment *segment, unsigned n,
                      uint8_t *number, uint8_t *sequence)
{
    struct openmx_port *port = openmx_port_of(p);
    struct openmx *omx = port->omx;
    unsigned i = 0;
    k_syscall(omx->kernel);
    while (i < 256 && port->region[i] != NULL)
        i++;
    if (i == 256)
        return -ENOSPC;
    if (n == 0 || n > MX_SEGMENTS_MAX)
        return -EINVAL;
    const int result = pin_all(omx->kernel, segment, n);
    if (result != 0)
        return result;
    struct openmx_region *region = k_zalloc(sizeof *region);
    region->omx = omx;
    region->port = port;
    region->users = 1; /* its number */
    region->n_segments = n;
    region->segment = k_zalloc(n * sizeof *segment);
    for (unsigned s = 0; s < n; s++) {
        region->segment[s] = segment[s];
        region->bytes += segment[s].bytes;
    }
    port->region[i] = region;
    region->lines = openmx_region_line(port, (uint8_t)i);
    openmx_touch(omx->kernel, region->lines, 2 * K_LINE_BYTES, true, MX_ACCOUNT_PULL);
    omx->n_regions++;
    omx->stats.regions++;
    *number = (uint8_t)i;
    *sequence = ++port->region_sequence[i];
    return 0;
}

struct openmx_region *openmx_region_get(struct openmx_port *port, uint8_t number, uint8_t sequence,
                                        bool any_sequence)
{
    struct openmx_region *region = port->region[number];
    if (region == NULL || region->closing ||
        (!any_sequence && port->region_sequence[number] != sequence))
        return NULL;
    region->users++;
    openmx_atomic(port->omx->kernel, region->lines, MX_ACCOUNT_PULL);
    openmx_touch(port->omx->kernel, kaddr_add(region->lines, K_LINE_BYTES), K_LINE_BYTES, false,
                 MX_ACCOUNT_PULL);
    return region;
}

/* Nothing uses the region any more, and nothing can find it. */
static void unpin_all(struct openmx_region *region)
{
    struct openmx *omx = region->omx;
    for (unsigned i = 0; i < region->n_segments; i++)
        k_unpin(omx->kernel, region->segment[i].at, region->segment[i].bytes);
    omx->n_regions--;
    k_free(region->segment);
    k_free(region->page);
    k_free(region);
}

void openmx_region_put(struct openmx_region *region)
{
    if (--region->users == 0)
        unpin_all(region);
}

/* ---- Given back ------------------------------------------------------------------------------ */

static void arm(struct openmx_grace *grace)
{
    if (grace->first != NULL && !grace->at_it)
        k_timer_set(&grace->timer, grace->first->free_ps);
}

/* A soft interrupt: the grace period of the first is over, perhaps of others, too. */
static void grace_over(struct k_timer *timer)
{
    struct openmx_grace *grace = K_CONTAINER(timer, struct openmx_grace, timer);
    struct openmx_region *region;
    grace->at_it = true;
    while ((region = grace->first) != NULL && region->free_ps <= k_now_ps(timer->kernel)) {
        grace->first = region->next;
        openmx_region_put(region);
    }
    grace->at_it = false;
    arm(grace);
}

static void region_retire(struct openmx_port *port, uint8_t number)
{
    struct openmx *omx = port->omx;
    struct openmx_grace *grace = &omx->grace[k_cpu(omx->kernel) % OPENMX_CPUS_MAX];
    struct openmx_region *region = port->region[number];
    const bool was_empty = grace->first == NULL;
    port->region[number] = NULL;
    region->closing = true;
    region->next = NULL;
    region->free_ps = k_now_ps(omx->kernel) + omx->options.grace_ps;
    if (was_empty)
        grace->first = region;
    else
        grace->last->next = region;
    grace->last = region;
    if (was_empty)
        arm(grace);
}

void openmx_region_free(struct mx_port *p, uint8_t number)
{
    struct openmx_port *port = openmx_port_of(p);
    k_syscall(port->omx->kernel);
    openmx_touch(port->omx->kernel, openmx_region_line(port, number), K_LINE_BYTES, true,
                 MX_ACCOUNT_PULL);
    region_retire(port, number);
}

void openmx_regions_close(struct openmx_port *port)
{
    for (unsigned i = 0; i < 256; i++)
        if (port->region[i] != NULL)
            region_retire(port, (uint8_t)i);
}

void openmx_regions_init(struct openmx *omx)
{
    for (unsigned i = 0; i < OPENMX_CPUS_MAX; i++)
        k_timer_init(&omx->grace[i].timer, omx->kernel, grace_over);
}

void openmx_regions_release(struct openmx *omx)
{
    while (omx->n_regions > 0) /* rcu_barrier() */
        k_sleep(omx->kernel, omx->options.grace_ps);
    for (unsigned i = 0; i < OPENMX_CPUS_MAX; i++)
        k_timer_release(&omx->grace[i].timer);
}

/* ---- Data ------------------------------------------------------------------------------------ */

struct kaddr openmx_region_at(const struct openmx_region *region, uint64_t offset, uint64_t *bytes,
                              unsigned *i)
{
    for (*i = 0; offset >= region->segment[*i].bytes; ++*i)
        offset -= region->segment[*i].bytes;
    const uint64_t room = region->segment[*i].bytes - offset;
    *bytes = *bytes < room ? *bytes : room;
    return kaddr_add(region->segment[*i].at, offset);
}

static uint64_t pages_of(const struct mx_segment *segment)
{
    return (segment->at.v % K_PAGE_BYTES + segment->bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES;
}

static void pages_new(struct openmx_region *region)
{
    struct kernel *kernel = region->omx->kernel;
    uint64_t n = 0;
    for (unsigned s = 0; s < region->n_segments; s++)
        n += pages_of(&region->segment[s]);
    struct k_page *page = region->page = k_zalloc(n * sizeof *page);
    for (unsigned s = 0; s < region->n_segments; s++) {
        struct kaddr at = { region->segment[s].at.v & ~(uint64_t)(K_PAGE_BYTES - 1) };
        for (n = pages_of(&region->segment[s]); n > 0; n--, at = kaddr_add(at, K_PAGE_BYTES))
            *page++ = (struct k_page){ .addr = at, .meta = k_page_line(kernel, at), .refs = 1 };
    }
}

struct k_page *openmx_region_page(struct openmx_region *region, unsigned i, struct kaddr at)
{
    uint64_t n = at.v / K_PAGE_BYTES - region->segment[i].at.v / K_PAGE_BYTES;
    if (region->page == NULL)
        pages_new(region);
    for (unsigned s = 0; s < i; s++)
        n += pages_of(&region->segment[s]);
    return &region->page[n];
}

void openmx_region_write(struct openmx_region *region, uint64_t offset,
                         const struct openmx_data *data)
{
    struct kernel *kernel = region->omx->kernel;
    const unsigned before = k_account(kernel, MX_ACCOUNT_DATA);
    struct openmx_data part = *data;
    uint32_t done = 0;
    while (done < data->bytes) {
        uint64_t n = data->bytes - done;
        unsigned i;
        const struct kaddr to = openmx_region_at(region, offset + done, &n, &i);
        n = openmx_in_page(to, n);
        part.offset = data->offset + done;
        part.bytes = (uint32_t)n;
        openmx_data_copy(kernel, to, &part);
        done += (uint32_t)n;
    }
    k_account(kernel, before);
}
