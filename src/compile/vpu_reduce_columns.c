/* SPDX-License-Identifier: Apache-2.0
 * Column reductions: a kept axis is contiguous. The tree over the lanes is that of num/reduce.h, but
 * lane after lane in bit-reversed order, so that the two lanes that are added first (l and l + 64)
 * follow each other: a stack of seven levels replaces the array of lanes, as in a binary counter. A
 * strip is one column, or (on CPUs) one or two vectors of 16 columns side by side. Strips of vectors
 * with more rows than lanes keep all lanes in an array after all (it fits a first-level cache), because
 * memory is then read in the order in which it lies.
 */
#include "compile/vpu_reduce_text.h"

#include <inttypes.h>
#include <stdio.h>
#include "num/reduce.h"

static int log2_of(int64_t power)
{
    int log = 0;
    while ((int64_t)1 << log < power)
        log++;
    return log;
}

/* "for (int i = 0; i < 2; i++) {": over the vectors of a strip. */
static void open_vectors(const char *indent, int vectors, tp_str_builder *out)
{
    tp_str_builder_printf(out, "%sfor (int i = 0; i < %d; i++) {\n", indent, vectors);
}

/* target = target + v for each head, in the innermost loop. */
static void emit_add(const tp_reduce_text *text, const char *pattern, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++) {
        char sum[24], value[16];
        snprintf(sum, sizeof sum, pattern, (int)i);
        snprintf(value, sizeof value, "v%d", (int)text->heads[i].operand);
        tp_str_builder_printf(out, "                %s = ", sum);
        tp_reduce_emit_combined(text->heads[i].combine, sum, value, out);
        tp_str_append(out, ";\n");
    }
}

/* Rows of one lane, added in rising order into a0[i], a1[i], ... */
static tpucl_status emit_lane(tp_reduce_text *text, int vectors, tp_str_builder *out)
{
    open_vectors("        ", vectors, out);
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "            a%" PRId32 "[i] = %s;\n", i,
                              text->heads[i].identity);
    tp_str_builder_printf(out,
                          "        }\n"
                          "        for (int k = start + (int)lane; k < end; k += %" PRId64 ") {\n",
                          text->lanes);
    tp_reduce_emit_reduced_indexes(text, "            ", out);
    open_vectors("            ", vectors, out);
    tp_str_append(out, "                const vpu_index x = x_first + 16 * i;\n");
    TP_TRY(tp_reduce_emit_operands(text, "                ", out));
    emit_add(text, "a%d[i]", out);
    tp_str_append(out, "            }\n        }\n");
    return TPUCL_OK;
}

/* The lane's sum onto the stack. */
static void emit_push(tp_reduce_text *text, int vectors, tp_str_builder *out)
{
    tp_str_append(out, "        int level = 0;\n"
                       "        for (; (turn >> level) & 1u; level++)\n");
    open_vectors("            ", vectors, out);
    tp_reduce_emit_step(text, "                ", "a#[i]", "s#[level][i]", "a#[i]", out);
    tp_str_append(out, "            }\n");
    open_vectors("        ", vectors, out);
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "            s%" PRId32 "[level][i] = a%" PRId32 "[i];\n", i, i);
    tp_str_append(out, "        }\n");
}

/* The sums in s#[levels][i]. */
static tpucl_status emit_stack(tp_reduce_text *text, int vectors, int levels, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "    %s s%" PRId32 "[%d][%d], a%" PRId32 "[%d];\n",
                              text->heads[i].type, i, levels + 1, vectors, i, vectors);
    tp_str_builder_printf(out,
                          "    for (uint turn = 0; turn < %" PRId64 "u; turn++) {\n"
                          "        uint lane = 0;\n"
                          "        for (int bit = 0; bit < %d; bit++)\n"
                          "            lane |= ((turn >> bit) & 1u) << (%d - bit);\n",
                          text->lanes, levels, levels - 1);
    TP_TRY(emit_lane(text, vectors, out));
    emit_push(text, vectors, out);
    tp_str_append(out, "    }\n");
    return TPUCL_OK;
}

/* The sums in s#[0][i], by all 128 lanes at once. */
static tpucl_status emit_all_lanes(tp_reduce_text *text, int vectors, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "    %s s%" PRId32 "[%d][%d];\n", text->heads[i].type, i,
                              TP_VPU_LANES, vectors);
    tp_str_builder_printf(out, "    for (int l = 0; l < %d; l++)\n", TP_VPU_LANES);
    open_vectors("        ", vectors, out);
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "            s%" PRId32 "[l][i] = %s;\n", i,
                              text->heads[i].identity);
    tp_str_builder_printf(out,
                          "        }\n    for (int k = start; k < end; k++) {\n"
                          "        const int l = k & %d;\n",
                          TP_VPU_LANES - 1);
    tp_reduce_emit_reduced_indexes(text, "        ", out);
    open_vectors("            ", vectors, out);
    tp_str_append(out, "                const vpu_index x = x_first + 16 * i;\n");
    TP_TRY(tp_reduce_emit_operands(text, "                ", out));
    emit_add(text, "s%d[l][i]", out);
    tp_str_builder_printf(out,
                          "            }\n    }\n"
                          "    for (int other = %d; other > 0; other >>= 1)\n"
                          "        for (int l = 0; l < other; l++)\n",
                          TP_VPU_LANES / 2);
    open_vectors("            ", vectors, out);
    tp_reduce_emit_step(text, "                ", "s#[l][i]", "s#[l][i]", "s#[l + other][i]", out);
    tp_str_append(out, "            }\n");
    return TPUCL_OK;
}

static tpucl_status emit_strip(tp_reduce_text *text, int width, int vectors, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    const bool has_all_lanes = width > 1 && text->is_deep;
    const int levels = has_all_lanes ? 0 : log2_of(text->lanes);
    text->width = width;
    tp_vpu_emit_words(width, out);
    tp_str_builder_printf(
        out,
        "static inline void VPU_NAME(vpu_strip_%d)(VPU_STRIP_PARAMS, const uint core, "
        "const int block, const int start, const int end, const int z, const int "
        "y, const int x_first)\n{\n",
        width);
    if (ir->uses_random)
        tp_str_append(out, "    const uint vpu_core = vpu_core_base + core * vpu_core_step;\n");
    tp_vpu_emit_pointers(ir, "    ", "core", out);
    if (text->is_long) tp_str_append(out, "    global float *partial = TP_AT(vpu_parts, core);\n");
    tp_reduce_emit_indexes(text, &text->kept, text->kept.count > 2 ? text->kept.count - 2 : 0, "z",
                           "    ", out);
    if (has_all_lanes)
        TP_TRY(emit_all_lanes(text, vectors, out));
    else
        TP_TRY(emit_stack(text, vectors, levels, out));
    open_vectors("    ", vectors, out);
    tp_str_append(out, "        const vpu_index x = x_first + 16 * i;\n");
    char source[32];
    snprintf(source, sizeof source, "s#[%d][i]", levels);
    TP_TRY(tp_reduce_emit_results(text, "        ", source, out));
    tp_str_append(out, "    }\n}\n");
    return TPUCL_OK;
}

tpucl_status tp_reduce_columns_emit(tp_reduce_text *text, tp_str_builder *functions,
                                    tp_str_builder *body)
{
    TP_TRY(emit_strip(text, 1, 1, functions));
    if (text->vectors > 0) {
        TP_TRY(emit_strip(text, 16, text->vectors, functions));
        tp_str_builder_printf(
            body,
            "        for (; x + %d <= x1; x += %d)\n"
            "            VPU_NAME(vpu_strip_16)(VPU_STRIP_PASS, core, block, start, end, z, "
            "y, x);\n",
            16 * text->vectors, 16 * text->vectors);
    }
    tp_str_append(
        body,
        "        for (; x < x1; x++)\n"
        "            VPU_NAME(vpu_strip_1)(VPU_STRIP_PASS, core, block, start, end, z, y, x);\n");
    return TPUCL_OK;
}
