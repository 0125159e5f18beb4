/*
 * Properties of the copy module over random cases: any sizes, alignments, memory of any pieces,
 * orders of posting, schedules and thresholds, rings that are full, engines that are late, fail,
 * halt, finish in any order, stop or are removed; memory that is unmapped and mapped again while a
 * copy runs; processes that are killed and closed at any time. Bytes are right, those around them
 * untouched, pins and pages balanced, and nobody waits for ever. A failing seed is printed;
 * ADMA_SEED=n runs that one alone, ADMA_CASES=n as many.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/adma_rig.h"

#define SLOTS    6u
#define AREA_MAX (12u * K_PAGE_BYTES)
#define LIMIT_PS (400 * K_MS) /* of simulated time, for a whole case */
#define GUARD    64u          /* bytes around a target that must stay */
#define LOCAL_N  1200u
#define TALK_N   1200u
#define FIRST    1u

struct slot {
    struct uaddr from, to; /* areas */
    uint64_t area, from_at, to_at, bytes, seed;
    adma_cookie cookie; /* 0: free */
    bool from_gone, to_gone, again;
};

struct local {
    struct adma_rig *rig;
    struct kernel *kernel;
    struct umem *umem;
    struct adma_process *process;
    struct slot slot[SLOTS];
    unsigned left;
    uint64_t seed;
    bool dies, done;
};

static uint64_t below(struct kernel *kernel, uint64_t n)
{
    return fake_random(kernel, n);
}

static unsigned chance(struct kernel *kernel, unsigned percent)
{
    return below(kernel, 100) < percent;
}

/* ---- The world of a case --------------------------------------------------------------------- */

static unsigned draw(uint64_t *z, unsigned n)
{
    *z = *z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*z >> 33) % n;
}

static void open_world(struct adma_rig *rig, uint64_t seed)
{
    uint64_t z = seed * UINT64_C(0xd1342543de82ef95) + 7;
    const struct fake_options kernel = { .seed = seed,
                                         .n_cpus = 2 + draw(&z, 3),
                                         .stall_percent = draw(&z, 3) * 10,
                                         .stall_ps = FAKE_US(5),
                                         .fail_map_every = draw(&z, 6) == 0 ? 9 : 0 };
    struct dma_fake_options engine = { .n_channels = 1 + draw(&z, 4),
                                       .ring = 4u << draw(&z, 5),
                                       .copy_ps = (1 + draw(&z, 3)) * 300 * K_NS,
                                       .any_order = draw(&z, 4) == 0,
                                       .copy_bytes_max = draw(&z, 5) == 0 ? 1000 : 0 };
    if (draw(&z, 3) == 0) {
        engine.error_permille = 50;
        engine.halt_percent = draw(&z, 2) * 50;
    }
    if (draw(&z, 5) == 0)
        engine.hang_permille = 5;
    struct adma_options options = adma_options_default;
    options.n_channels = 1 + draw(&z, engine.n_channels);
    options.schedule = options.n_channels > 1 ? draw(&z, 3) : draw(&z, 2) * 2;
    options.small_bytes = 5000;
    options.n_dedicated = options.n_channels > 1 ? 1 + draw(&z, options.n_channels - 1) : 0;
    options.reserve_ps = 50 * K_US;
    options.engine_bytes = draw(&z, 3) == 0 ? 3000 : 0;
    options.learns = draw(&z, 3) == 0;
    options.pin_cache_pages = draw(&z, 3) == 0 ? 0 : draw(&z, 2) == 0 ? 8 : 1000;
    options.engine_timeout_ps = 3 * K_MS;
    adma_rig_open(rig, &kernel, &engine, &options);
}

static uint64_t any_bytes(struct kernel *kernel, uint64_t most)
{
    static const uint64_t often[] = { 1, 63, 64, 4095, 4096, 4097, 8192, 16384 };
    if (chance(kernel, 30)) {
        const uint64_t n = often[below(kernel, 8)];
        return n < most ? n : most;
    }
    return 1 + below(kernel, chance(kernel, 50) ? most : 2000);
}

/* The engine goes away in some cases, while others wait for it. */
static void pull(void *arg)
{
    struct adma_rig *rig = arg;
    k_sleep(rig->kernel, below(rig->kernel, 300) * K_US);
    rig->removed = true;
    dma_fake_remove(&rig->engine, chance(rig->kernel, 50));
}

/* ---- Copies within a process ----------------------------------------------------------------- */

static void begin(struct local *l, struct slot *s)
{
    struct kernel *kernel = l->kernel;
    const unsigned order = (unsigned)below(kernel, 3);
    s->area = (1 + below(kernel, AREA_MAX / K_PAGE_BYTES)) * K_PAGE_BYTES;
    s->from = umem_map(l->umem, 0, s->area, order);
    s->to = umem_map(l->umem, 0, s->area, (unsigned)below(kernel, 3));
    s->bytes = any_bytes(kernel, s->area);
    s->from_at = below(kernel, s->area - s->bytes + 1);
    s->to_at = chance(kernel, 30) && s->from_at + s->bytes <= s->area
                   ? s->from_at
                   : below(kernel, s->area - s->bytes + 1);
    s->seed = ++l->seed;
    s->from_gone = s->to_gone = s->again = false;
    adma_rig_fill(l->umem, s->from, s->seed, 0, s->area);
    adma_rig_fill(l->umem, s->to, ~s->seed, 0, s->area);
    const struct uaddr from = uaddr_add(s->from, s->from_at), to = uaddr_add(s->to, s->to_at);
    if (chance(kernel, 20)) {
        const int status = adma_copy(l->process, to, from, s->bytes);
        assert_true(status == 0 || status == -EINTR);
        s->cookie = status == 0 ? 0 : -1;
        return;
    }
    s->cookie = adma_icopy(l->process, to, from, s->bytes);
    assert_true(s->cookie > 0 || s->cookie == -EINTR);
}

/* What is still mapped is as it has to be. */
static void check(struct local *l, const struct slot *s)
{
    const uint64_t after = s->to_at + s->bytes;
    if (!s->to_gone) {
        assert_int_equal(adma_rig_same(l->umem, s->to, ~s->seed, 0, s->to_at), s->to_at);
        assert_int_equal(
            adma_rig_same(l->umem, uaddr_add(s->to, s->to_at), s->seed, s->from_at, s->bytes),
            s->bytes);
        assert_int_equal(
            adma_rig_same(l->umem, uaddr_add(s->to, after), ~s->seed, after, s->area - after),
            s->area - after);
    } else if (s->again) /* other memory at the same addresses: nobody has written it */
        assert_int_equal(adma_rig_same(l->umem, s->to, 77, 0, s->area), s->area);
    if (!s->from_gone)
        assert_int_equal(adma_rig_same(l->umem, s->from, s->seed, 0, s->area), s->area);
}

static void forget(struct local *l, struct slot *s)
{
    if (!s->from_gone)
        umem_unmap(l->umem, s->from);
    if (!s->to_gone || s->again)
        umem_unmap(l->umem, s->to);
    s->cookie = 0;
}

/* Memory goes while the copy may still run; other memory may come to the same place. */
static void unmap_early(struct local *l, struct slot *s)
{
    if (chance(l->kernel, 50) && !s->from_gone) {
        s->from_gone = true;
        assert_int_equal(umem_unmap(l->umem, s->from), 0);
    }
    if (chance(l->kernel, 50) && !s->to_gone) {
        s->to_gone = true;
        assert_int_equal(umem_unmap(l->umem, s->to), 0);
        const struct uaddr at = umem_map(l->umem, 0, s->area, 0);
        s->again = at.v == s->to.v;
        if (s->again)
            adma_rig_fill(l->umem, at, 77, 0, s->area);
        else
            umem_unmap(l->umem, at);
    }
}

static bool end(struct local *l, struct slot *s)
{
    if (s->cookie > 0 && chance(l->kernel, 40)) {
        const int status = adma_check_copy(l->process, s->cookie);
        if (status <= 0) {
            assert_true(status == 0 || status == -EINTR);
            return status == 0;
        }
        const int again = adma_check_copy(l->process, s->cookie);
        assert_true(again == -EINVAL || again == -EINTR); /* void */
    } else if (s->cookie > 0) {
        const int status = adma_wait_copy(l->process, s->cookie);
        if (status != 0) {
            assert_int_equal(status, -EINTR);
            return false;
        }
    }
    check(l, s);
    forget(l, s);
    return true;
}

static void refusals(struct local *l)
{
    const struct uaddr at = umem_map(l->umem, 0, 3 * K_PAGE_BYTES, 1);
    const uint64_t gap = 1 + below(l->kernel, 4999);
    assert_int_equal(adma_icopy(l->process, at, uaddr_add(at, gap), 5000), -EINVAL);
    assert_int_equal(adma_icopy(l->process, uaddr_add(at, gap), at, 5000), -EINVAL);
    assert_int_equal(adma_copy(l->process, at, uaddr_add(at, 5000), 0), -EINVAL);
    assert_int_equal(adma_copy(l->process, at, (struct uaddr){ 4096 }, 10), -EFAULT);
    assert_int_equal(adma_wait_copy(l->process, 12345678), -EINVAL);
    umem_unmap(l->umem, at);
}

static void local_body(void *arg)
{
    struct local *l = arg;
    struct kernel *kernel = l->kernel;
    l->process = adma_open(l->rig->adma, l->umem);
    bool alive = true;
    if (!l->dies)
        refusals(l);
    while (alive && l->left > 0) {
        struct slot *s = &l->slot[below(kernel, SLOTS)];
        if (s->cookie == 0) {
            begin(l, s);
            l->left--;
            if (s->cookie == 0) {
                check(l, s);
                forget(l, s);
            }
            alive = s->cookie >= 0;
        } else if (chance(kernel, 25))
            unmap_early(l, s);
        else
            alive = end(l, s);
        if (chance(kernel, 10))
            k_sleep(kernel, below(kernel, 20) * K_US);
    }
    for (unsigned i = 0; i < SLOTS && alive && !chance(kernel, 10); i++)
        while (alive && l->slot[i].cookie > 0)
            alive = end(l, &l->slot[i]);
    struct adma_process *process = l->process;
    l->process = NULL;
    adma_close(process); /* with or without copies under way */
    umem_free(l->umem);
    l->done = true;
}

static void killer(void *arg)
{
    struct local *l = arg;
    k_sleep(l->kernel, below(l->kernel, 400) * K_US);
    if (l->process != NULL)
        adma_kill(l->process);
}

static void local_case(uint64_t seed)
{
    static struct adma_rig rig;
    static struct local two[2];
    open_world(&rig, seed);
    memset(two, 0, sizeof two);
    for (unsigned i = 0; i < 2; i++) {
        struct local *l = &two[i];
        *l = (struct local){
            .rig = &rig, .kernel = rig.kernel, .left = 6, .seed = seed * 100 + i * 50
        };
        l->umem = umem_new(rig.kernel);
        l->dies = chance(rig.kernel, 25);
        k_thread_new(rig.kernel, "process", (int)i, local_body, l);
        if (l->dies)
            k_thread_new(rig.kernel, "killer", 1, killer, l);
    }
    if (chance(rig.kernel, 10))
        k_thread_new(rig.kernel, "puller", 1, pull, &rig);
    for (unsigned i = 0; i < LIMIT_PS / K_MS && !(two[0].done && two[1].done); i++)
        fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    assert_true(two[0].done && two[1].done);
    fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS); /* killers and pullers */
    adma_rig_close(&rig);
}

/* ---- Two processes that talk ----------------------------------------------------------------- */

#define REQUESTS 4u

struct request {
    adma_cookie cookie;
    struct uaddr at;
    uint64_t area, offset, bytes;
};

struct talker {
    struct adma_rig *rig;
    struct kernel *kernel;
    struct umem *umem;
    struct adma_process *process;
    struct talker *peer;
    int fd;
    bool writes, dies, done, over;
    uint64_t total, at; /* of the stream: to be moved; posted (writer), received (reader) */
    uint64_t ended;     /* said to be moved */
    struct request request[REQUESTS];
    unsigned first, n; /* in order of posting */
    uint64_t seed;
};

static void post(struct talker *t)
{
    struct kernel *kernel = t->kernel;
    struct request *r = &t->request[(t->first + t->n) % REQUESTS];
    const uint64_t left = t->total - t->at;
    r->bytes = any_bytes(kernel, 5 * K_PAGE_BYTES);
    if (t->writes && r->bytes > left)
        r->bytes = left;
    r->area = r->bytes + K_PAGE_BYTES;
    r->offset = below(kernel, K_PAGE_BYTES);
    r->at = umem_map(t->umem, 0, r->area, (unsigned)below(kernel, 3));
    const struct uaddr at = uaddr_add(r->at, r->offset);
    adma_rig_fill(t->umem, r->at, ~t->seed, 0, r->area);
    if (t->writes) {
        adma_rig_fill(t->umem, at, t->seed, t->at, r->bytes);
        t->at += r->bytes;
        r->cookie = adma_iwrite(t->process, t->fd, at, r->bytes);
    } else
        r->cookie = adma_iread(t->process, t->fd, at, r->bytes);
    t->n++;
}

/* Of the oldest request: what it says, and the bytes behind what was received are untouched. */
static void take(struct talker *t, struct request *r, int64_t result)
{
    if (result < 0 || (t->writes && (uint64_t)result < r->bytes) || (!t->writes && result == 0)) {
        const bool excused = result == -EINTR || t->peer->dies || t->dies || t->peer->over;
        if (!excused)
            fail_msg("%s: %lld of %llu", t->writes ? "write" : "read", (long long)result,
                     (unsigned long long)r->bytes);
        t->over = true;
        if (result < 0)
            return;
    }
    assert_true((uint64_t)result <= r->bytes);
    const uint64_t n = (uint64_t)result;
    const struct uaddr at = uaddr_add(r->at, r->offset);
    if (!t->writes) {
        assert_int_equal(adma_rig_same(t->umem, at, t->seed, t->at, n), n);
        assert_int_equal(adma_rig_same(t->umem, uaddr_add(at, n), ~t->seed, r->offset + n,
                                       r->area - r->offset - n),
                         r->area - r->offset - n);
        t->at += n;
    }
    t->ended += n;
}

static void finish(struct talker *t)
{
    struct request *r = &t->request[t->first];
    int64_t result = r->cookie;
    if (r->cookie > 0 && chance(t->kernel, 30)) {
        if (!adma_check(t->process, r->cookie, &result))
            return;
    } else if (r->cookie > 0) {
        const uint64_t until_ps = chance(t->kernel, 20) ? k_now_ps(t->kernel) + 5 * K_US
                                                        : k_now_ps(t->kernel) + 300 * K_MS;
        result = adma_wait(t->process, r->cookie, until_ps);
        if (result == -ETIMEDOUT && k_now_ps(t->kernel) < until_ps + 50 * K_MS)
            return;
    }
    take(t, r, result);
    if (result != -EINTR)
        umem_unmap(t->umem, r->at);
    t->first = (t->first + 1) % REQUESTS;
    t->n--;
}

static void blocking(struct talker *t)
{
    struct kernel *kernel = t->kernel;
    struct request *r = &t->request[t->first];
    const uint64_t until_ps = k_now_ps(kernel) + 200 * K_MS;
    post(t); /* the place and the bytes; the request itself is waited for at once */
    const int64_t result = r->cookie > 0 ? adma_wait(t->process, r->cookie, until_ps) : r->cookie;
    if (result == -ETIMEDOUT)
        fail_msg("nobody came");
    take(t, r, result);
    t->n--;
}

static void talk(void *arg)
{
    struct talker *t = arg;
    struct kernel *kernel = t->kernel;
    const uint64_t until_ps = k_now_ps(kernel) + 20 * K_MS;
    t->process = adma_open(t->rig->adma, t->umem);
    t->fd = t->writes ? adma_connect(t->process, 5, until_ps)
                      : adma_accept(t->process, 5, until_ps);
    assert_true(t->fd >= 0 || t->fd == -EINTR || (t->fd == -ETIMEDOUT && t->peer->over));
    t->over = t->over || t->fd < 0;
    while (!t->over && (t->at < t->total || (t->writes && t->n > 0))) {
        if (t->n == 0 && chance(kernel, 20) && t->at < t->total)
            blocking(t);
        else if (t->n < REQUESTS && t->at < t->total && chance(kernel, 60))
            post(t);
        else if (t->n > 0)
            finish(t);
        if (chance(kernel, 15))
            k_sleep(kernel, below(kernel, 30) * K_US);
    }
    t->over = true;
    if (chance(kernel, 50) && t->fd >= 0)
        adma_disconnect(t->process, t->fd);
    struct adma_process *process = t->process;
    t->process = NULL;
    adma_close(process);
    umem_free(t->umem);
    t->done = true;
}

static void talk_killer(void *arg)
{
    struct talker *t = arg;
    k_sleep(t->kernel, below(t->kernel, 300) * K_US);
    t->over = true;
    if (t->process != NULL)
        adma_kill(t->process);
}

static void talk_case(uint64_t seed)
{
    static struct adma_rig rig;
    static struct talker two[2];
    open_world(&rig, seed);
    memset(two, 0, sizeof two);
    const uint64_t total = 1 + below(rig.kernel, 80000);
    for (unsigned i = 0; i < 2; i++) {
        struct talker *t = &two[i];
        *t = (struct talker){ .rig = &rig,
                              .kernel = rig.kernel,
                              .peer = &two[1 - i],
                              .writes = i == 0,
                              .total = total,
                              .seed = seed };
        t->umem = umem_new(rig.kernel);
        t->dies = chance(rig.kernel, 20);
    }
    for (unsigned i = 0; i < 2; i++) {
        k_thread_new(rig.kernel, "talker", (int)i, talk, &two[i]);
        if (two[i].dies)
            k_thread_new(rig.kernel, "killer", 1, talk_killer, &two[i]);
    }
    if (chance(rig.kernel, 10))
        k_thread_new(rig.kernel, "puller", 1, pull, &rig);
    for (unsigned i = 0; i < LIMIT_PS / K_MS && !(two[0].done && two[1].done); i++)
        fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    assert_true(two[0].done && two[1].done);
    if (!two[0].dies && !two[1].dies) {
        assert_int_equal(two[0].ended, total);
        assert_int_equal(two[1].ended, total);
    }
    fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    adma_rig_close(&rig);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static uint64_t current_seed; /* 0: all have passed */
static void say_seed(void)
{
    if (current_seed != 0)
        fprintf(stderr, "failed: ADMA_SEED=%llu\n", (unsigned long long)current_seed);
}

static void run(void (*one)(uint64_t seed), unsigned n)
{
    const char *only = getenv("ADMA_SEED"), *more = getenv("ADMA_CASES");
    n = more != NULL ? (unsigned)strtoul(more, NULL, 0) : test_rounds(n, 4);
    for (uint64_t seed = FIRST; seed < FIRST + n; seed++) {
        current_seed = only != NULL ? strtoull(only, NULL, 0) : seed;
        one(current_seed);
        if (only != NULL)
            break;
    }
    current_seed = 0;
}

static void test_local(void **state)
{
    (void)state;
    run(local_case, LOCAL_N);
}

static void test_talk(void **state)
{
    (void)state;
    run(talk_case, TALK_N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_talk),
    };
    atexit(say_seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
