/* SPDX-License-Identifier: Apache-2.0
 * Plans CLBlast's sgemm: f32 products outside the contract's order of summation, for fast math only
 * (the K80-like baseline). Convolutions write their patches out first and become one product.
 */
#include "kernel/mxu_plan.h"

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    const double patches = 4.0 * (double)problem->m * (double)problem->k;
    const tp_mxu_operand *a = &problem->a, *b = &problem->b;
    (void)is_forced;
#if !TPUCL_HAVE_CLBLAST
    *out_reason = "this build has no CLBlast";
    return TPUCL_OK;
#endif
    if (!problem->is_fast_math)
        *out_reason = "CLBlast has its own order of summation, only fast math may use it";
    else if (problem->precision != TP_PRECISION_F32)
        *out_reason = "CLBlast multiplies f32, the product is to round to bf16";
    else if (a->dtype != TP_F32 || b->dtype != TP_F32 || problem->c_dtype != TP_F32)
        *out_reason = "CLBlast takes and gives f32 only";
    else if (!problem->epilogue.is_plain)
        *out_reason = "CLBlast cannot run an epilogue";
    else if (problem->k == 0)
        *out_reason = "k is 0, which CLBlast refuses";
    else if (problem->kind == TP_MXU_DOT && a->stride_outer != 1 && a->stride_inner != 1)
        *out_reason = "A runs along neither m nor k";
    else if (problem->kind == TP_MXU_DOT && b->stride_outer != 1 && b->stride_inner != 1)
        *out_reason = "B runs along neither n nor k";
    if (*out_reason != NULL || problem->kind == TP_MXU_DOT) return TPUCL_OK;
    return tp_mxu_check_scratch(builder, "the patches", patches, out_reason);
}

/* Writes A's patches (or, for is_b, the rearranged filter) into scratch; *out_tensor is its
 * index. */
static tpucl_status gather(tp_mxu_builder *builder, bool is_b, int32_t *out_tensor)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_mxu_operand b = tp_mxu_operand_b(problem);
    const int64_t rows = is_b ? problem->k : problem->m, row = is_b ? problem->n : problem->k;
    const bool is_replicated = is_b ? problem->b.is_replicated : problem->a.is_replicated;
    const tp_mxu_scratch scratch = {
        .bytes = (uint64_t)(rows * row) * 4,
        .is_per_core = !is_replicated,
        .dtype = TP_F32,
        .packed_from = is_b ? problem->b_tensor : -1,
        .pack_key = is_b ? tp_arena_printf(builder->arena, "dense k%lld n%lld",
                                           (long long)problem->k, (long long)problem->n)
                         : NULL,
    };
    int32_t position = 0;
    TP_TRY(tp_mxu_add_scratch(builder, &scratch, &position));
    *out_tensor = builder->scratch_base + position;

    tp_mxu_args args = {0};
    tp_mxu_arg_tensor(&args, is_b ? problem->b_tensor : problem->a_tensor, false);
    tp_mxu_arg_tensor(&args, *out_tensor, true);
    tp_mxu_arg_u32(&args, rows);
    tp_mxu_arg_u32(&args, row);
    if (is_b) {
        tp_mxu_arg_u64(&args, b.stride_outer);
        tp_mxu_arg_u64(&args, b.stride_inner);
    }
    tp_mxu_arg_geometry(&args, problem);
    const tp_mxu_launch launch = {
        .what = is_b ? "mxu_gather_b" : "mxu_gather_a",
        .text = "#include \"mxu/mxu_patches.cl\"\n",
        .options = tp_mxu_options(builder, false),
        .entry = is_b ? "mxu_gather_b" : "mxu_gather_a",
        .args = &args,
        .global = {(size_t)row, (size_t)rows, 1},
        .is_per_core = !is_replicated,
        .fills = position,
        .bytes = 8.0 * (double)rows * (double)row,
    };
    return tp_mxu_add_launch(builder, &launch);
}

static tp_library_gemm describe(const tp_mxu_problem *problem)
{
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    const tp_mxu_operand *a = &problem->a, *b = &problem->b;
    tp_library_gemm gemm = {.batch = 1, .m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
    if (problem->kind != TP_MXU_DOT) return gemm;
    /* A row of a matrix with a single column or row may have any stride: prefer the plain
     * reading. */
    gemm.transpose_a = a->stride_inner != 1;
    gemm.transpose_b = b->stride_outer != 1;
    gemm.lda = gemm.transpose_a ? a->stride_inner : a->stride_outer;
    gemm.ldb = gemm.transpose_b ? b->stride_outer : b->stride_inner;
    if (gemm.lda < (gemm.transpose_a ? m : k)) gemm.lda = gemm.transpose_a ? m : k;
    if (gemm.ldb < (gemm.transpose_b ? k : n)) gemm.ldb = gemm.transpose_b ? k : n;
    gemm.batch = problem->batch;
    gemm.stride_a = a->stride_batch;
    gemm.stride_b = b->stride_batch;
    gemm.stride_c = m * n;
    return gemm;
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    tp_mxu_plan *out = builder->plan;
    int32_t a = problem->a_tensor, b = problem->b_tensor;
    if (problem->kind != TP_MXU_DOT) TP_TRY(gather(builder, false, &a));
    if (problem->kind == TP_MXU_CONV_INPUT_GRAD) TP_TRY(gather(builder, true, &b));

    tp_mxu_args args = {0};
    tp_mxu_arg_tensor(&args, a, false);
    tp_mxu_arg_tensor(&args, b, false);
    tp_mxu_arg_tensor(&args, problem->c_tensor, true);
    const tp_mxu_launch launch = {
        .what = "clblast_sgemm",
        .text = "",
        .options = "",
        .entry = "",
        .args = &args,
        .global = {1, 1, 1},
        .is_per_core = !problem->c_is_replicated,
        .fills = -1,
        .flops = tp_mxu_flops(problem),
        .bytes = tp_mxu_a_bytes(problem) + tp_mxu_b_bytes(problem) + tp_mxu_c_bytes(problem),
    };
    TP_TRY(tp_mxu_add_launch(builder, &launch));
    tp_launch *added = &out->launches[out->launch_count - 1];
    added->kind = TP_LAUNCH_CLBLAST_SGEMM;
    added->gemm = describe(problem);
    return TPUCL_OK;
}

const tp_mxu_variant tp_mxu_variant_library = {
    .name = "clblast_sgemm", .decline = decline, .plan = plan};
