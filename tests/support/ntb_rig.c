#include "tests/support/ntb_rig.h"

#define NTB_NODES_MAX 1024u

struct root_complex_host *ntb_rc(struct ntb_node *node)
{
    return host_root_complexes(node->host);
}

uint16_t ntb_cpu_id(struct ntb_node *node)
{
    return pcie_id(root_complex_bus(ntb_rc(node)->rc[0]), 0, 0);
}

void ntb_sleep(struct sim_task *task, sim_time duration_ps)
{
    sim_task_charge(task, duration_ps);
    sim_task_sync(task);
}

/* ---- The driver ------------------------------------------------------------------------------ */

void ntb_write(struct ntb_node *node, struct sim_task *task, uint64_t reg, unsigned bytes,
               uint64_t value)
{
    root_complex_mmio_write(ntb_rc(node), 0, task, (struct hpa){ node->reg + reg }, bytes, value);
}

uint64_t ntb_read(struct ntb_node *node, struct sim_task *task, uint64_t reg, unsigned bytes)
{
    return root_complex_mmio_read(ntb_rc(node), 0, task, (struct hpa){ node->reg + reg }, bytes,
                                  NULL);
}

void ntb_map(struct ntb_node *node, struct sim_task *task, unsigned idx, uint64_t to_node,
             uint64_t address)
{
    ntb_write(node, task, NTB_REG_LUT2 + 8 * (uint64_t)idx, 8,
              to_node << NTB_NODE_SHIFT | address | NTB_LUT_VALID);
}

void ntb_out(struct ntb_node *node, struct sim_task *task, unsigned idx, uint16_t id)
{
    ntb_write(node, task, NTB_REG_OUTGOING + 4 * (uint64_t)idx, 4, NTB_OUTGOING_VALID | id);
}

void ntb_in(struct ntb_node *node, struct sim_task *task, unsigned idx, uint32_t from_node,
            unsigned device)
{
    ntb_write(node, task, NTB_REG_INCOMING + 4 * (uint64_t)idx, 4,
              NTB_INCOMING_VALID | from_node << NTB_INCOMING_NODE_SHIFT |
                  device << NTB_INCOMING_DEVICE_SHIFT);
}

struct hpa ntb_window(const struct ntb_node *node, unsigned idx, uint64_t offset)
{
    return (struct hpa){ node->aperture[0] + idx * node->window_bytes + offset };
}

void ntb_enable(struct ntb_node *node, struct sim_task *task)
{
    ntb_out(node, task, 0, ntb_cpu_id(node));
    ntb_write(node, task, NTB_REG_CONTROL, 4, NTB_CONTROL_SEND | NTB_CONTROL_ACCEPT);
}

void ntb_enable_interrupts(struct ntb_node *node, struct sim_task *task)
{
    uint16_t id = ntb_id(node->ntb);
    unsigned cap = ((struct ntb *)node->ntb->state)->function.cfg.msix_cap;
    for (unsigned i = 0; i < NTB_N_VECTORS; i++) {
        ntb_write(node, task, NTB_REG_MSIX_TABLE + 16 * i, 8, UINT64_C(0xfee00000));
        ntb_write(node, task, NTB_REG_MSIX_TABLE + 16 * i + 8, 8, 32 + i);
    }
    root_complex_config_write(ntb_rc(node), 0, task, id, cap + PCI_MSIX_CONTROL, 2,
                              PCI_MSIX_CONTROL_ENABLE);
    ntb_write(node, task, NTB_REG_DOORBELL_MASK, 4, 0);
}

static void ntb_count_interrupt(void *context, uint32_t destination, uint8_t vector)
{
    struct ntb_node *node = context;
    (void)destination;
    node->interrupts[vector]++;
    if (node->watched.v != 0)
        physmem_read(host_physmem(node->host), node->watched, &node->seen, 1);
}

void ntb_node_open(struct ntb_node *node, struct world_fixture *f, const char *host,
                   const char *ntb)
{
    unsigned n;
    *node = (struct ntb_node){ .f = f };
    node->host = world_host(f->world, host);
    node->ntb = world_device(f->world, ntb);
    assert_non_null(node->host);
    assert_non_null(node->ntb);
    const struct pcie_found *found = host_functions(node->host, &n);
    for (unsigned i = 0; i < n; i++)
        if (found[i].id == ntb_id(node->ntb) && found[i].device_id == NTB_DEVICE_ID) {
            node->reg = found[i].bar_base[0];
            node->aperture[0] = found[i].bar_base[2];
            node->aperture[1] = found[i].bar_base[4];
        }
    assert_int_not_equal(node->reg, 0);
    assert_int_not_equal(node->aperture[0], 0);
    node->window_bytes = UINT64_C(1) << ((struct ntb *)node->ntb->state)->window_log2[0];
    ntb_rc(node)->interrupt = ntb_count_interrupt;
    ntb_rc(node)->interrupt_context = node;
}

const struct ntb_stats *ntb_stats_of(const struct ntb_node *node)
{
    return &((const struct ntb *)node->ntb->state)->stats;
}

struct hpa ntb_memory(struct ntb_node *node, uint64_t bytes, uint64_t align)
{
    struct hpa hpa;
    assert_true(physmem_alloc(host_physmem(node->host), 0, bytes, align, &hpa));
    return hpa;
}

struct pcie_link *ntb_cable_of(struct world *world, const struct pcie_port *port)
{
    struct pcie_port *a, *b;
    struct pcie_link *link;
    for (unsigned i = 0; (link = pcie_context_link(world_pcie(world), i, &a, &b)) != NULL; i++)
        if (a == port || b == port)
            return link;
    return NULL;
}
