/* SPDX-License-Identifier: Apache-2.0
 * Plans kernels/mxu/mxu_register.cl: chooses the register tile, packs B (and A, where a panel does
 * not fit into local memory) and runs the product.
 */
#include "kernel/mxu_register.h"

/* Below this many multiply-adds a launch to pack costs more than the packing saves (a launch takes
 * about 3 us on PoCL, in which mxu_direct does some 10^5 of them). */
#define SMALL_PRODUCT 65536.0

/* Rows of the register tile. Accumulators, B's vectors and one factor must fit the registers: 32
 * for AVX-512 (14 x 2 + 2 + 1), 16 below (6 x 2 + 2 + 1; 3 x 4 + 4). */
static int most_rows(int vector_width)
{
    return vector_width == 16 ? 14 : vector_width == 8 ? 6 : 3;
}

/* The row count that wastes least on rows past M; among equals the one that is a power of two or
 * else the largest. Measured on AVX-512 all of 8 to 14 run within a few percent of each other, so
 * the waste is what counts. */
static int choose_rows(int64_t m, int vector_width)
{
    const int most = most_rows(vector_width), least = vector_width == 16 ? 8 : most - most / 3;
    if (m <= most) return m < 1 ? 1 : (int)m;
    int best = least;
    for (int rows = least + 1; rows <= most; rows++) {
        const int64_t padded = tp_mxu_ceil_div(m, rows) * rows;
        const int64_t best_padded = tp_mxu_ceil_div(m, best) * best;
        if (vector_width == 16 ? padded < best_padded : padded <= best_padded) best = rows;
    }
    return best;
}

/* Rows for the first layer of an image network: one channel, stride 1. A panel is then a piece of
 * an output line, so that a tap of it is a piece of an input line; the largest fitting piece, 0 if
 * none is worth it. */
static int rows_of_line(const tp_mxu_problem *problem, int vector_width)
{
    const tp_mxu_conv *c = &problem->conv;
    if (problem->kind != TP_MXU_CONV || c->in_c != 1 || c->stride_w != 1) return 0;
    const int most = most_rows(vector_width);
    for (int rows = most; 2 * rows > most; rows--)
        if (c->out_w % rows == 0) return rows;
    return 0;
}

int tp_mxu_native_width(const tp_device_caps *caps)
{
    const uint32_t preferred = caps->preferred_float_vector;
    return preferred >= 16 ? 16 : preferred >= 8 ? 8 : 4;
}

tp_mxu_tile tp_mxu_choose_tile(const tp_mxu_builder *builder, int vector_width)
{
    const tp_mxu_problem *problem = builder->problem;
    tp_mxu_tile t = {.vector_width = vector_width};
    t.vectors = t.vector_width == 16 ? (problem->n <= 16 ? 1 : 2) : t.vector_width == 8 ? 2 : 4;
    t.vectors = tp_mxu_knob_value(builder, TP_MXU_TILE_VECTORS, t.vectors);
    t.columns = t.vectors * t.vector_width;
    t.rows = choose_rows(problem->m, t.vector_width);
    t.panel_by_row = true;
    const tp_mxu_operand a = problem->a;
    if (problem->kind == TP_MXU_DOT && a.stride_outer == 1 && a.stride_inner != 1)
        t.panel_by_row = false;
    if (problem->kind == TP_MXU_CONV_FILTER_GRAD && problem->conv.in_c % 8 == 0) {
        t.panel_by_row = false;
        t.rows = 8;
    }
    if (rows_of_line(problem, t.vector_width) > 0) {
        t.panel_by_row = false;
        t.rows = rows_of_line(problem, t.vector_width);
    }
    t.rows = tp_mxu_knob_value(builder, TP_MXU_TILE_M, t.rows);
    t.panel_by_row = tp_mxu_knob_value(builder, TP_MXU_PANEL_BY_ROW, t.panel_by_row) != 0;
    const int64_t longest = problem->k < TP_MXU_K_BLOCK ? problem->k : TP_MXU_K_BLOCK;
    const int64_t pitch = t.panel_by_row ? t.rows : t.rows > 8 ? 16 : 8;
    t.panel_chunks = tp_mxu_ceil_div(longest, TP_MXU_K_CHUNK);
    t.panel_bytes = t.panel_chunks * TP_MXU_K_CHUNK * pitch * 4;
    t.panel_is_packed = (uint64_t)t.panel_bytes > builder->caps->local_memory_bytes;
    t.panels = tp_mxu_ceil_div(problem->m, t.rows);
    t.tiles = tp_mxu_ceil_div(problem->n, t.columns);
    /* Packing B reads and writes all of it once; where one or two panels are all that reads it after, that is not
     * often enough. */
    const int64_t runs = problem->runs_per_b > 1 ? problem->runs_per_b : 1;
    t.b_is_packed = t.panels > 2 || runs > 2 || t.vector_width == 4 ||
                    problem->n % t.columns != 0 || !tp_mxu_b_runs_along_n(problem);
    return t;
}

/* The tile of mxu_register itself, whose width and packing can be chosen, too. */
static tp_mxu_tile choose_tile(const tp_mxu_builder *builder)
{
    const int native = tp_mxu_native_width(builder->caps);
    tp_mxu_tile t =
        tp_mxu_choose_tile(builder, tp_mxu_knob_value(builder, TP_MXU_VECTOR_WIDTH, native));
    t.b_is_packed = tp_mxu_knob_value(builder, TP_MXU_B_IS_PACKED, t.b_is_packed) != 0;
    return t;
}

tpucl_status tp_mxu_check_small(const tp_mxu_builder *builder, const char **out_reason)
{
    const double work = tp_mxu_flops(builder->problem) / 2.0;
    if (work >= SMALL_PRODUCT) return TPUCL_OK;
    *out_reason = tp_arena_printf(builder->arena, "%.0f multiply-adds, packing pays from %.0f on",
                                  work, SMALL_PRODUCT);
    return *out_reason == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
}

double tp_mxu_packed_b_bytes(const tp_mxu_problem *problem, const tp_mxu_tile *t, bool in_pairs)
{
    const double slices = (double)(tp_mxu_parts(problem) * problem->batch * t->tiles);
    const double columns = (double)t->columns;
    if (!in_pairs) return slices * columns * (double)problem->k * 4.0;
    const double pairs = (double)tp_mxu_ceil_div(problem->k, 2);
    return slices * (columns * pairs + (double)tp_mxu_ceil_div(problem->k, TP_MXU_K_CHUNK)) * 4.0;
}

static double packed_a_bytes(const tp_mxu_problem *problem, const tp_mxu_tile *t)
{
    return (double)(tp_mxu_units(problem) * problem->batch) * (double)t->panels *
           (double)t->panel_bytes;
}

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    TP_TRY(tp_mxu_check_units(builder, out_reason));
    if (*out_reason != NULL) return TPUCL_OK;
    const tp_mxu_tile t = choose_tile(builder);
    if (t.b_is_packed) {
        TP_TRY(tp_mxu_check_scratch(builder, "packed B", tp_mxu_packed_b_bytes(problem, &t, false),
                                    out_reason));
        if (*out_reason != NULL) return TPUCL_OK;
    }
    if (t.panel_is_packed) {
        TP_TRY(tp_mxu_check_scratch(builder, "packed A", packed_a_bytes(problem, &t), out_reason));
        if (*out_reason != NULL) return TPUCL_OK;
    }
    if (is_forced) return TPUCL_OK;
    if (builder->caps->preferred_float_vector < 4) {
        *out_reason = tp_arena_printf(
            builder->arena, "the device's vectors have %u floats, explicit vectors pay from 4 on",
            builder->caps->preferred_float_vector);
        return *out_reason == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
    }
    return tp_mxu_check_small(builder, out_reason);
}

static const char *knobs(const tp_mxu_builder *builder, const tp_mxu_tile *t)
{
    return tp_arena_printf(
        builder->arena,
        "-DTILE_M=%d -DVECTOR_WIDTH=%d -DTILE_VECTORS=%d -DPANEL_BY_ROW=%d -DPANEL_IS_PACKED=%d"
        " -DB_IS_PACKED=%d",
        t->rows, t->vector_width, t->vectors, t->panel_by_row, t->panel_is_packed, t->b_is_packed);
}

/* An input gradient's B, w[ky][kx][ci][co] with k = (ky, kx, co) and n = ci, has strides when there is one tap. */
static bool is_one_tap(const tp_mxu_problem *problem)
{
    return problem->kind == TP_MXU_CONV_INPUT_GRAD &&
           problem->conv.kernel_h * problem->conv.kernel_w == 1 &&
           tp_mxu_groups(&problem->conv) == 1;
}

/* Packing reads B alone, by its strides or, in an input gradient of several taps, by the channels: whatever else the
 * product is, its program is the same, and is compiled once. */
static tp_mxu_problem packing_of_b(const tp_mxu_problem *of)
{
    tp_mxu_problem problem = *of;
    problem.a.dtype = TP_BF16;
    if (problem.kind == TP_MXU_CONV_INPUT_GRAD && !is_one_tap(&problem))
        problem.conv = (tp_mxu_conv){.in_h = 1,
                                     .in_w = 1,
                                     .in_c = problem.conv.in_c,
                                     .out_h = 1,
                                     .out_w = 1,
                                     .out_c = problem.conv.out_c,
                                     .kernel_h = 1,
                                     .kernel_w = 1,
                                     .stride_h = 1,
                                     .stride_w = 1,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .groups = problem.conv.groups};
    else
        problem.kind = TP_MXU_DOT;
    return problem;
}

tpucl_status tp_mxu_pack_b(tp_mxu_builder *builder, const tp_mxu_tile *t, bool in_pairs,
                           int32_t *out_tensor)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_mxu_operand b = tp_mxu_operand_b(problem);
    const bool along_n = tp_mxu_b_runs_along_n(problem);
    const bool along_k = problem->kind == TP_MXU_CONV_INPUT_GRAD ? problem->conv.out_c % 16 == 0
                                                                 : b.stride_inner == 1;
    const int64_t parts = tp_mxu_parts(problem);
    const double bytes = tp_mxu_packed_b_bytes(problem, t, in_pairs);
    tp_mxu_scratch scratch = {
        .bytes = (uint64_t)bytes,
        .is_per_core = !problem->b.is_replicated,
        .dtype = in_pairs ? TP_S32 : TP_F32,
        .packed_from = problem->b_tensor,
        .pack_key = tp_arena_printf(
            builder->arena, "%s %d %s p%d n%lld k%lld b%lld s%lld,%lld,%lld c%lld t%d%s",
            in_pairs ? "pairs of b" : "b", problem->kind == TP_MXU_CONV_INPUT_GRAD,
            tp_dtype_name(b.dtype), problem->precision, (long long)problem->n,
            (long long)problem->k, (long long)problem->batch, (long long)b.stride_batch,
            (long long)b.stride_outer, (long long)b.stride_inner,
            (long long)(problem->kind == TP_MXU_CONV_INPUT_GRAD ? problem->conv.out_c : 0),
            t->columns, t->by_phase ? " marked" : ""),
    };
    int32_t position = 0;
    if (scratch.pack_key == NULL) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_mxu_add_scratch(builder, &scratch, &position));
    *out_tensor = builder->scratch_base + position;

    const int64_t grid_z = parts * problem->batch;
    tp_mxu_args args = {0};
    tp_mxu_arg_tensor(&args, problem->b_tensor, false);
    tp_mxu_arg_tensor(&args, *out_tensor, true);
    tp_mxu_arg_u32(&args, problem->n);
    tp_mxu_arg_u32(&args, problem->k);
    tp_mxu_arg_u32(&args, problem->batch);
    tp_mxu_arg_u32(&args, grid_z);
    tp_mxu_arg_u64(&args, b.stride_batch);
    tp_mxu_arg_u64(&args, is_one_tap(problem) ? problem->conv.out_c : b.stride_outer);
    tp_mxu_arg_u64(&args, is_one_tap(problem) ? 1 : b.stride_inner);
    const tp_mxu_problem packing = packing_of_b(problem);
    tp_mxu_builder plain = *builder;
    plain.problem = &packing;
    tp_mxu_arg_geometry(&args, &packing);
    const char *common = tp_mxu_options(&plain, false);
    if (common == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = in_pairs ? "mxu_pack_pairs" : "mxu_pack_b",
        .text =
            in_pairs ? "#include \"mxu/mxu_pack_pairs.cl\"\n" : "#include \"mxu/mxu_pack.cl\"\n",
        .options = tp_arena_printf(builder->arena,
                                   "%s -DTILE_N=%d -DB_RUNS_ALONG_N=%d -DB_RUNS_ALONG_K=%d"
                                   " -DMARKS_NOT_FINITE=%d",
                                   common, t->columns, along_n, along_k, t->by_phase),
        .entry = in_pairs ? "mxu_pack_pairs" : "mxu_pack_b",
        .args = &args,
        .global = {(size_t)t->tiles, (size_t)tp_mxu_ceil_div(problem->k, TP_MXU_K_CHUNK),
                   (size_t)grid_z},
        .local = {1, 1, 1},
        .is_per_core = !problem->b.is_replicated,
        .fills = position,
        .bytes = bytes + (double)parts * tp_mxu_b_bytes(problem),
    };
    return tp_mxu_add_launch(builder, &launch);
}

static tpucl_status pack_a(tp_mxu_builder *builder, const tp_mxu_tile *t, int32_t *out_tensor)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_mxu_operand a = tp_mxu_operand_a(problem);
    const int64_t grid_z = tp_mxu_units(problem) * problem->batch;
    const double bytes = packed_a_bytes(problem, t);
    const tp_mxu_scratch scratch = {
        .bytes = (uint64_t)bytes,
        .is_per_core = !problem->a.is_replicated,
        .dtype = TP_F32,
        .packed_from = -1,
    };
    int32_t position = 0;
    TP_TRY(tp_mxu_add_scratch(builder, &scratch, &position));
    *out_tensor = builder->scratch_base + position;

    tp_mxu_args args = {0};
    tp_mxu_arg_tensor(&args, problem->a_tensor, false);
    tp_mxu_arg_tensor(&args, *out_tensor, true);
    tp_mxu_arg_u32(&args, problem->m);
    tp_mxu_arg_u32(&args, problem->k);
    tp_mxu_arg_u32(&args, problem->batch);
    tp_mxu_arg_u32(&args, grid_z);
    tp_mxu_arg_u64(&args, a.stride_batch);
    tp_mxu_arg_u64(&args, a.stride_outer);
    tp_mxu_arg_u64(&args, a.stride_inner);
    tp_mxu_arg_geometry(&args, problem);
    const char *common = tp_mxu_options(builder, tp_mxu_units(problem) > 1);
    if (common == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = "mxu_pack_a",
        .text = "#include \"mxu/mxu_pack.cl\"\n",
        .options = tp_arena_printf(builder->arena, "%s -DTILE_M=%d -DPANEL_BY_ROW=%d", common,
                                   t->rows, t->panel_by_row),
        .entry = "mxu_pack_a",
        .args = &args,
        .global = {(size_t)t->panels, 1, (size_t)grid_z},
        .local = {1, 1, 1},
        .is_per_core = !problem->a.is_replicated,
        .fills = position,
        .bytes = bytes + tp_mxu_a_bytes(problem),
    };
    return tp_mxu_add_launch(builder, &launch);
}

/* Work-groups share the tiles of n when there are few panels: about four groups per compute
 * unit. */
int64_t tp_mxu_choose_shares(const tp_mxu_builder *builder, const tp_mxu_tile *t)
{
    const tp_mxu_problem *problem = builder->problem;
    const int64_t groups = t->panels * tp_mxu_units(problem) * problem->batch;
    const int64_t wanted = (int64_t)tp_mxu_knob_value(builder, TP_MXU_GROUPS_PER_UNIT, 4) *
                           (int64_t)builder->caps->compute_units;
    if (groups >= wanted) return 1;
    const int64_t shares = tp_mxu_ceil_div(wanted, groups);
    return shares < t->tiles ? shares : t->tiles;
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_mxu_tile t = choose_tile(builder);
    int32_t a = problem->a_tensor, b = problem->b_tensor;
    if (t.b_is_packed) TP_TRY(tp_mxu_pack_b(builder, &t, false, &b));
    if (t.panel_is_packed) TP_TRY(pack_a(builder, &t, &a));
    const char *what = tp_arena_printf(builder->arena, "mxu_register %dx%d", t.rows, t.columns);
    const char *options = knobs(builder, &t);
    if (what == NULL || options == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = what,
        .text = "mxu/mxu_register.cl",
        .options = options,
        .entry = "mxu_register",
        .global = {(size_t)t.panels, (size_t)tp_mxu_choose_shares(builder, &t), 1},
        .local = {1, 1, 1},
        .bytes =
            tp_mxu_a_bytes(problem) + tp_mxu_c_bytes(problem) +
            (t.b_is_packed ? tp_mxu_packed_b_bytes(problem, &t, false) : tp_mxu_b_bytes(problem)),
    };
    return tp_mxu_add_product(builder, launch, a, b, t.panel_is_packed ? 16 : t.panel_bytes);
}

const tp_mxu_variant tp_mxu_variant_register = {
    .name = "mxu_register", .decline = decline, .plan = plan};
