#include "tests/support/vm_rig.h"

#include "tests/support/test.h"

#define MEMORY_BYTES (UINT64_C(64) << 20)

void vm_rig_open(struct vm_rig *rig, const char *world, unsigned n_cpus)
{
    *rig = (struct vm_rig){ .vm = NULL };
    fixture_open(&rig->w, world);
    rig->host = os_new(rig->w.host, host_os_params(rig->w.host));
    rig->config = vm_config_default();
    rig->config.name = "guest";
    rig->config.first_cpu = 2;
    rig->config.n_cpus = n_cpus;
    rig->config.memory_bytes = MEMORY_BYTES;
}

void vm_rig_new_body(void *arg)
{
    struct vm_rig *rig = arg;
    rig->status = vm_new(rig->host, &rig->config, &rig->vm);
}

void vm_rig_shutdown_body(void *arg)
{
    struct vm_rig *rig = arg;
    rig->status = vm_shutdown(rig->vm);
}

void vm_rig_boot(struct vm_rig *rig)
{
    kernel_call(&rig->w, rig->host, vm_rig_new_body, rig);
    assert_int_equal(rig->status, 0);
}

void vm_rig_shutdown(struct vm_rig *rig)
{
    kernel_call(&rig->w, rig->host, vm_rig_shutdown_body, rig);
    assert_int_equal(rig->status, 0);
    assert_false(vm_running(rig->vm));
    assert_int_equal(vm_stats(rig->vm).pins, 0);
}

void vm_rig_close(struct vm_rig *rig)
{
    if (rig->vm != NULL)
        vm_free(rig->vm);
    os_free(rig->host);
    fixture_close(&rig->w);
}
