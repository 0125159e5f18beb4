#include "models/base/model.h"
#include "models/pcie/link/port.h"
#include "models/world/registry.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct widget {
    uint64_t size_bytes;
    sim_time delay_ps;
    uint32_t required;
    uint64_t counter;
    struct stat_mean mean;
    struct stat_histogram histogram;
    uint64_t size_at_init;
};

static unsigned n_init, n_release;

static void widget_init(struct model *model, struct sim_error_list *errors)
{
    struct widget *widget = model->state;
    n_init++;
    widget->size_at_init = widget->size_bytes;
    model->ports = calloc(2, sizeof(*model->ports));
    model->n_ports = 2;
    if (strcmp(model->name, "mistaken") == 0)
        sim_error_add(errors, NULL, 0, "mistaken");
}

static void widget_release(struct model *model)
{
    assert_non_null(model->state);
    assert_non_null(model->ports);
    n_release++;
}

static const struct param_desc widget_params[] = {
    PARAM("size_bytes", PARAM_BYTES, struct widget, size_bytes, 4096, 1, 1e6, PROV_ESTIMATE, "",
          ""),
    PARAM("delay_ns", PARAM_TIME, struct widget, delay_ps, 2.5, 0, 100, PROV_ESTIMATE, "", ""),
    { .type = PARAM_END },
};

static const struct param_desc widget_required[] = {
    PARAM("required", PARAM_U32, struct widget, required, NAN, 0, 9, PROV_NONE, "", ""),
    { .type = PARAM_END },
};

static const struct stat_desc widget_stats[] = {
    STAT("counter", STAT_COUNTER, struct widget, counter, "1", 0, ""),
    STAT("mean", STAT_MEAN, struct widget, mean, "ns", 0.001, ""),
    STAT("histogram", STAT_HISTOGRAM, struct widget, histogram, "ns", 0.001, ""),
    { .kind = STAT_END },
};

static struct model_ops widget_ops(const struct param_desc *params)
{
    return (struct model_ops){ .type = "test.widget",
                               .state_bytes = sizeof(struct widget),
                               .params = params,
                               .stats = widget_stats,
                               .init = widget_init,
                               .release = widget_release };
}

struct bench {
    struct config *config;
    struct sim *sim;
    struct pcie_context *pcie;
    struct sim_error_list errors;
};

static struct config *config_of(const char *text)
{
    char path[] = "/tmp/nudma_test_model_XXXXXX";
    struct sim_error_list errors = { 0 };
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    struct config *config = config_load(path, ".", &errors);
    unlink(path);
    assert_non_null(config);
    assert_int_equal(errors.n_messages, 0);
    return config;
}

static struct bench bench_new(void)
{
    struct bench bench = { .sim = sim_new(42) };
    bench.pcie = pcie_context_new(bench.sim);
    bench.config = config_of("given : { size_bytes = 128; }; wrong : { size_bytes = 0; };\n");
    n_init = n_release = 0;
    return bench;
}

static void bench_free(struct bench *bench)
{
    sim_error_release(&bench->errors);
    config_free(bench->config);
    pcie_context_free(bench->pcie);
    sim_free(bench->sim);
}

static void parameters_are_read_before_init(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct model_ops ops = widget_ops(widget_params);
    struct model *model = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "widget",
                                    bench.config, NULL, &bench.errors);
    const struct widget *widget = model->state;
    assert_int_equal(bench.errors.n_messages, 0);
    assert_int_equal(widget->size_at_init, 4096);
    assert_int_equal(widget->delay_ps, 2500);
    assert_ptr_equal(model->sim, bench.sim);
    assert_ptr_equal(model->pcie, bench.pcie);
    assert_ptr_equal(model->ops, &ops);
    assert_string_equal(model->name, "widget");
    model_free(model);
    assert_int_equal(n_init, 1);
    assert_int_equal(n_release, 1);

    struct config_node *given = config_get(config_root(bench.config), "given");
    model = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "widget", bench.config, given,
                      &bench.errors);
    widget = model->state;
    assert_int_equal(bench.errors.n_messages, 0);
    assert_int_equal(widget->size_at_init, 128);
    assert_ptr_equal(model->config, given);
    model_free(model);
    bench_free(&bench);
}

static void wrong_parameters_prevent_init(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct model_ops ops = widget_ops(widget_required);
    struct model *model = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "widget",
                                    bench.config, NULL, &bench.errors);
    assert_non_null(model);
    assert_int_equal(bench.errors.n_messages, 1);
    assert_non_null(strstr(bench.errors.message[0], "required"));
    model_free(model);
    const struct model_ops ranged = widget_ops(widget_params);
    struct config_node *wrong = config_get(config_root(bench.config), "wrong");
    model_free(model_new(pcie_context_sim(bench.pcie), bench.pcie, &ranged, "widget", bench.config,
                         wrong, &bench.errors));
    assert_int_equal(bench.errors.n_messages, 2);
    assert_int_equal(n_init, 0);
    assert_int_equal(n_release, 0);
    bench_free(&bench);
}

static void mistakes_of_init_are_kept_and_released(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct model_ops ops = widget_ops(NULL);
    struct model *model = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "mistaken",
                                    bench.config, NULL, &bench.errors);
    assert_int_equal(bench.errors.n_messages, 1);
    model_free(model);
    assert_int_equal(n_release, 1);
    model_free(NULL);
    bench_free(&bench);
}

static void statistics_are_ready(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct model_ops ops = widget_ops(NULL);
    struct model *model = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "widget",
                                    bench.config, NULL, &bench.errors);
    struct widget *widget = model->state;
    stat_mean_add(&widget->mean, 3.0);
    stat_mean_add(&widget->mean, 5.0);
    assert_true(stat_mean_value(&widget->mean) == 4.0);
    assert_true(widget->mean.min == 3.0);
    stat_histogram_add(&widget->histogram, 1000);
    assert_int_equal(widget->histogram.min, 1000);
    assert_int_equal(widget->histogram.max, 1000);
    model_free(model); /* the histogram's rows too: the sanitizer tells */
    bench_free(&bench);
}

static void random_streams_belong_to_names(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct model_ops ops = widget_ops(NULL);
    struct model *a = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "a", bench.config,
                                NULL, &bench.errors);
    struct model *b = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "b", bench.config,
                                NULL, &bench.errors);
    uint64_t first = sim_random_u64(&a->random);
    assert_int_not_equal(first, sim_random_u64(&b->random));
    model_free(a);
    a = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ops, "a", bench.config, NULL,
                  &bench.errors);
    assert_int_equal(first, sim_random_u64(&a->random)); /* adding b has not moved it */
    model_free(a);
    model_free(b);
    bench_free(&bench);
}

static void check_params(const struct model_ops *ops)
{
    if (ops->params == NULL)
        return;
    for (const struct param_desc *param = ops->params; param->type != PARAM_END; param++) {
        assert_non_null(param->key);
        assert_non_null(param->help);
        assert_true(param->offset < ops->state_bytes);
        bool number = param->type != PARAM_STRING && param->type != PARAM_ENUM &&
                      param->type != PARAM_BOOL && !isnan(param->def);
        if (number && (param->def < param->lo || param->def > param->hi))
            fail_msg("%s.%s: the default is out of range", ops->type, param->key);
        for (const struct param_desc *other = ops->params; other != param; other++)
            assert_string_not_equal(other->key, param->key);
    }
}

static void check_stats(const struct model_ops *ops)
{
    if (ops->stats == NULL)
        return;
    for (const struct stat_desc *stat = ops->stats; stat->kind != STAT_END; stat++) {
        assert_non_null(stat->name);
        assert_non_null(stat->unit);
        assert_non_null(stat->help);
        assert_true(stat->offset < ops->state_bytes);
        for (const struct stat_desc *other = ops->stats; other != stat; other++)
            assert_string_not_equal(other->name, stat->name);
    }
}

static void registry_is_well_formed(void **state)
{
    (void)state;
    for (unsigned i = 0; model_registry[i] != NULL; i++) {
        const struct model_ops *ops = model_registry[i];
        const char *why = NULL;
        if (!model_ops_valid(ops, &why))
            fail_msg("%s: %s", ops->type, why);
        assert_true(ops->state_bytes > 0);
        /* what has Ethernet ports only never gets a TLP */
        if (strncmp(ops->type, "ether.", 6) != 0)
            assert_non_null(ops->receive);
        assert_ptr_equal(model_find(ops->type), ops); /* so names are unique */
        check_params(ops);
        check_stats(ops);
    }
    assert_null(model_find("pcie.no_such_model"));
    assert_null(model_find(""));
}

static void no_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    (void)model, (void)port, (void)tlp;
}

static void no_credit(struct model *model, uint32_t port)
{
    (void)model, (void)port;
}

/* Which callbacks go together: a broken set of them is refused with what is wrong. */
static void broken_models_are_refused(void **state)
{
    const struct model_ops whole = {
        .type = "test.whole",
        .help = "whole",
        .state_bytes = sizeof(struct widget),
        .stats = widget_stats,
        .init = widget_init,
        .receive = no_receive,
        .credit = no_credit,
        .forwards = true,
    };
    struct model_ops broken[5] = { whole, whole, whole, whole, whole };
    static const char *const expected[] = { "type", "help", "init()", "state_bytes", "receive()" };
    const char *why = NULL;

    (void)state;
    assert_true(model_ops_valid(&whole, &why));
    broken[0].type = NULL;
    broken[1].help = NULL;
    broken[2].init = NULL;
    broken[3].state_bytes = 0;
    broken[4].receive = NULL;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(broken); i++) {
        assert_false(model_ops_valid(&broken[i], &why));
        assert_non_null(strstr(why, expected[i]));
    }
    broken[4].credit = NULL;
    assert_false(model_ops_valid(&broken[4], &why)); /* forwards what it cannot receive */
    broken[4].forwards = false;
    assert_true(model_ops_valid(&broken[4], &why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_read_before_init),
        cmocka_unit_test(wrong_parameters_prevent_init),
        cmocka_unit_test(mistakes_of_init_are_kept_and_released),
        cmocka_unit_test(statistics_are_ready),
        cmocka_unit_test(random_streams_belong_to_names),
        cmocka_unit_test(registry_is_well_formed),
        cmocka_unit_test(broken_models_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
