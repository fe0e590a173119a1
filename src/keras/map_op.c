/* SPDX-License-Identifier: Apache-2.0
 * Functions of keras.ops in a Functional model, as the layer that does the same: between tensors (Add), of a tensor
 * and a number (Rescaling), activations, means, and what only moves elements. In Keras 3 such a row has what the
 * function was made with in "config", and what it was called with, numbers and slices too, in "args"
 * (keras/src/ops/numpy.py, core.py, nn.py). What has no layer is left to map_class.c, which refuses it.
 */
#include <string.h>
#include <strings.h>
#include "keras/map_internal.h"

typedef struct op_call {
    const tp_json *config, *args;
    const tp_json *tensor; /* the first one among args; NULL: there is none */
    int tensor_index;      /* its place there */
    size_t tensor_count;
    int rank;                  /* without the batch */
    int64_t dims[TP_MAX_RANK]; /* of the first tensor */
    tp_json_writer *writer;
} op_call;

/* ---- what it was called with ---- */

static bool is_tensor(const tp_json *value)
{
    return value->kind == TP_JSON_OBJECT && strcmp(tp_keras_class(value), "__keras_tensor__") == 0;
}

static bool read_dims(const tp_json *tensor, op_call *call)
{
    const tp_json *shape = tp_keras_member(tp_keras_member(tensor, "config"), "shape");
    if (!shape || shape->kind != TP_JSON_ARRAY || shape->count < 1 || shape->count > TP_MAX_RANK)
        return false;
    call->rank = (int)shape->count - 1;
    for (int i = 0; i < call->rank; i++) {
        const tp_json *dim = &shape->items[i + 1];
        if (dim->kind != TP_JSON_INTEGER || dim->integer < 1 || dim->integer > TP_MAX_ELEMS)
            return false;
        call->dims[i] = dim->integer;
    }
    return true;
}

static bool read_call(const tp_keras_row *row, op_call *call)
{
    const tp_json *nodes = tp_keras_member(row->json, "inbound_nodes");
    if (!nodes || nodes->kind != TP_JSON_ARRAY || nodes->count != 1) return false;
    call->config = row->config;
    call->args = tp_keras_member(&nodes->items[0], "args");
    if (!call->args || call->args->kind != TP_JSON_ARRAY) return false;
    for (size_t i = 0; i < call->args->count; i++) {
        const tp_json *value = &call->args->items[i];
        if (value->kind == TP_JSON_ARRAY && value->count && is_tensor(&value->items[0]))
            value = &value->items[0];
        if (!is_tensor(value)) continue;
        call->tensor_count++;
        if (call->tensor) continue;
        call->tensor = value;
        call->tensor_index = (int)i;
    }
    return call->tensor && read_dims(call->tensor, call);
}

/* The argument that is a number, when the other one is the tensor. */
static bool read_number(const op_call *call, double *out)
{
    if (call->tensor_count != 1 || call->args->count != 2) return false;
    const tp_json *value = &call->args->items[1 - call->tensor_index];
    if (value->kind != TP_JSON_INTEGER && value->kind != TP_JSON_NUMBER) return false;
    *out = value->number;
    return true;
}

/* Axes without the batch, from 0, as a set of bits: a number, or a list; 0 for what is none of these. */
static uint32_t read_axes(const op_call *call, int rank)
{
    const tp_json *axis = tp_keras_member(call->config, "axis");
    const bool is_list = axis && axis->kind == TP_JSON_ARRAY;
    uint32_t axes = 0;
    for (size_t i = 0; axis && i < (is_list ? axis->count : 1); i++) {
        const tp_json *one = is_list ? &axis->items[i] : axis;
        if (one->kind != TP_JSON_INTEGER) return 0;
        const int64_t at = one->integer < 0 ? one->integer + rank : one->integer - 1;
        if (at < 0 || at >= rank) return 0;
        axes |= 1u << at;
    }
    return axes;
}

static bool flag(const op_call *call, const char *key)
{
    const tp_json *value = tp_keras_member(call->config, key);
    return value && value->kind == TP_JSON_BOOL && value->boolean;
}

/* ---- layers ---- */

static void put_dims(tp_json_writer *writer, const char *key, const int64_t *dims, int rank)
{
    tp_json_key(writer, key);
    tp_json_begin_inline_array(writer);
    for (int i = 0; i < rank; i++)
        tp_json_write_int(writer, dims[i]);
    tp_json_end_array(writer);
}

static bool write_rescaling(const op_call *call, double scale, double offset)
{
    tp_json_put_string(call->writer, "type", "Rescaling");
    tp_json_put_double(call->writer, "scale", scale);
    tp_json_put_double(call->writer, "offset", offset);
    return true;
}

static bool write_reshape(const op_call *call, const int64_t *dims, int rank)
{
    if (rank < 1) return false;
    tp_json_put_string(call->writer, "type", "Reshape");
    put_dims(call->writer, "target_shape", dims, rank);
    return true;
}

/* Two tensors of as many dimensions: numpy's way of broadcasting and the merging layers' are then the same. */
static bool write_merging(const op_call *call, const char *type)
{
    op_call other = {0};
    if (call->args->count != 2 || call->tensor_count != 2 || !is_tensor(&call->args->items[1]) ||
        !read_dims(&call->args->items[1], &other) || other.rank != call->rank)
        return false;
    tp_json_put_string(call->writer, "type", type);
    return true;
}

static bool write_arithmetic(const op_call *call, const char *kind)
{
    double number;
    if (!read_number(call, &number))
        return strcmp(kind, "TrueDivide") != 0 && strcmp(kind, "Divide") != 0 &&
               write_merging(call, kind);
    const bool is_number_first = call->tensor_index == 1;
    if (strcmp(kind, "Add") == 0) return write_rescaling(call, 1, number);
    if (strcmp(kind, "Multiply") == 0) return write_rescaling(call, number, 0);
    if (strcmp(kind, "Subtract") == 0)
        return is_number_first ? write_rescaling(call, -1, number)
                               : write_rescaling(call, 1, -number);
    return !is_number_first && number != 0 && write_rescaling(call, 1 / number, 0);
}

static bool write_activation(const op_call *call, const char *kind)
{
    static const struct {
        const char *kind, *activation;
    } rows[] = {{"Relu", "relu"},
                {"Relu6", "relu6"},
                {"Sigmoid", "sigmoid"},
                {"Tanh", "tanh"},
                {"Silu", "silu"},
                {"Softplus", "softplus"},
                {"Softsign", "softsign"},
                {"Selu", "selu"},
                {"Exp", "exponential"},
                {"HardSigmoid", "hard_sigmoid"},
                {"LogSigmoid", "log_sigmoid"}};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(kind, rows[i].kind) == 0) found = rows[i].activation;
    if (strcmp(kind, "Gelu") == 0) found = flag(call, "approximate") ? "gelu_approximate" : "gelu";
    if (!found) return false;
    tp_json_put_string(call->writer, "type", "Activation");
    tp_json_put_string(call->writer, "activation", found);
    return true;
}

static bool write_softmax(const op_call *call)
{
    const tp_json *axis = tp_keras_member(call->config, "axis");
    if (!axis || axis->kind != TP_JSON_INTEGER) return false;
    tp_json_put_string(call->writer, "type", "Softmax");
    tp_json_put_int(call->writer, "axis", axis->integer);
    return true;
}

/* Means and maxima over all places of images and sequences. */
static bool write_pooling(const op_call *call, const char *average, const char *max, bool is_mean)
{
    const uint32_t axes = read_axes(call, call->rank);
    static const char *const ends[] = {"1D", "2D", "3D"};
    const int places = call->rank - 1;
    char type[64];
    if (places < 1 || places > 3 || axes != (1u << places) - 1) return false;
    strcpy(type, is_mean ? average : max);
    strcat(type, ends[places - 1]);
    tp_json_put_string(call->writer, "type", type);
    if (flag(call, "keepdims")) tp_json_put_bool(call->writer, "keepdims", true);
    return true;
}

static bool write_new_shape(const op_call *call)
{
    const tp_json *shape = tp_keras_member(call->config, "newshape");
    int64_t dims[TP_MAX_RANK], product = 1, whole = 1;
    if (!shape || shape->kind != TP_JSON_ARRAY || shape->count < 2 || shape->count > TP_MAX_RANK)
        return false;
    const int rank = (int)shape->count - 1;
    const tp_json *batch = &shape->items[0];
    if (batch->kind != TP_JSON_NULL && !(batch->kind == TP_JSON_INTEGER && batch->integer == -1))
        return false;
    for (int i = 0; i < rank; i++) {
        if (shape->items[i + 1].kind != TP_JSON_INTEGER) return false;
        dims[i] = shape->items[i + 1].integer;
        if (dims[i] < 1 || __builtin_mul_overflow(product, dims[i], &product)) return false;
    }
    for (int i = 0; i < call->rank; i++)
        if (__builtin_mul_overflow(whole, call->dims[i], &whole)) return false;
    /* (-1, d) of [a, b] with d != a b would mix examples */
    return product == whole && write_reshape(call, dims, rank);
}

static bool write_permute(const op_call *call)
{
    const tp_json *axes = tp_keras_member(call->config, "axes");
    int64_t dims[TP_MAX_RANK];
    if (!axes || axes->kind != TP_JSON_ARRAY || (int)axes->count != call->rank + 1) return false;
    for (int i = 0; i <= call->rank; i++) {
        if (axes->items[i].kind != TP_JSON_INTEGER) return false;
        const int64_t axis = axes->items[i].integer;
        if ((i == 0) != (axis == 0) || axis < 0 || axis > call->rank) return false;
        if (i) dims[i - 1] = axis;
    }
    tp_json_put_string(call->writer, "type", "Permute");
    put_dims(call->writer, "dims", dims, call->rank);
    return true;
}

static bool write_expand_dims(const op_call *call)
{
    const uint32_t axes = read_axes(call, call->rank + 1);
    int64_t dims[TP_MAX_RANK];
    if (!axes || call->rank + 2 > TP_MAX_RANK) return false;
    for (int i = 0, from = 0; i <= call->rank; i++)
        dims[i] = axes >> i & 1 ? 1 : call->dims[from++];
    return write_reshape(call, dims, call->rank + 1);
}

static bool write_squeeze(const op_call *call)
{
    const uint32_t axes = read_axes(call, call->rank);
    int64_t dims[TP_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < call->rank; i++)
        if (!(axes >> i & 1))
            dims[rank++] = call->dims[i];
        else if (call->dims[i] != 1)
            return false;
    return axes && write_reshape(call, dims, rank);
}

/* ---- slices ---- */

/* Of each dimension: first element and number; whether the dimension goes. */
typedef struct slice {
    int64_t from[TP_MAX_RANK], count[TP_MAX_RANK];
    bool is_dropped[TP_MAX_RANK];
} slice;

/* One bound of a slice as Python reads it: from the end when negative, clipped. */
static bool read_bound(const tp_json *config, const char *key, int64_t missing, int64_t size,
                       int64_t *out)
{
    const tp_json *value = tp_keras_member(config, key);
    *out = missing;
    if (!value || value->kind == TP_JSON_NULL) return true;
    if (value->kind != TP_JSON_INTEGER) return false;
    *out = value->integer < 0 ? value->integer + size : value->integer;
    if (*out < 0) *out = 0;
    if (*out > size) *out = size;
    return true;
}

static bool read_slice(const tp_json *key, int64_t size, int axis, slice *out)
{
    const tp_json *config = tp_keras_member(key, "config");
    const tp_json *step = tp_keras_member(config, "step");
    int64_t end;
    if (key->kind == TP_JSON_INTEGER) {
        out->from[axis] = key->integer < 0 ? key->integer + size : key->integer;
        out->count[axis] = 1;
        out->is_dropped[axis] = true;
        return out->from[axis] >= 0 && out->from[axis] < size;
    }
    if (key->kind != TP_JSON_OBJECT || strcmp(tp_keras_class(key), "__slice__") != 0) return false;
    if (step && step->kind != TP_JSON_NULL &&
        !(step->kind == TP_JSON_INTEGER && step->integer == 1))
        return false;
    if (!read_bound(config, "start", 0, size, &out->from[axis]) ||
        !read_bound(config, "stop", size, size, &end))
        return false;
    out->count[axis] = end - out->from[axis];
    return out->count[axis] > 0;
}

/* The keys of x[...]: all of the batch, then one a dimension, with at most one ellipsis among them. */
static bool read_slices(const op_call *call, slice *out)
{
    if (call->args->count != 2 || call->tensor_index != 0) return false;
    const tp_json *keys = &call->args->items[1];
    if (keys->kind != TP_JSON_ARRAY || keys->count < 1) return false;
    int axis = -1;
    bool has_ellipsis = false;
    for (int i = 0; i < call->rank; i++)
        out->count[i] = call->dims[i];
    for (size_t i = 0; i < keys->count; i++) {
        const tp_json *key = &keys->items[i];
        if (key->kind == TP_JSON_OBJECT && strcmp(tp_keras_class(key), "__ellipsis__") == 0) {
            if (has_ellipsis) return false;
            has_ellipsis = true;
            axis = call->rank - (int)(keys->count - i - 1);
            if (axis < (i ? (int)i - 1 : 0)) return false;
            continue;
        }
        if (axis >= call->rank) return false;
        if (axis >= 0) {
            if (!read_slice(key, call->dims[axis], axis, out)) return false;
        } else {
            slice batch = {0};
            if (!read_slice(key, INT64_MAX, 0, &batch) || batch.from[0] != 0 ||
                batch.is_dropped[0] || batch.count[0] != INT64_MAX)
                return false;
        }
        axis++;
    }
    return true;
}

static void begin_inner(tp_json_writer *writer, const char *type, const char *name)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "type", type);
    tp_json_put_string(writer, "name", name);
}

static void put_inner_shape(tp_json_writer *writer, const char *name, const int64_t *dims, int rank)
{
    begin_inner(writer, "Reshape", name);
    put_dims(writer, "target_shape", dims, rank);
    tp_json_end_object(writer);
}

/* A model of three layers: as a volume with one channel, cropped, in its new shape. */
static bool write_slices(const op_call *call)
{
    slice found = {0};
    int64_t volume[4] = {1, 1, 1, 1}, result[TP_MAX_RANK];
    int rank = 0;
    if (call->rank < 1 || call->rank > 3 || !read_slices(call, &found)) return false;
    for (int i = 0; i < call->rank; i++) {
        volume[i] = call->dims[i];
        if (!found.is_dropped[i]) result[rank++] = found.count[i];
    }
    if (rank < 1) result[rank++] = 1;
    if (rank == 1 && call->rank == 1 && found.is_dropped[0]) return false; /* a scalar */
    tp_json_writer *writer = call->writer;
    tp_json_put_string(writer, "type", "Sequential");
    tp_json_key(writer, "model_inputs");
    tp_json_begin_inline_array(writer);
    tp_json_write_string(writer, "whole");
    tp_json_end_array(writer);
    tp_json_key(writer, "layers");
    tp_json_begin_array(writer);
    put_inner_shape(writer, "volume", volume, 4);
    begin_inner(writer, "Cropping3D", "part");
    tp_json_key(writer, "cropping");
    tp_json_begin_inline_array(writer);
    for (int i = 0; i < 3; i++) {
        const int64_t size = i < call->rank ? call->dims[i] : 1;
        const int64_t count = i < call->rank ? found.count[i] : 1;
        tp_json_begin_inline_array(writer);
        tp_json_write_int(writer, found.from[i]);
        tp_json_write_int(writer, size - count - found.from[i]);
        tp_json_end_array(writer);
    }
    tp_json_end_array(writer);
    tp_json_end_object(writer);
    put_inner_shape(writer, "result", result, rank);
    tp_json_end_array(writer);
    return true;
}

/* ---- all of them ---- */

/* [batch, a, b] times [batch, b, c] */
static bool write_matmul(const op_call *call)
{
    if (call->rank != 2 || !write_merging(call, "Dot")) return false;
    const int64_t axes[] = {2, 1};
    put_dims(call->writer, "axes", axes, 2);
    return true;
}

static bool write_concatenate(const op_call *call)
{
    const tp_json *axis = tp_keras_member(call->config, "axis");
    if (!axis || axis->kind != TP_JSON_INTEGER || axis->integer == 0) return false;
    tp_json_put_string(call->writer, "type", "Concatenate");
    tp_json_put_int(call->writer, "axis", axis->integer);
    return true;
}

/* To another float is no step of its own here: where values are rounded the policies say. */
static bool write_cast(const op_call *call)
{
    const tp_json *dtype = tp_keras_member(call->config, "dtype");
    if (!dtype || dtype->kind != TP_JSON_STRING || !strstr(dtype->string, "float")) return false;
    tp_json_put_string(call->writer, "type", "Identity");
    return true;
}

/* x * x: the graph's reader lists the tensor twice. */
static bool write_square(const op_call *call)
{
    tp_json_put_string(call->writer, "type", "Multiply");
    return true;
}

static bool write_op(const op_call *call, const char *kind)
{
    static const char *const arithmetic[] = {"Add", "Subtract", "Multiply", "TrueDivide", "Divide"};
    for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
        if (strcmp(kind, arithmetic[i]) == 0) return write_arithmetic(call, kind);
    if (strcmp(kind, "Maximum") == 0 || strcmp(kind, "Minimum") == 0)
        return write_merging(call, kind);
    if (strcmp(kind, "Negative") == 0) return write_rescaling(call, -1, 0);
    if (strcmp(kind, "Square") == 0) return write_square(call);
    if (strcmp(kind, "Softmax") == 0) return write_softmax(call);
    if (strcmp(kind, "Mean") == 0) return write_pooling(call, "GlobalAveragePooling", "", true);
    if (strcmp(kind, "Max") == 0) return write_pooling(call, "", "GlobalMaxPooling", false);
    if (strcmp(kind, "Reshape") == 0) return write_new_shape(call);
    if (strcmp(kind, "Transpose") == 0) return write_permute(call);
    if (strcmp(kind, "ExpandDims") == 0) return write_expand_dims(call);
    if (strcmp(kind, "Squeeze") == 0) return write_squeeze(call);
    if (strcmp(kind, "GetItem") == 0) return write_slices(call);
    if (strcmp(kind, "Matmul") == 0) return write_matmul(call);
    if (strcmp(kind, "Concatenate") == 0) return write_concatenate(call);
    if (strcmp(kind, "Cast") == 0) return write_cast(call);
    return write_activation(call, kind);
}

bool tp_keras_write_op(const tp_keras_row *row, tp_json_writer *writer)
{
    op_call call = {.writer = writer};
    return read_call(row, &call) && write_op(&call, row->kind);
}
