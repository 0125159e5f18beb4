/* Host time of a translation: hits spread over 64 pages, and misses (every page new). */
#include <stdio.h>
#include <time.h>

#include "tests/support/iommu_fake.h"

#define ID       0x0100
#define N_HITS   (1u << 24)
#define N_MISSES (1u << 19)

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run_ns(struct rig *rig, uint64_t n, uint64_t page_mask)
{
    uint64_t x = 1, sum = 0;
    double start_s = now_s();
    for (uint64_t i = 0; i < n; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const struct iova iova = { (x >> 40 & page_mask) << 12 };
        sum += iommu_translate(rig->iommu, ID, iova, 64, false, i * 1000000, NULL).hpa.v;
    }
    double ns = (now_s() - start_s) * 1e9 / (double)n;
    SIM_ASSERT(sum != 1, "keeps the loop");
    return ns;
}

int main(void)
{
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = iommu_domain_new(rig.driver);
    iommu_domain_attach(domain, ID);
    if (iommu_map(domain, (struct iova){ 0 }, (struct hpa){ UINT64_C(1) << 40 }, UINT64_C(64) << 20,
                  PAGE_BYTES, IOMMU_READ | IOMMU_WRITE) != 0)
        return 1;
    run_ns(&rig, 1 << 16, 63);
    printf("iommu.hit %.2f ns\n", run_ns(&rig, N_HITS, 63));
    printf("iommu.miss %.2f ns\n", run_ns(&rig, N_MISSES, 0x3fff));
    iommu_domain_free(domain);
    iommu_rig_release(&rig);
    return 0;
}
