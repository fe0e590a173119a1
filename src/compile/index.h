/* SPDX-License-Identifier: Apache-2.0
 * Index arithmetic of generated kernels, as linear forms: constant + sum of coefficient * atom,
 * where an atom is a loop variable, or the quotient or remainder of a form by a positive constant.
 * Broadcast, reshape, transpose, slice, pad, reverse and concatenate are all maps from one tuple of
 * forms to another; what the generator prints is what is left after simplification, usually a plain
 * sum without a division.
 *
 * Forms are interned: equal forms have equal ids, so a form can be compared and memoised by id.
 * Ranges (smallest and largest value) are kept with each form; quotients and remainders that the
 * range shows to be trivial vanish, and k*c*(f/c) + k*(f%c) becomes k*f.
 *
 * The first failure (memory, a form with too many terms) sticks; tp_ix_check() reports it. Calls
 * after it return form 0 (the constant 0). Thread-compatible.
 */
#ifndef TP_COMPILE_INDEX_H
#define TP_COMPILE_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include "core/arena.h"
#include "core/status.h"
#include "core/str.h"
#include "num/shape.h"

typedef int32_t tp_ix; /* a form */
#define TP_IX_ZERO ((tp_ix)0)
#define TP_IX_MAX_TERMS 16
#define TP_IX_MAX_VARS 48

typedef enum tp_ix_atom_kind { TP_IX_VAR, TP_IX_DIV, TP_IX_MOD } tp_ix_atom_kind;

typedef struct tp_ix_atom {
    tp_ix_atom_kind kind;
    int32_t var;     /* VAR: its number */
    tp_ix form;      /* DIV, MOD: dividend */
    int64_t divisor; /* DIV, MOD */
    int64_t lo, hi;  /* smallest and largest value */
} tp_ix_atom;

typedef struct tp_ix_term {
    int64_t coef; /* never 0 */
    int32_t atom;
} tp_ix_term;

typedef struct tp_ix_form {
    int64_t constant;
    int32_t term_count;
    tp_ix_term terms[TP_IX_MAX_TERMS]; /* by rising atom */
    int64_t lo, hi;
} tp_ix_form;

typedef struct tp_ix_context tp_ix_context;

/* Lives in `arena`. */
tpucl_status tp_ix_context_create(tp_arena *arena, tp_ix_context **out_context);
tpucl_status tp_ix_check(const tp_ix_context *context);

/* A new loop variable with values 0 .. extent-1; its number is *out_var (may be NULL). A variable of
 * extent 1 (or 0) is the constant 0 as a form. */
tp_ix tp_ix_add_var(tp_ix_context *context, int64_t extent, int32_t *out_var);
/* The variable as a form. */
tp_ix tp_ix_var_form(tp_ix_context *context, int32_t var);
int32_t tp_ix_var_count(const tp_ix_context *context);
int64_t tp_ix_var_extent(const tp_ix_context *context, int32_t var);

tp_ix tp_ix_const(tp_ix_context *context, int64_t value);
tp_ix tp_ix_add(tp_ix_context *context, tp_ix a, tp_ix b);
tp_ix tp_ix_scale(tp_ix_context *context, tp_ix a, int64_t factor);
/* Exact for values >= 0; where a form can be negative its quotient is only used under a guard that
 * is then false. */
tp_ix tp_ix_div(tp_ix_context *context, tp_ix a, int64_t divisor);
tp_ix tp_ix_mod(tp_ix_context *context, tp_ix a, int64_t divisor);

/* Row-major: tuple to number and back. */
tp_ix tp_ix_linearise(tp_ix_context *context, const tp_shape *shape, const tp_ix *tuple);
void tp_ix_delinearise(tp_ix_context *context, const tp_shape *shape, tp_ix number,
                       tp_ix *out_tuple);

const tp_ix_form *tp_ix_get(const tp_ix_context *context, tp_ix form);
const tp_ix_atom *tp_ix_get_atom(const tp_ix_context *context, int32_t atom);

/* Coefficient of a variable outside of quotients and remainders. */
int64_t tp_ix_coef(const tp_ix_context *context, tp_ix form, int32_t var);
/* Is the variable anywhere inside a quotient or remainder? */
bool tp_ix_is_pinned(const tp_ix_context *context, tp_ix form, int32_t var);
/* Is it anywhere at all? */
bool tp_ix_uses(const tp_ix_context *context, tp_ix form, int32_t var);

/* `form` with every variable v replaced by replacement[v] (forms; var_count of them). */
tp_ix tp_ix_substitute(tp_ix_context *context, tp_ix form, const tp_ix *replacement,
                       int32_t var_count);

/* Prints the form as an OpenCL C expression of ints, variables as var_names[v]. `coef_text`
 * (may be NULL) gives the text for a coefficient other than 0, 1 and -1, or NULL for its digits. */
typedef const char *(*tp_ix_coef_text)(void *user, int64_t coef);
void tp_ix_print(const tp_ix_context *context, tp_ix form, const char *const *var_names,
                 tp_ix_coef_text coef_text, void *user, tp_str_builder *out);

#endif
