/*
 * Endpoints of Myrinet Express on a fake kernel (tests/support/fake), without any wire: messages
 * are kept in memory and arrive some time later, of each pair of endpoints in order, across pairs
 * in any order. Sends end when the message has arrived or before; receives when it is there and as
 * MX says.
 *
 *   struct mx_fake *net = mx_fake_new(kernel, n, until_us);
 *   struct mx_endpoint *ep = mx_fake_endpoint(net, i);      of NIC MX_FAKE_NIC + i, id i, key MX_FAKE_KEY
 *   assert_int_equal(mx_fake_live(net), 0);                 no request under way, no message waits
 *   mx_fake_free(net);
 */
#ifndef TESTS_SUPPORT_MX_FAKE_H
#define TESTS_SUPPORT_MX_FAKE_H

#include "logic/mx/mx.h"

#define MX_FAKE_NIC UINT64_C(0x00600ddd0000)
#define MX_FAKE_KEY 0x1234u

struct mx_fake;

/* late_us: a message takes 1 to so many. */
struct mx_fake *mx_fake_new(struct kernel *kernel, unsigned n, unsigned late_us);
struct mx_endpoint *mx_fake_endpoint(struct mx_fake *net, unsigned i);
/* From now on messages to this endpoint end at their sender with MX_PEER_DEAD. */
void mx_fake_kill(struct mx_fake *net, unsigned i);
uint64_t mx_fake_live(const struct mx_fake *net);
/* Messages that have been sent. */
uint64_t mx_fake_sent(const struct mx_fake *net);
void mx_fake_free(struct mx_fake *net);

#endif
