/* The drivers that every machine of a group `lending` loads, for its own and for borrowed devices
 * alike. NICs have theirs from the group `network`. */
#include "workloads/lending.h"

const struct lending_driver *const lending_drivers[] = { NULL };
