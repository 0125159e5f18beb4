/* Commands to the firmware of a Myri-10G adapter, one at a time. */
#ifndef LOGIC_MYRI_MYRI_COMMAND_H
#define LOGIC_MYRI_MYRI_COMMAND_H

#include "hw/myri_regs.h"
#include "logic/kapi.h"

struct myri_commands {
    struct k_pci_dev *pci;
    struct kaddr response;
    uint64_t response_dma;
    bool busy;
};

/* 0 or a negative errno. */
int myri_commands_init(struct myri_commands *commands, struct k_pci_dev *pci);
void myri_commands_release(struct myri_commands *commands);
/* [thread] Has the firmware execute a command; *data0: as the command needs it, and then what it
 * answers. 0; -ENOSYS: the firmware does not know it; -ERANGE, -EIO: it refuses; -ETIMEDOUT: no
 * answer. */
int myri_command(struct myri_commands *commands, uint32_t command, uint32_t *data0, uint32_t data1,
                 uint32_t data2);
/* The same with an address. */
int myri_command_address(struct myri_commands *commands, uint32_t command, uint64_t address,
                         uint32_t data2);
/* Has the adapter read memory in requests of 4 KiB. */
void myri_set_read_request(struct k_pci_dev *pci);
/* Reads the adapter's own address. 0 or -ENXIO. */
int myri_read_mac(struct k_pci_dev *pci, uint8_t mac[6]);

#endif
