/* SPDX-License-Identifier: Apache-2.0
 * The table of layer types, reading a layer's arguments from JSON, and what layers share.
 */
#include "model/layer.h"

#include <math.h>
#include <string.h>

#include "core/str.h"
#include "graph/builder.h"
#include "graph/geometry.h"

const char *const tp_padding_names[2] = {"valid", "same"};
const char *const tp_data_format_names[1] = {"channels_last"};
static const char *const dtype_names[] = {"float32", "mixed_bfloat16"};

static const tp_layer_type *const types[] = {
    &tp_layer_dense,
    &tp_layer_conv2d,
    &tp_layer_max_pooling2d,
    &tp_layer_average_pooling2d,
    &tp_layer_global_average_pooling2d,
    &tp_layer_flatten,
    &tp_layer_reshape,
    &tp_layer_rescaling,
    &tp_layer_activation,
    &tp_layer_relu,
    &tp_layer_softmax,
    &tp_layer_dropout,
    &tp_layer_batch_normalization,
};
enum { TYPE_COUNT = sizeof types / sizeof *types, MAX_ARGUMENTS = 24 };

/* ---- reading ---- */

static tpucl_status read_pair(const tp_json *value, const tp_layer_arg *arg, int64_t *out)
{
    const int64_t min = (int64_t)arg->min, max = (int64_t)arg->max;
    if (value->kind != TP_JSON_ARRAY) {
        TP_TRY(tp_json_as_int64(value, min, max, &out[0]));
        out[1] = out[0];
        return TPUCL_OK;
    }
    if (value->count != 2) {
        char where[TP_JSON_WHERE_BYTES];
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%s: expected a number or a list of two, found %zu",
                       tp_json_where(value, where), value->count);
    }
    TP_TRY(tp_json_as_int64(&value->items[0], min, max, &out[0]));
    return tp_json_as_int64(&value->items[1], min, max, &out[1]);
}

static tpucl_status read_dims(const tp_json *value, tp_layer *layer)
{
    TP_TRY(tp_json_expect(value, TP_JSON_ARRAY));
    char where[TP_JSON_WHERE_BYTES];
    if (value->count > TP_MAX_RANK - 1)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%s: %zu dimensions, expected at most %d",
                       tp_json_where(value, where), value->count, TP_MAX_RANK - 1);
    int32_t open = 0;
    for (size_t i = 0; i < value->count; i++) {
        TP_TRY(tp_json_as_int64(&value->items[i], -1, (int64_t)1 << 31, &layer->target_shape[i]));
        open += layer->target_shape[i] == -1;
    }
    if (open > 1)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%s: only one dimension may be -1",
                       tp_json_where(value, where));
    layer->target_rank = (int32_t)value->count;
    return TPUCL_OK;
}

static void read_argument(const tp_json *value, const tp_layer_arg *arg, tp_problems *problems,
                          tp_layer *layer)
{
    void *field = (char *)layer + arg->offset;
    tpucl_status status = TPUCL_OK;
    size_t index = 0;
    switch (arg->kind) {
    case TP_LAYER_INT:
        status = tp_json_as_int64(value, (int64_t)arg->min, (int64_t)arg->max, field);
        break;
    case TP_LAYER_LIMIT:
        if (value->kind == TP_JSON_NULL) {
            *(double *)field = INFINITY;
            break;
        }
        status = tp_json_as_double(value, arg->min, arg->max, field);
        break;
    case TP_LAYER_NUMBER:
        status = tp_json_as_double(value, arg->min, arg->max, field);
        break;
    case TP_LAYER_BOOL:
        status = tp_json_as_bool(value, field);
        break;
    case TP_LAYER_CHOICE:
        status = tp_json_as_choice(value, arg->choices, arg->choice_count, &index);
        if (status == TPUCL_OK) *(int32_t *)field = (int32_t)index;
        break;
    case TP_LAYER_PAIR:
        status = read_pair(value, arg, field);
        break;
    case TP_LAYER_DIMS:
        status = read_dims(value, layer);
        break;
    case TP_LAYER_INITIALIZER:
        tp_initializer_read(value, problems, field);
        break;
    }
    tp_problems_add_failed(problems, status);
}

/* "type", "name", "trainable", "dtype" and the type's own arguments must be all there is. */
static void check_keys(const tp_json *value, const tp_layer_type *type, tp_problems *problems)
{
    const char *keys[MAX_ARGUMENTS] = {"type", "name", "trainable", "dtype"};
    size_t count = 4;
    for (const tp_layer_arg *arg = type->arguments; arg->name && count < MAX_ARGUMENTS; arg++)
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
    if (name[0] != '\0' && !strchr(name, '/')) {
        layer->name = name;
        return;
    }
    char where[TP_JSON_WHERE_BYTES];
    tp_problems_add(problems, "%s: the name is '%.64s', expected a text without '/'",
                    tp_json_where(tp_json_member(value, "name"), where), name);
}

bool tp_layer_read(const tp_json *value, tp_problems *problems, tp_layer *out_layer)
{
    const size_t before = problems->count;
    *out_layer = (tp_layer){.trainable = true};
    const tp_layer_type *type = read_type(value, problems);
    if (!type) return false;
    out_layer->type = type;
    if (type->set_defaults) type->set_defaults(out_layer);
    check_keys(value, type, problems);
    read_name(value, problems, out_layer);
    tp_problems_add_failed(problems, tp_json_get_bool(value, "trainable", &out_layer->trainable));
    const tp_json *dtype = tp_json_member(value, "dtype");
    size_t index;
    if (dtype && tp_problems_add_failed(problems, tp_json_as_choice(dtype, dtype_names, 2, &index)))
        out_layer->dtype = (int32_t)index + 1;
    for (const tp_layer_arg *arg = type->arguments; arg->name; arg++) {
        const tp_json *member = tp_json_member(value, arg->name);
        if (member) {
            read_argument(member, arg, problems, out_layer);
        } else if (arg->is_required) {
            char where[TP_JSON_WHERE_BYTES];
            tp_problems_add(problems, "%s: %s needs the argument '%s'", tp_json_where(value, where),
                            type->name, arg->name);
        }
    }
    return problems->count == before;
}

/* ---- for layers ---- */

void tp_layer_add_weight(tp_layer *layer, const char *name, int rank, const int64_t *dims,
                         const tp_initializer *initializer, bool is_trainable)
{
    tp_layer_weight *weight = &layer->weights[layer->weight_count++];
    *weight =
        (tp_layer_weight){.name = name, .initializer = initializer, .is_trainable = is_trainable};
    weight->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        weight->shape.dims[i] = dims[i];
}

bool tp_layer_set_output(tp_layer *layer, tp_problems *problems, int rank, const int64_t *dims)
{
    return tp_problems_add_failed(problems, tp_shape_init(&layer->output, rank, dims));
}

bool tp_layer_need_image(const tp_layer *layer, tp_problems *problems)
{
    if (layer->input.rank == 3) return true;
    char found[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&layer->input, found, sizeof found);
    const bool has_no_channels = layer->input.rank == 2;
    tp_problems_add(problems, "the input is %s, expected [height,width,channels]%s", found,
                    has_no_channels ? "; a Reshape before it can add the channel" : "");
    return false;
}

bool tp_layer_infer_windows(tp_layer *layer, const int64_t *size, const int64_t *dilation,
                            tp_problems *problems, int64_t out_size[2])
{
    for (int i = 0; i < 2; i++) {
        const int64_t in = layer->input.dims[i];
        if (layer->padding == TP_PADDING_SAME)
            tp_geometry_same_padding(in, size[i], layer->strides[i], dilation[i],
                                     &layer->pad[2 * i], &layer->pad[2 * i + 1]);
        const int64_t covered = (size[i] - 1) * dilation[i] + 1;
        const int64_t room = in + layer->pad[2 * i] + layer->pad[2 * i + 1];
        if (covered > room) {
            tp_problems_add(problems, "a window of %lld does not fit into the input's %s of %lld",
                            (long long)covered, i ? "width" : "height", (long long)in);
            return false;
        }
        out_size[i] = (room - covered) / layer->strides[i] + 1;
    }
    return true;
}

tp_shape tp_layer_batched(const tp_layer_context *context, const tp_shape *example)
{
    tp_shape shape = {.rank = example->rank + 1, .dims = {context->batch}};
    for (int i = 0; i < example->rank; i++)
        shape.dims[i + 1] = example->dims[i];
    return shape;
}

tp_node_id tp_layer_finish_product(tp_layer_context *context, const tp_layer *layer,
                                   tp_node_id product)
{
    tp_node_id z = product;
    if (layer->use_bias) z = tp_op_add(context->graph, z, context->variables[1]);
    const tp_activation activation = (tp_activation)layer->activation;
    if (activation == TP_ACTIVATION_SOFTMAX) context->logits = z;
    return tp_activation_apply(context->graph, activation, z, context->dtype);
}
