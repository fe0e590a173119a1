/* SPDX-License-Identifier: Apache-2.0
 * The table of layer types, reading a layer from JSON, and what layers share. See layer.h.
 */
#include "model/layer.h"

#include <string.h>

#include "core/str.h"
#include "graph/geometry.h"

static const char *const policy_names[TP_POLICY_COUNT] = {"float32", "mixed_bfloat16", "bfloat16"};
/* Members that every layer may have. "inputs" is the model's: see model_read.c. */
static const char *const common_keys[] = {"type", "name", "trainable", "dtype", "inputs"};

#define TYPE_ROW(id) &tp_layer_##id,
static const tp_layer_type *const types[] = {TP_LAYER_LIST(TYPE_ROW)};
#undef TYPE_ROW
enum {
    TYPE_COUNT = sizeof types / sizeof *types,
    COMMON_COUNT = sizeof common_keys / sizeof *common_keys,
    MAX_KEYS = 64
};

/* ---- reading ---- */

/* The common members and the type's own arguments must be all there is. */
static void check_keys(const tp_json *value, const tp_layer_type *type, tp_problems *problems)
{
    const char *keys[MAX_KEYS];
    size_t count = COMMON_COUNT;
    memcpy(keys, common_keys, sizeof common_keys);
    for (const tp_layer_arg *arg = type->arguments; arg && arg->name && count < MAX_KEYS; arg++)
        keys[count++] = arg->name;
    for (size_t i = 0; i < value->count; i++) {
        const tp_json *member = &value->items[i];
        bool is_known = false;
        for (size_t j = 0; j < count; j++)
            is_known = is_known || strcmp(member->key, keys[j]) == 0;
        if (is_known) continue;
        const char *nearest = tp_str_nearest(member->key, keys, count);
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(problems, "%s: %s has no argument '%s'%s%s%s", tp_json_where(member, where),
                        type->name, member->key, nearest ? ", did you mean '" : "",
                        nearest ? nearest : "", nearest ? "'?" : "");
    }
}

static const tp_layer_type *read_type(const tp_json *value, tp_problems *problems)
{
    const char *names[TYPE_COUNT];
    for (size_t i = 0; i < TYPE_COUNT; i++)
        names[i] = types[i]->name;
    const tp_json *member;
    size_t index;
    if (!tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_OBJECT)) ||
        !tp_problems_add_failed(problems,
                                tp_json_require(value, "type", TP_JSON_STRING, &member)) ||
        !tp_problems_add_failed(problems, tp_json_as_choice(member, names, TYPE_COUNT, &index)))
        return NULL;
    return types[index];
}

static void read_name(const tp_json *value, tp_problems *problems, tp_layer *layer)
{
    const char *name = NULL;
    if (!tp_problems_add_failed(problems, tp_json_get_string(value, "name", &name)) || !name)
        return;
    if (name[0] == '\0' || strchr(name, '/')) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(problems, "%s: the name is '%.64s', expected a text without '/'",
                        tp_json_where(tp_json_member(value, "name"), where), name);
        return;
    }
    layer->name = tp_arena_strdup(layer->arena, name);
    if (!layer->name) tp_problems_add_failed(problems, TPUCL_OUT_OF_MEMORY);
}

const char *tp_model_policy_name(tp_model_policy policy)
{
    return policy_names[policy];
}

bool tp_model_policy_find(const char *name, tp_model_policy *out_policy)
{
    for (int i = 0; i < TP_POLICY_COUNT; i++)
        if (strcmp(policy_names[i], name) == 0) {
            *out_policy = (tp_model_policy)i;
            return true;
        }
    return false;
}

/* "dtype": a name, or a policy as Keras' files have it. */
static void read_policy(const tp_json *value, tp_problems *problems, tp_layer *layer)
{
    static const char *const keys[] = {"class_name", "config", "module", "registered_name"};
    const tp_json *dtype = tp_json_member(value, "dtype"), *config;
    size_t index;
    if (dtype && dtype->kind == TP_JSON_OBJECT) {
        if (!tp_problems_add_failed(problems, tp_json_check_keys(dtype, keys, 4)) ||
            !tp_problems_add_failed(problems,
                                    tp_json_require(dtype, "config", TP_JSON_OBJECT, &config)) ||
            !tp_problems_add_failed(problems,
                                    tp_json_require(config, "name", TP_JSON_STRING, &dtype)))
            return;
    }
    layer->has_policy =
        dtype && tp_problems_add_failed(
                     problems, tp_json_as_choice(dtype, policy_names, TP_POLICY_COUNT, &index));
    if (layer->has_policy) layer->policy = (tp_model_policy)index;
}

/* A wrapper without a policy has that of the layer in it; two must agree, since both compute as one. */
static void join_policy(const tp_json *value, const tp_layer *nested, tp_problems *problems,
                        tp_layer *layer)
{
    char where[TP_JSON_WHERE_BYTES];
    if (!nested || !nested->has_policy) return;
    if (layer->has_policy && layer->policy != nested->policy)
        tp_problems_add(
            problems, "%s: the layer's policy is %s, that of its wrapper %s; expected one",
            tp_json_where(value, where), policy_names[nested->policy], policy_names[layer->policy]);
    layer->has_policy = true;
    layer->policy = nested->policy;
}

static void read_arguments(const tp_json *value, tp_problems *problems, tp_layer *layer)
{
    const tp_layer_type *type = layer->type;
    for (const tp_layer_arg *arg = type->arguments; arg && arg->name; arg++) {
        const tp_json *member = tp_json_member(value, arg->name);
        if (member) {
            tp_layer_arg_read(member, arg, layer->arena, layer->args, problems);
            if (arg->kind == TP_LAYER_NESTED)
                join_policy(member, *(tp_layer **)(void *)((char *)layer->args + arg->offset),
                            problems, layer);
        } else if (arg->is_required) {
            char where[TP_JSON_WHERE_BYTES];
            tp_problems_add(problems, "%s: %s needs the argument '%s'", tp_json_where(value, where),
                            type->name, arg->name);
        }
    }
}

bool tp_layer_read(const tp_json *value, tp_arena *arena, tp_problems *problems,
                   tp_layer *out_layer)
{
    const size_t before = problems->count;
    *out_layer = (tp_layer){.arena = arena, .trainable = true};
    const tp_layer_type *type = read_type(value, problems);
    if (!type) return false;
    out_layer->type = type;
    out_layer->args = tp_arena_alloc(arena, type->args_bytes ? type->args_bytes : 1);
    if (!out_layer->args) return tp_problems_add_failed(problems, TPUCL_OUT_OF_MEMORY);
    if (type->set_defaults) type->set_defaults(out_layer->args);
    check_keys(value, type, problems);
    read_name(value, problems, out_layer);
    tp_problems_add_failed(problems, tp_json_get_bool(value, "trainable", &out_layer->trainable));
    read_policy(value, problems, out_layer);
    read_arguments(value, problems, out_layer);
    return problems->count == before;
}

/* ---- for infer ---- */

tp_layer_weight *tp_layer_add_weight(tp_layer *layer, const char *name, int rank,
                                     const int64_t *dims, const tp_initializer *initializer,
                                     bool is_trainable)
{
    if (layer->weight_count == layer->weight_capacity) {
        const int32_t capacity = layer->weight_capacity ? 2 * layer->weight_capacity : 4;
        tp_layer_weight *grown =
            TP_ARENA_NEW_ARRAY(layer->arena, tp_layer_weight, (size_t)capacity);
        layer->is_out_of_memory = layer->is_out_of_memory || !grown;
        if (!grown) return &layer->spare;
        if (layer->weight_count)
            memcpy(grown, layer->weights, (size_t)layer->weight_count * sizeof *grown);
        layer->weights = grown;
        layer->weight_capacity = capacity;
    }
    const char *copy = tp_arena_strdup(layer->arena, name);
    layer->is_out_of_memory = layer->is_out_of_memory || !copy;
    if (!copy) return &layer->spare;
    tp_layer_weight *weight = &layer->weights[layer->weight_count++];
    *weight =
        (tp_layer_weight){.name = copy, .initializer = initializer, .is_trainable = is_trainable};
    weight->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        weight->shape.dims[i] = dims[i];
    return weight;
}

void tp_layer_add_trained(tp_layer *layer, const char *name, int rank, const int64_t *dims,
                          const tp_initializer *initializer, const tp_regularizer *regularizer,
                          const tp_constraint *constraint)
{
    tp_layer_weight *weight = tp_layer_add_weight(layer, name, rank, dims, initializer, true);
    weight->regularizer = regularizer;
    weight->constraint = constraint;
}

bool tp_layer_add_output(tp_layer *layer, tp_problems *problems, int rank, const int64_t *dims)
{
    if (layer->output_count == TP_LAYER_MAX_OUTPUTS) {
        tp_problems_add(problems, "more than %d results", TP_LAYER_MAX_OUTPUTS);
        return false;
    }
    if (rank >= TP_MAX_RANK) { /* the batch needs one */
        tp_problems_add(problems, "a result of %d dimensions, expected at most %d", rank,
                        TP_MAX_RANK - 1);
        return false;
    }
    tp_shape *output = &layer->outputs[layer->output_count];
    if (!tp_problems_add_failed(problems, tp_shape_init(output, rank, dims))) return false;
    layer->output_count++;
    return true;
}

bool tp_layer_same_output(tp_layer *layer, tp_problems *problems)
{
    const tp_shape *input = tp_layer_input(layer, 0);
    return tp_layer_add_output(layer, problems, input->rank, input->dims);
}

bool tp_layer_need_rank(const tp_layer *layer, int rank, const char *expected,
                        tp_problems *problems)
{
    const tp_shape *input = tp_layer_input(layer, 0);
    if (input->rank == rank) return true;
    char found[TP_SHAPE_TEXT_MAX];
    tp_shape_format(input, found, sizeof found);
    const bool has_no_channels = input->rank == rank - 1;
    tp_problems_add(problems, "the input is %s, expected %s%s", found, expected,
                    has_no_channels ? "; a Reshape before it can add the channel" : "");
    return false;
}

bool tp_layer_need_image(const tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_rank(layer, 3, "[height,width,channels]", problems);
}

bool tp_layer_need_groups(int64_t channels, int64_t filters, int64_t groups, tp_problems *problems)
{
    if (channels % groups == 0 && filters % groups == 0) return true;
    tp_problems_add(problems, "%lld channels and %lld filters do not split into %lld 'groups'",
                    (long long)channels, (long long)filters, (long long)groups);
    return false;
}

bool tp_layer_need_features(const tp_layer *layer, tp_problems *problems)
{
    if (tp_layer_input(layer, 0)->rank >= 1) return true;
    tp_problems_add(problems, "the input is a scalar, expected at least one dimension");
    return false;
}

bool tp_layer_find_axes(const tp_layer *layer, const tp_layer_ints *axes, tp_problems *problems,
                        tp_layer_axes *out_axes)
{
    static const int64_t last[] = {-1};
    const int rank = tp_layer_input(layer, 0)->rank;
    const tp_layer_ints given = axes->items ? *axes : (tp_layer_ints){last, 1};
    bool is_chosen[TP_MAX_RANK] = {false};
    out_axes->count = 0;
    for (int32_t i = 0; i < given.count; i++) {
        const int64_t axis = given.items[i] + (given.items[i] < 0 ? rank : -1);
        if (axis < 0 || axis >= rank || is_chosen[axis]) {
            tp_problems_add(
                problems,
                "'axis' has %lld, expected different ones of 1 to %d (0 is the batch) or "
                "-1 to %d",
                (long long)given.items[i], rank, -rank);
            return false;
        }
        is_chosen[axis] = true;
    }
    for (int64_t axis = 0; axis < rank; axis++)
        if (is_chosen[axis]) out_axes->items[out_axes->count++] = axis;
    if (out_axes->count) return true;
    tp_problems_add(problems, "'axis' is empty");
    return false;
}

/* ---- windows ---- */

bool tp_layer_infer_windows(const tp_layer *layer, int spatial, tp_layer_windows *windows,
                            tp_problems *problems)
{
    static const char *const names[3][3] = {
        {"length"}, {"height", "width"}, {"depth", "height", "width"}};
    for (int i = 0; i < spatial; i++) {
        const int64_t in = tp_layer_input(layer, 0)->dims[i];
        if (windows->dilation[i] == 0) windows->dilation[i] = 1;
        if (windows->padding == TP_PADDING_SAME)
            tp_geometry_same_padding(in, windows->size[i], windows->strides[i],
                                     windows->dilation[i], &windows->pad[2 * i],
                                     &windows->pad[2 * i + 1]);
        const int64_t covered = (windows->size[i] - 1) * windows->dilation[i] + 1;
        const int64_t room = in + windows->pad[2 * i] + windows->pad[2 * i + 1];
        if (covered > room) {
            tp_problems_add(problems, "a window of %lld does not fit into the input's %s of %lld",
                            (long long)covered, names[spatial - 1][i], (long long)in);
            return false;
        }
        windows->out[i] = (room - covered) / windows->strides[i] + 1;
    }
    return true;
}

tp_window tp_layer_window(const tp_layer_windows *windows)
{
    const int64_t *pad = windows->pad;
    return (tp_window){.size = {windows->size[0], windows->size[1]},
                       .strides = {windows->strides[0], windows->strides[1]},
                       .padding = {pad[0], pad[1], pad[2], pad[3]},
                       .dilation = {windows->dilation[0], windows->dilation[1]}};
}
