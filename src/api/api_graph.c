/* SPDX-License-Identifier: Apache-2.0
 * The builder of graphs. Every call goes through the graph's own builder, which keeps the first
 * mistake. */
#include "api/op_internal.h"

#include "core/alloc.h"
#include "core/json.h"
#include "core/problems.h"
#include "core/str.h"
#include "graph/builder.h"
#include "graph/print.h"
#include "model/initializer.h"
#include "ops/registry.h"
#include "topo/topology.h"

static const tpucl_tensor failed_tensor = {TP_NO_NODE};

static tpucl_tensor tensor_of(tp_node_id id)
{
    return (tpucl_tensor){id};
}

/* Moves a mistake that a helper reported into the graph. */
static tpucl_tensor fail(tpucl_graph *graph)
{
    tpucl_error error;
    tp_error_capture(&error);
    return tensor_of(tp_graph_fail(graph->graph, "%s", error.message));
}

/* An argument that is NULL is a mistake like any other: silently dropped, it would train another model. */
static bool is_missing(tpucl_graph *graph, const void *argument, const char *what)
{
    if (graph && !argument) (void)tp_graph_fail(graph->graph, "%s is NULL", what);
    return !graph || !argument;
}

tpucl_status tpucl_graph_create(tpucl_graph **out_graph)
{
    TP_API_NEED(out_graph);
    *out_graph = NULL;
    tpucl_graph *graph = TP_NEW(tpucl_graph);
    if (!graph) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_graph_create(tp_ops_registry(), &graph->graph), failed);
    *out_graph = graph;
    return TPUCL_OK;
failed:
    tp_free(graph);
    return status;
}

void tpucl_graph_destroy(tpucl_graph *graph)
{
    if (!graph) return;
    tp_graph_destroy(graph->graph);
    tp_free(graph);
}

/* ---- sources ---- */

static bool is_reserved(const char *name)
{
    return !strcmp(name, "weight") || !strcmp(name, "denominator");
}

tpucl_tensor tpucl_graph_input(tpucl_graph *graph, const char *name, tpucl_dtype dtype,
                               tpucl_shape shape)
{
    tp_dtype internal_dtype;
    tp_shape internal_shape;
    if (is_missing(graph, name, "the name of an input")) return failed_tensor;
    if (tp_api_dtype(dtype, &internal_dtype) || tp_api_shape(shape, &internal_shape))
        return fail(graph);
    if (is_reserved(name))
        return tensor_of(tp_graph_fail(graph->graph,
                                       "input '%s': the library keeps this name for "
                                       "the weights of a batch's examples",
                                       name));
    if (shape.rank < 1 || shape.dims[0] < 1)
        return tensor_of(tp_graph_fail(
            graph->graph, "input '%s' has no batch: its first dimension is the per-core batch",
            name));
    if (!graph->batch) graph->batch = shape.dims[0];
    if (shape.dims[0] != graph->batch)
        return tensor_of(tp_graph_fail(
            graph->graph, "input '%s' has a batch of %lld, the inputs before it have %lld", name,
            (long long)shape.dims[0], (long long)graph->batch));
    return tensor_of(tp_graph_add_input(graph->graph, name, internal_dtype, internal_shape));
}

/* The name of an initialiser, or its JSON object when it has parameters. */
static tpucl_status read_initializer(const char *text, tp_initializer *out)
{
    tp_json_document *document = NULL;
    tp_str_builder json = {0};
    tp_problems problems = {0};
    char *owned = NULL;
    size_t length;
    bool is_object = text[0] == '{';
    tp_str_builder_printf(&json, is_object ? "%s" : "\"%s\"", text);
    TP_TRY(tp_str_builder_finish(&json, &owned, &length));
    tpucl_status status = tp_json_parse(owned, length, "initializer", &document);
    tp_free(owned);
    TP_TRY(status);
    if (!tp_initializer_read(tp_json_root(document), &problems, out))
        status = tp_problems_result(&problems, TPUCL_INVALID_ARGUMENT, "an initialiser");
    tp_json_destroy(document);
    return status;
}

tpucl_tensor tpucl_graph_parameter(tpucl_graph *graph, const char *name, tpucl_shape shape,
                                   const char *initializer)
{
    tp_initializer read;
    if (is_missing(graph, name, "the name of a parameter")) return failed_tensor;
    tp_variable variable = {.name = name, .dtype = TP_F32, .is_trainable = true, .is_model = true};
    if (tp_api_shape(shape, &variable.shape) ||
        read_initializer(initializer ? initializer : "glorot_uniform", &read)) {
        tp_error_note("parameter '%s'", name);
        return fail(graph);
    }
    tp_initializer_resolve(&read, &variable.shape, &variable.init, &variable.init_a,
                           &variable.init_b);
    return tensor_of(tp_graph_add_variable(graph->graph, &variable));
}

tpucl_tensor tpucl_graph_constant(tpucl_graph *graph, tpucl_shape shape, const float *values)
{
    tp_shape internal;
    if (is_missing(graph, values, "the array of a constant's values")) return failed_tensor;
    if (tp_api_shape(shape, &internal)) return fail(graph);
    return tensor_of(tp_op_constant(graph->graph, TP_F32, internal, values));
}

/* ---- ops ---- */

static tpucl_status convert_attribute(const tpucl_attribute *from, tp_attr *out)
{
    if (!from->name) return TP_FAIL(TPUCL_INVALID_ARGUMENT, "an attribute has no name");
    *out = (tp_attr){.name = from->name};
    switch (from->kind) {
    case TPUCL_ATTRIBUTE_INT:
        out->kind = TP_ATTR_INT;
        out->int_value = from->int_value;
        return TPUCL_OK;
    case TPUCL_ATTRIBUTE_FLOAT:
        out->kind = TP_ATTR_FLOAT;
        out->float_value = from->float_value;
        return TPUCL_OK;
    case TPUCL_ATTRIBUTE_INTS:
        if (from->ints_count < 0 || (from->ints_count && !from->ints)) break;
        out->kind = TP_ATTR_INTS;
        out->ints = from->ints;
        out->ints_count = from->ints_count;
        return TPUCL_OK;
    case TPUCL_ATTRIBUTE_TEXT:
        if (!from->text) break;
        out->kind = TP_ATTR_TEXT;
        out->text = from->text;
        return TPUCL_OK;
    }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' has no value", from->name);
}

tpucl_tensor tpucl_graph_apply(tpucl_graph *graph, const char *op,
                               const tpucl_attribute *attributes, int32_t attribute_count,
                               const tpucl_tensor *inputs, int32_t input_count)
{
    enum { MAX_ATTRIBUTES = 16 };
    tp_attr attrs[MAX_ATTRIBUTES];
    tp_node_id nodes[TP_MAX_INPUTS];
    if (is_missing(graph, op, "the name of an op")) return failed_tensor;
    if (attribute_count < 0 || attribute_count > MAX_ATTRIBUTES || input_count < 0 ||
        input_count > TP_MAX_INPUTS)
        return tensor_of(tp_graph_fail(
            graph->graph, "op '%s' has %d attributes and %d inputs, expected at most %d and %d", op,
            (int)attribute_count, (int)input_count, MAX_ATTRIBUTES, TP_MAX_INPUTS));
    if ((attribute_count && !attributes) || (input_count && !inputs))
        return tensor_of(tp_graph_fail(graph->graph, "op '%s' has NULL for its %s", op,
                                       input_count && !inputs ? "inputs" : "attributes"));
    for (int32_t i = 0; i < attribute_count; i++) {
        if (convert_attribute(&attributes[i], &attrs[i])) {
            tp_error_note("op '%s'", op);
            return fail(graph);
        }
    }
    for (int32_t i = 0; i < input_count; i++)
        nodes[i] = inputs[i].id;
    const tp_api_composite *composite = tp_api_composite_find(op);
    if (composite)
        return tensor_of(
            tp_api_composite_apply(composite, graph, nodes, input_count, attrs, attribute_count));
    return tensor_of(tp_graph_add(graph->graph, op, nodes, input_count, attrs, attribute_count));
}

/* ---- what to do with it ---- */

/* f32 [batch]; records the mistake otherwise. */
static bool is_per_example(tpucl_graph *graph, const char *what, tpucl_tensor tensor)
{
    if (graph->graph->has_failed) return false;
    if (tensor.id < 0 || tensor.id >= graph->graph->node_count) {
        tp_graph_fail(graph->graph, "%s is no tensor of this graph", what);
        return false;
    }
    const tp_node *node = tp_graph_node(graph->graph, tensor.id);
    if (node->dtype == TP_F32 && node->shape.rank == 1 && node->shape.dims[0] == graph->batch)
        return true;
    char shape[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&node->shape, shape, sizeof shape);
    tp_graph_fail(graph->graph, "%s is %s%s, expected one value per example: f32[%lld]", what,
                  tp_dtype_name(node->dtype), shape, (long long)graph->batch);
    return false;
}

void tpucl_graph_metric(tpucl_graph *graph, const char *name, tpucl_tensor per_example)
{
    if (is_missing(graph, name, "the name of a metric")) return;
    if (!is_per_example(graph, name, per_example)) return;
    if (graph->metric_count == TP_API_MAX_METRICS) {
        tp_graph_fail(graph->graph, "more than %d metrics", TP_API_MAX_METRICS);
        return;
    }
    for (int32_t i = 0; i < graph->metric_count; i++) {
        if (strcmp(graph->metrics[i].name, name) != 0) continue;
        tp_graph_fail(graph->graph, "there are two metrics called '%s'", name);
        return;
    }
    const char *copy = tp_arena_strdup(graph->graph->arena, name);
    if (!copy) {
        fail(graph);
        return;
    }
    graph->metrics[graph->metric_count++] = (tp_api_metric){copy, per_example.id};
}

static tpucl_status find_optimizer(const char *name, tp_optim_kind *out_kind)
{
    static const char *const names[] = {
#define NAME(id, symbol, name, keys) #symbol,
        TP_OPTIMIZER_LIST(NAME)
#undef NAME
    };
    const size_t count = sizeof names / sizeof names[0];
    *out_kind = TP_OPTIM_SGD;
    if (!name) return TPUCL_OK;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out_kind = (tp_optim_kind)i;
        return TPUCL_OK;
    }
    const char *nearest = tp_str_nearest(name, names, count);
    return TP_FAIL(
        TPUCL_INVALID_ARGUMENT,
        "optimizer is '%.60s', expected one of docs/optimizers.md in small letters%s%s%s", name,
        nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Parts of names, copied. */
static tpucl_status copy_no_decay(tp_arena *arena, const tpucl_optimizer_options *options,
                                  tp_optim_config *out)
{
    if (!options->no_decay || options->no_decay_count < 1) return TPUCL_OK;
    const size_t count = (size_t)options->no_decay_count;
    const char **parts = TP_ARENA_NEW_ARRAY(arena, const char *, count);
    if (!parts) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!options->no_decay[i])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "no_decay[%zu] is NULL, expected a text", i);
        parts[i] = tp_arena_strdup(arena, options->no_decay[i]);
        if (!parts[i]) return TPUCL_OUT_OF_MEMORY;
    }
    out->excluded = parts;
    out->excluded_count = (int32_t)count;
    return TPUCL_OK;
}

/* 0 is f32. */
static tpucl_status read_state_dtype(const char *what, tpucl_dtype dtype, tp_dtype *out)
{
    *out = TP_F32;
    if ((int)dtype != 0) TP_TRY(tp_api_dtype(dtype, out));
    if (tp_dtype_is_float(*out)) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s is %s, expected TPUCL_F32 or TPUCL_BF16", what,
                   tp_dtype_name(*out));
}

/* Zero means Keras' default. */
static tpucl_status read_optimizer(tp_arena *arena, const tpucl_optimizer_options *options,
                                   tp_optim_config *out)
{
    tp_optim_kind kind;
    TP_TRY(find_optimizer(options->kind, &kind));
    *out = tp_optim_defaults(kind);
    if (options->learning_rate != 0) out->learning_rate = options->learning_rate;
    if (options->momentum != 0) out->momentum = options->momentum;
    if (options->beta_1 != 0) out->beta_1 = options->beta_1;
    if (options->beta_2 != 0) out->beta_2 = options->beta_2;
    if (options->epsilon != 0) out->epsilon = options->epsilon;
    if (options->rho != 0) out->rho = options->rho;
    if (options->weight_decay != 0) out->weight_decay = options->weight_decay;
    out->nesterov = options->nesterov;
    out->clipnorm = options->clipnorm;
    out->clipvalue = options->clipvalue;
    out->global_clipnorm = options->global_clipnorm;
    out->clip_at = options->clip_per_replica ? TP_CLIP_PER_REPLICA : TP_CLIP_AFTER_SUM;
    TP_TRY(read_state_dtype("first_moment", options->first_moment, &out->first_moment));
    TP_TRY(read_state_dtype("second_moment", options->second_moment, &out->second_moment));
    TP_TRY(read_state_dtype("gradients", options->gradients, &out->gradients));
    TP_TRY(copy_no_decay(arena, options, out));
    TP_TRY(tp_optim_check(out));
    return TPUCL_OK;
}

static tpucl_status read_groups(tpucl_graph *graph, const tpucl_optimizer_options *options)
{
    bool is_sum = options->reduction && !strcmp(options->reduction, "sum");
    if (options->reduction && !is_sum && strcmp(options->reduction, "mean") != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "reduction is '%s', expected 'mean' or 'sum'",
                       options->reduction);
    graph->reduction = is_sum ? TP_CROSS_SHARD_SUM : TP_CROSS_SHARD_MEAN;
    if (!options->groups) return TPUCL_OK;
    if (options->group_count < 1 || options->group_size < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%d groups of %d cores, expected 1 or more of both",
                       (int)options->group_count, (int)options->group_size);
    size_t count = (size_t)options->group_count, size = (size_t)options->group_size, all;
    if (!tp_size_mul(count, size, &all) || all > TP_TOPOLOGY_MAX_CORES)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%d groups of %d cores, expected at most %d cores in all",
                       (int)options->group_count, (int)options->group_size, TP_TOPOLOGY_MAX_CORES);
    tp_arena *arena = graph->graph->arena;
    tp_core_group *groups = TP_ARENA_NEW_ARRAY(arena, tp_core_group, count);
    int64_t *cores = TP_ARENA_NEW_ARRAY(arena, int64_t, all);
    if (!groups || !cores) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < all; i++)
        cores[i] = options->groups[i];
    for (size_t i = 0; i < count; i++)
        groups[i] = (tp_core_group){cores + i * size, options->group_size};
    graph->groups = groups;
    graph->group_count = options->group_count;
    return TPUCL_OK;
}

void tpucl_graph_minimize(tpucl_graph *graph, tpucl_tensor loss,
                          const tpucl_optimizer_options *optimizer)
{
    tpucl_optimizer_options options;
    if (!graph || !is_per_example(graph, "the loss", loss)) return;
    if (graph->has_loss) {
        tp_graph_fail(graph->graph, "a graph minimises one loss; this is the second");
        return;
    }
    if (TP_API_OPTIONS(optimizer, &options, tpucl_optimizer_options) ||
        read_optimizer(graph->graph->arena, &options, &graph->optimizer) ||
        read_groups(graph, &options)) {
        fail(graph);
        return;
    }
    tpucl_graph_metric(graph, "loss", loss);
    if (graph->graph->has_failed) return;
    /* the loss comes first */
    tp_api_metric metric = graph->metrics[graph->metric_count - 1];
    memmove(graph->metrics + 1, graph->metrics, sizeof metric * (size_t)(graph->metric_count - 1));
    graph->metrics[0] = metric;
    graph->has_loss = true;
}

tpucl_status tpucl_graph_check(const tpucl_graph *graph)
{
    TP_API_NEED(graph);
    return tp_graph_check(graph->graph);
}

tpucl_shape tpucl_graph_shape(const tpucl_graph *graph, tpucl_tensor tensor)
{
    tpucl_shape none = {-1, {0}};
    if (!graph || tensor.id < 0 || tensor.id >= graph->graph->node_count) return none;
    return tp_api_shape_public(&tp_graph_node(graph->graph, tensor.id)->shape);
}

tpucl_status tpucl_graph_print(const tpucl_graph *graph, char **out_text)
{
    TP_API_NEED(graph);
    TP_API_NEED(out_text);
    tp_str_builder text = {0};
    tp_graph_print(graph->graph, &text);
    TP_TRY(tp_str_builder_finish(&text, out_text, NULL));
    return TPUCL_OK;
}
