/* SPDX-License-Identifier: Apache-2.0
 * See product_timer.h.
 */
#include "tune/product_timer.h"

#include <stdlib.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/clock.h"
#include "num/bf16.h"
#include "tune/plan_run.h"

struct tp_product_timer {
    tp_device *device;
    tp_arena *arena;
    tp_mxu_problem problem;
    tp_mxu_plan plan;
    tp_plan_tensor tensors[3 + TP_MXU_MAX_SCRATCH];
    tp_plan_run *run;
};

void tp_product_dot(tp_precision precision, int64_t m, int64_t n, int64_t k,
                    tp_mxu_problem *out_problem)
{
    const tp_dtype dtype = precision == TP_PRECISION_F32 ? TP_F32 : TP_BF16;
    *out_problem = (tp_mxu_problem){
        .kind = TP_MXU_DOT,
        .precision = precision,
        .batch = 1,
        .m = m,
        .n = n,
        .k = k,
        .a = {.dtype = dtype, .stride_batch = m * k, .stride_outer = k, .stride_inner = 1},
        .b = {.dtype = dtype, .stride_batch = k * n, .stride_outer = 1, .stride_inner = n},
        .c_dtype = TP_F32,
    };
}

/* From the first to the last element that strides reach. */
static size_t reach(const tp_mxu_operand *operand, int64_t batch, int64_t outer, int64_t inner)
{
    if (batch == 0 || outer == 0 || inner == 0) return 0;
    return (size_t)((batch - 1) * operand->stride_batch + (outer - 1) * operand->stride_outer +
                    (inner - 1) * operand->stride_inner + 1);
}

/* What lies in memory of an operand: for convolutions the tensor of the graph. */
static size_t elements(const tp_mxu_problem *p, int32_t tensor)
{
    const tp_mxu_conv *c = &p->conv;
    const int64_t in = c->images * c->in_h * c->in_w * c->in_c;
    const int64_t out = c->images * c->out_h * c->out_w * c->out_c;
    if (tensor == 2) return (size_t)(p->batch * p->m * p->n);
    if (p->kind == TP_MXU_DOT)
        return tensor == 0 ? reach(&p->a, p->batch, p->m, p->k)
                           : reach(&p->b, p->batch, p->n, p->k);
    if (tensor == 0) return (size_t)(p->kind == TP_MXU_CONV_INPUT_GRAD ? out : in);
    return (size_t)(p->kind == TP_MXU_CONV_FILTER_GRAD
                        ? out
                        : c->kernel_h * c->kernel_w * c->in_c / tp_mxu_groups(c) * c->out_c);
}

static tp_dtype dtype_of(const tp_mxu_problem *p, int32_t tensor)
{
    return tensor == 0 ? p->a.dtype : tensor == 1 ? p->b.dtype : p->c_dtype;
}

/* Numerical Recipes' linear congruential generator: quick, and good enough to keep values apart. */
static void fill(tp_dtype dtype, void *out_elements, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float value = (float)(int32_t)seed / 2147483648.0f;
        if (dtype == TP_BF16)
            ((uint16_t *)out_elements)[i] = tp_bf16_from_f32(value);
        else
            ((float *)out_elements)[i] = value;
    }
}

static tpucl_status create_tensors(tp_product_timer *timer, int32_t cores)
{
    static const char *const names[] = {"A", "B", "C"};
    const tp_mxu_problem *p = &timer->problem;
    const bool is_replicated[] = {p->a.is_replicated, p->b.is_replicated, p->c_is_replicated};
    for (int32_t t = 0; t < 3; t++) {
        const size_t count = elements(p, t), bytes = tp_dtype_size(dtype_of(p, t));
        const bool is_one = is_replicated[t] || (t == 2 && timer->plan.sums_cores);
        const size_t parts = is_one ? 1 : (size_t)cores;
        TP_TRY(tp_plan_tensor_create(timer->device, names[t], bytes, count, parts, 0,
                                     &timer->tensors[t]));
        void *host = tp_alloc_array(count, bytes);
        if (host == NULL) return TPUCL_OUT_OF_MEMORY;
        tpucl_status status = TPUCL_OK;
        for (size_t part = 0; t < 2 && part < parts && status == TPUCL_OK; part++) {
            fill(dtype_of(p, t), host, count, (uint32_t)(3 * part) + (uint32_t)t);
            status = tp_plan_tensor_write(&timer->tensors[t], part, host);
        }
        tp_free(host);
        TP_TRY(status);
    }
    for (int32_t i = 0; i < timer->plan.scratch_count; i++) {
        const tp_mxu_scratch *scratch = &timer->plan.scratch[i];
        const size_t bytes = tp_dtype_size(scratch->dtype);
        TP_TRY(tp_plan_tensor_create(timer->device, "scratch", bytes, scratch->bytes / bytes,
                                     scratch->is_per_core ? (size_t)cores : 1, 0,
                                     &timer->tensors[3 + i]));
    }
    return TPUCL_OK;
}

tpucl_status tp_product_timer_create_with(tp_device *device, const tp_mxu_problem *problem,
                                          const tp_mxu_allow *allow, int32_t cores,
                                          tp_product_timer **out_timer)
{
    tpucl_status status = TPUCL_OK;
    tp_product_timer *timer = tp_alloc_zero(sizeof *timer);
    if (timer == NULL) return TPUCL_OUT_OF_MEMORY;
    timer->device = device;
    timer->problem = *problem;
    timer->problem.a_tensor = 0;
    timer->problem.b_tensor = 1;
    timer->problem.c_tensor = timer->problem.sum_tensor = 2;
    timer->problem.label = "bench";
    TP_TRY_GOTO(status, tp_arena_create(0, &timer->arena), done);
    TP_TRY_GOTO(status, tp_mxu_plain_epilogue(&timer->problem, timer->arena), done);
    TP_TRY_GOTO(status,
                tp_mxu_plan_create(&timer->problem, tp_device_get_caps(device), allow, 3,
                                   timer->arena, &timer->plan),
                done);
    TP_TRY_GOTO(status, create_tensors(timer, cores), done);
    TP_TRY_GOTO(status,
                tp_plan_run_create(device, timer->plan.launches, timer->plan.launch_count,
                                   timer->tensors, cores, &timer->run),
                done);
    *out_timer = timer;
    timer = NULL;
done:
    tp_product_timer_destroy(timer);
    return status;
}

tpucl_status tp_product_timer_create(tp_device *device, const tp_mxu_problem *problem,
                                     const char *variant, int32_t cores,
                                     tp_product_timer **out_timer)
{
    const tp_mxu_allow allow = {.forced = variant};
    return tp_product_timer_create_with(device, problem, &allow, cores, out_timer);
}

void tp_product_timer_destroy(tp_product_timer *timer)
{
    if (timer == NULL) return;
    tp_plan_run_destroy(timer->run);
    for (size_t i = 0; i < sizeof timer->tensors / sizeof timer->tensors[0]; i++)
        tp_plan_tensor_deinit(&timer->tensors[i]);
    tp_arena_destroy(timer->arena);
    tp_free(timer);
}

typedef enum part { ALL, WITHOUT_WEIGHTS, PACKING } part;

static bool is_wanted(const tp_product_timer *timer, int32_t launch, part what)
{
    const int32_t fills = timer->plan.launch_fills_scratch[launch];
    if (what == PACKING) return fills >= 0;
    if (what == ALL || fills < 0) return true;
    const tp_mxu_scratch *scratch = &timer->plan.scratch[fills];
    return scratch->is_per_core || scratch->packed_from < 0;
}

static tpucl_status time_part(tp_product_timer *timer, int32_t repeats, part what,
                              double *out_seconds)
{
    TP_TRY(tp_lane_finish(timer->device, TP_LANE_COMPUTE));
    const uint64_t start = tp_clock_now_ns();
    for (int32_t repeat = 0; repeat < repeats; repeat++)
        for (int32_t i = 0; i < timer->plan.launch_count; i++)
            if (is_wanted(timer, i, what)) TP_TRY(tp_plan_run_enqueue(timer->run, i, i + 1));
    TP_TRY(tp_lane_finish(timer->device, TP_LANE_COMPUTE));
    *out_seconds = (double)(tp_clock_now_ns() - start) * 1e-9 / repeats;
    return TPUCL_OK;
}

tpucl_status tp_product_timer_run(tp_product_timer *timer, int32_t repeats,
                                  bool with_weights_packed, double *out_seconds)
{
    return time_part(timer, repeats, with_weights_packed ? WITHOUT_WEIGHTS : ALL, out_seconds);
}

tpucl_status tp_product_timer_run_packing(tp_product_timer *timer, int32_t repeats,
                                          double *out_seconds)
{
    return time_part(timer, repeats, PACKING, out_seconds);
}

size_t tp_product_timer_elements(const tp_product_timer *timer, int32_t tensor)
{
    return timer->tensors[tensor].elements;
}

tpucl_status tp_product_timer_read_tensor(tp_product_timer *timer, int32_t tensor, float *out)
{
    const tp_dtype dtype = dtype_of(&timer->problem, tensor);
    tp_plan_tensor *from = &timer->tensors[tensor];
    void *host = tp_alloc_array(from->elements, from->element_bytes);
    if (host == NULL) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_plan_tensor_read(from, 0, host);
    for (size_t i = 0; status == TPUCL_OK && i < from->elements; i++)
        out[i] = dtype == TP_BF16 ? tp_bf16_to_f32(((const uint16_t *)host)[i])
                                  : ((const float *)host)[i];
    tp_free(host);
    return status;
}

tpucl_status tp_product_timer_write_tensor(tp_product_timer *timer, int32_t tensor,
                                           const float *elements)
{
    const tp_dtype dtype = dtype_of(&timer->problem, tensor);
    tp_plan_tensor *to = &timer->tensors[tensor];
    void *host = tp_alloc_array(to->elements, to->element_bytes);
    tpucl_status status = host == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
    for (size_t i = 0; status == TPUCL_OK && i < to->elements; i++)
        if (dtype == TP_BF16)
            ((uint16_t *)host)[i] = tp_bf16_from_f32(elements[i]);
        else
            ((float *)host)[i] = elements[i];
    for (size_t core = 0; status == TPUCL_OK && core < to->parts; core++)
        status = tp_plan_tensor_write(to, core, host);
    tp_free(host);
    return status;
}

tpucl_status tp_product_timer_read(tp_product_timer *timer, float *out_c)
{
    return tp_product_timer_read_tensor(timer, 2, out_c);
}

tpucl_status tp_product_timer_read_bits(tp_product_timer *timer, void **out_bits, size_t *out_bytes)
{
    tp_plan_tensor *from = &timer->tensors[2];
    *out_bytes = from->elements * from->element_bytes;
    *out_bits = tp_alloc_array(from->elements, from->element_bytes);
    if (*out_bits == NULL) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_plan_tensor_read(from, 0, *out_bits);
    if (status == TPUCL_OK) return TPUCL_OK;
    tp_free(*out_bits);
    *out_bits = NULL;
    return status;
}

tpucl_status tp_product_timer_operands(tp_product_timer *timer, float *out_a, float *out_b)
{
    const tp_mxu_problem *p = &timer->problem;
    if (p->kind != TP_MXU_DOT || p->batch != 1 || p->a.stride_inner != 1 || p->b.stride_outer != 1)
        return TP_FAIL(TPUCL_UNSUPPORTED, "only plain row-major operands can be read back");
    TP_TRY(tp_product_timer_read_tensor(timer, 0, out_a));
    return tp_product_timer_read_tensor(timer, 1, out_b);
}

const tp_mxu_plan *tp_product_timer_plan(const tp_product_timer *timer)
{
    return &timer->plan;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double tp_product_median(double *values, int32_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2.0;
}
