/*
 * Messages between two processes through memory that both have mapped, without the kernel: the
 * writer copies into slots of a ring, the reader out of them. One direction; one writer, one
 * reader.
 */
#ifndef LOGIC_COPY_SHM_RING_H
#define LOGIC_COPY_SHM_RING_H

#include "logic/copy/umem.h"

struct shm_ring;

/* [thread] Shared memory on the node of the calling CPU. NULL: there is none. The caller owns the
 * result. */
struct shm_ring *shm_ring_new(struct kernel *kernel, unsigned slots, uint32_t slot_bytes);
/* [thread] Nobody uses it any more. */
void shm_ring_free(struct shm_ring *ring);
/* [thread] Returns when all bytes have been copied into slots, or stop is set: false. */
bool shm_ring_send(struct shm_ring *ring, struct umem *umem, struct uaddr from, uint64_t bytes,
                   const bool *stop);
/* [thread] Returns when all bytes have arrived, or stop is set: false. */
bool shm_ring_receive(struct shm_ring *ring, struct umem *umem, struct uaddr to, uint64_t bytes,
                      const bool *stop);

#endif
