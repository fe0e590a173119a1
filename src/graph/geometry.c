/* SPDX-License-Identifier: Apache-2.0
 * Reading and checking the attributes of products, reductions and windows: see geometry.h.
 */
#include "graph/geometry.h"

#include "graph/opdef.h"

/* Strides, dilations, windows and paddings; small enough that sums and products of two stay in int64. */
#define MAX_STEP ((int64_t)1 << 30)

int64_t tp_index_map_elems(const tp_index_map *map)
{
    int64_t elems = 1;
    for (int32_t i = 0; i < map->count; i++)
        elems *= map->sizes[i];
    return elems;
}

int64_t tp_index_map_offset(const tp_index_map *map, int64_t index)
{
    int64_t offset = 0;
    for (int32_t i = map->count - 1; i >= 0; i--) {
        offset += index % map->sizes[i] * map->strides[i];
        index /= map->sizes[i];
    }
    return offset;
}

bool tp_index_map_stride(const tp_index_map *map, int64_t *out_stride)
{
    int64_t stride = 0, span = 0; /* span: offset of the next tuple when the inner ones are full */
    for (int32_t i = map->count - 1; i >= 0; i--) {
        if (map->sizes[i] == 1) continue;
        if (stride == 0)
            stride = map->strides[i];
        else if (map->strides[i] != span)
            return false;
        span = map->strides[i] * map->sizes[i];
    }
    *out_stride = stride;
    return true;
}

static void map_add(tp_index_map *map, int64_t size, int64_t stride)
{
    map->sizes[map->count] = size;
    map->strides[map->count] = stride;
    map->count++;
}

/* ---- attributes ---- */

/* A list of ints, `count` long unless that is negative; absent gives every element `fallback`. */
static tpucl_status read_ints(const tp_node *node, const char *name, int32_t count,
                              int64_t fallback, int64_t min, int64_t *out_values,
                              int32_t *out_count)
{
    const tp_attr *attr = tp_node_attr(node, name);
    const int32_t limit = 2 * TP_MAX_RANK;
    if (!attr) {
        const int32_t n = count < 0 ? 0 : count;
        for (int32_t i = 0; i < n; i++)
            out_values[i] = fallback;
        if (out_count) *out_count = n;
        return TPUCL_OK;
    }
    if (attr->kind != TP_ATTR_INTS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: attribute '%s' must be a list of integers",
                       node->def->name, name);
    if (attr->ints_count > limit || attr->ints_count < 0 ||
        (count >= 0 && attr->ints_count != count))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: attribute '%s' has %d elements, expected %s%d",
                       node->def->name, name, attr->ints_count, count < 0 ? "at most " : "",
                       count < 0 ? limit : count);
    for (int32_t i = 0; i < attr->ints_count; i++) {
        if (attr->ints[i] < min || attr->ints[i] > MAX_STEP)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "%s: element %d of attribute '%s' is %lld, expected %lld to %lld",
                           node->def->name, i, name, (long long)attr->ints[i], (long long)min,
                           (long long)MAX_STEP);
        out_values[i] = attr->ints[i];
    }
    if (out_count) *out_count = attr->ints_count;
    return TPUCL_OK;
}

/* A list of different dimension numbers below `rank`. */
static tpucl_status read_dimensions(const tp_node *node, const char *name, int32_t rank,
                                    int32_t *out_dims, int32_t *out_count)
{
    int64_t values[2 * TP_MAX_RANK];
    int32_t count = 0;
    TP_TRY(read_ints(node, name, -1, 0, 0, values, &count));
    uint32_t seen = 0;
    for (int32_t i = 0; i < count; i++) {
        if (values[i] >= rank)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "%s: '%s' names dimension %lld of an operand of rank %d",
                           node->def->name, name, (long long)values[i], rank);
        if (seen & (1u << values[i]))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: '%s' names dimension %lld twice",
                           node->def->name, name, (long long)values[i]);
        seen |= 1u << values[i];
        out_dims[i] = (int32_t)values[i];
    }
    *out_count = count;
    return TPUCL_OK;
}

static tpucl_status read_precision(const tp_node *node, tp_precision *out_precision)
{
    return tp_precision_parse(tp_node_attr_text(node, "precision", "default"), out_precision);
}

tpucl_status tp_geometry_dims(const tp_node *node, const char *name, tp_shape *out_shape)
{
    const tp_attr *attr = tp_node_attr(node, name);
    if (!attr || attr->kind != TP_ATTR_INTS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: attribute '%s' (a list of integers) is missing",
                       node->def->name, name);
    return tp_shape_init(out_shape, attr->ints_count, attr->ints);
}

void tp_geometry_same_padding(int64_t size, int64_t window, int64_t stride, int64_t dilation,
                              int64_t *out_low, int64_t *out_high)
{
    const int64_t out = (size + stride - 1) / stride;
    const int64_t covered = (window - 1) * dilation + 1;
    const int64_t needed = (out - 1) * stride + covered - size;
    const int64_t total = out > 0 && needed > 0 ? needed : 0;
    *out_low = total / 2;
    *out_high = total - total / 2;
}

/* ---- dot_general ---- */

static void list_free_dims(int32_t rank, const int32_t *batch, int32_t batch_count,
                           const int32_t *contract, int32_t contract_count, int32_t *out_free,
                           int32_t *out_count)
{
    uint32_t taken = 0;
    for (int32_t i = 0; i < batch_count; i++)
        taken |= 1u << batch[i];
    for (int32_t i = 0; i < contract_count; i++)
        taken |= 1u << contract[i];
    *out_count = 0;
    for (int32_t i = 0; i < rank; i++)
        if (!(taken & (1u << i))) out_free[(*out_count)++] = i;
}

static void fill_map(tp_index_map *map, const tp_shape *shape, const int32_t *dims, int32_t count)
{
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(shape, strides);
    for (int32_t i = 0; i < count; i++)
        map_add(map, shape->dims[dims[i]], strides[dims[i]]);
}

static tpucl_status check_pairs(const tp_node *node, const char *role, const tp_shape *lhs,
                                const int32_t *lhs_dims, int32_t lhs_count, const tp_shape *rhs,
                                const int32_t *rhs_dims, int32_t rhs_count)
{
    char a[TP_SHAPE_TEXT_MAX], b[TP_SHAPE_TEXT_MAX];
    tp_shape_format(lhs, a, sizeof a);
    tp_shape_format(rhs, b, sizeof b);
    if (lhs_count != rhs_count)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s of %s and %s: %d %s dimensions on the left, %d on the right",
                       node->def->name, a, b, lhs_count, role, rhs_count);
    for (int32_t i = 0; i < lhs_count; i++)
        if (lhs->dims[lhs_dims[i]] != rhs->dims[rhs_dims[i]])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "%s of %s and %s: %s dimension %d on the left is %lld, dimension %d on "
                           "the right is %lld",
                           node->def->name, a, b, role, lhs_dims[i],
                           (long long)lhs->dims[lhs_dims[i]], rhs_dims[i],
                           (long long)rhs->dims[rhs_dims[i]]);
    return TPUCL_OK;
}

static tpucl_status check_overlap(const tp_node *node, const char *side, const int32_t *batch,
                                  int32_t batch_count, const int32_t *contract,
                                  int32_t contract_count)
{
    for (int32_t i = 0; i < batch_count; i++)
        for (int32_t j = 0; j < contract_count; j++)
            if (batch[i] == contract[j])
                return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                               "%s: dimension %d of the %s is both batching and contracting",
                               node->def->name, batch[i], side);
    return TPUCL_OK;
}

tpucl_status tp_dot_geometry_read(const tp_node *node, const tp_shape *lhs, const tp_shape *rhs,
                                  tp_dot_geometry *out_geometry)
{
    tp_dot_geometry g = {0};
    int32_t rhs_batch_count, rhs_contract_count;
    TP_TRY(read_dimensions(node, "lhs_batching_dimensions", lhs->rank, g.a_batch_dims,
                           &g.batch_count));
    TP_TRY(read_dimensions(node, "rhs_batching_dimensions", rhs->rank, g.b_batch_dims,
                           &rhs_batch_count));
    TP_TRY(read_dimensions(node, "lhs_contracting_dimensions", lhs->rank, g.a_contract_dims,
                           &g.contract_count));
    TP_TRY(read_dimensions(node, "rhs_contracting_dimensions", rhs->rank, g.b_contract_dims,
                           &rhs_contract_count));
    TP_TRY(read_precision(node, &g.precision));
    TP_TRY(check_pairs(node, "batching", lhs, g.a_batch_dims, g.batch_count, rhs, g.b_batch_dims,
                       rhs_batch_count));
    TP_TRY(check_pairs(node, "contracting", lhs, g.a_contract_dims, g.contract_count, rhs,
                       g.b_contract_dims, rhs_contract_count));
    TP_TRY(check_overlap(node, "left operand", g.a_batch_dims, g.batch_count, g.a_contract_dims,
                         g.contract_count));
    TP_TRY(check_overlap(node, "right operand", g.b_batch_dims, g.batch_count, g.b_contract_dims,
                         g.contract_count));
    list_free_dims(lhs->rank, g.a_batch_dims, g.batch_count, g.a_contract_dims, g.contract_count,
                   g.a_free_dims, &g.a_free_count);
    list_free_dims(rhs->rank, g.b_batch_dims, g.batch_count, g.b_contract_dims, g.contract_count,
                   g.b_free_dims, &g.b_free_count);

    fill_map(&g.a_batch, lhs, g.a_batch_dims, g.batch_count);
    fill_map(&g.a_outer, lhs, g.a_free_dims, g.a_free_count);
    fill_map(&g.a_inner, lhs, g.a_contract_dims, g.contract_count);
    fill_map(&g.b_batch, rhs, g.b_batch_dims, g.batch_count);
    fill_map(&g.b_outer, rhs, g.b_free_dims, g.b_free_count);
    fill_map(&g.b_inner, rhs, g.b_contract_dims, g.contract_count);
    g.batch = tp_index_map_elems(&g.a_batch);
    g.m = tp_index_map_elems(&g.a_outer);
    g.n = tp_index_map_elems(&g.b_outer);
    g.k = tp_index_map_elems(&g.a_inner);

    int64_t dims[3 * TP_MAX_RANK];
    int32_t rank = 0;
    for (int32_t i = 0; i < g.batch_count; i++)
        dims[rank++] = lhs->dims[g.a_batch_dims[i]];
    for (int32_t i = 0; i < g.a_free_count; i++)
        dims[rank++] = lhs->dims[g.a_free_dims[i]];
    for (int32_t i = 0; i < g.b_free_count; i++)
        dims[rank++] = rhs->dims[g.b_free_dims[i]];
    TP_TRY(tp_shape_init(&g.result, rank, dims));
    *out_geometry = g;
    return TPUCL_OK;
}

/* ---- convolution ---- */

/* Windows that fit: (size + padding - covered) / stride + 1. */
static tpucl_status window_count(const tp_node *node, int64_t size, int64_t padding, int64_t window,
                                 int64_t stride, int64_t dilation, int64_t *out_count)
{
    const int64_t covered = (window - 1) * dilation + 1;
    if (window < 1 || size + padding < covered)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s: a window of %lld (dilation %lld) does not fit into %lld elements and "
                       "%lld of padding",
                       node->def->name, (long long)window, (long long)dilation, (long long)size,
                       (long long)padding);
    *out_count = (size + padding - covered) / stride + 1;
    return TPUCL_OK;
}

static tpucl_status expect_shape(const tp_node *node, const char *what, const tp_shape *found,
                                 const tp_shape *expected)
{
    if (tp_shape_equal(found, expected)) return TPUCL_OK;
    char a[TP_SHAPE_TEXT_MAX], b[TP_SHAPE_TEXT_MAX];
    tp_shape_format(found, a, sizeof a);
    tp_shape_format(expected, b, sizeof b);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: %s has shape %s, expected %s", node->def->name,
                   what, a, b);
}

/* The number of groups; the channels of x and w have to suit it. */
static tpucl_status read_groups(const tp_node *node, const tp_shape *x, const tp_shape *w,
                                int64_t *out_groups)
{
    const int64_t groups = tp_node_attr_int(node, "feature_group_count", 1);
    char a[TP_SHAPE_TEXT_MAX], b[TP_SHAPE_TEXT_MAX];
    tp_shape_format(x, a, sizeof a);
    tp_shape_format(w, b, sizeof b);
    if (groups < 1 || groups > MAX_STEP)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s: feature_group_count is %lld, expected 1 to %lld", node->def->name,
                       (long long)groups, (long long)MAX_STEP);
    if (x->dims[3] % groups != 0 || w->dims[3] % groups != 0)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT,
            "%s: feature_group_count is %lld, which has to divide the channels of images "
            "%s and those that filters %s give",
            node->def->name, (long long)groups, a, b);
    if (x->dims[3] / groups != w->dims[2])
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s: images %s have %lld channels%s, filters %s expect %lld",
                       node->def->name, a, (long long)(x->dims[3] / groups),
                       groups > 1 ? " a group" : "", b, (long long)w->dims[2]);
    *out_groups = groups;
    return TPUCL_OK;
}

/* Everything but m, n, k and the result, from the shapes of x and w. */
static tpucl_status conv_forward(const tp_node *node, const tp_shape *x, const tp_shape *w,
                                 tp_conv_geometry *g)
{
    int64_t strides[2], padding[4], dilation[2];
    TP_TRY(read_ints(node, "window_strides", 2, 1, 1, strides, NULL));
    TP_TRY(read_ints(node, "padding", 4, 0, 0, padding, NULL));
    TP_TRY(read_ints(node, "rhs_dilation", 2, 1, 1, dilation, NULL));
    TP_TRY(read_precision(node, &g->precision));
    char a[TP_SHAPE_TEXT_MAX], b[TP_SHAPE_TEXT_MAX];
    tp_shape_format(x, a, sizeof a);
    tp_shape_format(w, b, sizeof b);
    if (x->rank != 4 || w->rank != 4)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s: images %s and filters %s, expected [images,height,width,channels] and "
                       "[height,width,channels in,channels out]",
                       node->def->name, a, b);
    TP_TRY(read_groups(node, x, w, &g->groups));
    g->images = x->dims[0];
    g->in_h = x->dims[1];
    g->in_w = x->dims[2];
    g->in_c = x->dims[3];
    g->kernel_h = w->dims[0];
    g->kernel_w = w->dims[1];
    g->out_c = w->dims[3];
    g->stride_h = strides[0];
    g->stride_w = strides[1];
    g->pad_top = padding[0];
    g->pad_bottom = padding[1];
    g->pad_left = padding[2];
    g->pad_right = padding[3];
    g->dilation_h = dilation[0];
    g->dilation_w = dilation[1];
    if (g->kernel_h > MAX_STEP || g->kernel_w > MAX_STEP)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: filters %s are too large", node->def->name, b);
    TP_TRY(window_count(node, g->in_h, g->pad_top + g->pad_bottom, g->kernel_h, g->stride_h,
                        g->dilation_h, &g->out_h));
    return window_count(node, g->in_w, g->pad_left + g->pad_right, g->kernel_w, g->stride_w,
                        g->dilation_w, &g->out_w);
}

tpucl_status tp_conv_geometry_read(const tp_node *node, tp_conv_kind kind, const tp_shape *first,
                                   const tp_shape *second, tp_conv_geometry *out_geometry)
{
    tp_conv_geometry g = {0};
    tp_shape named = {0};
    if (kind == TP_CONV_INPUT_GRAD) TP_TRY(tp_geometry_dims(node, "input_dims", &named));
    if (kind == TP_CONV_FILTER_GRAD) TP_TRY(tp_geometry_dims(node, "filter_dims", &named));
    const tp_shape *x = kind == TP_CONV_INPUT_GRAD ? &named : first;
    const tp_shape *w = kind == TP_CONV_FILTER_GRAD ? &named : second;
    TP_TRY(conv_forward(node, x, w, &g));
    tp_shape y;
    TP_TRY(tp_shape_init(&y, 4, (const int64_t[]){g.images, g.out_h, g.out_w, g.out_c}));
    switch (kind) {
    case TP_CONV_INPUT_GRAD:
        TP_TRY(expect_shape(node, "the gradient of the result", first, &y));
        g.m = g.images * g.in_h * g.in_w;
        g.n = g.in_c;
        g.k = g.kernel_h * g.kernel_w * (g.out_c / g.groups);
        g.result = *x;
        break;
    case TP_CONV_FILTER_GRAD:
        TP_TRY(expect_shape(node, "the gradient of the result", second, &y));
        g.m = g.kernel_h * g.kernel_w * (g.in_c / g.groups);
        g.n = g.out_c;
        g.k = g.images * g.out_h * g.out_w;
        g.result = *w;
        break;
    case TP_CONV_FORWARD:
    default:
        g.m = g.images * g.out_h * g.out_w;
        g.n = g.out_c;
        g.k = g.kernel_h * g.kernel_w * (g.in_c / g.groups);
        g.result = y;
        break;
    }
    *out_geometry = g;
    return TPUCL_OK;
}

/* ---- reduce, argmax, argmin ---- */

tpucl_status tp_reduce_geometry_read(const tp_node *node, const tp_shape *operand,
                                     tp_reduce_geometry *out_geometry)
{
    tp_reduce_geometry g = {0};
    int32_t axes[2 * TP_MAX_RANK], axis_count;
    if (tp_node_attr(node, "axis")) {
        const int64_t axis = tp_node_attr_int(node, "axis", 0);
        if (axis < 0 || axis >= operand->rank)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: axis is %lld, the operand has rank %d",
                           node->def->name, (long long)axis, operand->rank);
        axes[0] = (int32_t)axis;
        axis_count = 1;
    } else {
        TP_TRY(read_dimensions(node, "axes", operand->rank, axes, &axis_count));
    }
    bool is_reduced[TP_MAX_RANK] = {false};
    for (int32_t i = 0; i < axis_count; i++)
        is_reduced[axes[i]] = true;

    int64_t strides[TP_MAX_RANK], dims[TP_MAX_RANK];
    tp_shape_strides(operand, strides);
    for (int32_t i = 0; i < operand->rank; i++) {
        if (!is_reduced[i]) dims[g.kept.count] = operand->dims[i];
        map_add(is_reduced[i] ? &g.reduced : &g.kept, operand->dims[i], strides[i]);
    }
    g.kept_elems = tp_index_map_elems(&g.kept);
    g.reduced_elems = tp_index_map_elems(&g.reduced);
    TP_TRY(tp_shape_init(&g.result, g.kept.count, dims));
    *out_geometry = g;
    return TPUCL_OK;
}

/* ---- windows ---- */

tpucl_status tp_window_geometry_read(const tp_node *node, const tp_shape *in,
                                     tp_window_geometry *out_geometry)
{
    tp_window_geometry g = {.rank = in->rank, .in = *in};
    int64_t padding[2 * TP_MAX_RANK], dims[TP_MAX_RANK];
    TP_TRY(read_ints(node, "window_dimensions", in->rank, 1, 1, g.window, NULL));
    TP_TRY(read_ints(node, "window_strides", in->rank, 1, 1, g.stride, NULL));
    TP_TRY(read_ints(node, "padding", 2 * in->rank, 0, 0, padding, NULL));
    for (int32_t i = 0; i < in->rank; i++) {
        g.pad_low[i] = padding[2 * i];
        g.pad_high[i] = padding[2 * i + 1];
        TP_TRY(window_count(node, in->dims[i], g.pad_low[i] + g.pad_high[i], g.window[i],
                            g.stride[i], 1, &dims[i]));
    }
    TP_TRY(tp_shape_init(&g.out, in->rank, dims));
    *out_geometry = g;
    return TPUCL_OK;
}
