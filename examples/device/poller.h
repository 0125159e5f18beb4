/* What the workload asks of the device model. */
#ifndef EXAMPLES_DEVICE_POLLER_H
#define EXAMPLES_DEVICE_POLLER_H

#include "models/base/address.h"
#include "models/base/model.h"

extern const struct model_ops poller_ops;

uint16_t poller_id(const struct model *poller);
/* Begins to read the line at iova, one read after the other, until poller_stop(). */
void poller_start(struct model *poller, struct iova iova);
/* *stopped is set once the read under way has ended. */
void poller_stop(struct model *poller, bool *stopped);
/* Mean of the reads since statistics were cleared. */
double poller_latency_ns(const struct model *poller);

#endif
