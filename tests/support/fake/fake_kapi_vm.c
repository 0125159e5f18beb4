/*
 * The part of the fake that is a hypervisor (logic/kvm.h): there are no guests on fake hosts, so
 * nothing of it may be called.
 */
#include "logic/kvm.h"
#include "tests/support/fake/fake_kapi.h"

static void fake_no_guests(void)
{
    fprintf(stderr, "fake_kapi: there are no guests\n");
    abort();
}

const char *k_vm_name(const struct k_vm *vm)
{
    (void)vm;
    fake_no_guests();
    return NULL;
}

int k_vm_pin(struct k_vm *vm, uint64_t guest, uint64_t *page, uint64_t *bytes)
{
    (void)vm;
    (void)guest;
    (void)page;
    (void)bytes;
    fake_no_guests();
    return -EFAULT;
}

void k_vm_unpin(struct k_vm *vm, uint64_t guest)
{
    (void)vm;
    (void)guest;
    fake_no_guests();
}

void k_eventfd_signal(struct k_eventfd *eventfd)
{
    (void)eventfd;
    fake_no_guests();
}
