/* Which program this is: for --version, and for every run in the results. */
#ifndef SIM_STORE_VERSION_H
#define SIM_STORE_VERSION_H

/*
 * What the results name as the version: "0.1.0 4f2a91c". A build of changed or unknown sources also
 * carries eight digits of the program's build ID, the linker's hash of all of it, because its git
 * state does not identify it: results of an earlier build are then not taken for its own. A program
 * that was linked without one (ld --build-id=none) has no digits.
 */
const char *sim_version(void);

#endif
