/* SPDX-License-Identifier: Apache-2.0
 * Epilogues of MXU kernels: the same values as in an element-wise cluster, over the loops z, m, n that
 * the MXU kernel runs, once for scalars and once for 16 columns; and a third function that asks for what
 * they will read (TP_EPILOGUE_PREFETCH), where that is another piece of memory for each row.
 */
#include "compile/vpu_kernel.h"

#include <inttypes.h>
#include <string.h>
#include "graph/opdef.h"

typedef struct epilogue_text {
    tp_vpu_ir *ir;
    int32_t var_z, var_m, var_n;
    const char *var_names[3];
    tp_vpu_coefs coefs;
} epilogue_text;

static tpucl_status build(const tp_vpu_target *target, tp_node_id head, int64_t batch, int64_t m,
                          int64_t n, const tp_node_id *roots, int32_t root_count,
                          epilogue_text *text)
{
    TP_TRY(tp_vpu_ir_create(target->arena, target->graph, target->is_stored, &text->ir));
    tp_vpu_ir *ir = text->ir;
    const tp_shape product = {.rank = 3, .dims = {batch, m, n}};
    tp_ix tuple[3];
    tuple[0] = tp_ix_add_var(ir->index, batch, &text->var_z);
    tuple[1] = tp_ix_add_var(ir->index, m, &text->var_m);
    tuple[2] = tp_ix_add_var(ir->index, n, &text->var_n);
    text->var_names[text->var_z] = "iz";
    text->var_names[text->var_m] = "im";
    text->var_names[text->var_n] = "in";
    const tp_ix number = tp_ix_linearise(ir->index, &product, tuple);
    tp_ix own[TP_MAX_RANK] = {0};
    int32_t bound;
    tp_ix_delinearise(ir->index, &tp_graph_node(target->graph, head)->shape, number, own);
    TP_TRY(tp_vpu_ir_bind(ir, head, own, "value", &bound));
    ir->is_own_root[head] = true;
    for (int32_t i = 0; i < root_count; i++)
        ir->is_own_root[roots[i]] = true;
    for (int32_t i = 0; i < root_count; i++) {
        tp_ix root_tuple[TP_MAX_RANK] = {0};
        tp_ix_delinearise(ir->index, &tp_graph_node(target->graph, roots[i])->shape, number,
                          root_tuple);
        TP_TRY(tp_vpu_ir_store(ir, roots[i], root_tuple));
    }
    return TPUCL_OK;
}

tpucl_status tp_vpu_epilogue_is_possible(const tp_vpu_target *target, tp_node_id head,
                                         int64_t batch, int64_t m, int64_t n,
                                         const tp_node_id *roots, int32_t root_count,
                                         bool *out_is_possible)
{
    epilogue_text text = {0};
    TP_TRY(build(target, head, batch, m, n, roots, root_count, &text));
    *out_is_possible = n == 1 || tp_vpu_can_widen(text.ir, text.var_n);
    return TPUCL_OK;
}

static tpucl_status emit_function(epilogue_text *text, int width, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    tp_str_builder_printf(out, "#define VPU_WIDTH %d\n#include \"lib/vpu.clh\"\n", width);
    tp_str_builder_printf(out,
                          "static inline void tp_epilogue_%d(TP_EPILOGUE_PARAMS, ulong core, ulong "
                          "z, ulong m, ulong n, %s value)\n{\n"
                          "    const %s iz = z, im = m, in = n;\n",
                          width, width == 1 ? "float" : "float16", tp_vpu_index_type(ir));
    if (ir->uses_random)
        tp_str_append(out,
                      "    const uint vpu_core = vpu_core_base + (uint)core * vpu_core_step;\n");
    tp_vpu_emit_pointers(ir, "    ", "core", out);
    const tp_vpu_style style = {.width = width,
                                .lane_var = text->var_n,
                                .var_names = text->var_names,
                                .coefs = &text->coefs,
                                .indent = "    "};
    bool *done = TP_ARENA_NEW_ARRAY(ir->arena, bool, (size_t)ir->value_count + 1);
    if (!done) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < ir->store_count; i++)
        tp_vpu_emit_value(ir, &style, ir->stores[i].value, done, out);
    for (int32_t i = 0; i < ir->store_count; i++)
        tp_vpu_emit_store(ir, &style, &ir->stores[i], out);
    /* exact_math.h, which the kernel may include once more, has its own EM. */
    tp_str_append(out, "}\n#undef EM\n");
    return TPUCL_OK;
}

static bool is_row_load(const epilogue_text *text, const tp_vpu_value *value)
{
    const tp_ix_context *index = text->ir->index;
    return value->kind == TP_VPU_LOAD && value->guard < 0 &&
           tp_ix_coef(index, value->index, text->var_n) == 1 &&
           tp_ix_uses(index, value->index, text->var_m);
}

/* For `columns` columns of row m from n on: the loads that come from far away. */
static void emit_prefetch(epilogue_text *text, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    bool is_wanted = false;
    for (int32_t i = 0; i < ir->value_count; i++)
        is_wanted = is_wanted || is_row_load(text, &ir->values[i]);
    if (!is_wanted) return;
    tp_str_append(
        out, "#define TP_EPILOGUE_PREFETCH 1\n"
             "static inline void tp_epilogue_prefetch(TP_EPILOGUE_PARAMS, ulong core, ulong z, "
             "ulong m, ulong n, uint columns)\n{\n");
    tp_str_builder_printf(out, "    const %s iz = z, im = m;\n", tp_vpu_index_type(ir));
    tp_vpu_emit_pointers(ir, "    ", "core", out);
    for (int32_t i = 0; i < ir->value_count; i++) {
        const tp_vpu_value *value = &ir->values[i];
        if (!is_row_load(text, value)) continue;
        tp_str_builder_printf(out,
                              "    for (%s in = n; in < n + columns; in += %d)\n"
                              "        VPU_PREFETCH(p%" PRId32 ", ",
                              tp_vpu_index_type(ir),
                              TP_VPU_LINE_BYTES / (int)tp_dtype_size(value->dtype), value->slot);
        tp_ix_print(ir->index, value->index, text->var_names, tp_vpu_coef_name, &text->coefs, out);
        tp_str_append(out, ");\n");
    }
    tp_str_append(out, "}\n");
}

/* Drops the ", " at the end. */
static tpucl_status finish_list(tp_str_builder *list, tp_arena *arena, const char **out_text)
{
    const char *text;
    TP_TRY(tp_vpu_finish_text(list, arena, &text));
    const size_t length = strlen(text);
    *out_text = tp_arena_strndup(arena, text, length > 2 ? length - 2 : 0);
    return *out_text ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

tpucl_status tp_vpu_epilogue_create(const tp_vpu_target *target, tp_node_id head, int64_t batch,
                                    int64_t m, int64_t n, const tp_node_id *roots,
                                    int32_t root_count, tp_mxu_epilogue *out_epilogue)
{
    epilogue_text text = {0};
    TP_TRY(build(target, head, batch, m, n, roots, root_count, &text));
    tp_str_builder functions = {0}, params = {0}, pass = {0};
    if (text.ir->uses_random) tp_str_append(&functions, "#define VPU_RANDOM\n");
    tpucl_status status = emit_function(&text, 1, &functions);
    if (status == TPUCL_OK) status = emit_function(&text, 16, &functions);
    emit_prefetch(&text, &functions);
    *out_epilogue = (tp_mxu_epilogue){0};
    TP_TRY(tp_vpu_finish_text(&functions, target->arena, &out_epilogue->functions));
    TP_TRY(status);
    tp_vpu_emit_params(text.ir, &params);
    tp_vpu_emit_extra_params(text.ir, &text.coefs, &params);
    TP_TRY(finish_list(&params, target->arena, &out_epilogue->params));
    tp_vpu_emit_pass(text.ir, &pass);
    tp_vpu_emit_extra_pass(text.ir, &text.coefs, &pass);
    TP_TRY(finish_list(&pass, target->arena, &out_epilogue->pass));
    tp_vpu_args args = {.arena = target->arena};
    tp_vpu_args_add_slots(&args, text.ir);
    tp_vpu_args_add_extra(&args, text.ir, &text.coefs);
    TP_TRY(args.status);
    out_epilogue->args = args.items;
    out_epilogue->arg_count = args.count;
    return TPUCL_OK;
}
