/* SPDX-License-Identifier: Apache-2.0
 * Plans kernels/mxu/mxu_outer.cl: products whose operands both run along the result, as gradients of
 * weights do.
 */
#include "kernel/mxu_plan.h"

/* Rows of a panel; floats of a vector. */
#define PANEL 16
#define VECTOR 16

/* Panels and tiles of a group at most: 128 rows and 256 columns have sums of 128 KiB, chunks of 32
 * and 64 KiB, which a second-level cache holds. */
#define MOST_PANELS 8
#define MOST_TILES 8
/* The same with the sums over cores, which half of such a cache holds. */
#define MOST_LEVEL_BYTES (512 << 10)
/* Elements of a B along n that is not packed for few rows: 4 MiB of bf16. */
#define WIDE_B (2 << 20)
/* Steps of k, and elements of a result, for which packing each operand once beats packing it for every group: 1.4
 * times at 2048 x 2048 x 128, 1.27 at 256, nothing at 1024. */
#define SHORT_K 256
#define LARGE_C (1 << 20)
/* Multiply-adds of a product that is done before another launch would have begun. */
#define SMALL (128 * 128 * 128)

typedef struct groups {
    int64_t vectors, columns; /* of a tile */
    int64_t panels, tiles;    /* of a group */
    int64_t count_m, count_n; /* groups */
    int64_t levels;           /* of sums over cores */
} groups;

static int64_t level_bytes(const groups *g)
{
    return g->levels * g->panels * PANEL * g->tiles * g->columns * 4;
}

/* Panels and tiles are a line apart; sums stay between chunks. */
static int64_t local_bytes(const groups *g, int64_t k)
{
    const int64_t words = g->panels * PANEL + g->tiles * g->columns; /* per pair of k */
    const int64_t lines = (g->panels + g->tiles) * VECTOR;
    const int64_t sums = k > TP_MXU_K_CHUNK ? g->panels * PANEL * g->tiles * g->columns : 0;
    return (words * TP_MXU_K_CHUNK / 2 + lines + TP_MXU_K_CHUNK + sums) * 4;
}

static bool fits(const tp_mxu_builder *builder, const groups *g)
{
    const int64_t bytes = local_bytes(g, builder->problem->k) + level_bytes(g);
    if (g->levels > 0 && bytes > MOST_LEVEL_BYTES && g->panels * g->tiles > 1) return false;
    return (uint64_t)bytes <= builder->caps->local_memory_bytes;
}

/* Large groups read their operands least often; as many as keep all compute units busy. */
static groups find_groups(const tp_mxu_builder *builder, int64_t levels)
{
    const tp_mxu_problem *p = builder->problem;
    groups g = {.vectors = p->n <= VECTOR ? 1 : 2,
                .panels = MOST_PANELS,
                .tiles = MOST_TILES,
                .levels = levels};
    g.columns = g.vectors * VECTOR;
    const int64_t panels = tp_mxu_ceil_div(p->m, PANEL), tiles = tp_mxu_ceil_div(p->n, g.columns);
    const int64_t others = tp_mxu_units(p) * p->batch;
    const int64_t wanted = 3 * (int64_t)builder->caps->compute_units;
    if (g.panels > panels) g.panels = panels > 0 ? panels : 1; /* 0: an empty result */
    if (g.tiles > tiles) g.tiles = tiles > 0 ? tiles : 1;
    for (;;) {
        g.count_m = tp_mxu_ceil_div(panels, g.panels);
        g.count_n = tp_mxu_ceil_div(tiles, g.tiles);
        const bool is_least = g.panels <= 2 && g.tiles <= 2;
        if (fits(builder, &g) && (is_least || g.count_m * g.count_n * others >= wanted)) break;
        if (g.panels == 1 && g.tiles == 1) break;
        if (g.panels * PANEL > g.tiles * g.columns || g.tiles == 1)
            g.panels = (g.panels + 1) / 2;
        else
            g.tiles = (g.tiles + 1) / 2;
    }
    return g;
}

/* The same, or what a tuning record says. */
static groups choose_groups(const tp_mxu_builder *builder, int64_t levels)
{
    const tp_mxu_problem *p = builder->problem;
    groups g = find_groups(builder, levels);
    if (levels > 0) return g; /* records know nothing of sums over cores */
    g.panels = tp_mxu_knob_value(builder, TP_MXU_GROUP_PANELS, (int)g.panels);
    g.tiles = tp_mxu_knob_value(builder, TP_MXU_GROUP_TILES, (int)g.tiles);
    g.vectors = tp_mxu_knob_value(builder, TP_MXU_TILE_VECTORS, (int)g.vectors);
    g.columns = g.vectors * VECTOR;
    g.count_m = tp_mxu_ceil_div(p->m, g.panels * PANEL);
    g.count_n = tp_mxu_ceil_div(p->n, g.tiles * g.columns);
    return g;
}

static bool a_runs_along_k(const tp_mxu_problem *p)
{
    return p->kind == TP_MXU_DOT && (p->a.stride_outer != 1 || p->a.stride_inner == 1);
}

/* With A along k it pays for few rows, one group of them, and a B that no cache holds packed; and
 * where a launch to pack would take as long as the product. */
static bool pays_along_k(const tp_mxu_problem *p)
{
    if (p->runs_per_b > 1) return false; /* it is packed once for all of them */
    return (p->m <= MOST_PANELS * PANEL && p->n * p->k >= WIDE_B) || p->m * p->n * p->k <= SMALL;
}

static const char *why_not(const tp_mxu_problem *p)
{
    if (p->precision == TP_PRECISION_F32) return "f32 operands do not fit into pairs of bf16";
    if (p->kind == TP_MXU_DOT && p->b.stride_outer != 1) return "B does not run along n";
    if (p->kind == TP_MXU_CONV_FILTER_GRAD && p->conv.in_c % PANEL != 0)
        return "a panel has to be 16 channels of one tap, and those divide the channels";
    if (p->kind != TP_MXU_DOT && p->kind != TP_MXU_CONV_FILTER_GRAD)
        return "A does not run along m";
    return NULL;
}

static tpucl_status decline_groups(const tp_mxu_builder *builder, const groups *g, bool is_forced,
                                   const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    *out_reason = why_not(problem);
    if (*out_reason != NULL) return TPUCL_OK;
    if (!is_forced && !builder->caps->has_bf16_pairs) {
        *out_reason = "the device has no instruction for pairs of bf16";
        return TPUCL_OK;
    }
    if (!fits(builder, g)) {
        *out_reason = "local memory does not hold a chunk of a panel and a tile";
        return TPUCL_OK;
    }
    TP_TRY(tp_mxu_check_units(builder, out_reason));
    if (*out_reason != NULL || is_forced) return TPUCL_OK;
    if (a_runs_along_k(problem)) {
        if (!pays_along_k(problem)) *out_reason = "A runs along k, and packing B pays";
        return TPUCL_OK;
    }
    if (problem->m < PANEL || problem->n < VECTOR)
        *out_reason = "a result this narrow fills no tile";
    else if (problem->kind == TP_MXU_DOT && g->levels == 0 && problem->most_cores < 1 &&
             problem->k <= SHORT_K && problem->m * problem->n >= LARGE_C)
        *out_reason = "short sums of a large result: packing each operand once pays";
    return TPUCL_OK;
}

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const groups g = choose_groups(builder, 0);
    return decline_groups(builder, &g, is_forced, out_reason);
}

static tpucl_status add_product(tp_mxu_builder *builder, const groups *g, bool sums_cores)
{
    const tp_mxu_problem *problem = builder->problem;
    const char *entry = sums_cores ? "mxu_outer_cores" : "mxu_outer";
    const char *what =
        tp_arena_printf(builder->arena, "%s %lldx%lld", entry, (long long)(g->panels * PANEL),
                        (long long)(g->tiles * g->columns));
    const char *options =
        tp_arena_printf(builder->arena,
                        "-DGROUP_PANELS=%d -DGROUP_TILES=%d -DTILE_VECTORS=%d -DPANEL_BY_ROW=%d"
                        " -DPAIRS_ARE_STEPS=%d -DMXU_SUMS_CORES=%d",
                        (int)g->panels, (int)g->tiles, (int)g->vectors, a_runs_along_k(problem),
                        !builder->caps->has_bf16_pairs, sums_cores);
    if (what == NULL || options == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = what,
        .text = "mxu/mxu_outer.cl",
        .options = options,
        .entry = entry,
        .global = {(size_t)g->count_m, (size_t)g->count_n, 1},
        .local = {1, 1, 1},
        .sums_cores = sums_cores,
        .level_bytes = g->levels > 0 ? level_bytes(g) : (int64_t)sizeof(float[VECTOR]),
        .bytes = tp_mxu_a_bytes(problem) + tp_mxu_b_bytes(problem) +
                 (sums_cores ? 0 : tp_mxu_c_bytes(problem)),
    };
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor,
                              local_bytes(g, problem->k));
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const groups g = choose_groups(builder, 0);
    return add_product(builder, &g, false);
}

const tp_mxu_variant tp_mxu_variant_outer = {.name = "mxu_outer", .decline = decline, .plan = plan};

/* ---- summed over cores: kernels/mxu/core_levels.clh ---- */

/* A level for each bit of the last core's number: it carries through all of them. */
static int64_t levels_of(const tp_mxu_problem *problem)
{
    int64_t levels = 0;
    for (int32_t last = problem->most_cores - 1; last > 0; last /= 2)
        levels++;
    return levels;
}

static tpucl_status decline_cores(const tp_mxu_builder *builder, bool is_forced,
                                  const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    const groups g = choose_groups(builder, levels_of(problem));
    if (problem->most_cores < 1)
        *out_reason = "it is not summed over cores";
    else if (tp_mxu_units(problem) != 1)
        *out_reason = "it takes one block of k and one precision pass";
    if (*out_reason != NULL) return TPUCL_OK;
    TP_TRY(decline_groups(builder, &g, is_forced, out_reason));
    if (*out_reason != NULL || is_forced) return TPUCL_OK;
    const int64_t count = g.count_m * g.count_n * problem->batch;
    if (count >= 2 * (int64_t)builder->caps->compute_units) return TPUCL_OK;
    *out_reason = tp_arena_printf(builder->arena, "%lld work-groups for %u compute units",
                                  (long long)count, builder->caps->compute_units);
    return *out_reason == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
}

static tpucl_status plan_cores(tp_mxu_builder *builder)
{
    const groups g = choose_groups(builder, levels_of(builder->problem));
    return add_product(builder, &g, true);
}

const tp_mxu_variant tp_mxu_variant_outer_cores = {
    .name = "mxu_outer_cores", .decline = decline_cores, .plan = plan_cores};
