/* SPDX-License-Identifier: Apache-2.0
 * Weights of a model to the places that Keras 3 has for them, and the file as a whole.
 */
#include "keras/export.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/json_write.h"
#include "core/problems.h"
#include "core/str.h"
#include "io/keras_file.h"
#include "keras/map_internal.h"
#include "model/model.h"

/* ---- places inside a layer ---- */

static const char *type_of(const tp_json *row)
{
    const tp_json *type = tp_keras_member(row, "type");
    return type && type->kind == TP_JSON_STRING ? type->string : "";
}

static bool is_recurrent(const char *type)
{
    return strcmp(type, "LSTM") == 0 || strcmp(type, "GRU") == 0 || strcmp(type, "SimpleRNN") == 0;
}

/* Where the weight `index` of the `count` of a layer is: below which child, and its number there. */
static void find_child(const tp_json *row, int32_t index, int32_t count, char child[64],
                       int32_t *out_number)
{
    static const char *const plain[] = {"query_dense", "key_dense", "value_dense", "output_dense"};
    static const char *const gated[] = {"query_dense", "key_dense", "gate_dense", "value_dense",
                                        "output_dense"};
    const bool is_grouped = strcmp(type_of(row), "GroupQueryAttention") == 0;
    const tp_json *gate = tp_keras_member(row, "use_gate");
    const bool is_gated = gate && gate->kind == TP_JSON_BOOL && gate->boolean;
    const int32_t projections = is_gated ? 5 : 4;
    const char *type = type_of(row);
    child[0] = 0;
    *out_number = index;
    if (strcmp(type, "TimeDistributed") == 0) {
        char inner[64];
        find_child(tp_keras_member(row, "layer"), index, count, inner, out_number);
        snprintf(child, 64, "layer/%.40s", inner);
    } else if (strcmp(type, "Bidirectional") == 0) {
        const int32_t half = count / 2;
        *out_number = half ? index % half : 0;
        snprintf(child, 64, "%s/cell/", index < half ? "forward_layer" : "backward_layer");
    } else if ((strcmp(type, "MultiHeadAttention") == 0 || is_grouped) && count >= projections) {
        const int32_t each = count / projections;
        const int32_t which = index / each < projections ? index / each : projections - 1;
        *out_number = index % each;
        /* Keras' attributes are _query_dense, ...; of MultiHeadAttention they are properties without "_", too. */
        snprintf(child, 64, "%s%s/", is_grouped ? "_" : "", is_gated ? gated[which] : plain[which]);
    } else if (is_recurrent(type)) {
        strcpy(child, "cell/");
    }
}

/* ---- tensors ---- */

typedef struct weights {
    tp_arena *arena;
    const tp_graph *graph; /* a prediction: all weights of the model */
    tp_safetensors *params;
    tp_keras_tensor *tensors;
    int32_t count;
    tp_problems problems;
} weights;

/* Whether the variable is of this layer: no other one's name may fit longer. */
static bool belongs(const tp_keras_export_layers *layers, int32_t layer, const char *variable)
{
    size_t longest = 0;
    int32_t found = -1;
    for (int32_t i = 0; i < layers->count; i++) {
        const size_t length = strlen(layers->items[i].name);
        if (length < longest || strncmp(variable, layers->items[i].name, length) != 0 ||
            variable[length] != '/')
            continue;
        longest = length;
        found = i;
    }
    return found == layer;
}

static tpucl_status add_tensor(weights *all, const tp_keras_export_layer *layer,
                               const tp_variable *variable, int32_t index, int32_t count)
{
    char child[64];
    int32_t number;
    const tp_tensor_entry *entry = tp_safetensors_find(all->params, variable->name);
    if (!entry) {
        tp_problems_add(&all->problems, "'%s' is not in the parameters", variable->name);
        return TPUCL_OK;
    }
    const bool are_floats = tp_dtype_is_float(entry->dtype) && tp_dtype_is_float(variable->dtype);
    if ((entry->dtype != variable->dtype && !are_floats) ||
        !tp_shape_equal(&entry->shape, &variable->shape)) {
        char here[TP_SHAPE_TEXT_MAX], there[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&variable->shape, here, sizeof here);
        tp_shape_format(&entry->shape, there, sizeof there);
        tp_problems_add(&all->problems, "'%s' is %s%s in the parameters, %s%s in the model",
                        variable->name, tp_dtype_name(entry->dtype), there,
                        tp_dtype_name(variable->dtype), here);
        return TPUCL_OK;
    }
    find_child(layer->row, index, count, child, &number);
    tp_keras_tensor *tensor = &all->tensors[all->count++];
    *tensor = (tp_keras_tensor){
        .path = tp_arena_printf(all->arena, "%s/%svars/%d", layer->place, child, number),
        .dtype = entry->dtype,
        .shape = entry->shape,
        .elements = entry->data};
    return tensor->path ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status list_tensors(weights *all, const tp_keras_export_layers *layers)
{
    const int32_t total = all->graph->variable_count;
    int32_t *own = TP_ARENA_NEW_ARRAY(all->arena, int32_t, (size_t)total + 1);
    all->tensors = TP_ARENA_NEW_ARRAY(all->arena, tp_keras_tensor, (size_t)total + 1);
    if (!own || !all->tensors) return TPUCL_OUT_OF_MEMORY;
    for (int32_t layer = 0; layer < layers->count; layer++) {
        int32_t count = 0;
        for (int32_t i = 0; i < total; i++)
            if (belongs(layers, layer, all->graph->variables[i].name)) own[count++] = i;
        for (int32_t i = 0; i < count; i++)
            TP_TRY(
                add_tensor(all, &layers->items[layer], &all->graph->variables[own[i]], i, count));
    }
    return tp_problems_result(&all->problems, TPUCL_INVALID_CONFIG, "the parameters");
}

/* ---- the model ---- */

static tpucl_status make_model(const tp_keras_export_options *options, tp_arena *arena,
                               tp_model **out_model)
{
    tp_model_options settings = {.precision = TP_PRECISION_F32};
    if (!tp_model_policy_find(options->policy, &settings.policy))
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "'precision' is '%.60s', expected float32, mixed_bfloat16 or bfloat16",
                       options->policy);
    tp_model_input *inputs =
        TP_ARENA_NEW_ARRAY(arena, tp_model_input, (size_t)options->input_count + 1);
    if (!inputs) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < options->input_count; i++)
        inputs[i] = (tp_model_input){.dtype = options->inputs[i].is_integer ? TP_S32 : TP_F32,
                                     .shape = options->inputs[i].shape,
                                     .scale = 1,
                                     .is_integer = options->inputs[i].is_integer,
                                     .name = options->inputs[i].name};
    return tp_model_create_many(options->model, inputs, options->input_count, &settings, out_model);
}

static tpucl_status write(const tp_keras_export_options *options, weights *all,
                          const tp_model *model, const char *path)
{
    tp_keras_export_layers layers = {0};
    char *config = NULL;
    TP_TRY(tp_keras_export_config(options, model, all->arena, &layers, &config));
    tpucl_status status = list_tensors(all, &layers);
    if (status == TPUCL_OK)
        status = tp_str_ends_with(path, ".weights.h5")
                     ? tp_keras_write_weights(path, all->tensors, all->count)
                     : tp_keras_write_model(path, config, all->tensors, all->count);
    tp_free(config);
    return status;
}

tpucl_status tp_keras_export(const tp_keras_export_options *options, const char *path)
{
    weights all = {0};
    tp_model *model = NULL;
    tp_graph *graph = NULL;
    tpucl_status status;
    if (!tp_str_ends_with(path, ".keras") && !tp_str_ends_with(path, ".weights.h5"))
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' should end in .keras or .weights.h5", path);
    TP_TRY(tp_arena_create(0, &all.arena));
    TP_TRY_GOTO(status, make_model(options, all.arena, &model), done);
    TP_TRY_GOTO(status, tp_model_build_predict(model, 1, &graph), done);
    TP_TRY_GOTO(status, tp_safetensors_open(options->params, &all.params), done);
    all.graph = graph;
    status = write(options, &all, model, path);
done:
    tp_safetensors_close(all.params);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
    tp_arena_destroy(all.arena);
    return status;
}

/* ---- from a run configuration ---- */

static tpucl_status read_dims(const tp_json *list, tp_shape *out_shape)
{
    int64_t dims[TP_MAX_RANK];
    TP_TRY(tp_json_expect(list, TP_JSON_ARRAY));
    for (size_t i = 0; i < list->count && i < TP_MAX_RANK; i++)
        TP_TRY(tp_json_as_int64(&list->items[i], 1, TP_MAX_ELEMS, &dims[i]));
    return tp_shape_init(out_shape, (int)list->count, dims);
}

/* Shapes are those of the model's "inputs", or for a single one the configuration's input_shape. */
static tpucl_status read_inputs(const tp_json *config, tp_arena *arena,
                                tp_keras_export_options *options)
{
    const tp_json *list = tp_keras_member(options->model, "inputs");
    const tp_json *whole = tp_keras_member(config, "input_shape");
    const size_t count = list && list->kind == TP_JSON_ARRAY ? list->count : 0;
    tp_keras_input *inputs = TP_ARENA_NEW_ARRAY(arena, tp_keras_input, count + 1);
    if (!inputs) return TPUCL_OUT_OF_MEMORY;
    options->inputs = inputs;
    options->input_count = count ? (int32_t)count : 1;
    inputs[0].name = "image";
    for (size_t i = 0; i < count; i++) {
        const char *dtype = "float32";
        const tp_json *shape = tp_keras_member(&list->items[i], "shape");
        TP_TRY(tp_json_get_string(&list->items[i], "name", &inputs[i].name));
        TP_TRY(tp_json_get_string(&list->items[i], "dtype", &dtype));
        inputs[i].is_integer = strcmp(dtype, "int32") == 0;
        if (shape) TP_TRY(read_dims(shape, &inputs[i].shape));
    }
    if (options->input_count == 1 && inputs[0].shape.rank == 0 && whole)
        TP_TRY(read_dims(whole, &inputs[0].shape));
    for (int32_t i = 0; i < options->input_count; i++)
        if (!inputs[i].name || inputs[i].shape.rank == 0)
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "the configuration does not say the shape of the input '%s'; give "
                           "input_shape, or \"inputs\" with names and shapes in the model",
                           inputs[i].name ? inputs[i].name : "");
    return TPUCL_OK;
}

/* "precision": a name, or an object with "policy" and "weights", of which Keras has policies where weights are
 * as wide as the layer's results, or f32. */
static tpucl_status read_policy(const tp_json *config, const char **out_policy)
{
    const tp_json *precision = tp_keras_member(config, "precision");
    const char *wide = NULL;
    if (!precision) return TPUCL_OK;
    if (precision->kind == TP_JSON_STRING) *out_policy = precision->string;
    if (precision->kind != TP_JSON_OBJECT) return TPUCL_OK;
    const tp_json *policy = tp_keras_member(precision, "policy");
    const tp_json *given = tp_keras_member(precision, "weights");
    if (policy && policy->kind == TP_JSON_STRING) *out_policy = policy->string;
    if (given && given->kind == TP_JSON_STRING) wide = given->string;
    if (!wide || strcmp(*out_policy, "float32") == 0) return TPUCL_OK;
    *out_policy = strcmp(wide, "bfloat16") == 0 ? "bfloat16" : "mixed_bfloat16";
    return TPUCL_OK;
}

/* Only what an export needs is read, so that a configuration without a loss will do. */
static tpucl_status export_json(const tp_json *config, const char *params_path, const char *path)
{
    tp_arena *arena;
    tp_keras_export_options options = {.name = "model", .policy = "float32", .params = params_path};
    TP_TRY(tp_json_require(config, "model", TP_JSON_OBJECT, &options.model));
    TP_TRY(tp_json_get_string(config, "name", &options.name));
    TP_TRY(read_policy(config, &options.policy));
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status = read_inputs(config, arena, &options);
    if (status == TPUCL_OK) status = tp_keras_export(&options, path);
    tp_arena_destroy(arena);
    return status;
}

tpucl_status tp_keras_export_run(const char *config_path, const char *params_path, const char *path)
{
    enum { MAX_BYTES = 64 << 20 };
    tp_json_document *document;
    TP_TRY(tp_json_read_file(config_path, MAX_BYTES, &document));
    const tp_json *root = tp_json_root(document);
    tpucl_status status = tp_json_expect(root, TP_JSON_OBJECT);
    if (status == TPUCL_OK) status = export_json(root, params_path, path);
    tp_json_destroy(document);
    return status;
}
