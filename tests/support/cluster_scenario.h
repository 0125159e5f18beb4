/* Scenarios of clusters of any size, for bench/cluster and for a test: no cmocka here. */
#ifndef TESTS_SUPPORT_CLUSTER_SCENARIO_H
#define TESTS_SUPPORT_CLUSTER_SCENARIO_H

/* What a node of a large cluster needs; the other kind has the memory system of an R730. */
#define CLUSTER_LIGHT                                                                              \
    "cpu = { sockets = 1; cores_per_socket = 1; }; cache = { llc_size = 81920; llc_slices = 1; "   \
    "llc_ways = 20; l2_size = 32768; l1_size = 8192; }; dram = { node_size = 268435456; channels " \
    "= 1; }; "

/* Returns the text of a scenario of n_hosts, each with the settings `host`, in which n_borrowed
 * devices are lent to neighbours and write for a millisecond; 0: hosts and fabric only. The caller
 * frees it with g_free(). */
char *cluster_scenario(unsigned n_hosts, const char *host, unsigned n_borrowed);

#endif
