/*
 * What it does: Gives the library of NVMe queue pairs (logic/nvme/nvme_user.h) registers and memory
 *   that lie behind maps of SISCI.
 * Costs: Those of the map. Whole lines are drained before a doorbell follows; on hardware the
 *   doorbell, a store to uncached memory, does that by itself.
 */
#include "logic/dnvme/dnvme_internal.h"

static uint32_t read32(void *context, uint64_t offset)
{
    return (uint32_t)sisci_read(context, offset, 4);
}

static uint64_t read64(void *context, uint64_t offset)
{
    return sisci_read(context, offset, 8);
}

static void write32(void *context, uint64_t offset, uint32_t value)
{
    sisci_write(context, offset, 4, value);
}

static void write64(void *context, uint64_t offset, uint64_t value)
{
    sisci_write(context, offset, 8, value);
}

static void write_lines(void *context, uint64_t offset, const void *from, size_t bytes)
{
    sisci_write_lines(context, offset, from, bytes);
}

static void drain(void *context)
{
    sisci_drain(context);
}

struct nvme_user_window dnvme_map_window(struct sisci_map *map, uint64_t base)
{
    static const struct nvme_user_window_ops ops = { read32,  read64,      write32,
                                                     write64, write_lines, drain };
    return (struct nvme_user_window){ &ops, map, base };
}

int dnvme_code(enum sisci_error status, const struct lend_error *error)
{
    if (status == SISCI_OK)
        return 0;
    return error->code < 0 ? error->code : -EIO;
}
