/* The models that scenarios may name: one line each, in the order in which `nudma list` shows
 * them. */
#include "models/model.h"
#include "models/pcie/requester.h"

const struct model_ops *const model_registry[] = {
    &pcie_requester_ops,
    NULL,
};
