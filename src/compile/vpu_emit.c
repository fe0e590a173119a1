/* SPDX-License-Identifier: Apache-2.0
 * Text of values, loads and stores.
 */
#include "compile/vpu_emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "graph/opdef.h"

const char *tp_vpu_coef_name(void *user, int64_t coef)
{
    tp_vpu_coefs *coefs = user;
    if (!coefs) return NULL;
    for (int32_t i = 0; i < coefs->count; i++)
        if (coefs->values[i] == coef) return coefs->names[i];
    if (coefs->count == TP_VPU_MAX_COEFS || coef > INT32_MAX) return NULL;
    coefs->values[coefs->count] = coef;
    snprintf(coefs->names[coefs->count], sizeof coefs->names[0], "vpu_c%u",
             (unsigned)coefs->count % 100u);
    return coefs->names[coefs->count++];
}

void tp_vpu_emit_words(int width, tp_str_builder *out)
{
    tp_str_builder_printf(
        out, "#undef VPU_WIDTH\n#define VPU_WIDTH %d\n#include \"lib/vpu_words.clh\"\n", width);
}

const char *tp_vpu_register_type(tp_dtype dtype)
{
    switch (dtype) {
    case TP_F32:
    case TP_BF16:
        return "VF";
    case TP_U32:
    case TP_U8:
        return "VU";
    default:
        return "VI";
    }
}

const char *tp_vpu_storage_type(tp_dtype dtype)
{
    static const char *const types[TP_DTYPE_COUNT] = {"float", "ushort", "int",
                                                      "uint",  "uchar",  "uchar"};
    return types[dtype];
}

static void emit_form(const tp_vpu_ir *ir, const tp_vpu_style *style, tp_ix form,
                      tp_str_builder *out)
{
    tp_ix_print(ir->index, form, style->var_names, tp_vpu_coef_name, style->coefs, out);
}

/* lo <= f < hi, f % modulus == 0; only what the form's range does not show. */
static void emit_condition(const tp_vpu_ir *ir, const tp_vpu_style *style,
                           const tp_vpu_guard *guard, tp_str_builder *out)
{
    const tp_ix_form *form = tp_ix_get(ir->index, guard->form);
    const char *separator = "";
    tp_str_append(out, "(");
    if (form->lo < guard->lo) {
        emit_form(ir, style, guard->form, out);
        tp_str_builder_printf(out, " >= %" PRId64, guard->lo);
        separator = " & ";
    }
    if (form->hi >= guard->hi) {
        tp_str_append(out, *separator ? ") & (" : "");
        emit_form(ir, style, guard->form, out);
        tp_str_builder_printf(out, " < %" PRId64, guard->hi);
        separator = " & ";
    }
    if (guard->modulus > 1) {
        tp_str_append(out, *separator ? ") & (" : "");
        emit_form(ir, style, guard->form, out);
        tp_str_builder_printf(out, " %% %" PRId64 " == 0", guard->modulus);
        separator = " & ";
    }
    if (!*separator) tp_str_append(out, "1");
    tp_str_append(out, ")");
}

static void emit_guard(const tp_vpu_ir *ir, const tp_vpu_style *style, int32_t guard,
                       tp_str_builder *out)
{
    const char *separator = "";
    for (; guard >= 0; guard = ir->guards[guard].parent) {
        tp_str_append(out, separator);
        tp_str_append(out, "(");
        emit_condition(ir, style, &ir->guards[guard], out);
        tp_str_append(out, ")");
        separator = " & ";
    }
}

static void emit_load(const tp_vpu_ir *ir, const tp_vpu_style *style, const tp_vpu_value *value,
                      tp_str_builder *out)
{
    const int64_t step =
        style->width == 1 ? 1 : tp_ix_coef(ir->index, value->index, style->lane_var);
    const char *form = step == 1 ? "LD" : step == 0 ? "SP" : "LS";
    tp_str_builder_printf(out, "VPU_%s_%s(p%" PRId32 ", ", form, tp_dtype_name(value->dtype),
                          value->slot);
    if (value->guard >= 0) {
        tp_str_append(out, "(");
        emit_guard(ir, style, value->guard, out);
        tp_str_append(out, ") ? ");
    }
    emit_form(ir, style, value->index, out);
    if (value->guard >= 0) tp_str_append(out, " : 0");
    if (step != 0 && step != 1) tp_str_builder_printf(out, ", %" PRId64, step);
    tp_str_append(out, ")");
}

/* `text` with $0, $1, ... replaced by the arguments' names. */
static void emit_template(const tp_vpu_value *value, tp_str_builder *out)
{
    for (const char *p = value->text; *p; p++) {
        if (*p == '$' && p[1] >= '0' && p[1] <= '9') {
            tp_str_builder_printf(out, "v%" PRId32, value->args[p[1] - '0']);
            p++;
        } else {
            tp_str_append_char(out, *p);
        }
    }
}

/* Results of these on bf16 operands are bf16 values already. */
static bool is_exact_in_bf16(const tp_vpu_ir *ir, const tp_vpu_value *value)
{
    static const char *const names[] = {"select", "maximum", "minimum", "negate",
                                        "abs",    "sign",    "clamp",   "convert"};
    for (int32_t i = 0; i < value->arg_count; i++) {
        const tp_dtype dtype = ir->values[value->args[i]].dtype;
        if (dtype != TP_BF16 && dtype != TP_PRED) return false;
    }
    const char *name = ir->graph->nodes[value->node].def->name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void emit_expression(const tp_vpu_ir *ir, const tp_vpu_value *value, tp_str_builder *out)
{
    const bool is_float = tp_dtype_is_float(value->dtype);
    const bool is_rounded = value->dtype == TP_BF16 && !is_exact_in_bf16(ir, value);
    if (is_rounded) tp_str_append(out, "VPU_ROUND_BF16(");
    if (is_float && value->needs_flush) tp_str_append(out, "VPU_FLUSH(");
    if (value->dtype == TP_U8) tp_str_append(out, "(VU)(255u) & (");
    emit_template(value, out);
    if (value->dtype == TP_U8) tp_str_append(out, ")");
    if (is_float && value->needs_flush) tp_str_append(out, ")");
    if (is_rounded) tp_str_append(out, ")");
}

static void emit_random(const tp_vpu_ir *ir, const tp_vpu_style *style, int32_t id,
                        tp_str_builder *out)
{
    const tp_vpu_value *value = &ir->values[id];
    tp_str_builder_printf(out, "%s%s v%" PRId32 ";\n%s{\n", style->indent,
                          tp_vpu_register_type(value->dtype), id, style->indent);
    if (style->width == 1) {
        tp_str_builder_printf(out, "%s    const VU vpu_block = (VU)((uint)(", style->indent);
        emit_form(ir, style, value->index, out);
        tp_str_builder_printf(out, " >> 2));\n%s    const VU vpu_lane = (VU)((uint)(",
                              style->indent);
        emit_form(ir, style, value->index, out);
        tp_str_append(out, ") & 3u);\n");
    } else {
        tp_str_builder_printf(out, "%s    const VU vpu_element = VPU_AS_VU(VPU_LANES(",
                              style->indent);
        emit_form(ir, style, value->index, out);
        tp_str_builder_printf(out, ", %" PRId64 "));\n",
                              tp_ix_coef(ir->index, value->index, style->lane_var));
        tp_str_builder_printf(out,
                              "%s    const VU vpu_block = vpu_element >> 2, vpu_lane = "
                              "vpu_element & (VU)(3u);\n",
                              style->indent);
    }
    tp_str_builder_printf(out, "%s    v%" PRId32 " = ", style->indent, id);
    emit_expression(ir, value, out);
    tp_str_builder_printf(out, ";\n%s}\n", style->indent);
}

static void emit_one(const tp_vpu_ir *ir, const tp_vpu_style *style, int32_t id,
                     tp_str_builder *out)
{
    const tp_vpu_value *value = &ir->values[id];
    if (value->kind == TP_VPU_RANDOM) {
        emit_random(ir, style, id, out);
        return;
    }
    tp_str_builder_printf(out, "%sconst %s v%" PRId32 " = ", style->indent,
                          tp_vpu_register_type(value->dtype), id);
    switch (value->kind) {
    case TP_VPU_LOAD:
        emit_load(ir, style, value, out);
        break;
    case TP_VPU_CONST:
    case TP_VPU_BOUND:
        tp_str_append(out, value->text);
        break;
    case TP_VPU_INDEX:
        tp_str_append(out, "VPU_LANES(");
        emit_form(ir, style, value->index, out);
        tp_str_builder_printf(
            out, ", %" PRId64 ")",
            style->width == 1 ? 1 : tp_ix_coef(ir->index, value->index, style->lane_var));
        break;
    case TP_VPU_STEP:
        tp_str_append(out, "(VI)((int)vpu_step)");
        break;
    case TP_VPU_CHOICE:
        tp_str_append(out, "VPU_SELECT((VI)(-(int)(");
        emit_condition(ir, style, &ir->guards[value->guard], out);
        tp_str_builder_printf(out, ")), v%" PRId32 ", v%" PRId32 ")", value->args[0],
                              value->args[1]);
        break;
    case TP_VPU_OP:
    default:
        emit_expression(ir, value, out);
    }
    tp_str_append(out, ";\n");
}

void tp_vpu_emit_value(const tp_vpu_ir *ir, const tp_vpu_style *style, int32_t wanted,
                       bool *inout_done, tp_str_builder *out)
{
    if (inout_done[wanted]) return;
    const tp_vpu_value *value = &ir->values[wanted];
    for (int32_t i = 0; i < value->arg_count; i++)
        tp_vpu_emit_value(ir, style, value->args[i], inout_done, out);
    emit_one(ir, style, wanted, out);
    inout_done[wanted] = true;
}

void tp_vpu_emit_store(const tp_vpu_ir *ir, const tp_vpu_style *style, const tp_vpu_store *store,
                       tp_str_builder *out)
{
    const tp_dtype dtype = ir->slots[store->slot].dtype;
    tp_str_builder_printf(out, "%sVPU_ST_%s(p%" PRId32 ", ", style->indent, tp_dtype_name(dtype),
                          store->slot);
    emit_form(ir, style, store->index, out);
    tp_str_builder_printf(out, ", v%" PRId32 ");\n", store->value);
}

bool tp_vpu_can_widen(const tp_vpu_ir *ir, int32_t var)
{
    for (int32_t i = 0; i < ir->value_count; i++)
        if (tp_ix_is_pinned(ir->index, ir->values[i].index, var)) return false;
    for (int32_t i = 0; i < ir->guard_count; i++)
        if (tp_ix_uses(ir->index, ir->guards[i].form, var)) return false;
    for (int32_t i = 0; i < ir->store_count; i++)
        if (tp_ix_is_pinned(ir->index, ir->stores[i].index, var) ||
            tp_ix_coef(ir->index, ir->stores[i].index, var) != 1)
            return false;
    return true;
}

void tp_vpu_emit_params(const tp_vpu_ir *ir, tp_str_builder *out)
{
    for (int32_t i = 0; i < ir->slot_count; i++)
        tp_str_builder_printf(out, "TP_TENSOR(%s, vpu_t%" PRId32 "), ",
                              tp_vpu_storage_type(ir->slots[i].dtype), i);
}

void tp_vpu_emit_pass(const tp_vpu_ir *ir, tp_str_builder *out)
{
    for (int32_t i = 0; i < ir->slot_count; i++)
        tp_str_builder_printf(out, "TP_TENSOR_PASS(vpu_t%" PRId32 "), ", i);
}

void tp_vpu_emit_pointers(const tp_vpu_ir *ir, const char *indent, const char *core,
                          tp_str_builder *out)
{
    for (int32_t i = 0; i < ir->slot_count; i++)
        tp_str_builder_printf(out, "%sglobal %s *p%" PRId32 " = TP_AT(vpu_t%" PRId32 ", %s);\n",
                              indent, tp_vpu_storage_type(ir->slots[i].dtype), i, i, core);
}
