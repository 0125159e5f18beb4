/* The models and the kinds of cable that scenarios may name. */
#ifndef MODELS_WORLD_REGISTRY_H
#define MODELS_WORLD_REGISTRY_H

struct cable_kind;
struct model_ops;

/* In the order in which `nudma list` shows them; NULL-terminated. */
extern const struct model_ops *const model_registry[];
/* In the order in which messages and pictures list them; NULL-terminated. */
extern const struct cable_kind *const cable_registry[];
/* The index-th of model_registry, then of those that the program has brought along (NUDMA_MODEL()
 * of workloads/embed/nudma.h); NULL beyond the last. */
const struct model_ops *model_at(unsigned index);
/* NULL: there is no such type. */
const struct model_ops *model_find(const char *type);

#endif
