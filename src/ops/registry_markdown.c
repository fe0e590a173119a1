/* SPDX-License-Identifier: Apache-2.0
 * docs/ops.md, made from the op table (see tools/generate.c). */
#include "core/str.h"
#include "graph/attrs.h"
#include "ops/registry.h"

static const struct {
    tp_op_class op_class;
    const char *title, *text;
} classes[] = {
    {TP_OP_SOURCE, "Sources", "No operands."},
    {TP_OP_ELEMENTWISE, "Element-wise",
     "Operands have equal shapes. bf16 operands are widened, the op is done in f32, the result is "
     "rounded "
     "once; f32 results are flushed."},
    {TP_OP_RANDOM, "Random", "Functions of (run seed, stream, core, step, element); never stored."},
    {TP_OP_BROADCAST, "Broadcast", "Elements are repeated."},
    {TP_OP_RESHAPE, "Reshape", "The same elements in row-major order."},
    {TP_OP_REINDEX, "Reindexing",
     "Each element of the result is an element of an operand, or padding."},
    {TP_OP_REDUCE, "Reductions", "In the VPU's order of summation, see docs/precision.md."},
    {TP_OP_WINDOW, "Windows", "In rising row-major order within each window."},
    {TP_OP_MEMORY, "Memory and order",
     "Values go where indices or an order say; what is combined is so in rising order. Attention "
     "has an "
     "order of its own, see docs/precision.md."},
    {TP_OP_MXU, "MXU",
     "Operands f32 or bf16, results f32, in the MXU's order of summation, see docs/precision.md."},
    {TP_OP_COLLECTIVE, "Across cores", "By the balanced tree over core ids."},
    {TP_OP_LOOP, "Loops",
     "Where values enter and leave a loop of a fixed number of turns; `tp_op_scan()` makes them. A "
     "node\nthat depends on loop_slice or loop_carry is computed anew in each turn."},
};

static void print_op(tp_str_builder *out, const tp_opdef *def)
{
    tp_str_builder_printf(out, "\n### %s\n\n%s", def->name, def->doc);
    if (def->max_inputs == def->min_inputs)
        tp_str_builder_printf(out, " Operands: %d.", def->min_inputs);
    else
        tp_str_builder_printf(out, " Operands: %d to %d.", def->min_inputs, def->max_inputs);
    tp_str_append(out, def->gradient || def->loop_part ? " Differentiable.\n" : "\n");
    if (!def->attrs || !def->attrs->name) return;
    tp_str_append(out, "\n| attribute | kind | meaning |\n|---|---|---|\n");
    for (const tp_attr_spec *spec = def->attrs; spec->name; ++spec) {
        tp_str_builder_printf(out, "| `%s` | %s%s | %s", spec->name, tp_attr_kind_name(spec->kind),
                              spec->is_optional ? ", optional" : "", spec->doc);
        tp_view rest = tp_view_of(spec->choices), choice;
        for (const char *between = ": "; tp_view_next(&rest, '|', &choice); between = ", ")
            tp_str_builder_printf(out, "%s`%.*s`", between, TP_VIEW_ARGS(choice));
        tp_str_append(out, " |\n");
    }
}

tpucl_status tp_ops_markdown(char **out_text)
{
    tp_str_builder out = {0};
    tp_str_append(
        &out,
        "# Ops\n\n"
        "<!-- Made from the op table by tpucl_generate (tools/generate.c); do not edit. -->\n\n"
        "The vocabulary of graphs. Names and meaning follow StableHLO where it has the op. Shapes "
        "are\n"
        "static. Each op is defined in `src/ops/`; `src/graph/builder.h` has a C function for "
        "each.\n");
    const tp_op_table *table = tp_ops_registry();
    for (size_t c = 0; c < sizeof classes / sizeof classes[0]; ++c) {
        tp_str_builder_printf(&out, "\n## %s\n\n%s\n", classes[c].title, classes[c].text);
        for (int32_t i = 0; i < table->count; ++i)
            if (table->defs[i]->op_class == classes[c].op_class) print_op(&out, table->defs[i]);
    }
    return tp_str_builder_finish(&out, out_text, NULL);
}
