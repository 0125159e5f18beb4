/*
 * A report as bytes, from a worker to the command: a head, the text of the error, the packed
 * result. Both ends are the same program; but a worker that goes wrong may write anything, so that
 * no size is believed.
 */
#include <string.h>

#include "cli/campaign/worker_internal.h"

struct report_head {
    uint64_t n_error, n_result; /* bytes; 0: none */
    uint64_t sim_ps, events, fingerprint, peak_memory_bytes;
    uint64_t leaves; /* 1: the worker ends after this report */
    double wall_s;
};

GByteArray *worker_report_pack(const struct worker_report *report, bool leaves)
{
    size_t n_result = 0;
    g_autofree void *packed = report->result != NULL ? run_result_pack(report->result, &n_result)
                                                     : NULL;
    const struct report_head head = {
        .n_error = report->error != NULL ? strlen(report->error) : 0,
        .n_result = n_result,
        .sim_ps = report->sim_ps,
        .events = report->events,
        .fingerprint = report->fingerprint,
        .peak_memory_bytes = report->peak_memory_bytes,
        .leaves = leaves,
        .wall_s = report->wall_s,
    };
    GByteArray *bytes = g_byte_array_sized_new((guint)(sizeof(head) + head.n_error + n_result));
    g_byte_array_append(bytes, (const guint8 *)&head, sizeof(head));
    g_byte_array_append(bytes, (const guint8 *)report->error, (guint)head.n_error);
    g_byte_array_append(bytes, packed, (guint)n_result);
    return bytes;
}

static bool is_whole(const GByteArray *bytes, struct report_head *head)
{
    if (bytes->len < sizeof(*head))
        return false;
    memcpy(head, bytes->data, sizeof(*head));
    const uint64_t rest = bytes->len - sizeof(*head);
    return head->n_error <= rest && head->n_result == rest - head->n_error;
}

bool worker_report_whole(const GByteArray *bytes)
{
    struct report_head head;
    return is_whole(bytes, &head);
}

bool worker_report_unpack(const GByteArray *bytes, struct worker_report *report, bool *leaves)
{
    struct report_head head;
    if (!is_whole(bytes, &head))
        return false;
    const char *error = (const char *)bytes->data + sizeof(head);
    struct run_result *result = NULL;
    if (head.n_result > 0)
        result = run_result_unpack(error + head.n_error, head.n_result);
    if (head.n_result > 0 && result == NULL)
        return false;
    *report = (struct worker_report){
        .result = result,
        .error = head.n_error > 0 ? g_strndup(error, head.n_error) : NULL,
        .sim_ps = head.sim_ps,
        .events = head.events,
        .fingerprint = head.fingerprint,
        .wall_s = head.wall_s,
        .peak_memory_bytes = head.peak_memory_bytes,
    };
    *leaves = head.leaves != 0;
    return true;
}
