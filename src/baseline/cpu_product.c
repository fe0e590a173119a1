/* SPDX-License-Identifier: Apache-2.0
 * Products on OpenBLAS. Convolutions gather patches of some images at a time into columns (im2col) and
 * multiply; the input gradient multiplies first and adds the columns back (col2im). Groups of channels are
 * gathered and multiplied one by one, but for those of one channel (cpu_depthwise.c).
 */
#include <string.h>
#include "baseline/cpu_internal.h"
#include "graph/geometry.h"

enum { COLUMN_ELEMS = 4 << 20 }; /* 16 MiB of patches at a time */

static bool conv_kind_of(const tp_node *node, tp_conv_kind *out_kind)
{
    const char *name = node->def->name;
    if (strcmp(name, "convolution") == 0)
        *out_kind = TP_CONV_FORWARD;
    else if (strcmp(name, "convolution_input_grad") == 0)
        *out_kind = TP_CONV_INPUT_GRAD;
    else if (strcmp(name, "convolution_filter_grad") == 0)
        *out_kind = TP_CONV_FILTER_GRAD;
    else
        return false;
    return true;
}

static int64_t patch_elems(const tp_conv_geometry *g)
{
    return g->kernel_h * g->kernel_w * (g->in_c / g->groups);
}

static int64_t images_at_once(const tp_conv_geometry *g)
{
    int64_t per_image = g->out_h * g->out_w * patch_elems(g);
    int64_t images = per_image > 0 ? COLUMN_ELEMS / per_image : g->images;
    return images < 1 ? 1 : images < g->images ? images : g->images;
}

static tpucl_status read_conv(const tp_graph *graph, const tp_node *node, tp_conv_kind kind,
                              tp_conv_geometry *out)
{
    return tp_conv_geometry_read(node, kind, &tp_graph_node(graph, node->inputs[0])->shape,
                                 &tp_graph_node(graph, node->inputs[1])->shape, out);
}

int64_t tp_cpu_column_elems(const tp_graph *graph, const tp_node *node)
{
    tp_conv_kind kind;
    tp_conv_geometry g;
    if (!conv_kind_of(node, &kind) || read_conv(graph, node, kind, &g) != TPUCL_OK) return 0;
    return images_at_once(&g) * g.out_h * g.out_w * patch_elems(&g);
}

typedef struct patches {
    const tp_conv_geometry *g;
    int64_t first, channels; /* of the group, in the images */
    const float *images;     /* of the chunk, [image, iy, ix, ci] */
    float *columns;          /* [image, oy, ox][ky, kx, ci of the group] */
    float *sums;             /* col2im: images to add to */
} patches;

int64_t tp_cpu_pixel_at(const tp_conv_geometry *g, int64_t oy, int64_t ox, int64_t ky, int64_t kx)
{
    int64_t iy = oy * g->stride_h + ky * g->dilation_h - g->pad_top;
    int64_t ix = ox * g->stride_w + kx * g->dilation_w - g->pad_left;
    if (iy < 0 || iy >= g->in_h || ix < 0 || ix >= g->in_w) return -1;
    return iy * g->in_w + ix;
}

static tpucl_status gather_rows(void *user, size_t begin, size_t end, int worker)
{
    const patches *p = user;
    const tp_conv_geometry *g = p->g;
    (void)worker;
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) { /* row: image and oy */
        const float *image = p->images + row / g->out_h * g->in_h * g->in_w * g->in_c;
        float *to = p->columns + row * g->out_w * patch_elems(g);
        for (int64_t ox = 0; ox < g->out_w; ox++)
            for (int64_t ky = 0; ky < g->kernel_h; ky++)
                for (int64_t kx = 0; kx < g->kernel_w; kx++, to += p->channels) {
                    int64_t pixel = tp_cpu_pixel_at(g, row % g->out_h, ox, ky, kx);
                    if (pixel < 0)
                        memset(to, 0, (size_t)p->channels * sizeof *to);
                    else
                        memcpy(to, image + pixel * g->in_c + p->first,
                               (size_t)p->channels * sizeof *to);
                }
    }
    return TPUCL_OK;
}

static tpucl_status scatter_images(void *user, size_t begin, size_t end, int worker)
{
    const patches *p = user;
    const tp_conv_geometry *g = p->g;
    (void)worker;
    for (int64_t image = (int64_t)begin; image < (int64_t)end; image++) {
        float *sums = p->sums + image * g->in_h * g->in_w * g->in_c;
        const float *from = p->columns + image * g->out_h * g->out_w * patch_elems(g);
        if (p->first == 0) memset(sums, 0, (size_t)(g->in_h * g->in_w * g->in_c) * sizeof *sums);
        for (int64_t cell = 0; cell < g->out_h * g->out_w; cell++)
            for (int64_t ky = 0; ky < g->kernel_h; ky++)
                for (int64_t kx = 0; kx < g->kernel_w; kx++, from += p->channels) {
                    int64_t pixel = tp_cpu_pixel_at(g, cell / g->out_w, cell % g->out_w, ky, kx);
                    for (int64_t c = 0; pixel >= 0 && c < p->channels; c++)
                        sums[pixel * g->in_c + p->first + c] += from[c];
                }
    }
    return TPUCL_OK;
}

/* Images `image` .. `image` + `count` - 1, one group. */
typedef struct conv_part {
    const tp_conv_geometry *g;
    tp_conv_kind kind;
    int64_t image, count, group;
} conv_part;

static tpucl_status run_part(tp_cpu_runner *runner, const conv_part *part, const float *first,
                             const float *second, float *out)
{
    const tp_conv_geometry *g = part->g;
    const int64_t own_in = g->in_c / g->groups, own_out = g->out_c / g->groups;
    const int64_t pixels = g->out_h * g->out_w, rows = part->count * pixels, k = patch_elems(g);
    const int64_t in_at = part->image * g->in_h * g->in_w * g->in_c;
    const int64_t out_at = part->image * pixels * g->out_c + part->group * own_out;
    patches p = {g, part->group * own_in, own_in, NULL, runner->columns, NULL};
    if (part->kind == TP_CONV_INPUT_GRAD) {
        tp_openblas_sgemm(runner->blas, &(tp_openblas_gemm){.transpose_a = false,
                                                            .transpose_b = true,
                                                            .m = rows,
                                                            .n = k,
                                                            .k = own_out,
                                                            .a = first + out_at,
                                                            .lda = g->out_c,
                                                            .b = second + part->group * own_out,
                                                            .ldb = g->out_c,
                                                            .beta = 0,
                                                            .c = runner->columns,
                                                            .ldc = k});
        p.sums = out + in_at;
        return tp_pool_parallel_for(runner->pool, (size_t)part->count, 1, scatter_images, &p);
    }
    p.images = first + in_at;
    TP_TRY(
        tp_pool_parallel_for(runner->pool, (size_t)(part->count * g->out_h), 4, gather_rows, &p));
    if (part->kind == TP_CONV_FORWARD)
        tp_openblas_sgemm(runner->blas, &(tp_openblas_gemm){.transpose_a = false,
                                                            .transpose_b = false,
                                                            .m = rows,
                                                            .n = own_out,
                                                            .k = k,
                                                            .a = runner->columns,
                                                            .lda = k,
                                                            .b = second + part->group * own_out,
                                                            .ldb = g->out_c,
                                                            .beta = 0,
                                                            .c = out + out_at,
                                                            .ldc = g->out_c});
    else
        tp_openblas_sgemm(runner->blas, &(tp_openblas_gemm){.transpose_a = true,
                                                            .transpose_b = false,
                                                            .m = k,
                                                            .n = own_out,
                                                            .k = rows,
                                                            .a = runner->columns,
                                                            .lda = k,
                                                            .b = second + out_at,
                                                            .ldb = g->out_c,
                                                            .beta = part->image ? 1 : 0,
                                                            .c = out + part->group * own_out,
                                                            .ldc = g->out_c});
    return TPUCL_OK;
}

static tpucl_status run_conv(tp_cpu_runner *runner, tp_node_id id, tp_conv_kind kind)
{
    const tp_node *node = tp_cpu_node(runner, id);
    tp_conv_geometry g;
    TP_TRY(read_conv(runner->graph, node, kind, &g));
    if (tp_cpu_is_depthwise(&g))
        return tp_cpu_run_depthwise(runner, &g, kind, runner->values[node->inputs[0]].data,
                                    runner->values[node->inputs[1]].data, runner->values[id].data);
    const int64_t chunk = images_at_once(&g);
    conv_part part = {.g = &g, .kind = kind};
    for (part.image = 0; part.image < g.images; part.image += chunk) {
        part.count = g.images - part.image < chunk ? g.images - part.image : chunk;
        for (part.group = 0; part.group < g.groups; part.group++)
            TP_TRY(run_part(runner, &part, runner->values[node->inputs[0]].data,
                            runner->values[node->inputs[1]].data, runner->values[id].data));
    }
    return TPUCL_OK;
}

/* BLAS wants one of an operand's two strides to be 1; false when neither is. */
static bool blas_layout(const tp_index_map *outer, const tp_index_map *inner,
                        bool *out_is_transposed, int64_t *out_leading)
{
    int64_t outer_stride = 0, inner_stride = 0;
    if (!tp_index_map_stride(outer, &outer_stride) || !tp_index_map_stride(inner, &inner_stride))
        return false;
    int64_t outer_elems = tp_index_map_elems(outer), inner_elems = tp_index_map_elems(inner);
    *out_is_transposed = inner_elems != 1 && inner_stride != 1;
    if (*out_is_transposed) {
        *out_leading = inner_stride > outer_elems ? inner_stride : outer_elems;
        return outer_elems == 1 || outer_stride == 1;
    }
    *out_leading = outer_stride > inner_elems ? outer_stride : inner_elems;
    return true;
}

static tpucl_status run_dot(tp_cpu_runner *runner, tp_node_id id)
{
    const tp_node *node = tp_cpu_node(runner, id);
    const tp_host_tensor *a = &runner->values[node->inputs[0]];
    const tp_host_tensor *b = &runner->values[node->inputs[1]];
    tp_dot_geometry g;
    bool a_is_transposed = false, b_is_by_columns = false;
    int64_t lda = 0, ldb = 0;
    TP_TRY(tp_dot_geometry_read(node, &a->shape, &b->shape, &g));
    if (!blas_layout(&g.a_outer, &g.a_inner, &a_is_transposed, &lda) ||
        !blas_layout(&g.b_outer, &g.b_inner, &b_is_by_columns, &ldb))
        return tp_cpu_run_plain(runner, id);
    for (int64_t z = 0; z < g.batch; z++)
        tp_openblas_sgemm(
            runner->blas,
            &(tp_openblas_gemm){.transpose_a = a_is_transposed,
                                .transpose_b = !b_is_by_columns,
                                .m = g.m,
                                .n = g.n,
                                .k = g.k,
                                .a = (const float *)a->data + tp_index_map_offset(&g.a_batch, z),
                                .lda = lda,
                                .b = (const float *)b->data + tp_index_map_offset(&g.b_batch, z),
                                .ldb = ldb,
                                .beta = 0,
                                .c = (float *)runner->values[id].data + z * g.m * g.n,
                                .ldc = g.n});
    return TPUCL_OK;
}

tpucl_status tp_cpu_run_product(tp_cpu_runner *runner, tp_node_id id)
{
    tp_conv_kind kind;
    if (conv_kind_of(tp_cpu_node(runner, id), &kind)) return run_conv(runner, id, kind);
    return run_dot(runner, id);
}
