/* SPDX-License-Identifier: Apache-2.0
 * The text form, one function per kind of entry. */
#include "graph/print.h"

#include "core/alloc.h"
#include "graph/opdef.h"
#include "graph/hex_float.h"

static void print_quoted(tp_str_builder *out, const char *text)
{
    tp_str_append_char(out, '"');
    for (const char *c = text; *c; ++c) {
        const unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\')
            tp_str_builder_printf(out, "\\%c", byte);
        else if (byte == '\n')
            tp_str_append(out, "\\n");
        else if (byte == '\t')
            tp_str_append(out, "\\t");
        else if (byte < 0x20 || byte > 0x7e)
            tp_str_builder_printf(out, "\\x%02x", byte);
        else
            tp_str_append_char(out, (char)byte);
    }
    tp_str_append_char(out, '"');
}

static void print_float(tp_str_builder *out, double value)
{
    char text[TP_HEX_FLOAT_BYTES];
    tp_hex_float_format(value, text);
    tp_str_append(out, text);
}

static void print_type(tp_str_builder *out, tp_dtype dtype, const tp_shape *shape)
{
    char text[TP_SHAPE_TEXT_MAX];
    tp_shape_format(shape, text, sizeof text);
    tp_str_builder_printf(out, "%s%s", tp_dtype_name(dtype), text);
}

static void print_attr(tp_str_builder *out, const tp_attr *attr)
{
    tp_str_builder_printf(out, "%s = ", attr->name);
    switch (attr->kind) {
    case TP_ATTR_INT:
        tp_str_builder_printf(out, "%lld", (long long)attr->int_value);
        break;
    case TP_ATTR_FLOAT:
        print_float(out, attr->float_value);
        break;
    case TP_ATTR_INTS:
        tp_str_append_char(out, '[');
        for (int32_t i = 0; i < attr->ints_count; ++i)
            tp_str_builder_printf(out, "%s%lld", i ? ", " : "", (long long)attr->ints[i]);
        tp_str_append_char(out, ']');
        break;
    case TP_ATTR_TEXT:
        print_quoted(out, attr->text);
        break;
    case TP_ATTR_DATA:
        tp_str_append(out, "x\"");
        for (uint64_t i = 0; i < attr->data_bytes; ++i) {
            static const char digits[] = "0123456789abcdef";
            const unsigned char byte = ((const unsigned char *)attr->data)[i];
            tp_str_append_char(out, digits[byte >> 4]);
            tp_str_append_char(out, digits[byte & 15]);
        }
        tp_str_append_char(out, '"');
        break;
    }
}

static void print_node(tp_str_builder *out, const tp_graph *graph, tp_node_id id)
{
    const tp_node *node = &graph->nodes[id];
    tp_str_builder_printf(out, "%%%d = %s(", id, node->def->name);
    for (int32_t i = 0; i < node->input_count; ++i)
        tp_str_builder_printf(out, "%s%%%d", i ? ", " : "", node->inputs[i]);
    tp_str_append_char(out, ')');
    for (int32_t i = 0; i < node->attr_count; ++i) {
        tp_str_append(out, i ? ", " : " {");
        print_attr(out, &node->attrs[i]);
    }
    tp_str_append(out, node->attr_count ? "} : " : " : ");
    print_type(out, node->dtype, &node->shape);
    tp_str_append_char(out, ' ');
    print_quoted(out, node->name);
    tp_str_append_char(out, '\n');
}

static void print_variable(tp_str_builder *out, const tp_variable *variable)
{
    tp_str_append(out, "variable ");
    print_quoted(out, variable->name);
    tp_str_builder_printf(out, " = %%%d %s(", variable->node, tp_init_kind_name(variable->init));
    print_float(out, variable->init_a);
    tp_str_append(out, ", ");
    print_float(out, variable->init_b);
    tp_str_builder_printf(out, ")%s%s\n", variable->is_trainable ? " trainable" : "",
                          variable->is_model ? " model" : "");
}

static void print_link(tp_str_builder *out, const char *what, const char *name, tp_node_id node)
{
    tp_str_builder_printf(out, "%s ", what);
    print_quoted(out, name);
    tp_str_builder_printf(out, " = %%%d\n", node);
}

void tp_graph_print(const tp_graph *graph, tp_str_builder *out_text)
{
    tp_str_append(out_text, "graph 1\n");
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        print_node(out_text, graph, id);
    for (int32_t i = 0; i < graph->input_count; ++i)
        print_link(out_text, "input", graph->inputs[i].name, graph->inputs[i].node);
    for (int32_t i = 0; i < graph->variable_count; ++i)
        print_variable(out_text, &graph->variables[i]);
    for (int32_t i = 0; i < graph->update_count; ++i)
        print_link(out_text, "update", graph->variables[graph->updates[i].variable].name,
                   graph->updates[i].value);
    for (int32_t i = 0; i < graph->output_count; ++i)
        print_link(out_text, "output", graph->outputs[i].name, graph->outputs[i].node);
}

/* ---- DOT ---- */
static const char *dot_style(const tp_node *node)
{
    if (tp_node_is(node, "input")) return "shape=invhouse";
    if (tp_node_is(node, "variable")) return "shape=cylinder";
    return node->def->op_class == TP_OP_MXU ? "shape=box, penwidth=2" : "shape=box";
}

static void dot_node(tp_str_builder *out, const tp_graph *graph, tp_node_id id, bool is_replicated)
{
    const tp_node *node = &graph->nodes[id];
    tp_str_builder_printf(out, "  n%d [%s%s, label=", id, dot_style(node),
                          is_replicated ? ", style=filled, fillcolor=\"#e8e8e8\"" : "");
    tp_str_builder label = {0};
    tp_str_builder_printf(&label, "%s\n%s\n", node->def->name, node->name);
    print_type(&label, node->dtype, &node->shape);
    print_quoted(out, label.status == TPUCL_OK && label.data ? label.data : "");
    tp_str_builder_deinit(&label);
    tp_str_append(out, "];\n");
    for (int32_t i = 0; i < node->input_count; ++i)
        tp_str_builder_printf(out, "  n%d -> n%d;\n", node->inputs[i], id);
}

tpucl_status tp_graph_print_dot(const tp_graph *graph, tp_str_builder *out_text)
{
    bool *is_replicated = TP_NEW_ARRAY(bool, (size_t)graph->node_count);
    if (!is_replicated) return TPUCL_OUT_OF_MEMORY;
    tp_graph_mark_replicated(graph, is_replicated);
    tp_str_append(out_text, "digraph graph_1 {\n  node [fontname=\"sans-serif\"];\n");
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        dot_node(out_text, graph, id, is_replicated[id]);
    for (int32_t i = 0; i < graph->update_count; ++i)
        tp_str_builder_printf(out_text, "  n%d -> n%d [style=dashed, constraint=false];\n",
                              graph->updates[i].value,
                              graph->variables[graph->updates[i].variable].node);
    for (int32_t i = 0; i < graph->output_count; ++i) {
        tp_str_builder_printf(out_text, "  o%d [shape=house, label=", i);
        print_quoted(out_text, graph->outputs[i].name);
        tp_str_builder_printf(out_text, "];\n  n%d -> o%d;\n", graph->outputs[i].node, i);
    }
    tp_str_append(out_text, "}\n");
    tp_free(is_replicated);
    return TPUCL_OK;
}
