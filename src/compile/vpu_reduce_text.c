/* SPDX-License-Identifier: Apache-2.0
 * The orders of summation of num/reduce.h as kernels.
 *
 * Rows: an array of lanes; element k goes to lane k mod 128; then halves are added. Lanes beyond the
 * row's length hold the identity, so the array is only as long as the next power of two: the levels
 * left out would add +0 to sums that started at +0, which changes no bit. Columns:
 * vpu_reduce_columns.c.
 */
#include "compile/vpu_reduce_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "graph/opdef.h"
#include "num/reduce.h"

/* ---- heads ---- */

typedef struct combine_row {
    const char *kind;
    const char *combine_float, *identity_float;
    const char *combine_s32, *identity_s32;
    const char *combine_u32, *identity_u32;
} combine_row;

static const combine_row combine_table[] = {
    {"add", "$0 + $1", "0.0f", "VPU_AS_VI(VPU_AS_VU($0) + VPU_AS_VU($1))", "0", "$0 + $1", "0u"},
    {"multiply", "$0 * $1", "1.0f", "VPU_AS_VI(VPU_AS_VU($0) * VPU_AS_VU($1))", "1", "$0 * $1",
     "1u"},
    {"max", "EM(vpu_max)($0, $1)", "-INFINITY", "max($0, $1)", "(-2147483647 - 1)", "max($0, $1)",
     "0u"},
    {"min", "EM(vpu_min)($0, $1)", "INFINITY", "min($0, $1)", "2147483647", "min($0, $1)",
     "0xffffffffu"},
    /* pred: a mask, -1 or 0 */
    {"and", NULL, NULL, "$0 & $1", "-1", NULL, NULL},
    {"or", NULL, NULL, "$0 | $1", "0", NULL, NULL},
};

static tpucl_status init_arg(const tp_graph *graph, const tp_node *node, tp_reduce_head *head)
{
    const bool is_max = strcmp(node->def->name, "argmax") == 0;
    const bool is_float = tp_dtype_is_float(graph->nodes[node->inputs[0]].dtype);
    if (is_float)
        head->key = is_max ? "VPU_KEY_MAX($0)" : "VPU_KEY_MIN($0)";
    else
        head->key = is_max ? "$0" : "~$0";
    head->type = "VI";
    head->finish = "$0";
    return TPUCL_OK;
}

tpucl_status tp_reduce_head_init(const tp_graph *graph, tp_node_id id, tp_reduce_head *out_head)
{
    const tp_node *node = tp_graph_node(graph, id);
    tp_reduce_head head = {.node = id};
    if (strcmp(node->def->name, "reduce") != 0) {
        TP_TRY(init_arg(graph, node, &head));
        *out_head = head;
        return TPUCL_OK;
    }
    const char *kind = tp_node_attr_text(node, "kind", "");
    const combine_row *row = NULL;
    for (size_t i = 0; i < sizeof combine_table / sizeof combine_table[0]; i++)
        if (strcmp(combine_table[i].kind, kind) == 0) row = &combine_table[i];
    if (row && tp_dtype_is_float(node->dtype)) {
        head.type = "VF";
        head.partial_type = "float";
        head.combine = row->combine_float;
        head.identity = row->identity_float;
        head.finish = node->dtype == TP_BF16 ? "VPU_ROUND_BF16(VPU_FLUSH($0))" : "VPU_FLUSH($0)";
    } else if (row && node->dtype == TP_U32) {
        head.type = "VU";
        head.partial_type = "uint";
        head.combine = row->combine_u32;
        head.identity = row->identity_u32;
        head.finish = "$0";
    } else if (row) {
        head.type = "VI";
        head.partial_type = "int";
        head.combine = row->combine_s32;
        head.identity = row->identity_s32;
        head.finish = "$0";
    }
    if (!head.combine)
        return TP_FAIL(TPUCL_UNSUPPORTED, "reduce by '%s' of %s has no kernel", kind,
                       tp_dtype_name(node->dtype));
    *out_head = head;
    return TPUCL_OK;
}

void tp_reduce_emit_combined(const char *text, const char *a, const char *b, tp_str_builder *out)
{
    for (const char *p = text; *p; p++) {
        if (p[0] == '$' && (p[1] == '0' || p[1] == '1')) {
            tp_str_append(out, p[1] == '0' ? a : b);
            p++;
        } else {
            tp_str_append_char(out, *p);
        }
    }
}

void tp_reduce_emit_step(const tp_reduce_text *text, const char *indent, const char *target,
                         const char *a, const char *b, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++) {
        char names[3][64];
        const char *const patterns[3] = {target, a, b};
        for (int n = 0; n < 3; n++) {
            size_t length = 0;
            for (const char *p = patterns[n]; *p && length + 12 < sizeof names[n]; p++) {
                if (*p == '#')
                    names[n][length++] = (char)('0' + i);
                else
                    names[n][length++] = *p;
            }
            names[n][length] = '\0';
        }
        tp_str_builder_printf(out, "%s%s = ", indent, names[0]);
        tp_reduce_emit_combined(text->heads[i].combine, names[1], names[2], out);
        tp_str_append(out, ";\n");
    }
}

/* ---- loops ---- */

static tpucl_status name_loops(tp_reduce_text *text)
{
    const tp_vpu_loops *kept = &text->kept, *reduced = &text->reduced;
    for (int32_t i = 0; i < kept->count; i++)
        text->var_names[kept->vars[i]] = i == kept->count - 1 ? "x"
                                         : i == kept->count - 2
                                             ? "y"
                                             : tp_arena_printf(text->ir->arena, "z%" PRId32, i);
    for (int32_t i = 0; i < reduced->count; i++)
        text->var_names[reduced->vars[i]] =
            reduced->count == 1 ? "k" : tp_arena_printf(text->ir->arena, "k%" PRId32, i);
    return TPUCL_OK;
}

void tp_reduce_emit_indexes(const tp_reduce_text *text, const tp_vpu_loops *loops, int32_t end,
                            const char *number, const char *indent, tp_str_builder *out)
{
    for (int32_t i = 0; i < end; i++) {
        const int64_t below = tp_vpu_loops_extent(text->ir, loops, i + 1, end);
        tp_str_builder_printf(out, "%sconst vpu_index %s = %s", indent,
                              text->var_names[loops->vars[i]], number);
        if (below > 1) tp_str_builder_printf(out, " / %" PRId64, below);
        if (i > 0)
            tp_str_builder_printf(out, " %% %" PRId64,
                                  tp_ix_var_extent(text->ir->index, loops->vars[i]));
        tp_str_append(out, ";\n");
    }
}

void tp_reduce_emit_reduced_indexes(const tp_reduce_text *text, const char *indent,
                                    tp_str_builder *out)
{
    if (text->reduced.count > 1)
        tp_reduce_emit_indexes(text, &text->reduced, text->reduced.count, "k", indent, out);
}

static tp_vpu_style style_of(tp_reduce_text *text, const char *indent)
{
    return (tp_vpu_style){.width = text->width,
                          .lane_var =
                              text->kept.count > 0 ? text->kept.vars[text->kept.count - 1] : -1,
                          .var_names = text->var_names,
                          .coefs = &text->coefs,
                          .indent = indent};
}

tpucl_status tp_reduce_emit_operands(tp_reduce_text *text, const char *indent, tp_str_builder *out)
{
    const tp_vpu_style style = style_of(text, indent);
    bool *done = TP_ARENA_NEW_ARRAY(text->ir->arena, bool, (size_t)text->ir->value_count + 1);
    if (!done) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < text->head_count; i++)
        tp_vpu_emit_value(text->ir, &style, text->heads[i].operand, done, out);
    return TPUCL_OK;
}

/* With the finished results in r0, r1, ...: what is computed from them, and the stores. */
static tpucl_status emit_epilogue(tp_reduce_text *text, const char *indent, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    const tp_vpu_style style = style_of(text, indent);
    bool *done = TP_ARENA_NEW_ARRAY(ir->arena, bool, (size_t)ir->value_count + 1);
    if (!done) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < ir->store_count; i++)
        tp_vpu_emit_value(ir, &style, ir->stores[i].value, done, out);
    for (int32_t i = 0; i < ir->store_count; i++)
        tp_vpu_emit_store(ir, &style, &ir->stores[i], out);
    return TPUCL_OK;
}

tpucl_status tp_reduce_emit_results(tp_reduce_text *text, const char *indent, const char *source,
                                    tp_str_builder *out)
{
    const char *hash = strchr(source, '#');
    for (int32_t i = 0; i < text->head_count; i++) {
        const tp_reduce_head *head = &text->heads[i];
        const char *value = tp_arena_printf(text->ir->arena, "%.*s%" PRId32 "%s",
                                            (int)(hash - source), source, i, hash + 1);
        if (!value) return TPUCL_OUT_OF_MEMORY;
        if (text->is_long) {
            tp_str_builder_printf(out,
                                  "%sVPU_ST_f32(partial, ((ulong)block * %" PRId32 "u + %" PRId32
                                  "u) * (ulong)kept_elems + (ulong)",
                                  indent, text->head_count, i);
            tp_ix_print(text->ir->index, text->ir->values[text->kept_number].index, text->var_names,
                        tp_vpu_coef_name, &text->coefs, out);
            /* All heads of a long reduction have registers of 32 bits: the scratch is as_float. */
            tp_str_builder_printf(out, ", VPU_AS_VF(%s));\n", value);
        } else {
            tp_str_builder_printf(out, "%sconst %s r%" PRId32 " = ", indent, head->type, i);
            tp_reduce_emit_combined(head->finish, value, "", out);
            tp_str_append(out, ";\n");
        }
    }
    return text->is_long ? TPUCL_OK : emit_epilogue(text, indent, out);
}

/* ---- forms (columns: vpu_reduce_columns.c) ---- */

static tpucl_status emit_rows(tp_reduce_text *text, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out,
                              "        %s l%" PRId32 "[%" PRId64 "];\n"
                              "        for (int l = 0; l < %" PRId64 "; l++)\n"
                              "            l%" PRId32 "[l] = %s;\n",
                              text->heads[i].type, i, text->lanes, text->lanes, i,
                              text->heads[i].identity);
    tp_str_builder_printf(out,
                          "        for (int first = start; first < end; first += %" PRId64 ") {\n"
                          "            const int count = min(%" PRId64 ", end - first);\n"
                          "            VPU_LOOP for (int l = 0; l < count; l++) {\n"
                          "                const vpu_index k = first + l;\n",
                          text->lanes, text->lanes);
    tp_reduce_emit_reduced_indexes(text, "                ", out);
    TP_TRY(tp_reduce_emit_operands(text, "                ", out));
    for (int32_t i = 0; i < text->head_count; i++) {
        char lane[16], value[16];
        snprintf(lane, sizeof lane, "l%d[l]", (int)i);
        snprintf(value, sizeof value, "v%d", (int)text->heads[i].operand);
        tp_str_builder_printf(out, "                %s = ", lane);
        tp_reduce_emit_combined(text->heads[i].combine, lane, value, out);
        tp_str_append(out, ";\n");
    }
    tp_str_append(out, "            }\n        }\n");
    if (text->lanes > 1) {
        tp_str_builder_printf(out,
                              "        for (int other = %" PRId64 "; other > 0; other >>= 1)\n"
                              "            VPU_LOOP for (int l = 0; l < other; l++) {\n",
                              text->lanes / 2);
        tp_reduce_emit_step(text, "                ", "l#[l]", "l#[l]", "l#[l + other]", out);
        tp_str_append(out, "            }\n");
    }
    return tp_reduce_emit_results(text, "        ", "l#[0]", out);
}

/* Lanes meet in local memory; every work-item passes every barrier. */
static tpucl_status emit_group(tp_reduce_text *text, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "        %s a%" PRId32 " = %s;\n", text->heads[i].type, i,
                              text->heads[i].identity);
    tp_str_builder_printf(out, "        for (vpu_index k = start + lane; k < end; k += %d) {\n",
                          TP_VPU_LANES);
    tp_reduce_emit_reduced_indexes(text, "            ", out);
    TP_TRY(tp_reduce_emit_operands(text, "            ", out));
    for (int32_t i = 0; i < text->head_count; i++) {
        char sum[16], value[16];
        snprintf(sum, sizeof sum, "a%d", (int)i);
        snprintf(value, sizeof value, "v%d", (int)text->heads[i].operand);
        tp_str_builder_printf(out, "            %s = ", sum);
        tp_reduce_emit_combined(text->heads[i].combine, sum, value, out);
        tp_str_append(out, ";\n");
    }
    tp_str_append(out, "        }\n");
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "        s%" PRId32 "[lane] = a%" PRId32 ";\n", i, i);
    tp_str_builder_printf(out,
                          "        for (int other = %d; other > 0; other >>= 1) {\n"
                          "            barrier(CLK_LOCAL_MEM_FENCE);\n"
                          "            if (lane < other) {\n",
                          TP_VPU_LANES / 2);
    tp_reduce_emit_step(text, "                ", "s#[lane]", "s#[lane]", "s#[lane + other]", out);
    tp_str_append(out, "            }\n        }\n        if (lane == 0) {\n");
    TP_TRY(tp_reduce_emit_results(text, "            ", "s#[0]", out));
    tp_str_append(out, "        }\n");
    return TPUCL_OK;
}

static tpucl_status emit_arg(tp_reduce_text *text, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(
            out, "        int best%" PRId32 " = (-2147483647 - 1), at%" PRId32 " = 0;\n", i, i);
    tp_str_append(out, "        for (vpu_index k = 0; k < nk; k++) {\n");
    tp_reduce_emit_reduced_indexes(text, "            ", out);
    TP_TRY(tp_reduce_emit_operands(text, "            ", out));
    for (int32_t i = 0; i < text->head_count; i++) {
        char value[16];
        snprintf(value, sizeof value, "v%d", (int)text->heads[i].operand);
        tp_str_builder_printf(out, "            const int key%" PRId32 " = ", i);
        tp_reduce_emit_combined(text->heads[i].key, value, "", out);
        tp_str_builder_printf(out,
                              ";\n            at%" PRId32 " = key%" PRId32 " > best%" PRId32
                              " ? (int)k : at%" PRId32 ";\n"
                              "            best%" PRId32 " = max(best%" PRId32 ", key%" PRId32
                              ");\n",
                              i, i, i, i, i, i, i);
    }
    tp_str_append(out, "        }\n");
    return tp_reduce_emit_results(text, "        ", "at#", out);
}

/* The parts arrive as num/reduce.h's tp_tree_push has them. */
static tpucl_status emit_tree(tp_reduce_text *text, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++) {
        tp_str_builder_printf(out, "        %s s%" PRId32 "[32];\n", text->heads[i].type, i);
        tp_str_builder_printf(out, "        %s a%" PRId32 ";\n", text->heads[i].type, i);
    }
    tp_str_append(out, "        for (int block = 0; block < blocks; block++) {\n");
    for (int32_t i = 0; i < text->head_count; i++) {
        tp_str_builder_printf(out,
                              "            a%" PRId32
                              " = VPU_AS_%s(partial[((ulong)block * %" PRId32 "u + %" PRId32
                              "u) * (ulong)kept_elems + (ulong)",
                              i, text->heads[i].type, text->head_count, i);
        tp_ix_print(text->ir->index, text->ir->values[text->kept_number].index, text->var_names,
                    tp_vpu_coef_name, &text->coefs, out);
        tp_str_append(out, "]);\n");
    }
    tp_str_append(out, "            int level = 0;\n"
                       "            for (; (block >> level) & 1; level++) {\n");
    tp_reduce_emit_step(text, "                ", "a#", "s#[level]", "a#", out);
    tp_str_append(out, "            }\n");
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "            s%" PRId32 "[level] = a%" PRId32 ";\n", i, i);
    tp_str_append(out, "        }\n"
                       "        int level = 0;\n"
                       "        while (((blocks >> level) & 1) == 0)\n"
                       "            level++;\n");
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "        a%" PRId32 " = s%" PRId32 "[level];\n", i, i);
    tp_str_append(out, "        for (level++; (blocks >> level) != 0; level++)\n"
                       "            if ((blocks >> level) & 1) {\n");
    tp_reduce_emit_step(text, "                ", "a#", "s#[level]", "a#", out);
    tp_str_append(out, "            }\n");
    return tp_reduce_emit_results(text, "        ", "a#", out);
}

/* ---- the kernel around them ---- */

static const char key_words[] =
    "/* Orders floats as ints: -0 below +0, NaN above (below) all. */\n"
    "static inline int VPU_NAME(vpu_key)(float x)\n{\n    const int bits = as_int(x);\n"
    "    return bits ^ ((bits >> 31) & 0x7fffffff);\n}\n"
    "#define VPU_KEY_MAX(x) ((x) != (x) ? 0x7fffffff : VPU_NAME(vpu_key)(x))\n"
    "#define VPU_KEY_MIN(x) ((x) != (x) ? 0x7fffffff : ~VPU_NAME(vpu_key)(x))\n";

/* What is inside the kernel's loops over z and y, and over x, which columns have inside. */
static tpucl_status emit_form(tp_reduce_text *text, tp_str_builder *out)
{
    switch (text->form) {
    case TP_REDUCE_COLUMNS:
        return tp_reduce_columns_emit(text, out);
    case TP_REDUCE_GROUP:
        return emit_group(text, out);
    case TP_REDUCE_ARG:
        return emit_arg(text, out);
    case TP_REDUCE_TREE:
        return emit_tree(text, out);
    case TP_REDUCE_ROWS:
    default:
        return emit_rows(text, out);
    }
}

static void emit_params(const tp_reduce_text *text, tp_str_builder *out)
{
    tp_vpu_emit_params(text->ir, out);
    if (text->is_long || text->form == TP_REDUCE_TREE)
        tp_str_append(out, "TP_TENSOR(float, vpu_parts), ulong kept_elems, ");
    tp_vpu_emit_extra_params(text->ir, &text->coefs, out);
    tp_str_append(out, "int nx, int ny, int nz, int chunk_x, int chunk_y, int nk, int blocks");
}

/* From the opening brace to the loop over x. */
static void emit_kernel_head(const tp_reduce_text *text, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    const bool is_columns = text->form == TP_REDUCE_COLUMNS;
    const bool is_group = text->form == TP_REDUCE_GROUP;
    tp_str_append(out, "    const uint core = TP_CORE(nz);\n"
                       "    int z = (int)TP_CORE_Z(nz);\n");
    if (is_columns || is_group || text->form == TP_REDUCE_ROWS)
        tp_str_builder_printf(out,
                              "    const int block = z %% blocks;\n    z /= blocks;\n"
                              "    const int start = block * %d, end = min(nk, start + %d);\n",
                              TP_VPU_BLOCK, TP_VPU_BLOCK);
    if (ir->uses_random)
        tp_str_append(out, "    const uint vpu_core = vpu_core_base + core * vpu_core_step;\n");
    tp_vpu_emit_pointers(ir, "    ", "core", out);
    if (text->is_long || text->form == TP_REDUCE_TREE)
        tp_str_append(out, "    global float *partial = TP_AT(vpu_parts, core);\n");
    tp_reduce_emit_indexes(text, &text->kept, text->kept.count > 2 ? text->kept.count - 2 : 0, "z",
                           "    ", out);
    if (is_group) {
        for (int32_t i = 0; i < text->head_count; i++)
            tp_str_builder_printf(out, "    local %s s%" PRId32 "[%d];\n", text->heads[i].type, i,
                                  TP_VPU_LANES);
        tp_str_append(out, "    const int lane = (int)get_local_id(0);\n"
                           "    const vpu_index x = (vpu_index)get_group_id(0);\n"
                           "    const vpu_index y = (vpu_index)get_group_id(1);\n    {\n");
        return;
    }
    tp_str_append(out, "    const int x0 = (int)get_global_id(0) * chunk_x;\n"
                       "    const int y0 = (int)get_global_id(1) * chunk_y;\n"
                       "    const int x1 = min(x0 + chunk_x, nx), y1 = min(y0 + chunk_y, ny);\n"
                       "    for (vpu_index y = y0; y < y1; y++)\n");
    tp_str_append(out, is_columns ? "    {\n" : "    for (vpu_index x = x0; x < x1; x++) {\n");
}

tpucl_status tp_reduce_text_emit(tp_reduce_text *text, const char **out_source,
                                 const char **out_entry)
{
    static const char *const entries[] = {"vpu_reduce_rows", "vpu_reduce_group",
                                          "vpu_reduce_columns", "vpu_argument", "vpu_reduce_tree"};
    tp_arena *arena = text->ir->arena;
    TP_TRY(name_loops(text));
    tp_str_builder body = {0}, out = {0};
    const char *body_text = "";
    const tpucl_status status = emit_form(text, &body);
    TP_TRY(tp_vpu_finish_text(&body, arena, &body_text));
    TP_TRY(status);

    tp_vpu_emit_words(text->width, &out);
    tp_str_builder_printf(&out, "#undef vpu_index\n#define vpu_index %s\n",
                          tp_vpu_index_type(text->ir));
    if (text->form == TP_REDUCE_ARG) tp_str_append(&out, key_words);
    tp_str_builder_printf(&out, "kernel void VPU_NAME(%s)(", entries[text->form]);
    emit_params(text, &out);
    tp_str_append(&out, ")\n{\n");
    emit_kernel_head(text, &out);
    tp_str_append(&out, body_text);
    tp_str_append(&out, "    }\n}\n");
    *out_entry = entries[text->form];
    return tp_vpu_finish_text(&out, arena, out_source);
}
