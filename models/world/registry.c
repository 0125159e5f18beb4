/* The models that scenarios may name: one line each, in the order in which `nudma list` shows
 * them. */
#include "models/world/registry.h"

#include "models/base/model.h"
#include "models/dsa/dsa.h"
#include "models/ether/ether_switch.h"
#include "models/gpu/gpu.h"
#include "models/ioat/ioat.h"
#include "models/myri/myri.h"
#include "models/nfp/requester.h"
#include "models/nic/nic.h"
#include "models/nvme/nvme.h"
#include "models/pcie/ntb/cluster_switch.h"
#include "models/pcie/ntb/ntb.h"
#include "models/pcie/switch/switch.h"
#include "models/rdma/rdma.h"

const struct model_ops *const model_registry[] = {
    &pcie_requester_ops,
    &pcie_switch_ops,
    &pcie_ntb_ops,
    &pcie_cluster_switch_ops,
    &ether_switch_ops,
    &nic_ops,
    &myri_ops,
    &nvme_ops,
    &rdma_ops,
    &gpu_ops,
    &ioat_ops,
    &dsa_ops,
    NULL,
};
