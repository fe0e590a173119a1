/* SPDX-License-Identifier: Apache-2.0
 * Reads the text form by recursive descent. Meaning is left to tp_graph_add() and
 * tp_graph_verify(); their sentences get the line in front. */
#include "graph/parse.h"

#include <string.h>

#include "graph/attrs.h"
#include "graph/hex_float.h"
#include "graph/lexer.h"
#include "graph/verify.h"

#define MAX_ATTRS 16 /* of one node; no op has as many */
#define MAX_INTS 64  /* of one attribute: padding takes two per axis */

typedef struct parser {
    tp_lexer lexer;
    tp_graph *graph;
} parser;

/* Turns a failure of the graph into one of this line. */
static tpucl_status check_graph(parser *p)
{
    if (tp_graph_check(p->graph) == TPUCL_OK) return TPUCL_OK;
    const tpucl_error failure = *tpucl_last_error();
    if (failure.status == TPUCL_OUT_OF_MEMORY) return failure.status;
    return TP_FAIL(TPUCL_CORRUPT_DATA, "line %d: %.900s", p->lexer.line, failure.message);
}

/* "%12" of a node that is there. */
static tpucl_status parse_node_id(parser *p, tp_node_id *out_id)
{
    int64_t id;
    TP_TRY(tp_lexer_expect(&p->lexer, "%"));
    TP_TRY(tp_lexer_int64(&p->lexer, &id));
    if (id < 0 || id >= p->graph->node_count)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "line %d: there is no node %%%lld before this line",
                       p->lexer.line, (long long)id);
    *out_id = (tp_node_id)id;
    return TPUCL_OK;
}

static tpucl_status parse_float(parser *p, double *out_value)
{
    tp_lexer before = p->lexer;
    if (tp_hex_float_parse(tp_lexer_number(&p->lexer), out_value)) return TPUCL_OK;
    tp_lexer_skip(&before);
    return tp_lexer_fail(&before, "a hexadecimal float like 0x1.8p+1");
}

static tpucl_status parse_ints(parser *p, tp_attr *attr)
{
    int64_t ints[MAX_INTS];
    int32_t count = 0;
    while (!tp_lexer_accept(&p->lexer, "]")) {
        if (count > 0) TP_TRY(tp_lexer_expect(&p->lexer, ","));
        if (count == MAX_INTS) return tp_lexer_fail(&p->lexer, "at most 64 numbers in a list");
        TP_TRY(tp_lexer_int64(&p->lexer, &ints[count++]));
    }
    int64_t *copy = TP_ARENA_NEW_ARRAY(p->lexer.arena, int64_t, (size_t)count);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    memcpy(copy, ints, (size_t)count * sizeof(int64_t));
    *attr = tp_attr_ints(attr->name, copy, count);
    return TPUCL_OK;
}

static bool looks_like_float(tp_view number)
{
    for (size_t i = 0; i < number.length; ++i)
        if (memchr("xina", number.data[i], 4)) return true; /* 0x..., inf, nan */
    return false;
}

static tpucl_status parse_attr(parser *p, tp_attr *out_attr)
{
    TP_TRY(tp_lexer_word(&p->lexer, &out_attr->name));
    TP_TRY(tp_lexer_expect(&p->lexer, "="));
    if (tp_lexer_accept(&p->lexer, "[")) return parse_ints(p, out_attr);
    if (tp_lexer_accept(&p->lexer, "x\"")) {
        out_attr->kind = TP_ATTR_DATA;
        return tp_lexer_bytes(&p->lexer, &out_attr->data, &out_attr->data_bytes);
    }
    tp_lexer ahead = p->lexer;
    if (tp_lexer_accept(&ahead, "\"")) {
        out_attr->kind = TP_ATTR_TEXT;
        return tp_lexer_quoted(&p->lexer, &out_attr->text);
    }
    if (looks_like_float(tp_lexer_number(&ahead))) {
        out_attr->kind = TP_ATTR_FLOAT;
        return parse_float(p, &out_attr->float_value);
    }
    out_attr->kind = TP_ATTR_INT;
    return tp_lexer_int64(&p->lexer, &out_attr->int_value);
}

/* "f32[128,10]" must be the type that the rule inferred. */
static tpucl_status parse_type(parser *p, const tp_node *node)
{
    char want[TP_SHAPE_TEXT_MAX + 8];
    const char *dtype = tp_dtype_name(node->dtype);
    memcpy(want, dtype, strlen(dtype));
    tp_shape_format(&node->shape, want + strlen(dtype), TP_SHAPE_TEXT_MAX);
    if (tp_lexer_accept(&p->lexer, want)) return TPUCL_OK;
    char expected[sizeof want + 32] = "the type that the op gives, ";
    strcat(expected, want);
    return tp_lexer_fail(&p->lexer, expected);
}

static tpucl_status parse_operands(parser *p, tp_node_id inputs[TP_MAX_INPUTS], int32_t *out_count)
{
    TP_TRY(tp_lexer_expect(&p->lexer, "("));
    while (!tp_lexer_accept(&p->lexer, ")")) {
        if (*out_count > 0) TP_TRY(tp_lexer_expect(&p->lexer, ","));
        if (*out_count == TP_MAX_INPUTS) return tp_lexer_fail(&p->lexer, "at most 8 operands");
        TP_TRY(parse_node_id(p, &inputs[(*out_count)++]));
    }
    return TPUCL_OK;
}

static tpucl_status parse_attrs(parser *p, tp_attr attrs[MAX_ATTRS], int32_t *out_count)
{
    if (!tp_lexer_accept(&p->lexer, "{")) return TPUCL_OK;
    for (;;) {
        if (*out_count == MAX_ATTRS) return tp_lexer_fail(&p->lexer, "at most 16 attributes");
        memset(&attrs[*out_count], 0, sizeof attrs[0]);
        TP_TRY(parse_attr(p, &attrs[(*out_count)++]));
        if (tp_lexer_accept(&p->lexer, "}")) return TPUCL_OK;
        TP_TRY(tp_lexer_expect(&p->lexer, ","));
    }
}

/* 3 = add(%1, %2) {...} : type "name", after the '%' */
static tpucl_status parse_node(parser *p)
{
    int64_t id;
    const char *op, *name;
    tp_node_id inputs[TP_MAX_INPUTS];
    tp_attr attrs[MAX_ATTRS];
    int32_t input_count = 0, attr_count = 0;
    TP_TRY(tp_lexer_int64(&p->lexer, &id));
    if (id != p->graph->node_count)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "line %d: node %%%lld, expected %%%d: ids count up from 0", p->lexer.line,
                       (long long)id, p->graph->node_count);
    TP_TRY(tp_lexer_expect(&p->lexer, "="));
    TP_TRY(tp_lexer_word(&p->lexer, &op));
    TP_TRY(parse_operands(p, inputs, &input_count));
    TP_TRY(parse_attrs(p, attrs, &attr_count));
    (void)tp_graph_add(p->graph, op, inputs, input_count, attrs, attr_count);
    TP_TRY(check_graph(p));

    tp_node *node = &p->graph->nodes[id];
    TP_TRY(tp_lexer_expect(&p->lexer, ":"));
    TP_TRY(parse_type(p, node));
    TP_TRY(tp_lexer_quoted(&p->lexer, &name));
    node->name = tp_arena_strdup(p->graph->arena, name);
    return node->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* "name" = %7, after the word; for an input or variable the name must be the node's. */
static tpucl_status parse_link(parser *p, const char **out_name, tp_node_id *out_node)
{
    TP_TRY(tp_lexer_quoted(&p->lexer, out_name));
    TP_TRY(tp_lexer_expect(&p->lexer, "="));
    return parse_node_id(p, out_node);
}

static tpucl_status check_name(parser *p, const char *name, tp_node_id node)
{
    const char *want = tp_node_attr_text(&p->graph->nodes[node], "name", "");
    if (strcmp(name, want) == 0) return TPUCL_OK;
    return TP_FAIL(TPUCL_CORRUPT_DATA,
                   "line %d: entry of '%.100s', but the name in node %%%d is '%.100s'",
                   p->lexer.line, name, node, want);
}

static tpucl_status parse_input(parser *p)
{
    const char *name;
    tp_node_id node;
    TP_TRY(parse_link(p, &name, &node));
    TP_TRY(check_name(p, name, node));
    tp_graph_register_input(p->graph, node);
    return check_graph(p);
}

static tpucl_status parse_variable(parser *p)
{
    const char *name, *init;
    tp_variable variable = {0};
    TP_TRY(parse_link(p, &name, &variable.node));
    TP_TRY(check_name(p, name, variable.node));
    TP_TRY(tp_lexer_word(&p->lexer, &init));
    if (tp_init_kind_parse(init, &variable.init) != TPUCL_OK)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "line %d: there is no initialiser '%.100s'",
                       p->lexer.line, init);
    TP_TRY(tp_lexer_expect(&p->lexer, "("));
    TP_TRY(parse_float(p, &variable.init_a));
    TP_TRY(tp_lexer_expect(&p->lexer, ","));
    TP_TRY(parse_float(p, &variable.init_b));
    TP_TRY(tp_lexer_expect(&p->lexer, ")"));
    variable.is_trainable = tp_lexer_accept(&p->lexer, "trainable");
    variable.is_model = tp_lexer_accept(&p->lexer, "model");
    tp_graph_register_variable(p->graph, &variable);
    return check_graph(p);
}

static tpucl_status parse_update(parser *p)
{
    const char *name;
    tp_node_id value;
    TP_TRY(parse_link(p, &name, &value));
    const int32_t variable = tp_graph_find_variable(p->graph, name);
    if (variable < 0)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "line %d: update of '%.100s', which is no variable above it", p->lexer.line,
                       name);
    tp_graph_add_update(p->graph, p->graph->variables[variable].node, value);
    return check_graph(p);
}

static tpucl_status parse_output(parser *p)
{
    const char *name;
    tp_node_id node;
    TP_TRY(parse_link(p, &name, &node));
    tp_graph_add_output(p->graph, name, node);
    return check_graph(p);
}

static tpucl_status parse_entry(parser *p)
{
    static const struct {
        const char *word;
        tpucl_status (*parse)(parser *p);
    } entries[] = {{"%", parse_node},
                   {"input ", parse_input},
                   {"variable ", parse_variable},
                   {"update ", parse_update},
                   {"output ", parse_output}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i)
        if (tp_lexer_accept(&p->lexer, entries[i].word)) return entries[i].parse(p);
    return tp_lexer_fail(&p->lexer, "a node (%), input, variable, update or output");
}

static tpucl_status parse_graph(parser *p)
{
    tp_lexer_skip(&p->lexer);
    if (!tp_lexer_at_end(&p->lexer) && *p->lexer.rest.data == '\n')
        TP_TRY(tp_lexer_end_line(&p->lexer));
    TP_TRY(tp_lexer_expect(&p->lexer, "graph 1"));
    TP_TRY(tp_lexer_end_line(&p->lexer));
    while (!tp_lexer_at_end(&p->lexer)) {
        TP_TRY(parse_entry(p));
        TP_TRY(tp_lexer_end_line(&p->lexer));
    }
    if (tp_graph_verify(p->graph) == TPUCL_OK) return TPUCL_OK;
    const tpucl_error failure = *tpucl_last_error();
    if (failure.status == TPUCL_OUT_OF_MEMORY) return failure.status;
    return TP_FAIL(TPUCL_CORRUPT_DATA, "the text is no valid graph: %.900s", failure.message);
}

tpucl_status tp_graph_parse(const tp_op_table *ops, tp_view text, tp_graph **out_graph)
{
    parser p = {.lexer = {.rest = text, .line = 1}};
    tpucl_status status = tp_arena_create(0, &p.lexer.arena);
    if (status == TPUCL_OK) status = tp_graph_create(ops, &p.graph);
    if (status == TPUCL_OK) status = parse_graph(&p);
    if (status == TPUCL_OK)
        *out_graph = p.graph;
    else
        tp_graph_destroy(p.graph);
    tp_arena_destroy(p.lexer.arena);
    return status;
}
