/* SPDX-License-Identifier: Apache-2.0
 * The catalogue of MXU variants: an ordered list, the first that accepts a problem plans it.
 */
#include "kernel/mxu_plan.h"

#include <string.h>
#include "kernel/records.h"

static const tp_mxu_variant *const variants[] = {
    &tp_mxu_variant_matrix,   &tp_mxu_variant_library,   &tp_mxu_variant_outer_cores,
    &tp_mxu_variant_outer,    &tp_mxu_variant_pairs,     &tp_mxu_variant_register,
    &tp_mxu_variant_subgroup, &tp_mxu_variant_local,     &tp_mxu_variant_direct,
    &tp_mxu_variant_grouped,  &tp_mxu_variant_reference,
};
#define VARIANT_COUNT (sizeof variants / sizeof variants[0])

static const char *const variant_names[VARIANT_COUNT + 1] = {
    "mxu_matrix", "clblast_sgemm", "mxu_outer_cores", "mxu_outer",
    "mxu_pairs",  "mxu_register",  "mxu_subgroup",    "mxu_local",
    "mxu_direct", "mxu_grouped",   "mxu_reference",   NULL,
};

const char *const *tp_mxu_variant_names(void)
{
    return variant_names;
}

/* Kernels count in 32 bits, and add a tile to a row or column without looking. */
#define MAX_EXTENT ((int64_t)1 << 30)

static tpucl_status check_extent(const char *label, const char *name, int64_t value, int64_t least)
{
    if (value >= least && value <= MAX_EXTENT) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "product '%s': %s is %lld, expected %lld to %lld", label,
                   name, (long long)value, (long long)least, (long long)MAX_EXTENT);
}

static tpucl_status check_convolution(const tp_mxu_problem *problem, const char *label)
{
    const tp_mxu_conv *c = &problem->conv;
    const struct {
        const char *name;
        int64_t value, least;
    } extents[] = {
        {"images", c->images, 0},
        {"in_h", c->in_h, 1},
        {"in_w", c->in_w, 1},
        {"in_c", c->in_c, 1},
        {"out_h", c->out_h, 1},
        {"out_w", c->out_w, 1},
        {"out_c", c->out_c, 1},
        {"kernel_h", c->kernel_h, 1},
        {"kernel_w", c->kernel_w, 1},
        {"stride_h", c->stride_h, 1},
        {"stride_w", c->stride_w, 1},
        {"dilation_h", c->dilation_h, 1},
        {"dilation_w", c->dilation_w, 1},
        {"pad_top", c->pad_top, -MAX_EXTENT},
        {"pad_left", c->pad_left, -MAX_EXTENT},
    };
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
        TP_TRY(check_extent(label, extents[i].name, extents[i].value, extents[i].least));

    /* Signed 32-bit arithmetic in the kernels: a pixel's row and column, an image line, a tap. */
    const double reach_y = (double)c->out_h * (double)c->stride_h + (double)c->in_h +
                           (double)c->kernel_h * (double)c->dilation_h;
    const double reach_x = (double)c->out_w * (double)c->stride_w + (double)c->in_w +
                           (double)c->kernel_w * (double)c->dilation_w;
    const double pads = (double)(c->pad_top < 0 ? -c->pad_top : c->pad_top) +
                        (double)(c->pad_left < 0 ? -c->pad_left : c->pad_left);
    const double line = ((double)c->in_w + (double)c->kernel_w) * (double)c->in_c;
    if (reach_y + reach_x + pads + line > (double)MAX_EXTENT)
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "product '%s': the convolution's geometry reaches beyond 2^30", label);

    const double in = (double)c->images * (double)c->in_h * (double)c->in_w;
    const double out = (double)c->images * (double)c->out_h * (double)c->out_w;
    const double taps = (double)c->kernel_h * (double)c->kernel_w;
    const int64_t groups = tp_mxu_groups(c);
    if (c->in_c % groups != 0 || c->out_c % groups != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "product '%s': %lld groups do not divide %lld and %lld channels", label,
                       (long long)groups, (long long)c->in_c, (long long)c->out_c);
    const double own_in = (double)(c->in_c / groups), own_out = (double)(c->out_c / groups);
    double m = out, n = (double)c->out_c, k = taps * own_in;
    if (problem->kind == TP_MXU_CONV_INPUT_GRAD) {
        m = in;
        n = (double)c->in_c;
        k = taps * own_out;
    } else if (problem->kind == TP_MXU_CONV_FILTER_GRAD) {
        m = taps * own_in;
        n = (double)c->out_c;
        k = out;
    }
    if ((double)problem->m != m || (double)problem->n != n || (double)problem->k != k ||
        problem->batch != 1)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT,
            "product '%s': m, n, k, batch are %lld, %lld, %lld, %lld, expected %.0f, %.0f, %.0f, "
            "1 from the convolution's geometry",
            label, (long long)problem->m, (long long)problem->n, (long long)problem->k,
            (long long)problem->batch, m, n, k);
    return TPUCL_OK;
}

static tpucl_status check_operand(const tp_mxu_operand *operand, const char *label, char name)
{
    if (operand->dtype != TP_F32 && operand->dtype != TP_BF16)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "product '%s': %c is %s, expected bf16 or f32",
                       label, name, tp_dtype_name(operand->dtype));
    if (operand->stride_batch < 0 || operand->stride_outer < 0 || operand->stride_inner < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "product '%s': %c has a stride below 0", label,
                       name);
    return TPUCL_OK;
}

static tpucl_status check_problem(const tp_mxu_problem *problem)
{
    const char *label = problem->label == NULL ? "product" : problem->label;
    TP_TRY(check_extent(label, "batch", problem->batch, 0));
    TP_TRY(check_extent(label, "m", problem->m, 0));
    TP_TRY(check_extent(label, "n", problem->n, 0));
    TP_TRY(check_extent(label, "k", problem->k, 0));
    TP_TRY(check_operand(&problem->a, label, 'A'));
    TP_TRY(check_operand(&problem->b, label, 'B'));
    if (problem->kind != TP_MXU_DOT) TP_TRY(check_convolution(problem, label));
    if (problem->epilogue.functions == NULL)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "product '%s' has no epilogue", label);
    if (problem->c_is_replicated && !(problem->a.is_replicated && problem->b.is_replicated))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "product '%s': the result is replicated, but an operand is each core's own",
                       label);
    return TPUCL_OK;
}

static tpucl_status note_declined(tp_mxu_plan *plan, tp_arena *arena, const char *name,
                                  const char *reason)
{
    const char *text = tp_arena_printf(arena, "%s: %s", name, reason);
    if (text == NULL) return TPUCL_OUT_OF_MEMORY;
    TP_CHECK(plan->declined_count < TP_MXU_MAX_VARIANTS);
    plan->declined[plan->declined_count++] = text;
    return TPUCL_OK;
}

/* Sets *out_reason to why `variant` is not to be taken, or to NULL. */
static tpucl_status consider(const tp_mxu_builder *builder, const tp_mxu_variant *variant,
                             const tp_mxu_allow *allow, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    *out_reason = NULL;
    if (problem->kind != TP_MXU_DOT && tp_mxu_groups(&problem->conv) > 1 && !variant->takes_groups)
        *out_reason = "it does not take groups of channels";
    else if (builder->choice != NULL)
        TP_TRY(tp_mxu_choice_check(problem, builder->caps, builder->choice, builder->arena,
                                   out_reason));
    if (*out_reason == NULL) TP_TRY(variant->decline(builder, is_forced, out_reason));
    if (*out_reason == NULL && allow != NULL && allow->is_allowed != NULL &&
        !allow->is_allowed(allow->user, variant->name, problem, builder->choice))
        *out_reason = "it did not reproduce the reference bits on this device";
    return TPUCL_OK;
}

static tpucl_status plan_with(tp_mxu_builder *builder, const tp_mxu_variant *variant)
{
    const tp_mxu_problem *problem = builder->problem;
    builder->plan->variant = builder->plan->choice.variant = variant->name;
    if (problem->batch == 0 || problem->m == 0 || problem->n == 0) return TPUCL_OK;
    return variant->plan(builder);
}

/* Follows the tuning record, if there is one that heuristics do not win and that can be followed; else
 * leaves plan->variant NULL. */
static tpucl_status plan_by_record(tp_mxu_builder *builder, const tp_mxu_allow *allow)
{
    const tp_record_source *source = NULL;
    const tp_mxu_record *record = tp_mxu_records_find(allow->records, builder->problem, &source);
    const char *reason = NULL;
    if (record == NULL) return TPUCL_OK;
    if (!record->has_best) {
        builder->plan->record = source->name;
        return TPUCL_OK;
    }
    size_t i = 0;
    while (i + 1 < VARIANT_COUNT && strcmp(variants[i]->name, record->best.variant) != 0)
        i++;
    builder->choice = &record->best;
    TP_TRY(consider(builder, variants[i], allow, true, &reason));
    if (reason == NULL) {
        builder->plan->record = source->name;
        return plan_with(builder, variants[i]);
    }
    builder->choice = NULL;
    const char *what =
        tp_arena_printf(builder->arena, "record for '%s' in %s", record->problem, source->name);
    if (what == NULL) return TPUCL_OUT_OF_MEMORY;
    reason = tp_arena_printf(builder->arena, "%s: %s", record->best.variant, reason);
    if (reason == NULL) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(note_declined(builder->plan, builder->arena, what, reason));
    tp_mxu_records_warn(builder->plan->declined[builder->plan->declined_count - 1]);
    return TPUCL_OK;
}

tpucl_status tp_mxu_plan_create(const tp_mxu_problem *problem, const tp_device_caps *caps,
                                const tp_mxu_allow *allow, int32_t scratch_base, tp_arena *arena,
                                tp_mxu_plan *out_plan)
{
    TP_TRY(check_problem(problem));
    memset(out_plan, 0, sizeof *out_plan);
    const tp_mxu_problem plain = tp_mxu_simplify(problem);
    tp_mxu_builder builder = {&plain, caps, scratch_base, arena, out_plan, NULL};
    const char *forced = allow == NULL ? NULL : allow->forced;
    if (allow != NULL && allow->forced_choice != NULL) {
        builder.choice = allow->forced_choice;
        forced = allow->forced_choice->variant;
    } else if (forced == NULL && allow != NULL && allow->records != NULL &&
               !problem->is_fast_math) {
        TP_TRY(plan_by_record(&builder, allow));
        if (out_plan->variant != NULL) return TPUCL_OK;
    }
    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        const char *reason = NULL;
        if (forced != NULL && strcmp(forced, variants[i]->name) != 0) continue;
        TP_TRY(consider(&builder, variants[i], allow, forced != NULL, &reason));
        if (reason == NULL) return plan_with(&builder, variants[i]);
        TP_TRY(note_declined(out_plan, arena, variants[i]->name, reason));
    }
    return TP_FAIL(TPUCL_UNSUPPORTED, "no variant takes product '%s' (m %lld, n %lld, k %lld): %s",
                   problem->label == NULL ? "product" : problem->label, (long long)problem->m,
                   (long long)problem->n, (long long)problem->k,
                   out_plan->declined_count > 0 ? out_plan->declined[out_plan->declined_count - 1]
                                                : "there is no variant of that name");
}
