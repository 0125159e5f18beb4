/*
 * What it does: chooses the channels of a transfer, whose pages then go round over them. round
 *   robin: all channels, the first page on the one behind the last page of the transfer before.
 *   dedicated: the last n_dedicated channels are those of small copies, the others those of large
 *   ones; each kind goes round over its own. adaptive: a small copy goes to the one channel that
 *   has the fewest bytes before it; a large one over all, but while small ones keep coming (one
 *   within reserve_ps) not over the last.
 * Follows: section 3.6 of the paper (round robin; the others are what it leaves to later work).
 */
#include "logic/copy/adma_internal.h"

static void use(struct adma *adma, struct adma_transfer *t, unsigned first, unsigned n,
                unsigned *next)
{
    const uint64_t in_page = (t->from->at.v + t->from_at) % K_PAGE_BYTES;
    t->n_lanes = (unsigned)(t->n_units < n ? t->n_units : n);
    for (unsigned i = 0; i < t->n_lanes; i++) {
        struct adma_channel *channel = &adma->channel[first + (*next + i) % n];
        uint64_t bytes = (t->n_units - i + t->n_lanes - 1) / t->n_lanes * K_PAGE_BYTES;
        if (i == 0)
            bytes -= in_page;
        if (i == (t->n_units - 1) % t->n_lanes)
            bytes -= t->n_units * K_PAGE_BYTES - in_page - t->bytes;
        t->lane[i].channel = channel;
        channel->bytes_under_way += bytes;
    }
    *next = (unsigned)((*next + t->n_units) % n);
}

static unsigned least_loaded(const struct adma *adma)
{
    unsigned best = 0;
    for (unsigned i = 1; i < adma->n_channels; i++)
        if (adma->channel[i].bytes_under_way < adma->channel[best].bytes_under_way)
            best = i;
    return best;
}

static void adaptive(struct adma *adma, struct adma_transfer *t, bool small)
{
    const uint64_t now_ps = k_now_ps(adma->kernel), reserve_ps = adma->options.reserve_ps;
    unsigned none = 0;
    if (small) {
        adma->small_seen_ps = now_ps;
        use(adma, t, least_loaded(adma), 1, &none);
        return;
    }
    const bool reserve = adma->n_channels > 1 && adma->small_seen_ps != 0 &&
                         now_ps < adma->small_seen_ps + reserve_ps;
    use(adma, t, 0, adma->n_channels - (reserve ? 1 : 0), &adma->next_channel);
}

void adma_schedule_lanes(struct adma *adma, struct adma_transfer *t)
{
    const struct adma_options *options = &adma->options;
    const bool small = t->bytes <= options->small_bytes;
    const unsigned n_large = adma->n_channels - options->n_dedicated;
    if (options->schedule == ADMA_ADAPTIVE)
        adaptive(adma, t, small);
    else if (options->schedule == ADMA_ROUND_ROBIN)
        use(adma, t, 0, adma->n_channels, &adma->next_channel);
    else if (small)
        use(adma, t, n_large, options->n_dedicated, &adma->next_dedicated);
    else
        use(adma, t, 0, n_large, &adma->next_channel);
}
