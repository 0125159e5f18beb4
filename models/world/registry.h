/* The models that scenarios may name. */
#ifndef MODELS_WORLD_REGISTRY_H
#define MODELS_WORLD_REGISTRY_H

struct model_ops;

/* In the order in which `nudma list` shows them; NULL-terminated. */
extern const struct model_ops *const model_registry[];
/* NULL: there is no such type. */
const struct model_ops *model_find(const char *type);

#endif
