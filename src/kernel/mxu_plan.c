/* SPDX-License-Identifier: Apache-2.0
 * Helpers of the MXU variants: see mxu_plan.h.
 */
#include "kernel/mxu_plan.h"

#include <string.h>

int tp_mxu_knob_value(const tp_mxu_builder *builder, tp_mxu_knob knob, int heuristic)
{
    const int value = builder->choice == NULL ? heuristic : builder->choice->values[knob];
    builder->plan->choice.values[knob] = value;
    return value;
}

int64_t tp_mxu_passes(const tp_mxu_problem *problem)
{
    return tp_precision_passes(problem->precision);
}

int64_t tp_mxu_parts(const tp_mxu_problem *problem)
{
    switch (problem->precision) {
    case TP_PRECISION_HIGH:
        return 2;
    case TP_PRECISION_HIGHEST:
        return 3;
    case TP_PRECISION_DEFAULT:
    case TP_PRECISION_F32:
    default:
        return 1;
    }
}

int64_t tp_mxu_blocks(const tp_mxu_problem *problem)
{
    return tp_mxu_ceil_div(problem->k, TP_MXU_K_BLOCK);
}

int64_t tp_mxu_units(const tp_mxu_problem *problem)
{
    return tp_mxu_passes(problem) * tp_mxu_blocks(problem);
}

tp_mxu_operand tp_mxu_operand_a(const tp_mxu_problem *problem)
{
    tp_mxu_operand a = problem->a;
    if (problem->kind != TP_MXU_DOT) a.stride_batch = a.stride_outer = a.stride_inner = 0;
    return a;
}

tp_mxu_operand tp_mxu_operand_b(const tp_mxu_problem *problem)
{
    tp_mxu_operand b = problem->b;
    if (problem->kind == TP_MXU_DOT) return b;
    b.stride_batch = 0;
    b.stride_outer = 1;
    b.stride_inner = problem->n;
    if (problem->kind == TP_MXU_CONV_INPUT_GRAD) { /* only within one tap: see mxu_b_index */
        b.stride_outer = problem->conv.out_c;
        b.stride_inner = 1;
    }
    return b;
}

bool tp_mxu_b_runs_along_n(const tp_mxu_problem *problem)
{
    return problem->kind != TP_MXU_CONV_INPUT_GRAD && tp_mxu_operand_b(problem).stride_outer == 1;
}

bool tp_mxu_a_runs_along_m(const tp_mxu_problem *problem)
{
    return problem->kind == TP_MXU_CONV_FILTER_GRAD ||
           (problem->kind == TP_MXU_DOT && problem->a.stride_outer == 1);
}

static double elements_a(const tp_mxu_problem *problem)
{
    const tp_mxu_conv *conv = &problem->conv;
    switch (problem->kind) {
    case TP_MXU_CONV:
    case TP_MXU_CONV_FILTER_GRAD:
        return (double)conv->images * (double)conv->in_h * (double)conv->in_w * (double)conv->in_c;
    case TP_MXU_CONV_INPUT_GRAD:
        return (double)conv->images * (double)conv->out_h * (double)conv->out_w *
               (double)conv->out_c;
    case TP_MXU_DOT:
    default:
        return (double)problem->batch * (double)problem->m * (double)problem->k;
    }
}

double tp_mxu_a_bytes(const tp_mxu_problem *problem)
{
    return elements_a(problem) * (double)tp_dtype_size(problem->a.dtype);
}

double tp_mxu_b_bytes(const tp_mxu_problem *problem)
{
    return (double)problem->batch * (double)problem->k * (double)problem->n *
           (double)tp_dtype_size(problem->b.dtype);
}

double tp_mxu_c_bytes(const tp_mxu_problem *problem)
{
    return 4.0 * (double)problem->batch * (double)problem->m * (double)problem->n;
}

double tp_mxu_flops(const tp_mxu_problem *problem)
{
    return 2.0 * (double)problem->batch * (double)problem->m * (double)problem->n *
           (double)problem->k;
}

const char *tp_mxu_options(const tp_mxu_builder *builder, bool is_split)
{
    const tp_mxu_problem *problem = builder->problem;
    const char *geometry = "";
    if (problem->kind != TP_MXU_DOT) {
        const tp_mxu_conv *c = &problem->conv;
        const char *own = "";
        if (tp_mxu_groups(c) > 1)
            own = tp_arena_printf(builder->arena, " -DCONV_OWN_IN_C=%lld -DCONV_OWN_OUT_C=%lld",
                                  (long long)(c->in_c / c->groups),
                                  (long long)(c->out_c / c->groups));
        if (own == NULL) return NULL;
        geometry = tp_arena_printf(
            builder->arena,
            " -DCONV_KERNEL_H=%lld -DCONV_KERNEL_W=%lld -DCONV_STRIDE_H=%lld -DCONV_STRIDE_W=%lld"
            " -DCONV_DILATION_H=%lld -DCONV_DILATION_W=%lld -DCONV_GROUPS=%lld%s",
            (long long)c->kernel_h, (long long)c->kernel_w, (long long)c->stride_h,
            (long long)c->stride_w, (long long)c->dilation_h, (long long)c->dilation_w,
            (long long)tp_mxu_groups(c), own);
        if (geometry == NULL) return NULL;
    }
    return tp_arena_printf(builder->arena,
                           "-DMXU_KIND=%d -DMXU_PRECISION=%d -DMXU_A_IS_BF16=%d -DMXU_B_IS_BF16=%d"
                           " -DMXU_IS_SPLIT=%d%s",
                           (int)problem->kind, (int)problem->precision, problem->a.dtype == TP_BF16,
                           problem->b.dtype == TP_BF16, is_split, geometry);
}

const char *tp_mxu_text(const tp_mxu_builder *builder, const char *file, bool is_split)
{
    const tp_mxu_epilogue *epilogue = &builder->problem->epilogue;
    if (is_split) return tp_arena_printf(builder->arena, "#include \"%s\"\n", file);
    return tp_arena_printf(builder->arena,
                           "#include \"lib/platform.clh\"\n"
                           "#include \"lib/tensor.clh\"\n"
                           "#define TP_EPILOGUE_PARAMS %s\n"
                           "#define TP_EPILOGUE_PASS %s\n"
                           "%s\n"
                           "#include \"%s\"\n",
                           epilogue->params, epilogue->pass, epilogue->functions, file);
}

tpucl_status tp_mxu_add_scratch(tp_mxu_builder *builder, const tp_mxu_scratch *scratch,
                                int32_t *out_position)
{
    tp_mxu_plan *plan = builder->plan;
    TP_CHECK(plan->scratch_count < TP_MXU_MAX_SCRATCH);
    *out_position = plan->scratch_count;
    plan->scratch[plan->scratch_count++] = *scratch;
    return TPUCL_OK;
}

static void append(tp_mxu_args *args, tp_kernel_arg arg)
{
    if (args->count == (int32_t)(sizeof args->items / sizeof args->items[0])) {
        args->is_overrun = true;
        return;
    }
    args->items[args->count++] = arg;
}

void tp_mxu_arg_tensor(tp_mxu_args *args, int32_t tensor, bool is_written)
{
    append(args, (tp_kernel_arg){
                     .kind = TP_ARG_TENSOR, .tensor = tensor, .is_written = is_written, .u64 = 0});
}

void tp_mxu_arg_u32(tp_mxu_args *args, int64_t value)
{
    append(args, (tp_kernel_arg){.kind = TP_ARG_U32, .u32 = (uint32_t)value});
}

void tp_mxu_arg_u64(tp_mxu_args *args, int64_t value)
{
    append(args, (tp_kernel_arg){.kind = TP_ARG_U64, .u64 = (uint64_t)value});
}

void tp_mxu_arg_local(tp_mxu_args *args, int64_t bytes)
{
    append(args, (tp_kernel_arg){.kind = TP_ARG_LOCAL, .u64 = (uint64_t)bytes});
}

void tp_mxu_arg_geometry(tp_mxu_args *args, const tp_mxu_problem *problem)
{
    const tp_mxu_conv *c = &problem->conv;
    const int64_t sizes[] = {c->in_h,  c->in_w,  c->in_c,    c->out_h,
                             c->out_w, c->out_c, c->pad_top, c->pad_left};
    if (problem->kind == TP_MXU_DOT) return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        tp_mxu_arg_u32(args, sizes[i]);
}

tpucl_status tp_mxu_add_launch(tp_mxu_builder *builder, const tp_mxu_launch *launch)
{
    tp_mxu_plan *plan = builder->plan;
    const tp_mxu_problem *problem = builder->problem;
    TP_CHECK(plan->launch_count < TP_MXU_MAX_LAUNCHES && !launch->args->is_overrun);
    if (launch->text == NULL || launch->options == NULL) return TPUCL_OUT_OF_MEMORY;

    const size_t count = (size_t)launch->args->count;
    tp_kernel_arg *args = TP_ARENA_NEW_ARRAY(builder->arena, tp_kernel_arg, count);
    const char *label = tp_arena_printf(
        builder->arena, "%s %s", problem->label == NULL ? "product" : problem->label, launch->what);
    if (args == NULL || label == NULL) return TPUCL_OUT_OF_MEMORY;
    memcpy(args, launch->args->items, count * sizeof *args);

    plan->launch_fills_scratch[plan->launch_count] = launch->fills;
    plan->launches[plan->launch_count++] = (tp_launch){
        .kind = TP_LAUNCH_KERNEL,
        .label = label,
        .source = launch->text,
        .options = launch->options,
        .entry = launch->entry,
        .args = args,
        .arg_count = launch->args->count,
        .global = {launch->global[0], launch->global[1], launch->global[2]},
        .local = {launch->local[0], launch->local[1], launch->local[2]},
        .grid_z = launch->global[2],
        .is_per_core = launch->is_per_core,
        .sums_cores = launch->sums_cores,
        .flops = launch->flops,
        .bytes = launch->bytes,
    };
    return TPUCL_OK;
}

static void append_epilogue(tp_mxu_args *args, const tp_mxu_epilogue *epilogue)
{
    for (int32_t i = 0; i < epilogue->arg_count; i++)
        append(args, epilogue->args[i]);
}

static tpucl_status add_combine(tp_mxu_builder *builder, int32_t partial)
{
    const tp_mxu_problem *problem = builder->problem;
    const int columns = builder->caps->preferred_float_vector >= 4 ? 16 : 1;
    tp_mxu_args args = {0};
    tp_mxu_arg_tensor(&args, partial, false);
    append_epilogue(&args, &problem->epilogue);
    tp_mxu_arg_u32(&args, problem->m);
    tp_mxu_arg_u32(&args, problem->n);
    tp_mxu_arg_u32(&args, problem->batch);
    tp_mxu_arg_u32(&args, problem->batch); /* grid_z */
    tp_mxu_arg_u32(&args, tp_mxu_passes(problem));
    tp_mxu_arg_u32(&args, tp_mxu_blocks(problem));
    const double units = (double)tp_mxu_units(problem), outputs = tp_mxu_c_bytes(problem) / 4.0;
    const tp_mxu_launch launch = {
        .what = "mxu_combine",
        .text = tp_mxu_text(builder, "mxu/mxu_combine.cl", false),
        .options = tp_arena_printf(builder->arena, "-DCOLUMNS=%d -DTP_BF16_CONVERT=%d", columns,
                                   builder->caps->has_bf16_pairs),
        .entry = "mxu_combine",
        .args = &args,
        .global = {(size_t)tp_mxu_ceil_div(problem->n, columns), (size_t)problem->m,
                   (size_t)problem->batch},
        .is_per_core = !problem->c_is_replicated,
        .fills = -1,
        .flops = (units - 1.0) * outputs,
        .bytes = (units + 1.0) * outputs * 4.0,
    };
    return tp_mxu_add_launch(builder, &launch);
}

tpucl_status tp_mxu_add_product(tp_mxu_builder *builder, tp_mxu_launch launch, int32_t a_tensor,
                                int32_t b_tensor, int64_t local_bytes)
{
    const tp_mxu_problem *problem = builder->problem;
    const int64_t units = launch.handles_units ? 1 : tp_mxu_units(problem);
    const int64_t grid_z = units * problem->batch;
    const tp_mxu_operand a = tp_mxu_operand_a(problem), b = tp_mxu_operand_b(problem);
    const bool is_split = units > 1;
    int32_t partial = -1;
    if (is_split) {
        const tp_mxu_scratch scratch = {
            .bytes = (uint64_t)(grid_z * problem->m * problem->n) * 4,
            .is_per_core = !problem->c_is_replicated,
            .dtype = TP_F32,
            .packed_from = -1,
        };
        TP_TRY(tp_mxu_add_scratch(builder, &scratch, &partial));
        partial += builder->scratch_base;
    }

    tp_mxu_args args = {0};
    tp_mxu_arg_tensor(&args, a_tensor, false);
    tp_mxu_arg_tensor(&args, b_tensor, false);
    if (launch.sums_cores) {
        append(&args, (tp_kernel_arg){
                          .kind = TP_ARG_SUM, .tensor = problem->sum_tensor, .is_written = true});
        append(&args, (tp_kernel_arg){.kind = TP_ARG_CORES});
    } else if (is_split) {
        tp_mxu_arg_tensor(&args, partial, true);
        tp_mxu_arg_u32(&args, problem->m);
        tp_mxu_arg_u32(&args, problem->n);
    } else {
        append_epilogue(&args, &problem->epilogue);
    }
    tp_mxu_arg_u32(&args, problem->m);
    tp_mxu_arg_u32(&args, problem->n);
    tp_mxu_arg_u32(&args, problem->k);
    tp_mxu_arg_u32(&args, problem->batch);
    tp_mxu_arg_u32(&args, grid_z);
    tp_mxu_arg_u64(&args, a.stride_batch);
    tp_mxu_arg_u64(&args, a.stride_outer);
    tp_mxu_arg_u64(&args, a.stride_inner);
    tp_mxu_arg_u64(&args, b.stride_batch);
    tp_mxu_arg_u64(&args, b.stride_outer);
    tp_mxu_arg_u64(&args, b.stride_inner);
    tp_mxu_arg_geometry(&args, problem);
    tp_mxu_arg_local(&args, local_bytes);
    if (launch.sums_cores) tp_mxu_arg_local(&args, launch.level_bytes);

    const char *common = tp_mxu_options(builder, is_split);
    if (common == NULL) return TPUCL_OUT_OF_MEMORY;
    launch.options = tp_arena_printf(builder->arena, "%s %s", common, launch.options);
    launch.text = tp_mxu_text(builder, launch.text, is_split);
    launch.args = &args;
    launch.global[2] = (size_t)grid_z;
    launch.is_per_core = !problem->c_is_replicated;
    builder->plan->sums_cores = launch.sums_cores;
    launch.fills = -1;
    launch.flops = tp_mxu_flops(problem) * (double)tp_mxu_passes(problem);
    TP_TRY(tp_mxu_add_launch(builder, &launch));
    return is_split ? add_combine(builder, partial) : TPUCL_OK;
}

tpucl_status tp_mxu_check_scratch(const tp_mxu_builder *builder, const char *what, double bytes,
                                  const char **out_reason)
{
    const double limit = (double)builder->caps->max_allocation_bytes;
    if (bytes <= limit) return TPUCL_OK;
    *out_reason = tp_arena_printf(
        builder->arena, "%s would take %.0f MiB, the device's largest buffer has %.0f MiB", what,
        bytes / 1048576.0, limit / 1048576.0);
    return *out_reason == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
}

tpucl_status tp_mxu_check_units(const tp_mxu_builder *builder, const char **out_reason)
{
    const int64_t units = tp_mxu_units(builder->problem);
    if (units == 0) {
        *out_reason = "k is 0: there is nothing to add";
        return TPUCL_OK;
    }
    if (units == 1) return TPUCL_OK;
    return tp_mxu_check_scratch(builder, "the partial sums",
                                (double)units * tp_mxu_c_bytes(builder->problem), out_reason);
}
