/*
 * A file of records of any format (packets, lines, messages), bounded in size: when the limit is
 * reached, either no record is added any more, or (a ring) the oldest ones make room. The file
 * always ends behind a whole record, also when the file system is full.
 */
#ifndef SIM_TRACE_TRACE_FILE_H
#define SIM_TRACE_TRACE_FILE_H

#include "sim/engine/types.h"

struct trace_file;

struct trace_file_counts {
    uint64_t records, bytes; /* in the file; bytes with its head */
    uint64_t dropped;        /* records that did not fit, or that a ring has overwritten */
    int error;               /* errno with which the file system refused; 0: it did not */
};

/* Who is told once, when a file has more than so many bytes while records are still added; a ring
 * is written at the end, and never told. */
struct trace_watch {
    uint64_t bytes;
    void (*is_large)(void *arg, const char *path); /* NULL: nobody */
    void *arg;
};

/* Creates or empties the file. limit_bytes: the most that the file takes. ring: records are kept in
 * memory (limit_bytes of it) and written by trace_file_close(). The path must outlive the file if
 * somebody watches. NULL with errno set if the file cannot be opened. */
struct trace_file *trace_file_new(const char *path, uint64_t limit_bytes, bool ring,
                                  struct trace_watch watch);
/* Writes what stands before all records. Not after the first record. False: the file system
 * refused, or the head alone exceeds the limit. */
bool trace_file_head(struct trace_file *file, const void *data, size_t bytes);
/* Adds a record. False: it was dropped; all that follow will be, too (trace_file_ended()), unless
 * the file is a ring and only this record is too large for it. */
bool trace_file_add(struct trace_file *file, const void *data, size_t bytes);
/* Whether it takes no more records: full, or refused by the file system. */
bool trace_file_ended(const struct trace_file *file);
/* Adds what stands behind all records (a summary), which does not count against the limit: call it
 * last. False: the file system refused. */
bool trace_file_tail(struct trace_file *file, const void *data, size_t bytes);
/* Writes what is left, closes and frees. NULL is allowed, *counts is zero then. */
void trace_file_close(struct trace_file *file, struct trace_file_counts *counts);

#endif
