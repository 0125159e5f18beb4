/*
 * PCI functions of devices, as scenarios name them:
 *
 *   "nic"          the device: its only, or its first physical function
 *   "nic.pf1"      physical function 1, at the port p1
 *   "nic.vf0"      virtual function 0 of physical function 0 (SR-IOV)
 *   "nic.pf1.vf0"  virtual function 0 of physical function 1
 *
 * The group `functions` of a scenario gives them names of its own, for use in their place:
 *
 *   functions = { port = "nic.vf0"; };
 */
#ifndef WORKLOADS_SETUP_FUNCTION_NAME_H
#define WORKLOADS_SETUP_FUNCTION_NAME_H

#include "models/world/world.h"

#define FUNCTION_WHOLE_DEVICE (-1) /* no function is named */
#define FUNCTION_PHYSICAL     (-1) /* no virtual function is named */

struct function_name {
    struct model *model;
    int pf; /* FUNCTION_WHOLE_DEVICE, or 0 .. */
    int vf; /* FUNCTION_PHYSICAL, or 0 .. */
};

/* Reads the group `functions` of the scenario; mistakes go to errors. */
void function_check_names(struct world *world, struct sim_error_list *errors);
/* False: the world has no such device, or the device no such function. */
bool function_find(struct world *world, const char *name, struct function_name *f);
/* The index of the physical function, of a whole device the first, which is that of its port,
 * too. */
unsigned function_pf(const struct function_name *f);
/* Both names are of one function. */
bool function_same(const struct function_name *a, const struct function_name *b);
/* Both are functions of one physical function, or that function itself. */
bool function_shares_pf(const struct function_name *a, const struct function_name *b);
/* True: there is a message already about what the name stands for, so that the name must not be
 * reported: the device has mistakes, or its name in the group `functions` stands for no
 * function. */
bool function_faulty(struct world *world, const char *name);
/* What a message about the name is to expect, `expected` and what the group `functions` has to do
 * with it: what it makes of the name, or that it may define one that is no device. Returns
 * `expected` or `text`. */
#define FUNCTION_TEXT_BYTES 384u
const char *function_expected(struct world *world, const char *name, const char *expected,
                              char text[FUNCTION_TEXT_BYTES]);
/* How many virtual functions a physical function of the device can have; 0: none, or no such
 * function. */
unsigned function_total_vfs(const struct model *model, unsigned pf);
/* PCI device ID of its virtual functions. */
uint16_t function_vf_device_id(const struct model *model, unsigned pf);
/* Names of all devices and of the functions that each has, NULL-terminated; free() it, and the
 * names with function_names_free(). */
const char **function_names(struct world *world);
void function_names_free(const char **names);

#endif
