/* SPDX-License-Identifier: Apache-2.0
 * A thread per processor, each with a part of the work. The multiply-adds are those of
 * kernels/probe/multiply_adds.cl: twelve chains that grow by 1 (pairs: by 2) in each step. */
#include "bench/host_probe.h"

#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/thread.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_AVX 1
#else
#define HAS_AVX 0
#endif

enum { STEPS = 16384, CHAINS = 12, MAX_THREADS = 256, PASSES = 32 };

typedef struct worker {
    tp_host_probe probe;
    float *a, *b, *dst; /* its part */
    size_t count;
    double sum; /* of one lane of all chains, of all passes */
    tp_thread *thread;
} worker;

/* ---- multiply-adds ---- */

#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#if HAS_AVX
/* `one` comes from memory that the compiler does not know. */
#define BEGIN_512(r) __m512 s##r = _mm512_set1_ps((float)r);
#define ADD_512(r) total += _mm512_cvtss_f32(s##r);

__attribute__((target("avx512f"))) static float multiply_adds_512(const float *one)
{
    const __m512 ones = _mm512_set1_ps(*one);
    float total = 0;
    EACH(BEGIN_512)
    for (int i = 0; i < STEPS; i++) {
#define STEP(r) s##r = _mm512_fmadd_ps(s##r, ones, ones);
        EACH(STEP)
#undef STEP
    }
    EACH(ADD_512)
    return total;
}

__attribute__((target("avx512f"))) static float pairs_512(const float *one)
{
    const __m512 ones = _mm512_set1_ps(*one);
    float total = 0;
    EACH(BEGIN_512)
    for (int i = 0; i < STEPS; i++) {
#define STEP(r) __asm__("vdpbf16ps %1, %1, %0" : "+v"(s##r) : "v"(ones));
        EACH(STEP)
#undef STEP
    }
    EACH(ADD_512)
    return total;
}

__attribute__((target("avx2,fma"))) static float multiply_adds_256(const float *one)
{
    const __m256 ones = _mm256_set1_ps(*one);
    float total = 0;
#define BEGIN_256(r) __m256 s##r = _mm256_set1_ps((float)r);
    EACH(BEGIN_256)
    for (int i = 0; i < STEPS; i++) {
#define STEP(r) s##r = _mm256_fmadd_ps(s##r, ones, ones);
        EACH(STEP)
#undef STEP
    }
#define ADD_256(r) total += _mm256_cvtss_f32(s##r);
    EACH(ADD_256)
    return total;
}

static bool has_512(void)
{
    return __builtin_cpu_supports("avx512f");
}

static bool has_pairs(void)
{
    return has_512() && __builtin_cpu_supports("avx512bf16");
}

static bool has_256(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static float multiply_adds(tp_host_probe probe, const float *one)
{
    if (probe == TP_HOST_PAIRS) return pairs_512(one);
    return has_512() ? multiply_adds_512(one) : multiply_adds_256(one);
}
#else
static bool has_512(void)
{
    return false;
}

static bool has_pairs(void)
{
    return false;
}

static bool has_256(void)
{
    return false;
}

static float multiply_adds(tp_host_probe probe, const float *one)
{
    (void)probe;
    return *one;
}
#endif

bool tp_host_probe_is_available(tp_host_probe probe)
{
    if (probe == TP_HOST_MULTIPLY_ADDS) return has_512() || has_256();
    return probe != TP_HOST_PAIRS || has_pairs();
}

static bool is_compute(tp_host_probe probe)
{
    return probe == TP_HOST_MULTIPLY_ADDS || probe == TP_HOST_PAIRS;
}

/* ---- threads ---- */

static tpucl_status work(void *user)
{
    worker *w = user;
    const uint32_t pair_bits = 0x3f803f80; /* 1.0 in bf16, twice */
    float value = 1.0f;
    if (w->probe == TP_HOST_PAIRS) memcpy(&value, &pair_bits, sizeof value);
    volatile float unknown =
        value; /* read anew, or all passes but the first are seen to be the same */
    w->sum = 0;
    if (is_compute(w->probe))
        for (int pass = 0; pass < PASSES; pass++) {
            const float one = unknown;
            w->sum += (double)multiply_adds(w->probe, &one);
        }
    else if (w->probe == TP_HOST_COPY)
        memcpy(w->dst, w->a, w->count * sizeof(float));
    else
        for (size_t i = 0; i < w->count; i++)
            w->dst[i] = w->a[i] + 0.5f * w->b[i];
    return TPUCL_OK;
}

static tpucl_status run_all(worker *workers, int count, double *out_seconds)
{
    tpucl_status status = TPUCL_OK;
    const uint64_t begin_ns = tp_clock_now_ns();
    for (int i = 0; i < count && status == TPUCL_OK; i++)
        status = tp_thread_create("probe", work, &workers[i], &workers[i].thread);
    for (int i = 0; i < count; i++) {
        const tpucl_status joined = tp_thread_join(workers[i].thread);
        workers[i].thread = NULL;
        if (status == TPUCL_OK) status = joined;
    }
    *out_seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    return status;
}

static tpucl_status check(const worker *w)
{
    const int growth = w->probe == TP_HOST_PAIRS ? 2 : 1;
    double found = w->sum;
    double wanted = (double)PASSES * (CHAINS * (CHAINS - 1) / 2 + growth * CHAINS * STEPS);
    if (!is_compute(w->probe)) {
        const size_t last = w->count - 1;
        wanted = (double)(w->a[last] + (w->probe == TP_HOST_TRIAD ? 0.5f * w->b[last] : 0.0f));
        found = (double)w->dst[last];
    }
    if (wanted == found) return TPUCL_OK;
    return TP_FAIL(TPUCL_NOT_EXACT, "the host's probe gives %.9g, expected %.9g", found, wanted);
}

/* Each thread's part lies in memory of its own. Written once, so that all of it is there. */
static tpucl_status make_parts(worker *workers, int count, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        worker *w = &workers[i];
        w->count = bytes / sizeof(float) / (size_t)count;
        w->a = TP_NEW_ARRAY(float, w->count);
        w->b = TP_NEW_ARRAY(float, w->count);
        w->dst = TP_NEW_ARRAY(float, w->count);
        if (!w->a || !w->b || !w->dst) return TPUCL_OUT_OF_MEMORY;
        for (size_t k = 0; k < w->count; k++) {
            w->a[k] = (float)(k % 1000);
            w->b[k] = (float)(k % 500);
            w->dst[k] = -1.0f;
        }
    }
    return TPUCL_OK;
}

static tpucl_status run_best(worker *workers, int count, int runs, double *out_seconds)
{
    double seconds;
    *out_seconds = 0;
    for (int run = -1; run < runs; run++) { /* the first one warms */
        TP_TRY(run_all(workers, count, &seconds));
        if (run >= 0 && (*out_seconds == 0 || seconds < *out_seconds)) *out_seconds = seconds;
    }
    for (int i = 0; i < count; i++)
        TP_TRY(check(&workers[i]));
    return TPUCL_OK;
}

/* FLOP or bytes of one thread in one run. */
static double work_of(const worker *w)
{
    const double lanes = has_512() ? 16 : 8;
    if (is_compute(w->probe))
        return (w->probe == TP_HOST_PAIRS ? 4 : 2) * lanes * CHAINS * STEPS * PASSES;
    return (w->probe == TP_HOST_TRIAD ? 3 : 2) * (double)(w->count * sizeof(float));
}

tpucl_status tp_host_probe_run(tp_host_probe probe, size_t bytes, int runs, double *out_rate)
{
    const int processors = tp_thread_processor_count();
    const int count = processors < MAX_THREADS ? processors : MAX_THREADS;
    double seconds;
    tpucl_status status = TPUCL_OK;
    worker *workers = TP_NEW_ARRAY(worker, (size_t)count);
    if (!workers) return TPUCL_OUT_OF_MEMORY;
    for (int i = 0; i < count; i++)
        workers[i].probe = probe;
    if (!is_compute(probe)) TP_TRY_GOTO(status, make_parts(workers, count, bytes), done);
    TP_TRY_GOTO(status, run_best(workers, count, runs, &seconds), done);
    *out_rate = work_of(&workers[0]) * count / seconds;
done:
    for (int i = 0; i < count; i++) {
        tp_free(workers[i].a);
        tp_free(workers[i].b);
        tp_free(workers[i].dst);
    }
    tp_free(workers);
    return status;
}
