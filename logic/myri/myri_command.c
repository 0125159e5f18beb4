/*
 * What it does: Commands to the firmware: a line with the command, and a poll of memory for its
 *   answer. Reads the strings of the EEPROM for the address.
 * Leaves out: loading of firmware, the test of DMA rates, dummy reads for old chipsets.
 * Follows: Linux 2.6.26 drivers/net/myri10ge/myri10ge.c (myri10ge_send_cmd,
 *   myri10ge_read_mac_addr).
 * Costs: one line; polls for 20 us, then looks at the answer every 20 us.
 */
#include "logic/myri/myri_command.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"

#define SPIN_PS       (20 * K_US) /* then the thread sleeps between looks */
#define SPIN_LOOK_PS  (100 * K_NS)
#define LOOK_PS       (20 * K_US)
#define LOOKS_MAX     50000u /* a second: MYRI_DOWN waits for all packets */
#define READ_REQUEST  5u     /* 4096 bytes */
#define NO_RESULT     0xffffffffu
#define STRINGS_WORDS (MYRI_STRINGS_BYTES / 4)

int myri_commands_init(struct myri_commands *commands, struct k_pci_dev *pci)
{
    *commands = (struct myri_commands){ .pci = pci };
    return k_dma_alloc(&pci->device, pci->device.node, K_LINE_BYTES, &commands->response,
                       &commands->response_dma);
}

void myri_commands_release(struct myri_commands *commands)
{
    if (commands->response.v != 0)
        k_dma_free(&commands->pci->device, K_LINE_BYTES, commands->response,
                   commands->response_dma);
    commands->response.v = 0;
}

static int wait(struct myri_commands *commands, uint32_t *data)
{
    struct kernel *kernel = commands->pci->device.kernel;
    struct myri_response response = { .result = NO_RESULT };
    const struct myri_response none = response;
    k_spin(kernel, commands->response, &none, sizeof none, SPIN_LOOK_PS,
           k_now_ps(kernel) + SPIN_PS);
    k_load(kernel, commands->response, &response, sizeof response);
    for (unsigned i = 0; i < LOOKS_MAX && response.result == NO_RESULT; i++) {
        k_sleep(kernel, LOOK_PS);
        k_load(kernel, commands->response, &response, sizeof response);
    }
    *data = myri_be32(response.data);
    switch (myri_be32(response.result)) {
    case MYRI_OK: return 0;
    case MYRI_UNKNOWN: return -ENOSYS;
    case MYRI_ERROR_RANGE: return -ERANGE;
    case NO_RESULT: return -ETIMEDOUT;
    default: return -EIO;
    }
}

int myri_command(struct myri_commands *commands, uint32_t command, uint32_t *data0, uint32_t data1,
                 uint32_t data2)
{
    struct k_pci_dev *pci = commands->pci;
    struct kernel *kernel = pci->device.kernel;
    const struct myri_response none = { .result = NO_RESULT };
    const struct myri_command line = {
        .command = myri_be32(command),
        .data0 = myri_be32(*data0),
        .data1 = myri_be32(data1),
        .data2 = myri_be32(data2),
        .response_high = myri_be32((uint32_t)(commands->response_dma >> 32)),
        .response_low = myri_be32((uint32_t)commands->response_dma),
    };
    while (commands->busy)
        k_sleep(kernel, LOOK_PS);
    commands->busy = true;
    k_store(kernel, commands->response, &none, sizeof none);
    k_write_lines(pci, pci->bar_base[0] + MYRI_COMMAND, &line, sizeof line);
    k_write_drain(pci);
    const int error = wait(commands, data0);
    commands->busy = false;
    return error;
}

int myri_command_address(struct myri_commands *commands, uint32_t command, uint64_t address,
                         uint32_t data2)
{
    uint32_t low = (uint32_t)address;
    return myri_command(commands, command, &low, (uint32_t)(address >> 32), data2);
}

void myri_set_read_request(struct k_pci_dev *pci)
{
    const unsigned at = k_pci_find_capability(pci, PCI_CAP_ID_PCIE, NULL);
    if (at == 0)
        return;
    const uint32_t control = k_config_read(pci, at + PCIE_DEVCTL, 2);
    k_config_write(pci, at + PCIE_DEVCTL, 2,
                   (control & ~PCIE_DEVCTL_MRRS_MASK) | READ_REQUEST << PCIE_DEVCTL_MRRS_SHIFT);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int myri_read_mac(struct k_pci_dev *pci, uint8_t mac[6])
{
    char text[MYRI_STRINGS_BYTES + 1] = "";
    for (unsigned i = 0; i < STRINGS_WORDS; i++) {
        const uint32_t word = k_readl(pci, 0, MYRI_STRINGS + 4 * i);
        memcpy(text + 4 * i, &word, sizeof word);
    }
    const char *at = text;
    while (*at != '\0' && strncmp(at, "MAC=", 4) != 0)
        at += strlen(at) + 1;
    if (strlen(at) != strlen("MAC=00:00:00:00:00:00"))
        return -ENXIO;
    for (unsigned i = 0; i < 6; i++) {
        const int high = digit(at[4 + 3 * i]), low = digit(at[5 + 3 * i]);
        if (high < 0 || low < 0)
            return -ENXIO;
        mac[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}
