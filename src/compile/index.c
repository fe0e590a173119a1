/* SPDX-License-Identifier: Apache-2.0
 * Interned linear forms. A context belongs to one kernel and holds a few dozen forms, so looking one
 * up is a walk over all of them.
 */
#include "compile/index.h"

#include <inttypes.h>
#include <string.h>

struct tp_ix_context {
    tp_arena *arena;
    tp_ix_form *forms;
    int32_t form_count, form_capacity;
    tp_ix_atom *atoms;
    int32_t atom_count, atom_capacity;
    int64_t extents[TP_IX_MAX_VARS];
    int32_t var_count;
    tpucl_status status;
};

static void *grow(tp_ix_context *context, void *items, int32_t count, int32_t *inout_capacity,
                  size_t size)
{
    if (count < *inout_capacity) return items;
    const int32_t capacity = *inout_capacity ? *inout_capacity * 2 : 64;
    void *bigger = tp_arena_alloc_array(context->arena, (size_t)capacity, size);
    if (!bigger) {
        context->status = TPUCL_OUT_OF_MEMORY;
        return NULL;
    }
    if (count > 0) memcpy(bigger, items, (size_t)count * size);
    *inout_capacity = capacity;
    return bigger;
}

static bool form_equal(const tp_ix_form *a, const tp_ix_form *b)
{
    if (a->constant != b->constant || a->term_count != b->term_count) return false;
    for (int32_t i = 0; i < a->term_count; i++)
        if (a->terms[i].coef != b->terms[i].coef || a->terms[i].atom != b->terms[i].atom)
            return false;
    return true;
}

static tp_ix intern(tp_ix_context *context, tp_ix_form *form)
{
    for (int32_t i = 0; i < context->form_count; i++)
        if (form_equal(&context->forms[i], form)) return i;
    form->lo = form->hi = form->constant;
    for (int32_t i = 0; i < form->term_count; i++) {
        const tp_ix_atom *atom = &context->atoms[form->terms[i].atom];
        const int64_t coef = form->terms[i].coef;
        form->lo += coef * (coef > 0 ? atom->lo : atom->hi);
        form->hi += coef * (coef > 0 ? atom->hi : atom->lo);
    }
    tp_ix_form *forms =
        grow(context, context->forms, context->form_count, &context->form_capacity, sizeof *forms);
    if (!forms) return TP_IX_ZERO;
    context->forms = forms;
    context->forms[context->form_count] = *form;
    return context->form_count++;
}

static int32_t intern_atom(tp_ix_context *context, const tp_ix_atom *atom)
{
    for (int32_t i = 0; i < context->atom_count; i++) {
        const tp_ix_atom *other = &context->atoms[i];
        if (other->kind == atom->kind && other->var == atom->var && other->form == atom->form &&
            other->divisor == atom->divisor)
            return i;
    }
    tp_ix_atom *atoms =
        grow(context, context->atoms, context->atom_count, &context->atom_capacity, sizeof *atoms);
    if (!atoms) return -1;
    context->atoms = atoms;
    context->atoms[context->atom_count] = *atom;
    return context->atom_count++;
}

static tp_ix form_of_atom(tp_ix_context *context, const tp_ix_atom *atom)
{
    const int32_t id = intern_atom(context, atom);
    if (id < 0) return TP_IX_ZERO;
    tp_ix_form form = {.term_count = 1};
    form.terms[0] = (tp_ix_term){.coef = 1, .atom = id};
    return intern(context, &form);
}

tpucl_status tp_ix_context_create(tp_arena *arena, tp_ix_context **out_context)
{
    tp_ix_context *context = TP_ARENA_NEW(arena, tp_ix_context);
    if (!context) return TPUCL_OUT_OF_MEMORY;
    context->arena = arena;
    tp_ix_form zero = {0};
    intern(context, &zero);
    *out_context = context;
    return context->status;
}

tpucl_status tp_ix_check(const tp_ix_context *context)
{
    return context->status;
}

tp_ix tp_ix_add_var(tp_ix_context *context, int64_t extent, int32_t *out_var)
{
    if (context->var_count == TP_IX_MAX_VARS) {
        context->status =
            TP_FAIL(TPUCL_INTERNAL, "a kernel needs more than %d loop variables", TP_IX_MAX_VARS);
        if (out_var) *out_var = 0;
        return TP_IX_ZERO;
    }
    const int32_t var = context->var_count++;
    if (out_var) *out_var = var;
    context->extents[var] = extent;
    return tp_ix_var_form(context, var);
}

tp_ix tp_ix_var_form(tp_ix_context *context, int32_t var)
{
    const int64_t extent = context->extents[var];
    if (extent <= 1) return TP_IX_ZERO;
    const tp_ix_atom atom = {.kind = TP_IX_VAR, .var = var, .hi = extent - 1};
    return form_of_atom(context, &atom);
}

int32_t tp_ix_var_count(const tp_ix_context *context)
{
    return context->var_count;
}

int64_t tp_ix_var_extent(const tp_ix_context *context, int32_t var)
{
    return context->extents[var];
}

tp_ix tp_ix_const(tp_ix_context *context, int64_t value)
{
    tp_ix_form form = {.constant = value};
    return intern(context, &form);
}

static void add_term(tp_ix_context *context, tp_ix_form *form, int64_t coef, int32_t atom)
{
    int32_t at = 0;
    while (at < form->term_count && form->terms[at].atom < atom)
        at++;
    if (at < form->term_count && form->terms[at].atom == atom) {
        form->terms[at].coef += coef;
        if (form->terms[at].coef != 0) return;
        memmove(&form->terms[at], &form->terms[at + 1],
                (size_t)(form->term_count - at - 1) * sizeof(tp_ix_term));
        form->term_count--;
        return;
    }
    if (coef == 0) return;
    if (form->term_count == TP_IX_MAX_TERMS) {
        context->status =
            TP_FAIL(TPUCL_INTERNAL, "an index has more than %d terms", TP_IX_MAX_TERMS);
        return;
    }
    memmove(&form->terms[at + 1], &form->terms[at],
            (size_t)(form->term_count - at) * sizeof(tp_ix_term));
    form->terms[at] = (tp_ix_term){.coef = coef, .atom = atom};
    form->term_count++;
}

static void add_form(tp_ix_context *context, tp_ix_form *sum, tp_ix form, int64_t factor)
{
    const tp_ix_form other = context->forms[form];
    sum->constant += other.constant * factor;
    for (int32_t i = 0; i < other.term_count; i++)
        add_term(context, sum, other.terms[i].coef * factor, other.terms[i].atom);
}

/* Are these g/c and g%c? With g = f/d, the quotient of g is kept as f/(d*c). */
static bool belong_together(const tp_ix_context *context, const tp_ix_atom *quotient,
                            const tp_ix_atom *remainder)
{
    if (quotient->kind != TP_IX_DIV || remainder->kind != TP_IX_MOD) return false;
    if (quotient->form == remainder->form) return quotient->divisor == remainder->divisor;
    const tp_ix_form *g = &context->forms[remainder->form];
    if (g->term_count != 1 || g->constant != 0 || g->terms[0].coef != 1) return false;
    const tp_ix_atom *inner = &context->atoms[g->terms[0].atom];
    return inner->kind == TP_IX_DIV && inner->form == quotient->form &&
           inner->divisor * remainder->divisor == quotient->divisor;
}

/* k*c*(g/c) + k*(g%c) = k*g: finds one such pair in `form` and puts it together. */
static bool join_quotient(tp_ix_context *context, tp_ix_form *form)
{
    for (int32_t i = 0; i < form->term_count; i++) {
        const tp_ix_atom quotient = context->atoms[form->terms[i].atom];
        for (int32_t j = 0; j < form->term_count; j++) {
            const tp_ix_atom remainder = context->atoms[form->terms[j].atom];
            if (!belong_together(context, &quotient, &remainder)) continue;
            const int64_t factor = form->terms[j].coef;
            if (form->terms[i].coef != factor * remainder.divisor) continue;
            const int32_t quotient_atom = form->terms[i].atom;
            const int32_t remainder_atom = form->terms[j].atom;
            add_term(context, form, -factor * remainder.divisor, quotient_atom);
            add_term(context, form, -factor, remainder_atom);
            add_form(context, form, remainder.form, factor);
            return true;
        }
    }
    return false;
}

static tp_ix finish(tp_ix_context *context, tp_ix_form *form)
{
    while (context->status == TPUCL_OK && join_quotient(context, form))
        ;
    return context->status == TPUCL_OK ? intern(context, form) : TP_IX_ZERO;
}

tp_ix tp_ix_add(tp_ix_context *context, tp_ix a, tp_ix b)
{
    tp_ix_form sum = context->forms[a];
    add_form(context, &sum, b, 1);
    return finish(context, &sum);
}

tp_ix tp_ix_scale(tp_ix_context *context, tp_ix a, int64_t factor)
{
    tp_ix_form product = {0};
    if (factor != 0) add_form(context, &product, a, factor);
    return finish(context, &product);
}

/* Splits a into divisor * quotient + rest, where every term and the constant of `rest` has a
 * coefficient in (-divisor, divisor); true when the rest lies in [0, divisor), so that the split is
 * the division. */
static bool split(tp_ix_context *context, tp_ix a, int64_t divisor, tp_ix *out_quotient,
                  tp_ix *out_rest)
{
    const tp_ix_form form = context->forms[a];
    tp_ix_form quotient = {0}, rest = {0};
    int64_t constant_rest = form.constant % divisor;
    if (constant_rest < 0) constant_rest += divisor;
    quotient.constant = (form.constant - constant_rest) / divisor;
    rest.constant = constant_rest;
    for (int32_t i = 0; i < form.term_count; i++) {
        const int64_t coef = form.terms[i].coef;
        if (coef % divisor == 0)
            add_term(context, &quotient, coef / divisor, form.terms[i].atom);
        else
            add_term(context, &rest, coef, form.terms[i].atom);
    }
    *out_quotient = finish(context, &quotient);
    *out_rest = finish(context, &rest);
    const tp_ix_form *rest_form = &context->forms[*out_rest];
    return rest_form->lo >= 0 && rest_form->hi < divisor;
}

/* The atom that `form` consists of, if it is of this kind and there is nothing else; or NULL. */
static const tp_ix_atom *sole_atom(const tp_ix_context *context, tp_ix form, tp_ix_atom_kind kind)
{
    const tp_ix_form *f = &context->forms[form];
    if (f->term_count != 1 || f->constant != 0 || f->terms[0].coef != 1) return NULL;
    const tp_ix_atom *atom = &context->atoms[f->terms[0].atom];
    return atom->kind == kind ? atom : NULL;
}

tp_ix tp_ix_div(tp_ix_context *context, tp_ix a, int64_t divisor)
{
    if (divisor <= 1) return a;
    tp_ix quotient, rest;
    if (split(context, a, divisor, &quotient, &rest)) return quotient;
    const tp_ix_form *rest_form = &context->forms[rest];
    /* Terms with a negative value in the rest: the quotient of the whole stays one atom. */
    if (rest_form->lo < 0) {
        rest = a;
        quotient = TP_IX_ZERO;
        rest_form = &context->forms[rest];
    }
    const tp_ix_atom *inner = sole_atom(context, rest, TP_IX_DIV);
    if (inner && inner->lo >= 0) {
        const tp_ix twice = tp_ix_div(context, inner->form, inner->divisor * divisor);
        return tp_ix_add(context, quotient, twice);
    }
    const tp_ix_atom atom = {.kind = TP_IX_DIV,
                             .form = rest,
                             .divisor = divisor,
                             .lo = rest_form->lo / divisor,
                             .hi = rest_form->hi / divisor};
    return tp_ix_add(context, quotient, form_of_atom(context, &atom));
}

tp_ix tp_ix_mod(tp_ix_context *context, tp_ix a, int64_t divisor)
{
    if (divisor <= 1) return TP_IX_ZERO;
    tp_ix quotient, rest;
    if (split(context, a, divisor, &quotient, &rest)) return rest;
    if (context->forms[rest].lo < 0) rest = a;
    const tp_ix_atom *inner = sole_atom(context, rest, TP_IX_MOD);
    if (inner && inner->lo >= 0 && inner->divisor % divisor == 0)
        return tp_ix_mod(context, inner->form, divisor);
    const tp_ix_form *rest_form = &context->forms[rest];
    const tp_ix_atom atom = {.kind = TP_IX_MOD,
                             .form = rest,
                             .divisor = divisor,
                             .lo = rest_form->lo < 0 ? 1 - divisor : 0,
                             .hi = divisor - 1};
    return form_of_atom(context, &atom);
}

tp_ix tp_ix_linearise(tp_ix_context *context, const tp_shape *shape, const tp_ix *tuple)
{
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(shape, strides);
    tp_ix_form sum = {0};
    for (int i = 0; i < shape->rank; i++)
        if (strides[i] != 0) add_form(context, &sum, tuple[i], strides[i]);
    return finish(context, &sum);
}

void tp_ix_delinearise(tp_ix_context *context, const tp_shape *shape, tp_ix number,
                       tp_ix *out_tuple)
{
    for (int i = shape->rank - 1; i >= 0; i--) {
        if (i == 0) {
            out_tuple[i] = shape->dims[i] <= 1 ? TP_IX_ZERO : number;
        } else {
            out_tuple[i] = tp_ix_mod(context, number, shape->dims[i]);
            number = tp_ix_div(context, number, shape->dims[i]);
        }
    }
}

const tp_ix_form *tp_ix_get(const tp_ix_context *context, tp_ix form)
{
    return &context->forms[form];
}

const tp_ix_atom *tp_ix_get_atom(const tp_ix_context *context, int32_t atom)
{
    return &context->atoms[atom];
}

int64_t tp_ix_coef(const tp_ix_context *context, tp_ix form, int32_t var)
{
    const tp_ix_form *f = &context->forms[form];
    for (int32_t i = 0; i < f->term_count; i++) {
        const tp_ix_atom *atom = &context->atoms[f->terms[i].atom];
        if (atom->kind == TP_IX_VAR && atom->var == var) return f->terms[i].coef;
    }
    return 0;
}

bool tp_ix_uses(const tp_ix_context *context, tp_ix form, int32_t var)
{
    return tp_ix_coef(context, form, var) != 0 || tp_ix_is_pinned(context, form, var);
}

bool tp_ix_is_pinned(const tp_ix_context *context, tp_ix form, int32_t var)
{
    const tp_ix_form *f = &context->forms[form];
    for (int32_t i = 0; i < f->term_count; i++) {
        const tp_ix_atom *atom = &context->atoms[f->terms[i].atom];
        if (atom->kind != TP_IX_VAR && tp_ix_uses(context, atom->form, var)) return true;
    }
    return false;
}

tp_ix tp_ix_substitute(tp_ix_context *context, tp_ix form, const tp_ix *replacement,
                       int32_t var_count)
{
    const tp_ix_form f = context->forms[form];
    tp_ix sum = tp_ix_const(context, f.constant);
    for (int32_t i = 0; i < f.term_count; i++) {
        const tp_ix_atom atom = context->atoms[f.terms[i].atom];
        tp_ix value;
        if (atom.kind == TP_IX_VAR) {
            if (atom.var < var_count) {
                value = replacement[atom.var];
            } else {
                value = form_of_atom(context, &atom);
            }
        } else {
            const tp_ix inner = tp_ix_substitute(context, atom.form, replacement, var_count);
            value = atom.kind == TP_IX_DIV ? tp_ix_div(context, inner, atom.divisor)
                                           : tp_ix_mod(context, inner, atom.divisor);
        }
        sum = tp_ix_add(context, sum, tp_ix_scale(context, value, f.terms[i].coef));
    }
    return sum;
}

static void print_number(int64_t value, tp_ix_coef_text coef_text, void *user, tp_str_builder *out)
{
    const char *text = coef_text ? coef_text(user, value) : NULL;
    if (text)
        tp_str_append(out, text);
    else
        tp_str_builder_printf(out, "%" PRId64, value);
}

static void print_atom(const tp_ix_context *context, const tp_ix_atom *atom,
                       const char *const *var_names, tp_ix_coef_text coef_text, void *user,
                       tp_str_builder *out)
{
    if (atom->kind == TP_IX_VAR) {
        tp_str_append(out, var_names[atom->var]);
        return;
    }
    tp_str_append(out, "(");
    tp_ix_print(context, atom->form, var_names, coef_text, user, out);
    /* Divisors stay digits: compilers then divide by multiplying. */
    tp_str_builder_printf(out, " %c %" PRId64 ")", atom->kind == TP_IX_DIV ? '/' : '%',
                          atom->divisor);
}

void tp_ix_print(const tp_ix_context *context, tp_ix form, const char *const *var_names,
                 tp_ix_coef_text coef_text, void *user, tp_str_builder *out)
{
    const tp_ix_form *f = &context->forms[form];
    if (f->term_count == 0) {
        tp_str_builder_printf(out, f->constant < 0 ? "(%" PRId64 ")" : "%" PRId64, f->constant);
        return;
    }
    const bool is_bare = f->term_count == 1 && f->terms[0].coef == 1 && f->constant == 0;
    tp_str_append(out, is_bare ? "" : "(");
    for (int32_t i = 0; i < f->term_count; i++) {
        const int64_t coef = f->terms[i].coef;
        const int64_t magnitude = coef < 0 ? -coef : coef;
        if (coef < 0)
            tp_str_append(out, i > 0 ? " - " : "-");
        else if (i > 0)
            tp_str_append(out, " + ");
        if (magnitude != 1) {
            print_number(magnitude, coef_text, user, out);
            tp_str_append(out, " * ");
        }
        print_atom(context, &context->atoms[f->terms[i].atom], var_names, coef_text, user, out);
    }
    if (f->constant != 0)
        tp_str_builder_printf(out, " %c %" PRId64, f->constant < 0 ? '-' : '+',
                              f->constant < 0 ? -f->constant : f->constant);
    tp_str_append(out, is_bare ? "" : ")");
}
