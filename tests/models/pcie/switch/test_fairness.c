/* Shares of the ingresses of a crossbar's egress, of its wire and of its credits: every number of
 * ports, every mix of classes. */
#include "models/pcie/switch/crossbar.h"
#include "tests/support/pcie_rig.h"

#define LINK_PS           UINT64_C(20000)
#define PORTS_MAX         9 /* the egress and eight ingresses */
#define N_TO_SEND         60u
#define ALL_MIXES         7u /* sets of classes, by bit */
#define NO_CLASS          N_TLP_CLASSES
#define SHARES_DIFFER_MAX 1u /* packets between the shares */

/* A chip that sends all that it receives out of port 0. */
struct chip {
    struct model model;
    struct crossbar xbar;
    struct pcie_port port[PORTS_MAX];
};

static void chip_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    crossbar_forward(&((struct chip *)model->state)->xbar, port, 0, tlp);
}

static void chip_credit(struct model *model, uint32_t port)
{
    crossbar_credit(&((struct chip *)model->state)->xbar, port);
}

static const struct model_ops chip_ops = { .type = "test.chip",
                                           .receive = chip_receive,
                                           .credit = chip_credit };

struct scene {
    struct rig rig;
    struct chip chip;
    struct end_device *root, *end[PORTS_MAX - 1];
    unsigned n;
};

/* The classes of which an end sends, in turn; the test's, by port. */
static unsigned mix[PORTS_MAX - 1];

static struct tlp *next_of_mix(struct end_device *end, uint64_t i)
{
    static const enum tlp_type type[N_TLP_CLASSES] = { TLP_MWR, TLP_MRD, TLP_CPLD };
    const unsigned port = (unsigned)(end->model.name[0] - 'a');
    const unsigned n = (unsigned)__builtin_popcount(mix[port]);
    unsigned class = 0;

    for (uint64_t skip = i % n; (mix[port] >> class & 1) == 0 || skip-- != 0; class ++)
        continue;
    return pcie_rig_tlp(end->rig, type[class], 0, 64, port << 16 | i);
}

/* n ends below, all of the same width; the root has `headers` of the class that is short. */
static void scene_open(struct scene *scene, unsigned n, unsigned short_class, unsigned headers)
{
    static const char *const name[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    const struct crossbar_params params = { 3,   110000, CROSSBAR_CUT_THROUGH, 64, 512, 64, 64, 64,
                                            512, 256 };
    const struct pcie_link_params link = pcie_rig_link_params(LINK_PS);
    struct chip *chip = &scene->chip;

    *scene = (struct scene){ .n = n };
    pcie_rig_init(&scene->rig, 1);
    chip->model = (struct model){ .ops = &chip_ops,
                                  .name = "chip",
                                  .sim = scene->rig.sim,
                                  .pcie = scene->rig.pcie,
                                  .state = chip,
                                  .ports = chip->port,
                                  .n_ports = n + 1 };
    for (unsigned i = 0; i <= n; i++)
        crossbar_port_init(&chip->model, i, &params, 8, i == 0 ? "up" : name[i - 1]);
    crossbar_init(&chip->xbar, &chip->model, params.latency_ps, false);
    scene->root = end_new(&scene->rig, "root", 3, 8);
    if (short_class != NO_CLASS)
        scene->root->port.advertise.header[short_class] = headers;
    pcie_rig_join(&scene->rig, &scene->root->port, &chip->port[0], &link);
    for (unsigned i = 0; i < n; i++) {
        scene->end[i] = end_new(&scene->rig, name[i], 3, 8);
        pcie_rig_join(&scene->rig, &scene->end[i]->port, &chip->port[i + 1], &link);
        scene->end[i]->make = next_of_mix;
        scene->end[i]->n_to_send = N_TO_SEND;
        scene->end[i]->port.tx_queue_tlps = 4;
    }
}

static void scene_close(struct scene *scene)
{
    assert_int_equal(scene->root->n_got, scene->n * N_TO_SEND); /* nothing is lost */
    assert_int_equal(tlp_live(scene->rig.pcie), 0);
    crossbar_release(&scene->chip.xbar);
    end_free(scene->root);
    for (unsigned i = 0; i < scene->n; i++)
        end_free(scene->end[i]);
    pcie_rig_release(&scene->rig);
}

/* Of what the root got of `class` (NO_CLASS: of all), from when each end that sends of it has been
 * heard until the first of them has no more: all of them have had equal shares. */
static void assert_shares(const struct scene *scene, unsigned class)
{
    unsigned got[PORTS_MAX - 1] = { 0 }, least = UINT32_MAX, most = 0, done = 0;
    uint64_t unheard = 0;

    for (unsigned i = 0; i < scene->n; i++)
        if (class == NO_CLASS || (mix[i] >> class & 1) != 0)
            unheard |= UINT64_C(1) << i;
    const uint64_t senders = unheard;
    for (size_t k = 0; k < scene->root->n_got && done < N_TO_SEND - N_TLP_CLASSES; k++) {
        const struct arrival *a = &scene->root->got[k];
        if (class != NO_CLASS && a->class != class)
            continue;
        done = SIM_MAX(done, (unsigned)(a->id & 0xffff));
        if (unheard == 0)
            got[a->id >> 16]++;
        unheard &= ~(UINT64_C(1) << (a->id >> 16));
    }
    for (uint64_t left = senders; left != 0; left &= left - 1) {
        least = SIM_MIN(least, got[__builtin_ctzll(left)]);
        most = SIM_MAX(most, got[__builtin_ctzll(left)]);
    }
    if (senders != 0 && most - least > SHARES_DIFFER_MAX)
        fail_msg("%u ports, class %u, mixes %u and %u: shares from %u to %u", scene->n, class,
                 mix[0], mix[scene->n - 1], least, most);
}

/* The last port sends `other`, all the others `common`. */
static void run_mix(unsigned n, unsigned common, unsigned other, unsigned short_class,
                    unsigned headers)
{
    struct scene scene;

    for (unsigned i = 0; i < n; i++)
        mix[i] = i == n - 1 ? other : common;
    scene_open(&scene, n, short_class, headers);
    for (unsigned i = 0; i < n; i++)
        end_credit(&scene.end[i]->model, 0);
    pcie_rig_run(&scene.rig);
    assert_shares(&scene, short_class);
    scene_close(&scene);
}

/* With credits for all of it the wire is shared: each port has as much as the next, whatever it
 * sends. */
static void the_wire_is_shared(void **unused)
{
    (void)unused;
    for (unsigned n = 2; n < PORTS_MAX; n++)
        for (unsigned common = 1; common <= ALL_MIXES; common++)
            for (unsigned other = 1; other <= ALL_MIXES; other++)
                run_mix(n, common, other, NO_CLASS, 0);
}

/* Credits of a class that are short are shared among those that send of it, whatever they and the
 * others send besides. */
static void credits_are_shared(void **unused)
{
    (void)unused;
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
        for (unsigned n = 2; n < PORTS_MAX; n++)
            for (unsigned common = 1; common <= ALL_MIXES; common++)
                for (unsigned other = 1; other <= ALL_MIXES; other++)
                    run_mix(n, common, other, class, 1 + n % 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wire_is_shared),
        cmocka_unit_test(credits_are_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
