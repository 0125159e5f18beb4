/*
 * Random streams: xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", ACM TOMS 47(4), 2021), seeded through splitmix64 (Steele, Lea and Flood, OOPSLA
 * 2014) as its authors recommend.
 *
 * Everything is integer or exactly rounded double arithmetic in a fixed order, without libm, so
 * that a stream is the same on every machine and with every C library.
 */
#include "sim/engine/sim.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* FNV-1a over the name, then mixed with the seed: neither neighbouring seeds nor names that
 * differ in one character give related states. */
void sim_random_init(struct sim_random *random, uint64_t seed, const char *instance)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *c = instance; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    uint64_t state = splitmix64(&seed) ^ hash;

    for (unsigned i = 0; i < 4; i++)
        random->s[i] = splitmix64(&state);
}

static uint64_t rotate_left(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

uint64_t sim_random_u64(struct sim_random *random)
{
    uint64_t *s = random->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* The high half of a product, redrawn where the low half falls in the part that is short
 * (Lemire, "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019). */
uint64_t sim_random_below(struct sim_random *random, uint64_t bound)
{
    SIM_ASSERT(bound > 0, "a random number below 0");
    unsigned __int128 product = (unsigned __int128)sim_random_u64(random) * bound;

    if (SIM_UNLIKELY((uint64_t)product < bound)) {
        uint64_t short_part = -bound % bound;

        while ((uint64_t)product < short_part)
            product = (unsigned __int128)sim_random_u64(random) * bound;
    }
    return (uint64_t)(product >> 64);
}

double sim_random_unit(struct sim_random *random)
{
    return (double)(sim_random_u64(random) >> 11) * 0x1p-53;
}

/*
 * -ln(n / 2^53) for n in 1..2^53: n = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh(s) with
 * s = (m - 1) / (m + 1), |s| < 0.172; the series is cut where its terms fall below 2^-53.
 */
static double minus_log(uint64_t n)
{
    int e = 63 - __builtin_clzll(n);
    double m = (double)n / (double)(UINT64_C(1) << e);

    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;

    for (int k = 21; k > 0; k -= 2)
        sum = sum * s2 + 1.0 / k;
    return (53 - e) * 0.69314718055994531 - 2 * s * sum;
}

double sim_random_exponential(struct sim_random *random, double mean)
{
    return mean * minus_log((sim_random_u64(random) >> 11) + 1);
}
