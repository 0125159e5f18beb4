/*
 * Models: what a completion takes over from its request (PCIe Base 3.1, 2.2.9).
 * Does not model: locked and atomic requests.
 * Sources: PCI Express Base 3.1, sections 2.2.7 to 2.2.9.
 */
#include "models/pcie/link/tlp.h"

static bool is_read(const struct tlp *request)
{
    return request->type == TLP_MRD || request->type == TLP_CFG_RD0 || request->type == TLP_CFG_RD1;
}

struct tlp *tlp_completion(struct pcie_context *pcie, struct tlp *request, uint16_t completer_id,
                           enum tlp_status status)
{
    bool data = status == TLP_SC && is_read(request);
    struct tlp *cpl = tlp_new(pcie, data ? TLP_CPLD : TLP_CPL);

    cpl->requester_id = request->requester_id;
    cpl->domain = request->domain;
    cpl->tag = request->tag;
    cpl->attr = request->attr;
    cpl->completer_id = completer_id;
    cpl->status = (uint8_t)status;
    cpl->stamp = request->stamp;
    request->stamp = NULL;
    cpl->length_bytes = data ? request->length_bytes : 0;
    /* Byte Count is 4 for everything but memory reads (2.2.9). */
    cpl->byte_count = request->type == TLP_MRD ? request->length_bytes : 4;
    /* Lower Address is 0 for everything but memory reads. */
    cpl->address = request->type == TLP_MRD ? request->address : 0;
    return cpl;
}
