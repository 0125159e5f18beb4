/* Which TLPs are recorded: "link=server.* type=MRd,CplD requester=04:00.0". */
#ifndef MODELS_TRACE_TLP_FILTER_H
#define MODELS_TRACE_TLP_FILTER_H

#include "models/pcie/link/port.h"
#include "sim/config/error.h"

#define N_TLP_TYPES (TLP_CPLD + 1)

/* "MRd", ... of enum tlp_type; NULL-terminated. */
extern const char *const tlp_type_names[];

/* Each term is a list of which one must match; "" or 0: any. Patterns are those of fnmatch(),
 * separated by zeros and ended by two. */
#define TLP_FILTER_TEXT_BYTES 256u
struct tlp_filter {
    char link[TLP_FILTER_TEXT_BYTES], from[TLP_FILTER_TEXT_BYTES], to[TLP_FILTER_TEXT_BYTES];
    char requester[TLP_FILTER_TEXT_BYTES];
    uint32_t types; /* 1 << type */
};

/* Reads the text, which may be NULL: everything matches. False with mistakes in errors. */
bool tlp_filter_parse(struct tlp_filter *filter, const char *text, struct sim_error_list *errors);
/* Whether TLPs of that direction of a link may match. The names are those that cables use. */
bool tlp_filter_direction(const struct tlp_filter *filter, const char *link, const char *from,
                          const char *to);
/* Whether a TLP of such a direction matches. */
bool tlp_filter_tlp(const struct tlp_filter *filter, const struct tlp *tlp);

#define TLP_ID_BYTES 16u
/* "04:00.1"; behind a domain, if there is one: "2:04:00.1". Returns the text. */
const char *tlp_id_text(uint8_t domain, uint16_t id, char text[TLP_ID_BYTES]);

#endif
