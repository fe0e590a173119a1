/* SPDX-License-Identifier: Apache-2.0
 * CLBlast, the only file that knows its header. Its three functions are looked up when first
 * needed: the library is large, and most runs never use it. Its kernels are compiled by its own
 * code, per context and kind of product, and kept by it in memory only. */
#include "device/clblast.h"

#include "device/internal.h"

#if TPUCL_HAVE_CLBLAST

#include <clblast_c.h>
#include <dlfcn.h>
#include <string.h>
#include "core/clock.h"

static const char library_name[] = "libclblast.so.1";

typedef CLBlastStatusCode (*sgemm_function)(const CLBlastLayout, const CLBlastTranspose,
                                            const CLBlastTranspose, const size_t, const size_t,
                                            const size_t, const float, const cl_mem, const size_t,
                                            const size_t, const cl_mem, const size_t, const size_t,
                                            const float, cl_mem, const size_t, const size_t,
                                            cl_command_queue *, cl_event *);
typedef CLBlastStatusCode (*sgemm_strided_function)(
    const CLBlastLayout, const CLBlastTranspose, const CLBlastTranspose, const size_t, const size_t,
    const size_t, const float, const cl_mem, const size_t, const size_t, const size_t, const cl_mem,
    const size_t, const size_t, const size_t, const float, cl_mem, const size_t, const size_t,
    const size_t, const size_t, cl_command_queue *, cl_event *);

static tp_once load_once = TP_ONCE_INIT;
static sgemm_function sgemm;
static sgemm_strided_function sgemm_strided;

static void load(void)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    void *one = dlsym(library, "CLBlastSgemm");
    void *many = dlsym(library, "CLBlastSgemmStridedBatched");
    memcpy(&sgemm, &one, sizeof one); /* as in cl_api.c */
    memcpy(&sgemm_strided, &many, sizeof many);
    if (!one || !many) sgemm = NULL;
}

bool tp_clblast_is_available(void)
{
    tp_once_run(&load_once, load);
    return sgemm != NULL;
}

static tpucl_status require(void)
{
    if (tp_clblast_is_available()) return TPUCL_OK;
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "CLBlast ('%s') cannot be loaded; install it (Debian: libclblast1)",
                   library_name);
}

/* Elements from the first to the last one that a matrix stack touches, or SIZE_MAX when that
 * overflows. */
static uint64_t extent(int64_t batch, int64_t stride, int64_t rows, int64_t ld, int64_t columns)
{
    uint64_t a = 0, b = 0, sum = 0;
    if (__builtin_mul_overflow((uint64_t)(batch - 1), (uint64_t)stride, &a) ||
        __builtin_mul_overflow((uint64_t)(rows - 1), (uint64_t)ld, &b) ||
        __builtin_add_overflow(a, b, &sum) || __builtin_add_overflow(sum, (uint64_t)columns, &sum))
        return UINT64_MAX;
    return sum;
}

static tpucl_status check_operand(const char *name, const tp_buffer *buffer, uint64_t offset,
                                  int64_t batch, int64_t stride, int64_t rows, int64_t ld,
                                  int64_t columns)
{
    const uint64_t room = tp_buffer_bytes(buffer) / sizeof(float);
    const uint64_t elems = extent(batch, stride, rows, ld, columns);
    if (ld < columns || stride < 0)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT,
            "matrix %s: leading dimension %lld, stride %lld, expected at least %lld and 0", name,
            (long long)ld, (long long)stride, (long long)columns);
    if (offset > room || elems > room - offset)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "matrix %s: %llu elements at offset %llu are outside '%s' of %llu", name,
                       (unsigned long long)elems, (unsigned long long)offset,
                       tp_buffer_label(buffer), (unsigned long long)room);
    return TPUCL_OK;
}

static tpucl_status check(const tp_clblast_problem *p, const tp_buffer *a, const tp_buffer *b,
                          const tp_buffer *c)
{
    TP_TRY(check_operand("c", c, p->offset_c, p->batch, p->stride_c, p->m, p->ldc, p->n));
    if (!p->k) return TPUCL_OK;
    TP_TRY(check_operand("a", a, p->offset_a, p->batch, p->stride_a, p->transpose_a ? p->k : p->m,
                         p->lda, p->transpose_a ? p->m : p->k));
    return check_operand("b", b, p->offset_b, p->batch, p->stride_b, p->transpose_b ? p->n : p->k,
                         p->ldb, p->transpose_b ? p->k : p->n);
}

/* An empty sum is zero: row by row, because columns beyond n belong to somebody else. */
static tpucl_status fill_zero(const tp_clblast_problem *p, tp_buffer *c)
{
    const float zero = 0.0f;
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t row = 0; row < p->m; row++) {
            const uint64_t at = p->offset_c + (uint64_t)(batch * p->stride_c + row * p->ldc);
            TP_TRY(tp_buffer_fill(c, at * sizeof zero, (size_t)p->n * sizeof zero, &zero,
                                  sizeof zero, TP_LANE_COMPUTE, NULL, 0, NULL));
        }
    return TPUCL_OK;
}

static CLBlastStatusCode enqueue(const tp_clblast_problem *p, cl_command_queue queue, cl_mem a,
                                 cl_mem b, cl_mem c, cl_event *out_event)
{
    const CLBlastTranspose transpose_a = p->transpose_a ? CLBlastTransposeYes : CLBlastTransposeNo;
    const CLBlastTranspose transpose_b = p->transpose_b ? CLBlastTransposeYes : CLBlastTransposeNo;
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    if (p->batch == 1)
        return sgemm(CLBlastLayoutRowMajor, transpose_a, transpose_b, m, n, k, 1.0f, a, p->offset_a,
                     (size_t)p->lda, b, p->offset_b, (size_t)p->ldb, 0.0f, c, p->offset_c,
                     (size_t)p->ldc, &queue, out_event);
    return sgemm_strided(CLBlastLayoutRowMajor, transpose_a, transpose_b, m, n, k, 1.0f, a,
                         p->offset_a, (size_t)p->lda, (size_t)p->stride_a, b, p->offset_b,
                         (size_t)p->ldb, (size_t)p->stride_b, 0.0f, c, p->offset_c, (size_t)p->ldc,
                         (size_t)p->stride_c, (size_t)p->batch, &queue, out_event);
}

tpucl_status tp_clblast_sgemm(tp_device *device, const tp_clblast_problem *problem, tp_buffer *a,
                              tp_buffer *b, tp_buffer *c, tp_event **out_event)
{
    const tp_clblast_problem *p = problem;
    if (out_event) *out_event = NULL;
    TP_TRY(require());
    if (p->batch < 0 || p->m < 0 || p->n < 0 || p->k < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "product of batch %lld, m %lld, n %lld, k %lld, expected 0 or more",
                       (long long)p->batch, (long long)p->m, (long long)p->n, (long long)p->k);
    const bool is_empty = !p->batch || !p->m || !p->n;
    if (!is_empty) TP_TRY(check(p, a, b, c));
    if (is_empty || !p->k) {
        if (!is_empty) TP_TRY(fill_zero(p, c));
        return out_event ? tp_lane_mark(device, TP_LANE_COMPUTE, out_event) : TPUCL_OK;
    }
    const CLBlastStatusCode code = enqueue(p, device->queues[TP_LANE_COMPUTE], a->memory, b->memory,
                                           c->memory, (cl_event *)(void *)out_event);
    if (code != CLBlastSuccess)
        return TP_FAIL_CODE(tp_cl_error_status((int32_t)code), (int32_t)code,
                            "CLBlast's sgemm failed with code %d on device %s '%s': batch %lld, m "
                            "%lld, n %lld, k %lld",
                            (int)code, device->label, device->caps.name, (long long)p->batch,
                            (long long)p->m, (long long)p->n, (long long)p->k);
    return tp_lane_after_enqueue(device, TP_LANE_COMPUTE, out_event);
}

static tpucl_status scratch(tp_device *device, const char *label, uint64_t elems,
                            tp_buffer **out_buffer)
{
    if (elems > SIZE_MAX / sizeof(float))
        return TP_FAIL(TPUCL_OUT_OF_DEVICE_MEMORY, "'%s' of %llu elements", label,
                       (unsigned long long)elems);
    return tp_buffer_create(device, (size_t)elems * sizeof(float), label, out_buffer);
}

tpucl_status tp_clblast_warm(tp_device *device, const tp_clblast_problem *problem,
                             double *out_seconds)
{
    tp_clblast_problem p = *problem;
    const uint64_t start_ns = tp_clock_now_ns();
    if (out_seconds) *out_seconds = 0;
    TP_TRY(require());
    if (p.batch < 1 || p.m < 1 || p.n < 1 || p.k < 1)
        return TPUCL_OK; /* nothing will be compiled for it */
    p.offset_a = p.offset_b = p.offset_c = 0;
    tp_buffer *a = NULL, *b = NULL, *c = NULL;
    tpucl_status status = TPUCL_OK;
    TP_TRY_GOTO(status,
                scratch(device, "CLBlast warm-up a",
                        extent(p.batch, p.stride_a, p.transpose_a ? p.k : p.m, p.lda,
                               p.transpose_a ? p.m : p.k),
                        &a),
                done);
    TP_TRY_GOTO(status,
                scratch(device, "CLBlast warm-up b",
                        extent(p.batch, p.stride_b, p.transpose_b ? p.n : p.k, p.ldb,
                               p.transpose_b ? p.k : p.n),
                        &b),
                done);
    TP_TRY_GOTO(
        status,
        scratch(device, "CLBlast warm-up c", extent(p.batch, p.stride_c, p.m, p.ldc, p.n), &c),
        done);
    TP_TRY_GOTO(status, tp_clblast_sgemm(device, &p, a, b, c, NULL), done);
    TP_TRY_GOTO(status, tp_lane_finish(device, TP_LANE_COMPUTE), done);
    if (out_seconds) *out_seconds = (double)(tp_clock_now_ns() - start_ns) * 1e-9;
done:
    tp_buffer_release(a);
    tp_buffer_release(b);
    tp_buffer_release(c);
    return status;
}

#else

bool tp_clblast_is_available(void)
{
    return false;
}

static tpucl_status not_built(void)
{
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "this build of tpucl has no CLBlast; configure it with TPUCL_WITH_CLBLAST=ON");
}

tpucl_status tp_clblast_sgemm(tp_device *device, const tp_clblast_problem *problem, tp_buffer *a,
                              tp_buffer *b, tp_buffer *c, tp_event **out_event)
{
    (void)device, (void)problem, (void)a, (void)b, (void)c;
    if (out_event) *out_event = NULL;
    return not_built();
}

tpucl_status tp_clblast_warm(tp_device *device, const tp_clblast_problem *problem,
                             double *out_seconds)
{
    (void)device, (void)problem;
    if (out_seconds) *out_seconds = 0;
    return not_built();
}

#endif
