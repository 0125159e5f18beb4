/* The list of engines, and what they share. */
#include "workloads/fio/fio_engine.h"

#include <errno.h>
#include <string.h>

/* A new engine: its name here and its operations below, in the same order. */
const char *const fio_engine_names[] = { "sync", "libaio", "io_uring", "spdk", "smartio", NULL };
const struct fio_engine_ops *const fio_engines[] = { &fio_engine_sync,     &fio_engine_libaio,
                                                     &fio_engine_io_uring, &fio_engine_spdk,
                                                     &fio_engine_smartio,  NULL };

const struct fio_engine_ops *fio_engine_find(const char *name)
{
    for (unsigned i = 0; fio_engines[i] != NULL; i++)
        if (strcmp(fio_engines[i]->name, name) == 0)
            return fio_engines[i];
    return NULL;
}

const char *fio_jobs_key(const struct program *program)
{
    if (config_find(program->group, "job_file") != NULL)
        return "job_file";
    return config_find(program->group, "job_options") != NULL ? "job_options" : "jobs";
}

int fio_buffers_alloc(struct fio_job *job)
{
    struct kernel *kernel = job->device->host->kernel;
    for (unsigned i = 0; i < job->depth; i++) {
        job->io_u[i].buffer = k_alloc(kernel, K_NODE_LOCAL, job->buffer_bytes, K_PAGE_BYTES);
        if (job->io_u[i].buffer.v == 0)
            return -ENOMEM;
    }
    return 0;
}
