/*
 * Models: which TLPs a protocol analyser keeps: by link and port, type and requester.
 * Does not model: filters by address, length or tag (awk does these on the log).
 * Timing: none; links are matched once, before the run, TLPs by a mask of types and their
 *   requester.
 * Sources: docs/traces.md; PCI Express Base 3.1, 2.2.1 (types), 2.2.6.2 (requester IDs).
 */
#include "models/trace/tlp_filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

const char *const tlp_type_names[] = { "MRd",    "MWr", "DMWr", "CfgRd0", "CfgWr0", "CfgRd1",
                                       "CfgWr1", "Msg", "Cpl",  "CplD",   NULL };
_Static_assert(SIM_N_ELEMENTS(tlp_type_names) == N_TLP_TYPES + 1, "a name for each type");

static const char *const keys[] = { "link", "from", "to", "type", "requester", NULL };

/* "a,b" -> "a\0b\0\0" */
static bool take_patterns(char *to, const char *values)
{
    const size_t bytes = strlen(values);

    if (bytes + 2 > TLP_FILTER_TEXT_BYTES)
        return false;
    memset(to, 0, TLP_FILTER_TEXT_BYTES);
    memcpy(to, values, bytes);
    for (char *at = to; (at = strchr(at, ',')) != NULL;)
        *at++ = '\0';
    return true;
}

static bool take_types(struct tlp_filter *filter, char *values, struct sim_error_list *errors)
{
    char *rest = NULL;

    for (char *name = strtok_r(values, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        unsigned type = 0;
        while (tlp_type_names[type] != NULL && strcmp(tlp_type_names[type], name) != 0)
            type++;
        if (tlp_type_names[type] == NULL) {
            sim_error_add(errors, NULL, 0, "--tlp-filter: type %s: ", name);
            sim_error_suggest(errors, name, tlp_type_names);
            return false;
        }
        filter->types |= 1u << type;
    }
    return true;
}

/* Whether each value of "a,b" has characters: an empty pattern would end the list. */
static bool are_values(const char *values)
{
    const size_t bytes = strlen(values);

    return bytes != 0 && *values != ',' && values[bytes - 1] != ',' && strstr(values, ",,") == NULL;
}

static bool is_repeated(const char *key, struct sim_error_list *errors)
{
    sim_error_add(errors, NULL, 0,
                  "--tlp-filter: %s stands there twice: expected one term, with all values: "
                  "%s=VALUE,VALUE",
                  key, key);
    return false;
}

static bool take_term(struct tlp_filter *filter, char *term, struct sim_error_list *errors)
{
    char *values = strchr(term, '=');
    const struct {
        const char *key;
        char *to;
    } patterns[] = { { "link", filter->link },
                     { "from", filter->from },
                     { "to", filter->to },
                     { "requester", filter->requester } };

    if (values == NULL || !are_values(values + 1)) {
        sim_error_add(
            errors, NULL, 0,
            "--tlp-filter: '%s': expected KEY=VALUE,... with the keys link, from, to, type, "
            "requester",
            term);
        return false;
    }
    *values++ = '\0';
    for (size_t i = 0; i < SIM_N_ELEMENTS(patterns); i++) {
        if (strcmp(term, patterns[i].key) != 0)
            continue;
        if (*patterns[i].to != '\0')
            return is_repeated(term, errors);
        if (take_patterns(patterns[i].to, values))
            return true;
        sim_error_add(errors, NULL, 0, "--tlp-filter: %s: expected at most %u characters", term,
                      TLP_FILTER_TEXT_BYTES - 2);
        return false;
    }
    if (strcmp(term, "type") == 0 && filter->types != 0)
        return is_repeated(term, errors);
    if (strcmp(term, "type") == 0)
        return take_types(filter, values, errors);
    sim_error_add(errors, NULL, 0, "--tlp-filter: there is no key %s: ", term);
    sim_error_suggest(errors, term, keys);
    return false;
}

bool tlp_filter_parse(struct tlp_filter *filter, const char *text, struct sim_error_list *errors)
{
    char *copy = sim_strdup(text != NULL ? text : ""), *rest = NULL;
    bool good = true;

    *filter = (struct tlp_filter){ 0 };
    for (char *term = strtok_r(copy, " ", &rest); term != NULL && good;
         term = strtok_r(NULL, " ", &rest))
        good = take_term(filter, term, errors);
    free(copy);
    return good;
}

static bool matches(const char *patterns, const char *name)
{
    if (*patterns == '\0')
        return true;
    for (; *patterns != '\0'; patterns += strlen(patterns) + 1)
        if (fnmatch(patterns, name, 0) == 0)
            return true;
    return false;
}

bool tlp_filter_direction(const struct tlp_filter *filter, const char *link, const char *from,
                          const char *to)
{
    return (matches(filter->link, link) || matches(filter->link, from) ||
            matches(filter->link, to)) &&
           matches(filter->from, from) && matches(filter->to, to);
}

bool tlp_filter_tlp(const struct tlp_filter *filter, const struct tlp *tlp)
{
    char id[TLP_ID_BYTES];

    if (filter->types != 0 && (filter->types >> tlp->type & 1) == 0)
        return false;
    return *filter->requester == '\0' ||
           matches(filter->requester, tlp_id_text(tlp->domain, tlp->requester_id, id));
}

const char *tlp_id_text(uint8_t domain, uint16_t id, char text[TLP_ID_BYTES])
{
    const unsigned bus = id >> 8, device = id >> 3 & 31, function = id & 7;

    if (domain != 0)
        snprintf(text, TLP_ID_BYTES, "%x:%02x:%02x.%x", domain, bus, device, function);
    else
        snprintf(text, TLP_ID_BYTES, "%02x:%02x.%x", bus, device, function);
    return text;
}
