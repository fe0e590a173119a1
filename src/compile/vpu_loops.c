/* SPDX-License-Identifier: Apache-2.0
 * Splitting and merging of loop variables.
 */
#include "compile/vpu_loops.h"

#include <string.h>

void tp_vpu_loops_add(tp_vpu_ir *ir, tp_vpu_loops *loops, const tp_shape *shape, tp_ix *out_tuple)
{
    for (int i = 0; i < shape->rank; i++) {
        int32_t var;
        out_tuple[i] = tp_ix_add_var(ir->index, shape->dims[i], &var);
        if (shape->dims[i] != 1) loops->vars[loops->count++] = var;
    }
}

typedef struct substitution {
    tp_vpu_ir *ir;
    tp_ix replacement[TP_IX_MAX_VARS];
    int32_t count;
} substitution;

static void substitute(void *user, tp_ix *inout_form)
{
    substitution *s = user;
    *inout_form = tp_ix_substitute(s->ir->index, *inout_form, s->replacement, s->count);
}

/* The identity for all variables that exist now. */
static substitution identity(tp_vpu_ir *ir, tp_ix *const var_forms)
{
    substitution s = {.ir = ir, .count = tp_ix_var_count(ir->index)};
    memcpy(s.replacement, var_forms, (size_t)s.count * sizeof *var_forms);
    return s;
}

/* ---- splitting ---- */

typedef struct split_search {
    tp_vpu_ir *ir;
    int32_t var;
    int64_t divisor; /* 0: none found yet */
} split_search;

/* Looks for (var / c) and (var % c), however deep, where c divides the extent. */
static void search_form(split_search *search, tp_ix id)
{
    const tp_ix_context *index = search->ir->index;
    const tp_ix_form *form = tp_ix_get(index, id);
    for (int32_t i = 0; i < form->term_count; i++) {
        const tp_ix_atom *atom = tp_ix_get_atom(index, form->terms[i].atom);
        if (atom->kind == TP_IX_VAR) continue;
        const int64_t extent = tp_ix_var_extent(index, search->var);
        const tp_ix_form *inner = tp_ix_get(index, atom->form);
        const bool is_plain = inner->term_count == 1 && inner->constant == 0 &&
                              tp_ix_coef(index, atom->form, search->var) == 1;
        if (is_plain && extent % atom->divisor == 0 && atom->divisor < extent)
            search->divisor = atom->divisor;
        else
            search_form(search, atom->form);
    }
}

static void search_divisor(void *user, tp_ix *inout_form)
{
    search_form(user, *inout_form);
}

static bool split_one(tp_vpu_ir *ir, tp_vpu_loops *loops, tp_ix *var_forms)
{
    for (int32_t i = 0; i < loops->count; i++) {
        split_search search = {.ir = ir, .var = loops->vars[i]};
        tp_vpu_ir_visit_forms(ir, search_divisor, &search);
        const int32_t count = tp_ix_var_count(ir->index);
        if (search.divisor == 0 || count + 2 > TP_IX_MAX_VARS || loops->count + 1 > TP_IX_MAX_VARS)
            continue;
        substitution s = identity(ir, var_forms);
        const int64_t extent = tp_ix_var_extent(ir->index, search.var);
        int32_t outer, inner;
        var_forms[count] = tp_ix_add_var(ir->index, extent / search.divisor, &outer);
        var_forms[count + 1] = tp_ix_add_var(ir->index, search.divisor, &inner);
        s.replacement[search.var] =
            tp_ix_add(ir->index, tp_ix_scale(ir->index, var_forms[count], search.divisor),
                      var_forms[count + 1]);
        tp_vpu_ir_visit_forms(ir, substitute, &s);
        memmove(&loops->vars[i + 2], &loops->vars[i + 1],
                (size_t)(loops->count - i - 1) * sizeof loops->vars[0]);
        loops->vars[i] = outer;
        loops->vars[i + 1] = inner;
        loops->count++;
        return true;
    }
    return false;
}

/* ---- merging ---- */

typedef struct merge_check {
    tp_vpu_ir *ir;
    int32_t outer, inner;
    int64_t inner_extent;
    bool is_possible;
} merge_check;

static void check_merge(void *user, tp_ix *inout_form)
{
    merge_check *check = user;
    const tp_ix_context *index = check->ir->index;
    const tp_ix form = *inout_form;
    if (tp_ix_coef(index, form, check->outer) !=
            tp_ix_coef(index, form, check->inner) * check->inner_extent ||
        tp_ix_is_pinned(index, form, check->outer) || tp_ix_is_pinned(index, form, check->inner))
        check->is_possible = false;
}

static bool merge_one(tp_vpu_ir *ir, tp_vpu_loops *loops, tp_ix *var_forms)
{
    for (int32_t i = 0; i + 1 < loops->count; i++) {
        merge_check check = {.ir = ir,
                             .outer = loops->vars[i],
                             .inner = loops->vars[i + 1],
                             .inner_extent = tp_ix_var_extent(ir->index, loops->vars[i + 1]),
                             .is_possible = true};
        tp_vpu_ir_visit_forms(ir, check_merge, &check);
        const int32_t count = tp_ix_var_count(ir->index);
        if (!check.is_possible || count + 1 > TP_IX_MAX_VARS) continue;
        substitution s = identity(ir, var_forms);
        int32_t merged;
        var_forms[count] = tp_ix_add_var(
            ir->index, tp_ix_var_extent(ir->index, check.outer) * check.inner_extent, &merged);
        s.replacement[check.outer] = TP_IX_ZERO;
        s.replacement[check.inner] = var_forms[count];
        tp_vpu_ir_visit_forms(ir, substitute, &s);
        loops->vars[i] = merged;
        memmove(&loops->vars[i + 1], &loops->vars[i + 2],
                (size_t)(loops->count - i - 2) * sizeof loops->vars[0]);
        loops->count--;
        return true;
    }
    return false;
}

void tp_vpu_loops_simplify(tp_vpu_ir *ir, tp_vpu_loops *const *lists, int32_t list_count)
{
    tp_ix var_forms[TP_IX_MAX_VARS + 2];
    for (int32_t i = 0; i < tp_ix_var_count(ir->index); i++)
        var_forms[i] = tp_ix_var_form(ir->index, i);
    for (int32_t i = 0; i < list_count; i++)
        while (split_one(ir, lists[i], var_forms))
            ;
    for (int32_t i = 0; i < list_count; i++)
        while (merge_one(ir, lists[i], var_forms))
            ;
}

int64_t tp_vpu_loops_extent(const tp_vpu_ir *ir, const tp_vpu_loops *loops, int32_t first,
                            int32_t end)
{
    int64_t extent = 1;
    for (int32_t i = first; i < end; i++)
        extent *= tp_ix_var_extent(ir->index, loops->vars[i]);
    return extent;
}
