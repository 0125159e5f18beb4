/*
 * SISCI without hosts, for a test that defines all that logic/dnvme calls of it: windows are
 * identities, and a path is the registers of a bridge that does not answer while its link is down.
 * Included by one program.
 */
#ifndef TESTS_LOGIC_DNVME_FAKE_SISCI_H
#define TESTS_LOGIC_DNVME_FAKE_SISCI_H

#include "logic/sisci/sisci.h"
#include "tests/support/nvme_fake.h"

#define PATHS 2u

/* ---- SISCI ----------------------------------------------------------------------------------- */

struct sisci_process {
    struct kernel *kernel;
    uint32_t host;
};
struct sisci_device {
    struct sisci_process *process;
    bool lost;
};
struct sisci_segment {
    struct sisci_segment *next;
    uint32_t number;
    struct kaddr at;
    uint64_t bytes;
    unsigned n_windows;
    bool own;
};
struct sisci_remote {
    struct sisci_remote *next;
    unsigned adapter;
    struct sisci_segment *segment; /* NULL: the controller's registers */
    struct sisci_map *maps;
    sisci_remote_fn *changed;
    void *context;
    bool lost;
};
/* A path, or (adapter PATHS) what needs none. */
struct link {
    struct k_pci_dev pci;
    bool down;
};

static struct {
    struct kernel *kernel;
    struct nvme_fake *nvme;
    struct sisci_process process;
    struct link link[PATHS + 1];
    struct sisci_segment *segments;
    struct sisci_remote *remotes;
    struct sisci_device *client_device;
    unsigned n_windows, n_devices, n_maps;
    bool forgotten; /* the lender does not know the client any more */
} fabric;

static unsigned link_of(unsigned adapter)
{
    return adapter < PATHS ? adapter : PATHS;
}

static uint64_t read_by(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    const struct link *link = dev->private_data;
    const struct k_pci_dev *nvme = &fabric.nvme->pci;
    uint64_t value = 0;
    fake_charge(fabric.kernel, 800 * K_NS);
    if (link->down)
        return bytes == 8 ? UINT64_MAX : UINT32_MAX;
    if (address >= nvme->bar_base[0] && address < nvme->bar_base[0] + nvme->bar_bytes[0])
        return address == nvme->bar_base[0] + NVME_REG_CMBSZ
                   ? 0
                   : nvme->ops->mmio_read(&fabric.nvme->pci, address, bytes);
    k_peek(fabric.kernel, (struct kaddr){ address }, &value, bytes);
    return value;
}

static void write_by(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value)
{
    const struct link *link = dev->private_data;
    const struct k_pci_dev *nvme = &fabric.nvme->pci;
    fake_charge(fabric.kernel, 20 * K_NS);
    if (link->down)
        return;
    if (address >= nvme->bar_base[0] && address < nvme->bar_base[0] + nvme->bar_bytes[0])
        nvme->ops->mmio_write(&fabric.nvme->pci, address, bytes, value);
    else
        k_poke(fabric.kernel, (struct kaddr){ address }, &value, bytes);
}

/* The kernel is there; all else is zero. */
static void fabric_init(void)
{
    static const struct k_pci_ops ops = { .mmio_read = read_by, .mmio_write = write_by };
    fabric.process.kernel = fabric.kernel;
    fabric.process.host = 1;
    fabric.nvme = calloc(1, sizeof *fabric.nvme);
    nvme_fake_init(fabric.nvme, fabric.kernel);
    for (unsigned i = 0; i <= PATHS; i++) {
        fake_device_init(fabric.kernel, &fabric.link[i].pci.device, 0, "ntb");
        fabric.link[i].pci.ops = &ops;
        fabric.link[i].pci.private_data = &fabric.link[i];
    }
}

/* A request to another host: it takes some time, and fails if there is no way. */
static enum sisci_error ask(unsigned adapter, struct lend_error *error)
{
    k_sleep(fabric.kernel, 10 * K_US);
    if (!fabric.link[link_of(adapter)].down)
        return SISCI_OK;
    if (error != NULL)
        lend_fail(error, -EHOSTUNREACH, "the link is down");
    return SISCI_ERR_NO_LINK_ACCESS;
}

uint32_t sisci_host_id(const struct sisci_process *process)
{
    return process->host;
}

enum sisci_error sisci_device_borrow(struct sisci_process *process, struct sisci_device_name name,
                                     enum sisci_borrow how, sisci_device_fn *changed, void *context,
                                     struct sisci_device **device, struct lend_error *error)
{
    (void)name, (void)how, (void)changed, (void)context, (void)error;
    *device = k_zalloc(sizeof **device);
    (*device)->process = process;
    fabric.client_device = *device; /* that of the manager is the first */
    fabric.n_devices++;
    return SISCI_OK;
}

enum sisci_error sisci_device_share(struct sisci_device *device, struct lend_error *error)
{
    (void)device, (void)error;
    return SISCI_OK;
}

enum sisci_error sisci_device_return(struct sisci_device *device, struct lend_error *error)
{
    (void)error;
    k_free(device);
    fabric.n_devices--;
    return SISCI_OK;
}

bool sisci_device_lost(const struct sisci_device *device)
{
    return device->lost;
}

static enum sisci_error connect_to(struct sisci_segment *segment, unsigned adapter,
                                   sisci_remote_fn *changed, void *context,
                                   struct sisci_remote **remote, struct lend_error *error)
{
    const enum sisci_error status = ask(adapter, error);
    if (status != SISCI_OK)
        return status;
    *remote = k_zalloc(sizeof **remote);
    **remote = (struct sisci_remote){ .next = fabric.remotes,
                                      .adapter = link_of(adapter),
                                      .segment = segment,
                                      .changed = changed,
                                      .context = context };
    fabric.remotes = *remote;
    return SISCI_OK;
}

enum sisci_error sisci_device_bar_connect(struct sisci_device *device, unsigned bar,
                                          unsigned adapter, sisci_remote_fn *changed, void *context,
                                          struct sisci_remote **remote, struct lend_error *error)
{
    (void)device;
    assert_int_equal(bar, 0);
    return connect_to(NULL, adapter, changed, context, remote, error);
}

enum sisci_error sisci_segment_connect(struct sisci_process *process, uint32_t host,
                                       uint32_t number, unsigned adapter, sisci_remote_fn *changed,
                                       void *context, struct sisci_remote **remote,
                                       struct lend_error *error)
{
    struct sisci_segment *s = fabric.segments;
    (void)process, (void)host;
    while (s->number != number)
        s = s->next;
    return connect_to(s, adapter, changed, context, remote, error);
}

enum sisci_error sisci_segment_disconnect(struct sisci_remote *remote, struct lend_error *error)
{
    struct sisci_remote **link = &fabric.remotes;
    (void)error;
    assert_null(remote->maps);
    while (*link != remote)
        link = &(*link)->next;
    *link = remote->next;
    k_free(remote);
    k_sleep(fabric.kernel, 10 * K_US);
    return SISCI_OK;
}

uint64_t sisci_remote_bytes(const struct sisci_remote *remote)
{
    return remote->segment == NULL ? fabric.nvme->pci.bar_bytes[0] : remote->segment->bytes;
}

struct kaddr sisci_remote_memory(const struct sisci_remote *remote)
{
    (void)remote;
    return (struct kaddr){ 0 };
}

enum sisci_error sisci_map(struct sisci_remote *remote, uint64_t offset, uint64_t bytes,
                           struct sisci_map *map, struct lend_error *error)
{
    (void)error;
    *map = (struct sisci_map){ .kernel = fabric.kernel,
                               .remote = remote,
                               .next = remote->maps,
                               .pci = &fabric.link[remote->adapter].pci,
                               .bytes = bytes,
                               .lost = remote->lost };
    map->address =
        (remote->segment == NULL ? fabric.nvme->pci.bar_base[0] : remote->segment->at.v) + offset;
    remote->maps = map;
    fabric.n_maps++;
    return SISCI_OK;
}

void sisci_unmap(struct sisci_map *map)
{
    struct sisci_map **link = &map->remote->maps;
    while (*link != map)
        link = &(*link)->next;
    *link = map->next;
    map->lost = true;
    fabric.n_maps--;
}

enum sisci_error sisci_segment_create(struct sisci_process *process, uint32_t number,
                                      uint64_t bytes, int node, sisci_segment_fn *changed,
                                      void *context, struct sisci_segment **segment,
                                      struct lend_error *error)
{
    struct kaddr at;
    (void)process, (void)changed, (void)context, (void)error;
    for (const struct sisci_segment *s = fabric.segments; s != NULL; s = s->next)
        assert_int_not_equal(s->number, number);
    assert_int_equal(k_pages_get(fabric.kernel, node, bytes, &at), 0);
    *segment = k_zalloc(sizeof **segment);
    **segment = (struct sisci_segment){
        .next = fabric.segments, .number = number, .at = at, .bytes = bytes, .own = true
    };
    fabric.segments = *segment;
    return SISCI_OK;
}

enum sisci_error sisci_segment_attach(struct sisci_process *process, uint32_t number,
                                      struct kaddr at, uint64_t bytes, sisci_segment_fn *changed,
                                      void *context, struct sisci_segment **segment,
                                      struct lend_error *error)
{
    (void)process, (void)number, (void)at, (void)bytes, (void)changed, (void)context, (void)segment,
        (void)error;
    return SISCI_ERR_NOT_IMPLEMENTED;
}

enum sisci_error sisci_segment_attach_bar(struct sisci_process *process, uint32_t number,
                                          struct k_pci_dev *pci, unsigned bar, uint64_t offset,
                                          uint64_t bytes, struct sisci_segment **segment,
                                          struct lend_error *error)
{
    (void)process, (void)number, (void)pci, (void)bar, (void)offset, (void)bytes, (void)segment,
        (void)error;
    return SISCI_ERR_NOT_IMPLEMENTED;
}

struct kaddr sisci_segment_memory(const struct sisci_segment *segment)
{
    return segment->at;
}

uint64_t sisci_segment_bytes(const struct sisci_segment *segment)
{
    return segment->bytes;
}

uint32_t sisci_segment_number(const struct sisci_segment *segment)
{
    return segment->number;
}

enum sisci_error sisci_segment_prepare(struct sisci_segment *segment, unsigned adapter,
                                       struct lend_error *error)
{
    (void)segment, (void)adapter, (void)error;
    return SISCI_OK;
}

enum sisci_error sisci_segment_export(struct sisci_segment *segment, unsigned adapter,
                                      struct lend_error *error)
{
    (void)segment, (void)adapter, (void)error;
    return SISCI_OK;
}

enum sisci_error sisci_segment_unexport(struct sisci_segment *segment, bool force,
                                        struct lend_error *error)
{
    (void)segment, (void)force, (void)error;
    return SISCI_OK;
}

enum sisci_error sisci_segment_remove(struct sisci_segment *segment, struct lend_error *error)
{
    struct sisci_segment **link = &fabric.segments;
    (void)error;
    assert_int_equal(segment->n_windows, 0);
    while (*link != segment)
        link = &(*link)->next;
    *link = segment->next;
    k_pages_put(fabric.kernel, segment->bytes, segment->at);
    k_free(segment);
    return SISCI_OK;
}

enum sisci_error sisci_segment_map_for_device(struct sisci_segment *segment,
                                              struct sisci_device *device, unsigned adapter,
                                              uint64_t offset, uint64_t bytes,
                                              enum k_dma_direction direction,
                                              struct sisci_window *window, struct lend_error *error)
{
    (void)direction;
    segment->n_windows++;
    enum sisci_error status = ask(adapter, error);
    if (status == SISCI_OK && fabric.forgotten) {
        lend_fail(error, -ENOTCONN, "not known any more");
        status = SISCI_ERR_SEGMENT_NOT_CONNECTED;
    }
    segment->n_windows -= status != SISCI_OK;
    if (status != SISCI_OK)
        return status;
    *window = (struct sisci_window){
        .dma = segment->at.v + offset, .bytes = bytes, .device = device, .segment = segment
    };
    fabric.n_windows++;
    return SISCI_OK;
}

enum sisci_error sisci_remote_map_for_device(struct sisci_remote *remote,
                                             struct sisci_device *device, unsigned adapter,
                                             uint64_t offset, uint64_t bytes,
                                             enum k_dma_direction direction,
                                             struct sisci_window *window, struct lend_error *error)
{
    (void)remote, (void)device, (void)adapter, (void)offset, (void)bytes, (void)direction,
        (void)window, (void)error;
    return SISCI_ERR_NOT_IMPLEMENTED;
}

void sisci_window_unmap(struct sisci_window *window)
{
    k_sleep(fabric.kernel, 10 * K_US);
    window->segment->n_windows--;
    window->segment = NULL;
    fabric.n_windows--;
}

enum sisci_error sisci_device_segment_create(struct sisci_device *device, uint32_t number,
                                             uint64_t bytes, unsigned hints, bool shared,
                                             unsigned adapter, sisci_remote_fn *changed,
                                             void *context, struct sisci_remote **remote,
                                             struct lend_error *error)
{
    (void)device, (void)number, (void)bytes, (void)hints, (void)shared, (void)adapter,
        (void)changed, (void)context, (void)remote, (void)error;
    return SISCI_ERR_NOT_IMPLEMENTED;
}

#endif
