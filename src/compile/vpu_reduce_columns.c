/* SPDX-License-Identifier: Apache-2.0
 * Column reductions: a kept axis is contiguous. The tree over the lanes is that of num/reduce.h.
 *
 * A work-item of a GPU has one column and takes one lane at a time. Lanes come in bit-reversed order, so that
 * the two that are added first (l and l + 64) follow each other: a stack of seven levels replaces the array
 * of lanes, as in a binary counter.
 *
 * One of a CPU has neighbouring columns, all of a row's where they are not too many, and all lanes of them: a
 * tile of sums [lane][column] in the second-level cache, so that memory is read from front to back. Where
 * columns come in whole vectors, the tile is made of those: [lane][column / width].
 */
#include "compile/vpu_reduce_text.h"

#include <inttypes.h>
#include <stdio.h>
#include "num/reduce.h"

/* Rows of half a kB, asked for so far ahead, arrive in time there; 4 to 64 did as well. */
#define ROWS_AHEAD 8

static int log2_of(int64_t power)
{
    int log = 0;
    while ((int64_t)1 << log < power)
        log++;
    return log;
}

/* "s0[at] = s0[at] + v5;" for each head. */
static void emit_add(const tp_reduce_text *text, const char *indent, const char *pattern,
                     tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++) {
        char sum[24], value[16];
        snprintf(sum, sizeof sum, pattern, (int)i);
        snprintf(value, sizeof value, "v%d", (int)text->heads[i].operand);
        tp_str_builder_printf(out, "%s%s = ", indent, sum);
        tp_reduce_emit_combined(text->heads[i].combine, sum, value, out);
        tp_str_append(out, ";\n");
    }
}

/* ---- one column, lane after lane ---- */

/* Rows of one lane, added in rising order into a0, a1, ... */
static tpucl_status emit_lane(tp_reduce_text *text, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "            a%" PRId32 " = %s;\n", i, text->heads[i].identity);
    tp_str_builder_printf(
        out, "            for (int k = start + (int)lane; k < end; k += %" PRId64 ") {\n",
        text->lanes);
    tp_reduce_emit_reduced_indexes(text, "                ", out);
    TP_TRY(tp_reduce_emit_operands(text, "                ", out));
    emit_add(text, "                ", "a%d", out);
    tp_str_append(out, "            }\n");
    return TPUCL_OK;
}

static tpucl_status emit_lanes(tp_reduce_text *text, tp_str_builder *out)
{
    const int levels = log2_of(text->lanes);
    tp_str_append(out, "    for (vpu_index x = x0; x < x1; x++) {\n");
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "        %s s%" PRId32 "[%d], a%" PRId32 ";\n",
                              text->heads[i].type, i, levels + 1, i);
    tp_str_builder_printf(out,
                          "        for (uint turn = 0; turn < %" PRId64 "u; turn++) {\n"
                          "            uint lane = 0;\n"
                          "            for (int bit = 0; bit < %d; bit++)\n"
                          "                lane |= ((turn >> bit) & 1u) << (%d - bit);\n",
                          text->lanes, levels, levels - 1);
    TP_TRY(emit_lane(text, out));
    tp_str_append(out, "            int level = 0;\n"
                       "            for (; (turn >> level) & 1u; level++) {\n");
    tp_reduce_emit_step(text, "                ", "a#", "s#[level]", "a#", out);
    tp_str_append(out, "            }\n");
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "            s%" PRId32 "[level] = a%" PRId32 ";\n", i, i);
    tp_str_append(out, "        }\n");
    char source[16];
    snprintf(source, sizeof source, "s#[%d]", levels);
    TP_TRY(tp_reduce_emit_results(text, "        ", source, out));
    tp_str_append(out, "    }\n");
    return TPUCL_OK;
}

/* ---- tiles of columns and lanes ---- */

/* Is it an operand's load that each row has another piece of memory for, contiguous along x? */
static bool is_row_load(const tp_reduce_text *text, const tp_vpu_value *value)
{
    const tp_ix_context *index = text->ir->index;
    const int32_t x = text->kept.vars[text->kept.count - 1];
    if (value->kind != TP_VPU_LOAD || value->guard >= 0 || tp_ix_coef(index, value->index, x) != 1)
        return false;
    for (int32_t i = 0; i < text->reduced.count; i++)
        if (tp_ix_uses(index, value->index, text->reduced.vars[i])) return true;
    return false;
}

/* Asks for a row to come where a work-item has a part of each only: such pieces are too short for the
 * processor to guess the next. The cost is an instruction for each line of a cache. */
static void emit_prefetch(tp_reduce_text *text, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    tp_str_builder_printf(out,
                          "        if (x1 - x0 < nx) {\n"
                          "            const vpu_index ahead = min(k + %d, end - 1);\n",
                          ROWS_AHEAD);
    if (text->reduced.count == 1)
        tp_str_append(out, "            const vpu_index k = ahead;\n");
    else
        tp_reduce_emit_indexes(text, &text->reduced, text->reduced.count, "ahead", "            ",
                               out);
    for (int32_t i = 0; i < ir->value_count; i++) {
        const tp_vpu_value *value = &ir->values[i];
        if (!is_row_load(text, value)) continue;
        tp_str_builder_printf(out,
                              "            for (vpu_index x = x0; x < x1; x += %d)\n"
                              "                VPU_PREFETCH(p%" PRId32 ", ",
                              TP_VPU_LINE_BYTES / (int)tp_dtype_size(value->dtype), value->slot);
        tp_ix_print(ir->index, value->index, text->var_names, tp_vpu_coef_name, &text->coefs, out);
        tp_str_append(out, ");\n");
    }
    tp_str_append(out, "        }\n");
}

/* The first of the neighbours that a vector of a tile stands for. */
static void emit_x(const tp_reduce_text *text, const char *indent, tp_str_builder *out)
{
    tp_str_builder_printf(out, "%sconst vpu_index x = x0 + column * %d;\n", indent, text->width);
}

/* All rows, each added to its lane's. */
static tpucl_status emit_rows_of_tile(tp_reduce_text *text, tp_str_builder *out)
{
    tp_str_append(out, "    for (int k = start; k < end; k++) {\n");
    emit_prefetch(text, out);
    tp_reduce_emit_reduced_indexes(text, "        ", out);
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out,
                              "        private %s *const a%" PRId32 " = s%" PRId32
                              " + ((k - start) & %" PRId64 ") * width;\n",
                              text->heads[i].type, i, i, text->lanes - 1);
    tp_str_append(out, "        VPU_LOOP for (int column = 0; column < width; column++) {\n");
    emit_x(text, "            ", out);
    TP_TRY(tp_reduce_emit_operands(text, "            ", out));
    emit_add(text, "            ", "a%d[column]", out);
    tp_str_append(out, "        }\n    }\n");
    return TPUCL_OK;
}

static tpucl_status emit_tile(tp_reduce_text *text, tp_str_builder *out)
{
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "    %s s%" PRId32 "[%" PRId64 "];\n", text->heads[i].type, i,
                              text->columns * text->lanes / text->width);
    tp_str_builder_printf(out,
                          "    const int width = (x1 - x0) / %d, tile = %" PRId64 " * width;\n"
                          "    VPU_LOOP for (int i = 0; i < tile; i++) {\n",
                          text->width, text->lanes);
    for (int32_t i = 0; i < text->head_count; i++)
        tp_str_builder_printf(out, "        s%" PRId32 "[i] = %s;\n", i, text->heads[i].identity);
    tp_str_append(out, "    }\n");
    TP_TRY(emit_rows_of_tile(text, out));
    tp_str_append(out, "    for (int other = tile / 2; other >= width; other /= 2)\n"
                       "        VPU_LOOP for (int i = 0; i < other; i++) {\n");
    tp_reduce_emit_step(text, "            ", "s#[i]", "s#[i]", "s#[other + i]", out);
    tp_str_append(out, "        }\n"
                       "    VPU_LOOP for (int column = 0; column < width; column++) {\n");
    emit_x(text, "        ", out);
    TP_TRY(tp_reduce_emit_results(text, "        ", "s#[column]", out));
    tp_str_append(out, "    }\n");
    return TPUCL_OK;
}

tpucl_status tp_reduce_columns_emit(tp_reduce_text *text, tp_str_builder *out)
{
    return text->columns > 0 ? emit_tile(text, out) : emit_lanes(text, out);
}
