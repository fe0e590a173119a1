/* SPDX-License-Identifier: Apache-2.0
 * See mxu_check.h.
 */
#include "tune/mxu_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "kernel/mxu_choice.h"
#include "num/exact_math.h"
#include "num/reduce.h"
#include "tune/plan_run.h"

#define TEXT_BYTES 256
/* In front of every tensor: odd, so that nothing is aligned to more than an element. */
#define LEAD_ELEMENTS 37

typedef struct check {
    tp_device *device;
    const tp_mxu_case *row;
    tp_mxu_problem problem;
    tp_mxu_plan plan;
    int32_t cores;
    bool is_fast; /* outside the contract: within rounding is enough */
    tp_plan_tensor tensors[3 + TP_MXU_MAX_SCRATCH];
    void *operands[2], *expected, *found; /* one core's */
} check;

static tp_dtype dtype_of(const check *c, int32_t tensor)
{
    return tensor == 0 ? c->problem.a.dtype : tensor == 1 ? c->problem.b.dtype : c->problem.c_dtype;
}

static tpucl_status prepare(check *c)
{
    const bool is_replicated[3] = {c->problem.a.is_replicated, c->problem.b.is_replicated,
                                   c->problem.c_is_replicated};
    static const char *const names[3] = {"A", "B", "C"};
    for (int32_t t = 0; t < 3; t++) {
        const size_t elements = (size_t)tp_mxu_case_elements(&c->problem, t);
        const bool is_one = is_replicated[t] || (t == 2 && c->plan.sums_cores);
        const size_t parts = is_one ? 1 : (size_t)c->cores;
        TP_TRY(tp_plan_tensor_create(c->device, names[t], tp_dtype_size(dtype_of(c, t)), elements,
                                     parts, LEAD_ELEMENTS, &c->tensors[t]));
        void **host = t < 2 ? &c->operands[t] : &c->expected;
        *host = tp_alloc_array(elements, 4);
        if (*host == NULL) return TPUCL_OUT_OF_MEMORY;
        for (size_t part = 0; t < 2 && part < parts; part++) {
            tp_mxu_case_fill(c->row, &c->problem, t, (int32_t)part, *host);
            TP_TRY(tp_plan_tensor_write(&c->tensors[t], part, *host));
        }
    }
    c->found = tp_alloc_array((size_t)tp_mxu_case_elements(&c->problem, 2), 4);
    if (c->found == NULL) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < c->plan.scratch_count; i++) {
        const tp_mxu_scratch *scratch = &c->plan.scratch[i];
        const size_t bytes = tp_dtype_size(scratch->dtype);
        TP_TRY(tp_plan_tensor_create(c->device, "scratch", bytes, scratch->bytes / bytes,
                                     scratch->is_per_core ? (size_t)c->cores : 1, LEAD_ELEMENTS,
                                     &c->tensors[3 + i]));
    }
    return TPUCL_OK;
}

static tpucl_status run(check *c)
{
    tp_plan_run *plan_run = NULL;
    tpucl_status status = TPUCL_OK;
    TP_TRY(tp_plan_run_create(c->device, c->plan.launches, c->plan.launch_count, c->tensors,
                              c->cores, &plan_run));
    TP_TRY_GOTO(status, tp_plan_run_enqueue(plan_run, 0, c->plan.launch_count), done);
    TP_TRY_GOTO(status, tp_lane_finish(c->device, TP_LANE_COMPUTE), done);
done:
    tp_plan_run_destroy(plan_run);
    return status;
}

/* Index of the first f32 result that another order of summation does not explain, or -1. Ordinary
 * operands lie below 16, a product's root mean square below 64; k roundings of partial sums that
 * grow with the root of k add up to about k times 64 times 2^-24 (Higham, "Accuracy and Stability
 * of Numerical Algorithms", 4.2). */
static int64_t compare_fast(const tp_mxu_problem *p, const float *expected, const float *found,
                            int64_t count)
{
    const double slack = 64.0 * (double)(p->k + 1) * 0x1p-24;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)expected[i] - (double)found[i]) <= slack)) return i;
    return -1;
}

static tpucl_status expect_core(check *c, int32_t core, void *out_c)
{
    for (int32_t t = 0; t < 2; t++)
        tp_mxu_case_fill(c->row, &c->problem, t, core, c->operands[t]);
    return tp_mxu_case_expect(&c->problem, c->operands[0], c->operands[1], out_c);
}

/* The flushed sum over the cores by the balanced tree. */
static tpucl_status expect_sum(check *c)
{
    const size_t count = (size_t)tp_mxu_case_elements(&c->problem, 2), cores = (size_t)c->cores;
    float *parts = tp_alloc_array(count * cores, sizeof *parts), *sum = c->expected;
    tpucl_status status = parts ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    for (size_t core = 0; status == TPUCL_OK && core < cores; core++)
        status = expect_core(c, (int32_t)core, parts + core * count);
    for (size_t i = 0; status == TPUCL_OK && i < count; i++)
        sum[i] = tp_flush(tp_tree_reduce(TP_REDUCE_ADD, parts + i, (int64_t)cores, (int64_t)count));
    tp_free(parts);
    return status;
}

/* Writes into text what differs, nothing if nothing does. */
static tpucl_status compare(check *c, int32_t core, char text[TEXT_BYTES])
{
    const tp_mxu_problem *p = &c->problem;
    const int64_t count = tp_mxu_case_elements(p, 2);
    TP_TRY(c->plan.sums_cores ? expect_sum(c) : expect_core(c, core, c->expected));
    TP_TRY(tp_plan_tensor_read(&c->tensors[2], (size_t)core, c->found));
    const int64_t at = c->is_fast ? compare_fast(p, c->expected, c->found, count)
                                  : tp_mxu_case_compare(p->c_dtype, c->expected, c->found, count);
    if (at < 0) return TPUCL_OK;
    uint32_t expected = 0, found = 0;
    const size_t bytes = tp_dtype_size(p->c_dtype);
    memcpy(&expected, (const char *)c->expected + (size_t)at * bytes, bytes);
    memcpy(&found, (const char *)c->found + (size_t)at * bytes, bytes);
    snprintf(text, TEXT_BYTES,
             "core %d, batch %lld, m %lld, n %lld: found bits 0x%0*x, expected 0x%0*x", core,
             (long long)(at / p->n / p->m), (long long)(at / p->n % p->m), (long long)(at % p->n),
             (int)bytes * 2, found, (int)bytes * 2, expected);
    return TPUCL_OK;
}

static tpucl_status judge(check *c, tp_mxu_verdict *out_verdict, char text[TEXT_BYTES])
{
    const int32_t results = c->problem.c_is_replicated || c->plan.sums_cores ? 1 : c->cores;
    for (int32_t core = 0; core < results && text[0] == '\0'; core++)
        TP_TRY(compare(c, core, text));
    for (int32_t t = 0; t < 3 + c->plan.scratch_count && text[0] == '\0'; t++)
        if (tp_plan_tensor_check(&c->tensors[t]) != TPUCL_OK)
            snprintf(text, TEXT_BYTES, "%.200s", tpucl_last_error()->message);
    *out_verdict = text[0] != '\0' ? TP_MXU_WRONG : c->is_fast ? TP_MXU_CLOSE : TP_MXU_PASSED;
    return TPUCL_OK;
}

static tpucl_status check_case(tp_device *device, const tp_device_caps *caps,
                               const tp_mxu_case *row, const tp_mxu_allow *allow,
                               tp_mxu_verdict *out_verdict, char out_text[TEXT_BYTES])
{
    check c = {.device = device, .row = row, .cores = row->cores == 0 ? 1 : row->cores};
    tp_arena *arena = NULL;
    tpucl_status status = TPUCL_OK;
    out_text[0] = '\0';
    TP_TRY(tp_arena_create(0, &arena));
    TP_TRY_GOTO(status, tp_mxu_case_problem(row, arena, &c.problem), done);
    status = tp_mxu_plan_create(&c.problem, caps, allow, 3, arena, &c.plan);
    if (status == TPUCL_UNSUPPORTED && row->fill == TP_MXU_FILL_ORDINARY) {
        c.is_fast = c.problem.is_fast_math = true; /* a library with its own order of summation */
        status = tp_mxu_plan_create(&c.problem, caps, allow, 3, arena, &c.plan);
    }
    if (status == TPUCL_UNSUPPORTED) {
        *out_verdict = TP_MXU_SKIPPED;
        snprintf(out_text, TEXT_BYTES, "%.200s", tpucl_last_error()->message);
        status = TPUCL_OK;
        goto done;
    }
    TP_TRY_GOTO(status, status, done);
    TP_TRY_GOTO(status, prepare(&c), done);
    TP_TRY_GOTO(status, run(&c), done);
    TP_TRY_GOTO(status, judge(&c, out_verdict, out_text), done);
done:
    for (size_t i = 0; i < sizeof c.tensors / sizeof c.tensors[0]; i++)
        tp_plan_tensor_deinit(&c.tensors[i]);
    tp_free(c.operands[0]);
    tp_free(c.operands[1]);
    tp_free(c.expected);
    tp_free(c.found);
    tp_arena_destroy(arena);
    return status;
}

tpucl_status tp_mxu_check(tp_device *device, const tp_device_caps *caps, const tp_mxu_case *row,
                          const char *variant, tp_mxu_verdict *out_verdict, char out_text[256])
{
    const tp_mxu_allow allow = {.forced = variant};
    const tpucl_status status = check_case(device, caps, row, &allow, out_verdict, out_text);
    if (status != TPUCL_OK) tp_error_note("case '%s' by %s", row->name, variant);
    return status;
}

tpucl_status tp_mxu_check_choice(tp_device *device, const tp_mxu_case *row,
                                 const tp_mxu_choice *choice, tp_mxu_verdict *out_verdict,
                                 char out_text[256])
{
    const tp_mxu_allow allow = {.forced_choice = choice};
    char text[TP_MXU_CHOICE_BYTES];
    const tpucl_status status =
        check_case(device, tp_device_get_caps(device), row, &allow, out_verdict, out_text);
    if (status != TPUCL_OK)
        tp_error_note("case '%s' by %s", row->name, tp_mxu_choice_print(choice, text));
    return status;
}
