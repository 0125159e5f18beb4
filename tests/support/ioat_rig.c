#include "tests/support/ioat_rig.h"

#include <string.h>

#include "models/pcie/endpoint/pcie_function.h"

#define WORLD                                                                      \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );" \
    " dram = { node_size = \"2 GiB\"; };"                                          \
    " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };"              \
    " root_complex = { completion_timeout_us = 60; %s };"                          \
    " iommu = { enabled = %s; }; }; };\n"                                          \
    "devices = { engine = { type = \"ioat.engine\"; integrated = \"server.s0\";"   \
    " version = \"%s\"; %s completion_timeout_us = 60; %s }; };\n"
#define V3 "device_id = 28448; functions = 2; channels = 1; address_bits = 46;" /* 6f20h */

struct ioat_engine *ioat_rig_engine(struct ioat_rig *r)
{
    return world_device(r->w.world, "engine")->state;
}

uint32_t ioat_rig_read(struct ioat_rig *r, unsigned channel, uint32_t reg)
{
    return k_readl(r->pci, 0, IOAT_CHANNEL(channel) + reg);
}

void ioat_rig_write(struct ioat_rig *r, unsigned channel, uint32_t reg, uint32_t value)
{
    k_writel(r->pci, 0, IOAT_CHANNEL(channel) + reg, value);
}

void ioat_rig_write64(struct ioat_rig *r, unsigned channel, uint32_t reg, uint64_t value)
{
    ioat_rig_write(r, channel, reg, (uint32_t)value);
    ioat_rig_write(r, channel, reg + 4, (uint32_t)(value >> 32));
}

void ioat_rig_fill(struct ioat_rig *r, struct kaddr at, size_t bytes, unsigned seed)
{
    dma_rig_fill(r->kernel, at, bytes, seed);
}

bool ioat_rig_holds(struct ioat_rig *r, struct kaddr at, size_t bytes, unsigned seed, size_t from)
{
    return dma_rig_holds(r->kernel, at, bytes, seed, from);
}

static void body(void *arg)
{
    struct ioat_rig *r = arg;
    const uint16_t id = ioat_function(world_device(r->w.world, "engine"), 0)->cfg.id;
    r->pci = os_pci_find(r->kernel, id);
    assert_non_null(r->pci);
    if (r->driver) {
        r->core = dma_core_new(r->kernel);
        r->ioat = ioat_drv_new(r->core, &r->options);
        assert_non_null(r->ioat);
        assert_int_equal(k_pci_register(r->kernel, ioat_drv_driver(r->ioat)), r->n_functions);
    } else {
        k_dma_set_mask(&r->pci->device, 40);
        k_pci_enable(r->pci);
    }
    r->body(r);
    if (r->driver) {
        for (unsigned n = 0; n < r->n_functions; n++) {
            struct k_pci_dev *dev = os_pci_find(r->kernel, (uint16_t)(id + n));
            if (dev != NULL && dev->driver != NULL)
                k_pci_remove(dev, false);
        }
        assert_null(dma_engine_name(r->core, 0));
        ioat_drv_free(r->ioat);
        dma_core_free(r->core);
    }
}

static void check_quiet(struct ioat_rig *r)
{
    struct ioat_engine *engine = ioat_rig_engine(r);
    for (unsigned n = 0; n < engine->params.n_functions; n++) {
        assert_true(pcie_dma_idle(&engine->func[n].function.dma));
        for (unsigned i = 0; i < engine->params.n_channels; i++) {
            const struct ioat_channel *ch = &engine->func[n].channel[i];
            assert_false(ch->stopping || ch->fetching);
            assert_int_equal(ch->n_reads + ch->n_writes, 0);
        }
    }
}

void ioat_rig_run(const struct ioat_rig_world *world, void (*fn)(struct ioat_rig *), void *arg)
{
    const bool v1 = strcmp(world->version, "cb1.2") == 0;
    struct ioat_rig r = { .body = fn, .arg = arg, .driver = world->driver };
    gchar *text = g_strdup_printf(WORLD, world->root_complex != NULL ? world->root_complex : "",
                                  world->iommu ? "true" : "false", world->version, v1 ? "" : V3,
                                  world->settings != NULL ? world->settings : "");
    r.n_functions = v1 ? 1 : 2;
    r.options = ioat_drv_options_default;
    r.options.ring = world->ring != 0 ? world->ring : 64;
    r.options.cpu = 1;
    r.options.dca_cpu = world->dca ? 2 : -1;
    r.options.timeout_ps = 200 * K_US;
    dma_rig_run(&r.w, &r.kernel, text, body, &r);
    g_free(text);
    check_quiet(&r);
    dma_rig_close(&r.w, r.kernel);
}
