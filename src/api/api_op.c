/* SPDX-License-Identifier: Apache-2.0
 * Registering ops from outside. One with a kernel becomes a row of the op table whose functions call the
 * caller's; one made of other ops is found here by tpucl_graph_apply and leaves no node of its own. */
#include "api/op_internal.h"

#include "core/alloc.h"
#include "graph/attrs.h"
#include "num/flush.h"
#include "ops/registry.h"

enum { MAX_ATTRIBUTES = 16, MAX_COMPOSITES = 64 };

/* `def` comes first: a node's def is the row that it stands in. */
typedef struct external_row {
    tp_opdef def;
    tp_external_op external;
    tpucl_op op; /* with copies of its texts */
} external_row;

struct tp_api_composite {
    external_row row;
};

static tp_api_composite *composites[MAX_COMPOSITES];
static int32_t composite_count;

static const tpucl_op *op_of(const tp_node *node)
{
    return &((const external_row *)(const void *)node->def)->op;
}

/* ---- contexts ---- */

static void add_type(tpucl_op_context *context, int32_t place, tp_dtype dtype,
                     const tp_shape *shape)
{
    context->dtypes[place] = dtype;
    context->shapes[place] = *shape;
}

static tpucl_op_context context_of(const tp_graph *graph, const tp_node *node, bool has_result)
{
    tpucl_op_context context = {
        .node = node, .input_count = node->input_count, .has_result = has_result};
    for (int32_t i = 0; i < node->input_count; i++) {
        const tp_node *input = tp_graph_node(graph, node->inputs[i]);
        add_type(&context, i, input->dtype, &input->shape);
    }
    if (has_result) add_type(&context, node->input_count, node->dtype, &node->shape);
    return context;
}

/* ---- the op table's functions ---- */

/* A callback that failed without a word leaves an old record behind. */
static tpucl_status call_result(const tpucl_op *op, const char *what, tpucl_status status)
{
    if (status == TPUCL_OK) return status;
    tpucl_error record;
    tp_error_capture(&record);
    if (record.status != status || !record.message[0])
        return TP_FAIL(status, "%s: its %s failed", op->name, what);
    tp_error_note("%s", op->name);
    return status;
}

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    const tpucl_op *op = op_of(node);
    const tpucl_op_context context = context_of(graph, node, false);
    tpucl_dtype dtype = TPUCL_F32;
    tpucl_shape shape = {0, {0}};
    tp_error_clear();
    TP_TRY(call_result(op, "infer", op->infer(op->user, &context, &dtype, &shape)));
    TP_TRY(tp_api_dtype(dtype, out_dtype));
    return tp_api_shape(shape, out_shape);
}

static tpucl_op_array array_of(const tp_host_tensor *tensor)
{
    return (tpucl_op_array){tp_api_dtype_public(tensor->dtype), tp_api_shape_public(&tensor->shape),
                            tensor->data};
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *unused, tp_host_tensor *out)
{
    const tpucl_op *op = op_of(node);
    tpucl_op_context context = {.node = node, .input_count = node->input_count, .has_result = true};
    tpucl_op_array arrays[TP_MAX_INPUTS];
    (void)unused;
    for (int32_t i = 0; i < node->input_count; i++) {
        add_type(&context, i, inputs[i].dtype, &inputs[i].shape);
        arrays[i] = array_of(&inputs[i]);
    }
    add_type(&context, node->input_count, out->dtype, &out->shape);
    const tpucl_op_array result = array_of(out);
    tp_error_clear();
    TP_TRY(call_result(op, "evaluate", op->evaluate(op->user, &context, arrays, &result)));
    tp_flush_array(out->dtype, out->data, (uint64_t)tp_shape_elems(&out->shape));
    return TPUCL_OK;
}

static void gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result, tp_node_id *d_inputs)
{
    const tp_node node = *tp_graph_node(graph, id); /* a copy: adding nodes may move them */
    const tpucl_op *op = op_of(&node);
    const tpucl_op_context context = context_of(graph, &node, true);
    tpucl_graph handle = {.graph = graph};
    tpucl_tensor inputs[TP_MAX_INPUTS], gradients[TP_MAX_INPUTS];
    for (int32_t i = 0; i < node.input_count; i++) {
        inputs[i] = (tpucl_tensor){node.inputs[i]};
        gradients[i] = (tpucl_tensor){TP_NO_NODE};
    }
    op->gradient(op->user, &context, &handle, inputs, (tpucl_tensor){id}, (tpucl_tensor){d_result},
                 gradients);
    for (int32_t i = 0; i < node.input_count && !graph->has_failed; i++) {
        if (gradients[i].id < 0) continue;
        const tp_node *input = tp_graph_node(graph, node.inputs[i]);
        if (gradients[i].id >= graph->node_count) {
            tp_graph_fail(graph, "%s: the gradient of operand %d is no tensor of the graph",
                          op->name, i);
            return;
        }
        const tp_node *found = tp_graph_node(graph, gradients[i].id);
        if (found->dtype != input->dtype || !tp_shape_equal(&found->shape, &input->shape)) {
            char a[TP_SHAPE_TEXT_MAX], b[TP_SHAPE_TEXT_MAX];
            tp_shape_format(&found->shape, a, sizeof a);
            tp_shape_format(&input->shape, b, sizeof b);
            tp_graph_fail(graph, "%s: the gradient of operand %d is %s%s, expected %s%s", op->name,
                          i, tp_dtype_name(found->dtype), a, tp_dtype_name(input->dtype), b);
            return;
        }
        d_inputs[i] = gradients[i].id;
    }
}

static double flops(const tp_graph *graph, const tp_node *node)
{
    const tpucl_op *op = op_of(node);
    const tpucl_op_context context = context_of(graph, node, true);
    return op->flops(op->user, &context);
}

static tpucl_status launch(const tp_graph *graph, const tp_node *node, tp_external_launch *out)
{
    const tpucl_op *op = op_of(node);
    const tpucl_op_context context = context_of(graph, node, true);
    tpucl_op_launch rule;
    memset(&rule, 0, sizeof rule);
    tp_error_clear();
    TP_TRY(call_result(op, "launch", op->launch(op->user, &context, &rule)));
    if (rule.scalar_count < 0 || rule.scalar_count > TPUCL_OP_MAX_SCALARS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: %d scalars, expected 0 to %d", op->name,
                       (int)rule.scalar_count, TPUCL_OP_MAX_SCALARS);
    if (!memchr(rule.options, '\0', sizeof rule.options))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: the options of its launch do not end",
                       op->name);
    memcpy(out->global, rule.global, sizeof out->global);
    memcpy(out->local, rule.local, sizeof out->local);
    memcpy(out->options, rule.options, sizeof rule.options);
    out->scalar_count = rule.scalar_count;
    for (int32_t i = 0; i < rule.scalar_count; i++) {
        out->scalars[i].is_float = rule.scalars[i].is_float;
        out->scalars[i].u32 = rule.scalars[i].u32;
        out->scalars[i].f32 = rule.scalars[i].f32;
    }
    return TPUCL_OK;
}

/* ---- registering ---- */

static bool is_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    const size_t length = name ? strlen(name) : 0;
    return length > 0 && length <= 64 && strspn(name, letters) == length &&
           !strchr("0123456789.", name[0]);
}

static tpucl_status check(const tpucl_op *op)
{
    if (op->version != TPUCL_OP_VERSION)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "an op of version %d, expected %d", (int)op->version,
                       TPUCL_OP_VERSION);
    if (!is_name(op->name))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "the name of an op is '%.80s', expected up to 64 letters, digits, '_' and "
                       "'.', a letter or '_' first",
                       op->name ? op->name : "NULL");
    if (op->min_inputs < 1 || op->max_inputs < op->min_inputs || op->max_inputs > TP_MAX_INPUTS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "op '%s' has %d to %d inputs, expected 1 to %d",
                       op->name, (int)op->min_inputs, (int)op->max_inputs, TP_MAX_INPUTS);
    if (op->attribute_count < 0 || op->attribute_count > MAX_ATTRIBUTES ||
        (op->attribute_count > 0 && !op->attributes))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "op '%s' has %d attributes, expected 0 to %d",
                       op->name, (int)op->attribute_count, MAX_ATTRIBUTES);
    const bool has_kernel_parts = op->infer || op->evaluate || op->kernel_source ||
                                  op->kernel_entry || op->launch || op->gradient || op->flops;
    const bool has_kernel =
        op->infer && op->evaluate && op->kernel_source && op->kernel_entry && op->launch;
    if (op->compose ? has_kernel_parts : !has_kernel)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "op '%s' needs 'compose' alone, or 'infer', 'evaluate', 'kernel_source', "
                       "'kernel_entry' and 'launch'",
                       op->name);
    return TPUCL_OK;
}

static tpucl_status read_attributes(const tpucl_op *op, tp_arena *arena, const tp_attr_spec **out)
{
    static const tp_attr_kind kinds[] = {[TPUCL_ATTRIBUTE_INT] = TP_ATTR_INT,
                                         [TPUCL_ATTRIBUTE_FLOAT] = TP_ATTR_FLOAT,
                                         [TPUCL_ATTRIBUTE_INTS] = TP_ATTR_INTS,
                                         [TPUCL_ATTRIBUTE_TEXT] = TP_ATTR_TEXT};
    const size_t count = (size_t)op->attribute_count;
    tp_attr_spec *specs = TP_ARENA_NEW_ARRAY(arena, tp_attr_spec, count + 1);
    if (!specs) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const tpucl_op_attribute *from = &op->attributes[i];
        if (!is_name(from->name) || from->kind < TPUCL_ATTRIBUTE_INT ||
            from->kind > TPUCL_ATTRIBUTE_TEXT)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute %zu of op '%s' has no name or kind",
                           i, op->name);
        specs[i] = (tp_attr_spec){.name = tp_arena_strdup(arena, from->name),
                                  .kind = kinds[from->kind],
                                  .is_optional = from->is_optional,
                                  .doc = ""};
        if (!specs[i].name) return TPUCL_OUT_OF_MEMORY;
    }
    *out = specs;
    return TPUCL_OK;
}

/* The row with copies of all texts. Its arena is the process's. */
static tpucl_status fill_row(const tpucl_op *op, tp_arena *arena, external_row *row)
{
    const tp_attr_spec *attrs = NULL;
    TP_TRY(read_attributes(op, arena, &attrs));
    row->op = *op;
    row->op.attributes = NULL;
    row->op.name = tp_arena_strdup(arena, op->name);
    row->op.doc = tp_arena_strdup(arena, op->doc ? op->doc : "");
    if (!row->op.name || !row->op.doc) return TPUCL_OUT_OF_MEMORY;
    row->def = (tp_opdef){.name = row->op.name,
                          .op_class = TP_OP_MEMORY,
                          .min_inputs = op->min_inputs,
                          .max_inputs = op->max_inputs,
                          .doc = row->op.doc,
                          .attrs = attrs};
    if (op->compose) return TPUCL_OK;
    row->external = (tp_external_op){.source = tp_arena_strdup(arena, op->kernel_source),
                                     .entry = tp_arena_strdup(arena, op->kernel_entry),
                                     .launch = launch};
    if (!row->external.source || !row->external.entry) return TPUCL_OUT_OF_MEMORY;
    row->def.external = &row->external;
    row->def.infer = infer;
    row->def.evaluate = evaluate;
    row->def.gradient = op->gradient ? gradient : NULL;
    row->def.flops = op->flops ? flops : NULL;
    return TPUCL_OK;
}

static tpucl_status add(const tpucl_op *op, tp_arena *arena)
{
    tp_api_composite *entry = TP_ARENA_NEW(arena, tp_api_composite);
    if (!entry) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(fill_row(op, arena, &entry->row));
    if (tp_api_composite_find(op->name))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "there is an op '%s' already", op->name);
    if (!op->compose) return tp_ops_register(&entry->row.def);
    if (tp_op_table_find(tp_ops_registry(), op->name))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "there is an op '%s' already", op->name);
    if (composite_count == MAX_COMPOSITES)
        return TP_FAIL(TPUCL_UNSUPPORTED, "op '%s' is one more than the %d that may be registered",
                       op->name, MAX_COMPOSITES);
    composites[composite_count++] = entry;
    return TPUCL_OK;
}

tpucl_status tpucl_op_register(const tpucl_op *op)
{
    TP_API_NEED(op);
    tpucl_op all;
    tp_arena *arena = NULL;
    TP_TRY(TP_API_OPTIONS(op, &all, tpucl_op));
    TP_TRY(check(&all));
    TP_TRY(tp_arena_create(0, &arena));
    const tpucl_status status = add(&all, arena);
    if (status != TPUCL_OK) tp_arena_destroy(arena);
    TP_TRY(status);
    return TPUCL_OK;
}

/* ---- composites ---- */

const tp_api_composite *tp_api_composite_find(const char *name)
{
    for (int32_t i = 0; i < composite_count; i++)
        if (strcmp(composites[i]->row.def.name, name) == 0) return composites[i];
    return NULL;
}

tp_node_id tp_api_composite_apply(const tp_api_composite *composite, tpucl_graph *graph,
                                  const tp_node_id *inputs, int32_t input_count,
                                  const tp_attr *attrs, int32_t attr_count)
{
    const tpucl_op *op = &composite->row.op;
    tp_graph *inner = graph->graph;
    tp_node node = {.def = &composite->row.def,
                    .input_count = input_count,
                    .attrs = attrs,
                    .attr_count = attr_count,
                    .name = ""};
    tpucl_tensor tensors[TP_MAX_INPUTS];
    if (inner->has_failed) return TP_NO_NODE;
    if (input_count < op->min_inputs || input_count > op->max_inputs)
        return tp_graph_fail(inner, "%s: %d inputs, expected %d to %d", op->name, input_count,
                             (int)op->min_inputs, (int)op->max_inputs);
    if (tp_attrs_check(node.def, attrs, attr_count) != TPUCL_OK) return tp_graph_keep_error(inner);
    for (int32_t i = 0; i < input_count; i++) {
        if (inputs[i] < 0 || inputs[i] >= inner->node_count)
            return tp_graph_fail(inner, "%s: input %d is no tensor of this graph", op->name, i);
        node.inputs[i] = inputs[i];
        tensors[i] = (tpucl_tensor){inputs[i]};
    }
    const tpucl_op_context context = context_of(inner, &node, false);
    const char *outer = tp_graph_push_scope(inner, op->name);
    const tpucl_tensor result = op->compose(op->user, &context, graph, tensors);
    tp_graph_pop_scope(inner, outer);
    if (inner->has_failed) return TP_NO_NODE;
    if (result.id < 0 || result.id >= inner->node_count)
        return tp_graph_fail(inner, "%s: its result is no tensor of this graph", op->name);
    return result.id;
}
