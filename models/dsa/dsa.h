/* dsa.accelerator: a copy engine with work queues that software writes descriptors into (Intel Data
 * Streaming Accelerator). */
#ifndef MODELS_DSA_DSA_H
#define MODELS_DSA_DSA_H

#include "models/base/model.h"

extern const struct model_ops dsa_ops;

unsigned dsa_work_queues(const struct model *model);

#endif
