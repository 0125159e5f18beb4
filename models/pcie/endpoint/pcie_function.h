/*
 * A PCIe function: what all functions have in common, once. Parameters of its port, BARs with
 * registers or memory behind them, answers after the register latency, MSI-X, configuration
 * requests, function-level reset, removal, virtual functions, the DMA front end (dma.h).
 *
 * A device embeds a struct pcie_function per function and describes it to pcie_function_init(). Its
 * model_ops take pcie_function_start, _receive, _credit and _link_change as they are. DMA goes
 * straight to pcie_dma_read(&function->dma, ...).
 */
#ifndef MODELS_PCIE_ENDPOINT_PCIE_FUNCTION_H
#define MODELS_PCIE_ENDPOINT_PCIE_FUNCTION_H

#include "models/pcie/endpoint/dma.h"

#define PCIE_FUNCTION_BARS 6u

struct pcie_function;

/* ---- Parameters ------------------------------------------------------------------------------ */

struct pcie_function_params {
    uint32_t lanes, generation;
    uint32_t mps_bytes;     /* Max_Payload_Size it supports; 128 until enumeration */
    uint32_t tx_queue_tlps; /* TLPs that wait for the link, per class */
    bool extended_tags;
    /* Of its receive buffers: posted, and non-posted headers. Non-posted data are as many;
     * completions are infinite, as an endpoint's have to be (PCIe Base 3.1, 2.6.1). */
    struct pcie_credits advertise;
    sim_time register_ps; /* a register's read to its answer; 0: answered at once */
    struct pcie_dma_params dma;
};

/*
 * Rows for the device's table of parameters; FIELD: its struct pcie_function_params. The defaults
 * are the device's: lanes; Max_Payload_Size, extended tags, each with its provenance; transmit
 * queue; credits for posted headers, posted data, non-posted headers; register latency in ns; read
 * requests in flight.
 */
#define PCIE_FUNCTION_PARAMS(STRUCT, FIELD, SOURCE, LANES, MPS, MPS_PROV, TAGS, TAGS_PROV, QUEUE,  \
                             POSTED_HEADERS, POSTED_DATA, NON_POSTED, REGISTER_NS, READS)          \
    PARAM("lanes", PARAM_U32, STRUCT, FIELD.lanes, LANES, 1, 32, PROV_DATASHEET, SOURCE,           \
          "link width of each port"),                                                              \
        PARAM("generation", PARAM_U32, STRUCT, FIELD.generation, 3, 1, 5, PROV_DATASHEET, SOURCE,  \
              "highest PCIe generation"),                                                          \
        PARAM("mps_bytes", PARAM_U32, STRUCT, FIELD.mps_bytes, MPS, 128, 4096, MPS_PROV, SOURCE,   \
              "Max_Payload_Size it supports"),                                                     \
        PARAM("tx_queue_tlps", PARAM_U32, STRUCT, FIELD.tx_queue_tlps, QUEUE, 1, 64,               \
              PROV_ESTIMATE, SOURCE, "TLPs that wait for the link, per class"),                    \
        PARAM("extended_tags", PARAM_BOOL, STRUCT, FIELD.extended_tags, TAGS, 0, 1, TAGS_PROV,     \
              SOURCE, "256 tags instead of 32"),                                                   \
        PARAM("posted_header_credits", PARAM_U32, STRUCT, FIELD.advertise.header[TLP_POSTED],      \
              POSTED_HEADERS, 1, 127, PROV_ESTIMATE, "docs/sources.md#g", "its receive buffers"),  \
        PARAM("posted_data_credits", PARAM_U32, STRUCT, FIELD.advertise.data[TLP_POSTED],          \
              POSTED_DATA, 32, 2047, PROV_ESTIMATE, "docs/sources.md#g",                           \
              "its receive buffers, units of 16 bytes"),                                           \
        PARAM("non_posted_header_credits", PARAM_U32, STRUCT,                                      \
              FIELD.advertise.header[TLP_NON_POSTED], NON_POSTED, 1, 127, PROV_ESTIMATE,           \
              "docs/sources.md#g", "its receive buffers"),                                         \
        PARAM("register_latency_ns", PARAM_TIME, STRUCT, FIELD.register_ps, REGISTER_NS, 0, 10000, \
              PROV_ESTIMATE, SOURCE, "a register's read to its answer"),                           \
        PARAM("completion_timeout_us", PARAM_TIME, STRUCT, FIELD.dma.completion_timeout_ps, 50000, \
              50, 64e6, PROV_DATASHEET, "docs/models/dma.md#sources",                              \
              "a read without its data for so long is given up"),                                  \
        PARAM("read_requests_max", PARAM_U32, STRUCT, FIELD.dma.read_tlps_max, READS, 0, 256,      \
              PROV_ESTIMATE, SOURCE,                                                               \
              "read requests in flight at most, per function; 0: one per tag")

/* For init(): checks the parameters and makes n ports alike, which the model owns. Mistakes go to
 * errors; the ports are there all the same, since cables ask for them. */
void pcie_function_ports(struct model *model, uint32_t n, const struct pcie_function_params *params,
                         struct sim_error_list *errors);
/* For init(): a mistake that names the model's setting `key`; 0 passes. */
void pcie_function_power_of_two(const struct model *model, const char *key, uint64_t value,
                                struct sim_error_list *errors);

/* ---- What the device has --------------------------------------------------------------------- */

struct pcie_bar {
    uint64_t bytes; /* a power of two; 0: there is no such BAR */
    uint32_t flags; /* CFG_BAR_* */
    /* Registers: one aligned double word. Reads of up to 8 bytes within two double words are
     * answered, writes of whole double words taken; all else is unsupported. */
    uint32_t (*read)(struct pcie_function *function, uint64_t offset);
    void (*write)(struct pcie_function *function, uint64_t offset, uint32_t value);
    /* Single bytes may be written: the double word is read, changed and written. */
    bool by_bytes;
    /* Memory, instead of registers: takes a read or write that lies within the BAR, and gives its
     * receive buffer back by pcie_function_buffer_free(). */
    void (*request)(struct pcie_function *function, uint64_t offset, struct tlp *tlp);
    /* request() takes deferrable memory writes as well; without this they are unsupported. */
    bool deferrable;
};

/* Each may be NULL. */
struct pcie_function_ops {
    /* Function-level reset: everything of the device begins anew. The configuration space is reset,
     * the vectors are masked; DMA that is under way ends behind it, or within it by
     * pcie_dma_abort(). A device that needs time sets function->resetting, and calls
     * pcie_function_ready() when it is done; until then the function answers nothing. */
    void (*reset)(struct pcie_function *function);
    /* The function is gone: nothing may start any more. DMA that waits ends behind it. */
    void (*stop)(struct pcie_function *function);
    /* A virtual function comes into being, as at power-on. False: what it had under way before it
     * was disabled has not ended; it stays away. */
    bool (*appear)(struct pcie_function *function);
    /* Sends an MSI-X message instead of pcie_function_message(). */
    void (*message)(struct pcie_function *function, uint64_t address, uint32_t data);
};

struct pcie_function_desc {
    const struct pcie_function_ops *ops;
    const struct pcie_function_params *params; /* outlive the function */
    struct cfg_identity identity;
    uint32_t port;
    uint8_t number; /* of the function, among those of its port */
    bool function_reset;
    uint8_t msix_bar;
    uint16_t n_vectors; /* 0: no MSI-X */
    bool msi;           /* instead: MSI with one vector, 0 */
    uint32_t msix_table, msix_pba;
    struct pcie_bar bar[PCIE_FUNCTION_BARS]; /* a virtual function: BAR 0 alone */
};

struct pcie_function_stats {
    uint64_t interrupts;  /* MSI-X or MSI messages */
    uint64_t unsupported; /* requests that it does not support, answered so or dropped */
    uint64_t resets;      /* function-level */
};

struct pcie_function {
    /* ---- for the device to read -------------------------------------------------------------- */
    struct model *model;
    struct pcie_port *port;
    bool gone;                /* removed, being reset, or a virtual function that is not enabled */
    bool resetting;           /* see struct pcie_function_ops */
    uint8_t idx;              /* of a virtual function among those of its physical one */
    struct pcie_function *pf; /* of a virtual function; NULL: it is a physical one */
    struct cfg_space cfg;
    struct pcie_dma dma;
    struct pcie_function_stats stats;
    uint64_t *unsupported; /* what counts requests; stats.unsupported unless the device says else */
    /* ---- private ----------------------------------------------------------------------------- */
    struct pcie_function_desc desc;
    struct pcie_function *next; /* of the same port */
    struct pcie_function **vf;  /* n_vfs of them; NULL: no SR-IOV */
    uint32_t n_vfs, next_credit;
    uint32_t msix_table_bytes, msix_pba_bytes;
    uint8_t *msix_table, *msix_pba;
    struct sim_pool *answers, *messages;
};

/* ---- Life ------------------------------------------------------------------------------------ */

/* For init(), after pcie_function_ports(): the function as after power-on. Functions of a port are
 * initialised in the order of their numbers. */
void pcie_function_init(struct pcie_function *function, struct model *model,
                        const struct pcie_function_desc *desc);
/* Ends DMA without calling done() and frees what the function holds; may be called without
 * pcie_function_init(). */
void pcie_function_release(struct pcie_function *function);
/* model_ops of a device whose ports all belong to functions. */
void pcie_function_start(struct model *model);
void pcie_function_receive(struct model *model, uint32_t port, struct tlp *tlp);
void pcie_function_credit(struct model *model, uint32_t port);
/* A cable that was pulled removes the functions of its port. */
void pcie_function_link_change(struct model *model, uint32_t port);

/* Surprise removal of the functions of a port: from now on they answer nothing; what they had under
 * way is lost. For ever. */
void pcie_function_remove(struct model *model, uint32_t port);
/* What reset() began is done: the function answers again, unless it was removed or disabled
 * meanwhile. */
void pcie_function_ready(struct pcie_function *function);

/* ---- MSI-X, MSI ------------------------------------------------------------------------------ */

/* Raises a vector: sends its message behind all that was written before, or makes it pending while
 * it is masked. Nothing while MSI-X, or MSI, is off. */
void pcie_function_interrupt(struct pcie_function *function, unsigned vector);
/* An MSI-X vector that is pending, since it is masked, is so no more: its reason is gone. */
void pcie_function_interrupt_clear(struct pcie_function *function, unsigned vector);
/* The message of a vector, for a device that sends it by itself; false: there is none to be sent,
 * or it is pending now. */
bool pcie_function_vector(struct pcie_function *function, unsigned vector, uint64_t *address,
                          uint32_t *data);
/* Sends a message through a DMA engine of the function. */
void pcie_function_message(struct pcie_function *function, struct pcie_dma *dma, uint64_t address,
                           uint32_t data);

/* ---- For BARs of memory, and for devices that answer by themselves --------------------------- */

/* The receive buffer of a request is free at at_ps. */
static inline void pcie_function_buffer_free(struct pcie_function *function, const struct tlp *tlp,
                                             sim_time at_ps)
{
    pcie_port_release(function->port, tlp_class_of(tlp), tlp_data_credits(tlp), at_ps);
}
/* The completion with the data of a read from byte `at` on, up to a multiple of Max_Payload_Size,
 * which is one of the read completion boundary (2.3.1.1). Its payload is for the caller to fill,
 * who owns it. */
struct tlp *pcie_function_data(struct pcie_function *function, struct tlp *request, unsigned at);
/* Sends a completion after latency_ps, unless the function is gone by then. */
void pcie_function_answer(struct pcie_function *function, struct tlp *completion,
                          sim_time latency_ps);
/* The completion of a read of registers, NULL for a write, which has been done. Both stay the
 * caller's. UR, or nothing, for what the registers do not support; counted. */
struct tlp *pcie_function_registers(struct pcie_function *function, const struct pcie_bar *bar,
                                    uint64_t offset, struct tlp *request);
/* Answers a configuration request: returns the completion, which must be sent before
 * pcie_function_configured(). */
struct tlp *pcie_function_config(struct pcie_function *function, struct tlp *request);
/* The completion is on its way: what was asked for by it happens. */
void pcie_function_configured(struct pcie_function *function);

/* ---- Virtual functions (pcie_vf.c) ----------------------------------------------------------- */

/* SR-IOV: what the physical function offers. vf: sriov->total_vfs functions, which are initialised
 * behind this call by pcie_vf_init(); the array stays the caller's. */
void pcie_vf_add(struct pcie_function *pf, const struct cfg_sriov *sriov);
void pcie_vf_init(struct pcie_function *vf, struct pcie_function *pf, unsigned idx,
                  const struct pcie_function_desc *desc);
/* Whether VFs are there follows the physical function's registers; to be called by who changes
 * these but by configuration requests. */
void pcie_vf_follow(struct pcie_function *pf);
/* The bytes lie in a BAR of one of the port's functions, which decodes it. */
bool pcie_function_covers(const struct pcie_function *first, uint64_t address, uint64_t bytes);
/* Whom a TLP that came in by the port of these functions is for; NULL: nobody. */
struct pcie_function *pcie_vf_target(struct pcie_function *first, const struct tlp *tlp);

#endif
