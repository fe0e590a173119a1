/* SPDX-License-Identifier: Apache-2.0
 * One MXU case with one variant on one device. */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "device/clblast.h"
#include "exec/launch_args.h"
#include "kernel/source.h"
#include "verify/check.h"

enum {
    GUARD_BYTES = 4096,
    GUARD_BYTE = 0xA5,
    ALIGN_BYTES = 128,
    MAX_TENSORS = 3 + TP_MXU_MAX_SCRATCH,
    A = 0,
    B = 1,
    C = 2
};

/* A tensor in the one buffer: guard, then each core's elements with a guard behind. */
typedef struct region {
    uint64_t offset_bytes, core_bytes, core_stride_bytes;
    uint32_t elem_bytes;
    int32_t cores; /* 1 when it stands once */
} region;

typedef struct bench {
    tp_device *device;
    const tp_mxu_case *row;
    tp_arena *arena;
    tp_mxu_problem problem;
    tp_mxu_plan plan;
    region regions[MAX_TENSORS];
    int32_t region_count;
    uint64_t bytes;
    unsigned char *host; /* what the buffer starts with; later what it holds */
    tp_buffer *buffer;
    void *expected; /* C of all cores */
} bench;

static void add_region(bench *b, tp_dtype dtype, uint64_t core_bytes, int32_t cores)
{
    region *r = &b->regions[b->region_count++];
    r->elem_bytes = (uint32_t)tp_dtype_size(dtype);
    r->core_bytes = core_bytes;
    r->core_stride_bytes = (core_bytes + GUARD_BYTES + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    r->cores = cores;
    r->offset_bytes = b->bytes + GUARD_BYTES;
    b->bytes = r->offset_bytes + r->core_stride_bytes * (uint64_t)cores;
}

static int32_t wave_cores(const bench *b)
{
    return b->row->cores > 0 ? b->row->cores : 1;
}

static tpucl_status lay_out(bench *b)
{
    const tp_mxu_problem *p = &b->problem;
    const bool replicated[3] = {p->a.is_replicated, p->b.is_replicated, p->c_is_replicated};
    const tp_dtype dtypes[3] = {p->a.dtype, p->b.dtype, p->c_dtype};
    for (int32_t t = 0; t < 3; t++)
        add_region(b, dtypes[t], (uint64_t)tp_mxu_case_elements(p, t) * tp_dtype_size(dtypes[t]),
                   replicated[t] ? 1 : wave_cores(b));
    for (int32_t s = 0; s < b->plan.scratch_count; s++)
        add_region(b, b->plan.scratch[s].dtype, b->plan.scratch[s].bytes,
                   b->plan.scratch[s].is_per_core ? wave_cores(b) : 1);
    b->host = tp_alloc(b->bytes);
    b->expected = tp_alloc(b->regions[C].core_bytes * (uint64_t)b->regions[C].cores + 1);
    if (!b->host || !b->expected) return TPUCL_OUT_OF_MEMORY;
    memset(b->host, GUARD_BYTE, b->bytes);
    return TPUCL_OK;
}

static void *core_data(const bench *b, int32_t tensor, int32_t core)
{
    const region *r = &b->regions[tensor];
    return b->host + r->offset_bytes + (r->cores > 1 ? (uint64_t)core * r->core_stride_bytes : 0);
}

static tpucl_status fill_and_expect(bench *b)
{
    for (int32_t t = A; t <= B; t++)
        for (int32_t core = 0; core < b->regions[t].cores; core++)
            tp_mxu_case_fill(b->row, &b->problem, t, core, core_data(b, t, core));
    for (int32_t core = 0; core < b->regions[C].cores; core++)
        TP_TRY(tp_mxu_case_expect(&b->problem, core_data(b, A, core), core_data(b, B, core),
                                  (char *)b->expected + (uint64_t)core * b->regions[C].core_bytes));
    return TPUCL_OK;
}

static tpucl_status place(void *user, const tp_kernel_arg *arg, uint32_t offset_index,
                          tp_tensor_place *out)
{
    const bench *b = user;
    (void)offset_index;
    const region *r = &b->regions[arg->tensor];
    *out = (tp_tensor_place){b->buffer, r->offset_bytes / r->elem_bytes,
                             r->cores > 1 ? r->core_stride_bytes / r->elem_bytes : 0};
    return TPUCL_OK;
}

static tpucl_status run_library(const bench *b, const tp_launch *launch)
{
    const tp_library_gemm *g = &launch->gemm;
    for (int32_t core = 0; core < (launch->is_per_core ? wave_cores(b) : 1); core++) {
        uint64_t offsets[3];
        for (int i = 0; i < 3; i++) {
            tp_tensor_place at;
            TP_TRY(place((void *)b, &launch->args[i], 0, &at));
            offsets[i] = at.offset_elems + launch->args[i].offset_elems +
                         (uint64_t)core * at.core_stride_elems;
        }
        tp_clblast_problem problem = {.batch = g->batch,
                                      .m = g->m,
                                      .n = g->n,
                                      .k = g->k,
                                      .transpose_a = g->transpose_a,
                                      .transpose_b = g->transpose_b,
                                      .lda = g->lda,
                                      .ldb = g->ldb,
                                      .ldc = g->ldc,
                                      .stride_a = g->stride_a,
                                      .stride_b = g->stride_b,
                                      .stride_c = g->stride_c,
                                      .offset_a = offsets[0],
                                      .offset_b = offsets[1],
                                      .offset_c = offsets[2]};
        TP_TRY(tp_clblast_sgemm(b->device, &problem, b->buffer, b->buffer, b->buffer, NULL));
    }
    return TPUCL_OK;
}

static tpucl_status run_launch(bench *b, const tp_launch *launch)
{
    if (launch->kind == TP_LAUNCH_CLBLAST_SGEMM) return run_library(b, launch);
    const char *text = NULL;
    tp_device_program *program = NULL;
    tp_device_kernel *kernel = NULL;
    tp_launch_indexes indexes;
    const tp_tensor_placer placer = {place, b};
    TP_TRY(tp_kernel_source_expand(launch->source, b->arena, &text));
    const tp_device_program_source source = {launch->label, text, launch->options};
    TP_TRY(tp_device_program_build(b->device, &source, &program));
    tpucl_status status = tp_device_kernel_create(program, launch->entry, &kernel);
    if (status == TPUCL_OK) status = tp_launch_set_args(kernel, launch, 0, &placer, &indexes);
    if (status == TPUCL_OK) {
        const size_t cores = launch->is_per_core ? (size_t)wave_cores(b) : 1;
        const size_t global[3] = {launch->global[0], launch->global[1], launch->global[2] * cores};
        status = tp_device_kernel_enqueue(kernel, global, launch->local, NULL, 0, NULL);
    }
    if (status == TPUCL_OK) status = tp_lane_finish(b->device, TP_LANE_COMPUTE);
    tp_device_kernel_destroy(kernel);
    tp_device_program_release(program);
    return status;
}

static tpucl_status run_plan(bench *b)
{
    TP_TRY(tp_buffer_create(b->device, b->bytes, "verification", &b->buffer));
    TP_TRY(tp_buffer_write(b->buffer, 0, b->host, b->bytes));
    for (int32_t i = 0; i < b->plan.launch_count; i++)
        TP_TRY(run_launch(b, &b->plan.launches[i]));
    return tp_buffer_read(b->buffer, 0, b->host, b->bytes);
}

static bool find_guard_fault(const bench *b, tp_check_outcome *out)
{
    static const char *const names[] = {"A",         "B",         "C",        "scratch 0",
                                        "scratch 1", "scratch 2", "scratch 3"};
    uint64_t at = 0;
    for (int32_t t = 0; t < b->region_count; t++)
        for (int32_t core = 0; core < b->regions[t].cores; core++) {
            const region *r = &b->regions[t];
            uint64_t begin = r->offset_bytes + (uint64_t)core * r->core_stride_bytes;
            for (; at < begin; at++)
                if (b->host[at] != GUARD_BYTE) {
                    snprintf(out->reason, sizeof out->reason,
                             "wrote %llu bytes in front of %s of core %d",
                             (unsigned long long)(begin - at), names[t], core);
                    return true;
                }
            at = begin + r->core_bytes;
        }
    for (; at < b->bytes; at++)
        if (b->host[at] != GUARD_BYTE) {
            snprintf(out->reason, sizeof out->reason, "wrote behind the last buffer");
            return true;
        }
    return false;
}

static uint32_t bits_at(tp_dtype dtype, const void *data, int64_t index)
{
    uint32_t bits = 0;
    size_t size = tp_dtype_size(dtype);
    memcpy(&bits, (const char *)data + (size_t)index * size, size);
    return bits;
}

static void compare(const bench *b, tp_check_outcome *out)
{
    tp_dtype dtype = b->problem.c_dtype;
    int64_t count = tp_mxu_case_elements(&b->problem, C), m = 0;
    for (int32_t core = 0; core < b->regions[C].cores; core++) {
        const void *expected =
            (const char *)b->expected + (uint64_t)core * b->regions[C].core_bytes;
        int64_t at = tp_mxu_case_compare(dtype, expected, core_data(b, C, core), count);
        if (at < 0) continue;
        m = at / b->problem.n % b->problem.m;
        snprintf(
            out->reason, sizeof out->reason,
            "core %d, row %lld, column %lld: expected bits %08x, found %08x (m %lld, n %lld, k "
            "%lld)",
            core, (long long)m, (long long)(at % b->problem.n), bits_at(dtype, expected, at),
            bits_at(dtype, core_data(b, C, core), at), (long long)b->problem.m,
            (long long)b->problem.n, (long long)b->problem.k);
        return;
    }
    out->status = TP_CHECK_PASSED;
}

/* Plans with this variant alone; false when it declines. */
static tpucl_status plan(bench *b, const char *variant, bool *out_is_planned, tp_check_outcome *out)
{
    const tp_mxu_allow allow = {.forced = variant};
    TP_TRY(tp_mxu_case_problem(b->row, b->arena, &b->problem));
    tpucl_status status = tp_mxu_plan_create(&b->problem, tp_device_get_caps(b->device), &allow, 3,
                                             b->arena, &b->plan);
    *out_is_planned = status == TPUCL_OK;
    if (status != TPUCL_UNSUPPORTED) return status;
    out->status = TP_CHECK_SKIPPED;
    snprintf(out->reason, sizeof out->reason, "%s",
             b->plan.declined_count ? b->plan.declined[b->plan.declined_count - 1]
                                    : tpucl_last_error()->message);
    return TPUCL_OK;
}

tpucl_status tp_check_mxu_case(tp_device *device, const char *variant, const tp_mxu_case *row,
                               tp_check_outcome *out_outcome)
{
    bench b = {.device = device, .row = row};
    tpucl_status status = TPUCL_OK;
    bool is_planned = false;
    *out_outcome = (tp_check_outcome){.status = TP_CHECK_FAILED};
    TP_TRY(tp_arena_create(0, &b.arena));
    TP_TRY_GOTO(status, plan(&b, variant, &is_planned, out_outcome), done);
    if (!is_planned) goto done;
    TP_TRY_GOTO(status, lay_out(&b), done);
    TP_TRY_GOTO(status, fill_and_expect(&b), done);
    if (run_plan(&b) != TPUCL_OK) /* the device's failure is the outcome, not ours */
        snprintf(out_outcome->reason, sizeof out_outcome->reason, "%.380s",
                 tpucl_last_error()->message);
    else if (!find_guard_fault(&b, out_outcome))
        compare(&b, out_outcome);
done:
    tp_buffer_release(b.buffer);
    tp_free(b.host);
    tp_free(b.expected);
    tp_arena_destroy(b.arena);
    return status;
}
