/* nudma run --pcap, --tlp, --trace FILE: files of what happens on wires and links, of one run. */
#ifndef CLI_TRACE_TRACE_FILES_H
#define CLI_TRACE_TRACE_FILES_H

#include "cli/campaign/plan.h"
#include "models/trace/pcap.h"
#include "models/trace/perfetto.h"
#include "models/trace/tlp_log.h"

#define TRACE_FILES_ENTRIES 9

/* What the options say; zero: nothing. */
struct trace_files {
    char *pcap, *pcap_port, *pcap_snap; /* texts of the options; NULL unless given */
    char *tlp, *tlp_filter;
    char *perfetto;
    char *from, *until, *limit;
    struct trace_window window;
    bool large_said;       /* that a file is large */
    bool from_measurement; /* the window begins with the measurement, and is empty before */
    sim_time length_ps;    /* of the window; 0: until_ps is said */
    uint32_t snap_bytes;
    struct tlp_filter filter;
};

/* The options, ended by an empty one; they point into *files. */
void trace_files_entries(struct trace_files *files, GOptionEntry entries[TRACE_FILES_ENTRIES]);
/* Whether any file is asked for. */
bool trace_files_wanted(const struct trace_files *files);
/* Reads the texts. False with what is wrong printed. */
bool trace_files_parse(struct trace_files *files);
void trace_files_release(struct trace_files *files);
/* A mistake unless there is one point and one seed, and the files are others than what is read. */
void trace_files_check(const struct trace_files *files, const struct plan *plan, const char *db,
                       int n_seeds, struct sim_error_list *errors);
/* Runs the plan's first point, into no database, and writes the files; the exit status. */
int trace_files_run(const struct plan *plan, uint64_t seed, struct trace_files *files);

#endif
