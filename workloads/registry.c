/* The one list of workloads, and of everything that has parameters without being a device. */
#include "workloads/registry.h"

#include "models/base/cable.h"
#include "models/os/os.h"
#include "models/world/registry.h"
#include "workloads/base/describe.h"
#include "workloads/base/workload.h"
#include "workloads/copy/copy_site.h"
#include "workloads/dnvme/nvme_site.h"
#include "workloads/fio/fio.h"
#include "workloads/load/load_programs.h"
#include "workloads/openmx/mpi_job.h"
#include "workloads/programs/program.h"
#include "workloads/setup/lending.h"
#include "workloads/setup/lending_vm.h"
#include "workloads/setup/network.h"

const struct workload_ops *const workload_registry[] = {
    &workload_pcie_bench_ops,
    &workload_memory_ops,
    &workload_programs_ops,
    &workload_trends_ops,
    NULL,
};

const struct program_ops *const program_registry[] = {
    &program_netperf_ops,
    &program_netperf_rr_ops,
    &program_sockperf_ops,
    &program_pktgen_ops,
    &program_pcap_replay_ops,
    &program_sendfile_ops,
    &program_memcached_ops,
    &program_stream_ops,
    &program_stream_run_ops,
    &program_pagerank_ops,
    &program_bandwidth_test_ops,
    &program_cold_migration_ops,
    &program_ping_pong_ops,
    &program_fio_ops,
    &program_training_ops,
    &program_device_dma_ops,
    &program_borrow_limit_ops,
    &program_device_taken_ops,
    &program_ntb_dma_ops,
    &program_ntb_latency_ops,
    &program_ntb_stores_ops,
    &program_rdma_perf_ops,
    &program_nvmeof_target_ops,
    &program_gpu_storage_ops,
    &program_iperf_ops,
    &program_dma_copy_ops,
    &program_nvme_multicast_ops,
    &program_nvme_manager_ops,
    &program_nvme_clients_ops,
    &program_nvme_rogue_ops,
    &program_nvme_failover_ops,
    &program_copy_latency_ops,
    &program_copy_bandwidth_ops,
    &program_copy_overlap_ops,
    &program_copy_overheads_ops,
    &program_cache_pollution_ops,
    &program_copy_ipc_ops,
    &program_copy_mixed_ops,
    &program_imb_ops,
    &program_nas_ops,
    &program_memory_stream_ops,
    &program_host_counters_ops,
    &program_fault_ops,
    NULL,
};

/* The section nudma_workloads, by the linker; NULL if no object has one. */
extern const struct workload_ops *const __start_nudma_workloads[] __attribute__((weak));
extern const struct workload_ops *const __stop_nudma_workloads[] __attribute__((weak));

const struct workload_ops *workload_at(unsigned index)
{
    const unsigned n = SIM_N_ELEMENTS(workload_registry) - 1;
    if (index < n)
        return workload_registry[index];
    return index - n < (size_t)(__stop_nudma_workloads - __start_nudma_workloads)
               ? __start_nudma_workloads[index - n]
               : NULL;
}

static struct describe_entry part(const char *name, const char *help,
                                  const struct param_desc *params)
{
    return (struct describe_entry){ .name = name, .help = help, .params = params };
}

static struct describe_entry program_entry(const struct program_ops *ops)
{
    struct describe_entry entry = part(ops->type, ops->help, ops->params);
    entry.kind = DESCRIBE_PROGRAM;
    entry.records = ops->records;
    return entry;
}

static struct describe_entry workload_entry(const struct workload_ops *ops)
{
    struct describe_entry entry = part(ops->type, ops->help, ops->params);
    entry.kind = DESCRIBE_WORKLOAD;
    entry.stats = ops->stats;
    entry.records = ops->records;
    entry.world = workload_world_records;
    return entry;
}

static struct describe_entry cable_entry(const struct cable_kind *kind)
{
    struct describe_entry entry = part(kind->type, kind->help, kind->params);
    entry.stats = kind->stats;
    return entry;
}

static bool other_entry(unsigned index, struct describe_entry *entry)
{
    const struct describe_entry others[] = {
        { .name = "host", .help = "a group of `hosts`", .settings = host_settings },
        { .name = "device",
          .help = "what every device has: settings of a group of `devices`",
          .settings = world_device_settings,
          .types = DESCRIBE_DEVICE },
        { .name = "program",
          .help = "what every program has: settings of a group of `programs`",
          .settings = program_settings,
          .params = program_params_table,
          .types = DESCRIBE_PROGRAM },
        { .name = "workload",
          .help = "what every workload has: settings of the group `workload`",
          .settings = workload_settings,
          .types = DESCRIBE_WORKLOAD },
        { .name = "numa",
          .help = "what the memory system of each socket counts: HOST.s0.dram_read_bytes and so on",
          .stats = numa_counter_table },
        part(os_param_group.name, os_param_group.help, os_param_group.table),
        part("network", "a host of the group `network`", network_params_table),
        { .name = "lending",
          .help = "a host of the group `lending`",
          .settings = lending_settings,
          .params = lending_params_table },
        part("lending.vm", "the virtual machine of a host: group `vm`", lending_vm_params_table),
        { .name = "vm",
          .help = "a virtual machine: what it costs, settings of the group `vm`; statistics "
                  "HOST.vm.exits and so on",
          .params = vm_params_table,
          .stats = vm_stats_table },
        { .name = "cable",
          .help = "a cable: settings of `cables` beside its link's",
          .settings = world_cable_settings,
          .params = world_cable_params },
        part("engine", "the engine: group `engine`", engine_params_table),
        part("measure", "how long a point is measured", measure_params_table),
    };
    if (index >= SIM_N_ELEMENTS(others))
        return false;
    *entry = others[index];
    return true;
}

bool describe_entry(unsigned index, struct describe_entry *entry)
{
    unsigned n;
    for (n = 0; numa_param_groups[n].name != NULL; n++)
        if (index == n) {
            const struct numa_param_group *group = &numa_param_groups[n];
            *entry = part(group->name, "memory system: a group of a host", group->table);
            return true;
        }
    index -= n;
    for (n = 0; host_param_groups[n].name != NULL; n++)
        if (index == n) {
            const struct host_param_group *group = &host_param_groups[n];
            *entry = part(group->name, group->help, group->table);
            entry->stats = host_group_stats(group);
            return true;
        }
    index -= n;
    for (n = 0; workload_at(n) != NULL; n++)
        if (index == n) {
            *entry = workload_entry(workload_at(n));
            return true;
        }
    index -= n;
    for (n = 0; program_registry[n] != NULL; n++)
        if (index == n) {
            *entry = program_entry(program_registry[n]);
            return true;
        }
    index -= n;
    for (n = 0; cable_registry[n] != NULL; n++)
        if (index == n) {
            *entry = cable_entry(cable_registry[n]);
            return true;
        }
    return other_entry(index - n, entry);
}
