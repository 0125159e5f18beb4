/*
 * An MPI job: as many processes on each of two hosts, ranks 0 to n - 1 on the first (by slot), each
 * in a thread of its own with an endpoint of Myrinet Express.
 */
#ifndef WORKLOADS_OPENMX_MPI_JOB_H
#define WORKLOADS_OPENMX_MPI_JOB_H

#include "logic/mpi/mpi.h"
#include "workloads/openmx/mx_site.h"

extern const struct program_ops program_imb_ops, program_nas_ops;

#define MPI_JOB_HOSTS 2u

struct mpi_job_settings {
    const char *host_name[MPI_JOB_HOSTS];
    struct mx_site_settings mx;
    uint32_t cpu;
    bool busy;
};
#define MPI_JOB_PARAMS(type, f)                                                                 \
    PARAM_TEXT("first", type, f.host_name[0], "server",                                         \
               "host of the group `network`: ranks 0 on"),                                      \
        PARAM_TEXT("second", type, f.host_name[1], "client", "host of the other ranks"),        \
        PARAM("cpu", PARAM_U32, type, f.cpu, 0, 0, 255, PROV_NONE, "",                          \
              "of the first process of each host; the others follow"),                          \
        PARAM("busy", PARAM_BOOL, type, f.busy, 1, 0, 1, PROV_NONE, "",                         \
              "other CPUs compute all the time, as with a process each; false: they are idle"), \
        MX_SITE_PARAMS(type, f.mx)

struct mpi_job;

/* A process of the job. */
struct mpi_rank {
    struct mpi_job *job;
    struct kernel *kernel;
    struct mpi_comm *world; /* while body() runs */
    unsigned rank, host, cpu;
    uint16_t stream; /* of payload that it sends */
    bool done;
};

struct mpi_job {
    struct program *program;
    const struct mpi_job_settings *settings;
    struct network_host *host[MPI_JOB_HOSTS];
    unsigned n_per_host;
    /* What a process does: warms up, mpi_job_measured(), what is measured. Nothing of it after an
     * error. */
    void (*body)(struct mpi_rank *rank);
    /* ---- running ----------------------------------------------------------------------------- */
    struct mx_site *site[MPI_JOB_HOSTS];
    unsigned n_open[MPI_JOB_HOSTS]; /* endpoints */
    bool site_ready[MPI_JOB_HOSTS];
    struct mpi_rank *rank;
    struct mpi_place place[MPI_PROCESSES_MAX];
    struct mx_site_losses losses; /* of both hosts, once all processes have ended */
    struct mx_site_stalls stalls; /* of both hosts */
    unsigned n_ended;
    bool failed;
};

/* In check(): finds the hosts; each must have n_per_host CPUs from settings->cpu on. False: a
 * mistake. */
bool mpi_job_check(struct mpi_job *job, struct program *program,
                   const struct mpi_job_settings *settings, unsigned n_per_host,
                   struct sim_error_list *errors);
/* In start(): makes the threads. The program has ended when all processes have. */
void mpi_job_start(struct mpi_job *job);
/* [thread] Returns once what is measured has begun, when all processes have come here. False: do
 * nothing more, something has failed. */
bool mpi_job_measured(struct mpi_rank *rank);
/* The job goes on. */
bool mpi_job_good(const struct mpi_job *job);
/* Fails the program, if the call has failed. Returns whether the job goes on. */
bool mpi_job_ok(struct mpi_rank *rank, const char *call, int error);
/* [thread] Memory of the process's node; v is 0, and the program has failed, if there is none. It
 * stays. */
struct kaddr mpi_job_buffer(struct mpi_rank *rank, uint64_t bytes);
/* Content without time: bytes of a stream from `position` on; whether they are there, else a
 * fault. */
void mpi_job_fill(struct mpi_rank *rank, struct kaddr at, uint16_t stream, uint64_t position,
                  uint64_t bytes);
void mpi_job_clear(struct mpi_rank *rank, struct kaddr at, uint64_t bytes);
bool mpi_job_verify(struct mpi_rank *rank, struct kaddr at, uint16_t stream, uint64_t position,
                    uint64_t bytes);

#endif
