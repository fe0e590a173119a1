/* SPDX-License-Identifier: Apache-2.0
 * Loading OpenBLAS, with the right kernels for the processor. */
#include "baseline/openblas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"

/* cblas.h, by value */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k,
                            float alpha, const float *a, int lda, const float *b, int ldb,
                            float beta, float *c, int ldc);

struct tp_openblas {
    void *library;
    sgemm_function *sgemm;
    char core[32], note[256];
};

/* POSIX gives functions as object pointers; this is the cast that it means. */
static void *symbol(void *library, const char *name, void *out_function)
{
    void *found = dlsym(library, name);
    memcpy(out_function, &found, sizeof found);
    return found;
}

static tpucl_status load(tp_openblas *blas)
{
    char *(*corename)(void);
    blas->library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!blas->library)
        return TP_FAIL(TPUCL_UNSUPPORTED, "OpenBLAS cannot be loaded: %s", dlerror());
    if (!symbol(blas->library, "cblas_sgemm", &blas->sgemm) ||
        !symbol(blas->library, "openblas_get_corename", &corename))
        return TP_FAIL(TPUCL_UNSUPPORTED, "libopenblas.so.0 lacks a function: %s", dlerror());
    snprintf(blas->core, sizeof blas->core, "%s", corename());
    return TPUCL_OK;
}

/* The kernels that this processor can run, or NULL when its own choice is as good. */
static const char *better_core(const char *chosen)
{
#if defined(__x86_64__)
    static const char *const without_avx[] = {"Prescott",  "Core2",  "Penryn",  "Dunnington",
                                              "Nehalem",   "Atom",   "Banias",  "Katmai",
                                              "Northwood", "Athlon", "Opteron", "Opteron_SSE3",
                                              "Barcelona", "Bobcat", "Generic", "Unknown"};
    bool is_old = false;
    for (size_t i = 0; i < sizeof without_avx / sizeof *without_avx; i++)
        is_old = is_old || !strcmp(chosen, without_avx[i]);
    if (!is_old) return NULL;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#else
    (void)chosen;
#endif
    return NULL;
}

/* Only what OpenBLAS found by itself is corrected, not what the user asked for. */
static tpucl_status correct_core(tp_openblas *blas)
{
    char before[sizeof blas->core];
    const char *better = better_core(blas->core);
    if (!better || setenv("OPENBLAS_CORETYPE", better, 0) != 0) return TPUCL_OK;
    memcpy(before, blas->core, sizeof before);
    dlclose(blas->library);
    blas->library = NULL;
    TP_TRY(load(blas));
    if (strcmp(before, blas->core) != 0)
        snprintf(blas->note, sizeof blas->note,
                 "OpenBLAS took this processor for '%s'; it was told to use its '%s' kernels",
                 before, blas->core);
    return TPUCL_OK;
}

tpucl_status tp_openblas_open(tp_openblas **out_blas)
{
    *out_blas = NULL;
    if (!TPUCL_HAVE_OPENBLAS)
        return TP_FAIL(TPUCL_UNSUPPORTED, "this tpucl was built without OpenBLAS");
    tp_openblas *blas = TP_NEW(tp_openblas);
    if (!blas) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, load(blas), failed);
    TP_TRY_GOTO(status, correct_core(blas), failed);
    *out_blas = blas;
    return TPUCL_OK;
failed:
    tp_openblas_close(blas);
    return status;
}

void tp_openblas_close(tp_openblas *blas)
{
    if (!blas) return;
    if (blas->library) dlclose(blas->library);
    tp_free(blas);
}

const char *tp_openblas_core(const tp_openblas *blas)
{
    return blas->core;
}

const char *tp_openblas_note(const tp_openblas *blas)
{
    return blas->note;
}

void tp_openblas_sgemm(const tp_openblas *blas, const tp_openblas_gemm *gemm)
{
    blas->sgemm(ROW_MAJOR, gemm->transpose_a ? TRANSPOSE : NO_TRANSPOSE,
                gemm->transpose_b ? TRANSPOSE : NO_TRANSPOSE, (int)gemm->m, (int)gemm->n,
                (int)gemm->k, 1.0f, gemm->a, (int)gemm->lda, gemm->b, (int)gemm->ldb, gemm->beta,
                gemm->c, (int)gemm->ldc);
}
