/*
 * The cycles that software charges for its computation, beyond the cache lines that it touches and
 * the devices that it waits for, with its instructions in the L1I (ktext.h has them). One set per
 * host, from the group `os` of its platform file, which gives each a range, a provenance and a
 * source. The comments say what each includes and excludes.
 */
#ifndef LOGIC_KCOSTS_H
#define LOGIC_KCOSTS_H

#include <stdint.h>

struct k_costs {
    /* ---- kernel: entry, interrupts, scheduling ----------------------------------------------- */
    uint32_t syscall_cycles;  /* entry and return of a system call */
    uint32_t hard_irq_cycles; /* vector entry, handler frame, return; not the handler */
    /* end of a hard interrupt and its soft ones to the thread that goes on; 0: in
     * hard_irq_cycles */
    uint32_t irq_return_cycles;
    uint32_t soft_irq_cycles;       /* from the return of the handler to the first poll */
    uint32_t context_switch_cycles; /* between threads, or from idle to a thread */
    uint32_t wakeup_cycles;         /* try_to_wake_up(), charged to the waker */
    uint32_t remote_wakeup_cycles;  /* added if another CPU is woken: an interrupt */
    uint32_t timer_cycles;          /* expiry of a timer, excluding its function */
    uint32_t work_cycles;           /* queueing and starting one piece of work */
    uint32_t page_alloc_cycles, page_free_cycles; /* per page, lists per CPU */
    uint32_t page_bulk_cycles; /* per page, between such a list and the node's; 0: not charged */
    uint32_t pin_cycles, pin_page_cycles;          /* get_user_pages(): per call, per page */
    uint32_t unpin_page_cycles;                    /* put_page() of each */
    uint32_t dma_map_cycles, dma_unmap_cycles;     /* without an IOMMU */
    uint32_t iommu_map_cycles, iommu_unmap_cycles; /* added with one, without invalidation */
    uint32_t mmio_write_cycles; /* a posted write with its barrier, until the core continues */
    /* ---- copies ------------------------------------------------------------------------------ */
    uint32_t copy_call_cycles; /* per copy of contiguous bytes */
    uint32_t copy_line_cycles; /* minimum per cache line, even from the nearest cache */
    /* no cost: memcpy() of user space uses non-temporal stores from so many bytes on; 0: never */
    uint32_t memcpy_nt_bytes;
    uint32_t pin_lookup_cycles; /* a buffer looked up in a cache of pinned pages */
    /* ---- network stack ----------------------------------------------------------------------- */
    uint32_t gro_packet_cycles;     /* merging one packet into another */
    uint32_t ip_tcp_receive_cycles; /* IP and TCP, per (merged) buffer */
    uint32_t tcp_ack_send_cycles;   /* building and sending one acknowledgement */
    /* a pure acknowledgement at the sender, including clean_rtx_queue */
    uint32_t tcp_ack_receive_cycles;
    uint32_t ip_udp_receive_cycles;
    uint32_t recv_call_cycles;    /* a receive call in the kernel, excluding copy and sleep */
    uint32_t recv_frag_cycles;    /* added per fragment: page and list handling */
    uint32_t send_call_cycles;    /* a send call in the kernel, excluding copy and transmission */
    uint32_t send_page_cycles;    /* added per page of payload */
    uint32_t tcp_transmit_cycles; /* a buffer through TCP, IP and the queueing discipline */
    uint32_t udp_transmit_cycles;
    uint32_t sent_free_cycles; /* a sent buffer: its structures, accounting of its socket */
    uint32_t poll_call_cycles; /* epoll_wait() in the kernel, excluding sleep */
    /* ---- the driver of the NIC --------------------------------------------------------------- */
    uint32_t driver_receive_cycles;  /* completion to stack, per packet */
    uint32_t driver_refill_cycles;   /* posting one receive buffer */
    uint32_t driver_transmit_cycles; /* work queue entry and doorbell, per buffer */
    uint32_t driver_fragment_cycles; /* added per fragment */
    uint32_t driver_complete_cycles; /* a transmit completion, per buffer */
    uint32_t driver_put_page_cycles; /* added per page freed */
    uint32_t driver_poll_cycles;     /* one call of poll(), even if it finds nothing */
    uint32_t driver_irq_cycles;      /* the handler: event queue and scheduling of the poll */
    /* ---- block devices ----------------------------------------------------------------------- */
    uint32_t block_submit_cycles;   /* direct I/O, bio and request, excluding pinning */
    uint32_t block_complete_cycles; /* request and bio, excluding the wake-up */
    uint32_t nvme_submit_cycles;    /* the driver's command, excluding mapping and doorbell */
    uint32_t nvme_complete_cycles;  /* a completion */
    uint32_t nvme_irq_cycles;       /* its interrupt handler, excluding completions */
    /* ---- copy engines ------------------------------------------------------------------------ */
    uint32_t dma_prepare_cycles;  /* a copy: descriptor found and computed, excluding stores */
    uint32_t dma_complete_cycles; /* a copy that has ended, excluding the look and its callback */
    uint32_t dma_irq_cycles;      /* the interrupt handler, excluding registers */
    /* ---- RDMA: user-level verbs -------------------------------------------------------------- */
    uint32_t rdma_post_cycles;     /* building one work request, excluding stores and doorbell */
    uint32_t rdma_poll_cycles;     /* one call of poll, even if it finds nothing */
    uint32_t rdma_complete_cycles; /* a completion */
    /* ---- user-space storage, polled: SPDK, NVMe over Fabrics, fio's engines over them -------- */
    uint32_t spdk_submit_cycles;   /* an NVMe command, excluding stores of entries and doorbell */
    uint32_t spdk_complete_cycles; /* its completion, excluding load of the entry and doorbell */
    uint32_t spdk_poll_cycles;     /* one look at a completion queue, even if it finds nothing */
    uint32_t spdk_reactor_cycles;  /* one round of the loop that calls a target's pollers */
    /* a request at the initiator, either way, excluding verbs */
    uint32_t nvmeof_initiator_cycles;
    /* a request at the target, either event, excluding verbs and NVMe */
    uint32_t nvmeof_target_cycles;
    /* fio's engine over a user-space driver, per request, half of it each way */
    uint32_t fio_plugin_cycles;
    /* ---- message passing --------------------------------------------------------------------- */
    uint32_t mx_lib_call_cycles;  /* posting a send or a receive, excluding lines and copies */
    uint32_t mx_lib_event_cycles; /* an event read and processed by the library */
    /* a packet of Open-MX from the command to the driver, excluding system call, stores and
     * driver */
    uint32_t omx_send_cycles;
    uint32_t omx_receive_cycles; /* a packet in the receive handler, excluding lines and copies */
    uint32_t omx_reply_cycles;   /* a reply to a pull there, the same */
    uint32_t omx_pull_cycles;    /* added to the sending of a request to pull */
    uint32_t mpi_call_cycles;    /* a message in the MPI library, at either side */
    /* ---- pktgen ------------------------------------------------------------------------------ */
    uint32_t pktgen_packet_cycles; /* its own loop, excluding the driver */
};

#endif
