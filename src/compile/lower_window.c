/* SPDX-License-Identifier: Apache-2.0
 * Windows: kernels/window/. A window over any two axes is brought to [A][H][M][W][C].
 */
#include "compile/lower.h"

#include <inttypes.h>
#include <string.h>
#include "graph/geometry.h"
#include "graph/opdef.h"

/* One window in the kernels' terms. */
typedef struct window_problem {
    int64_t a, m, c, in_h, in_w, out_h, out_w;
    int64_t window_h, window_w, stride_h, stride_w, pad_h, pad_w;
} window_problem;

static bool is_trivial(const tp_window_geometry *g, int32_t axis)
{
    return g->window[axis] == 1 && g->stride[axis] == 1 && g->pad_low[axis] == 0 &&
           g->pad_high[axis] == 0;
}

/* The last two axes with a window become H and W; for one, H is 1. */
static tpucl_status collapse(const tp_node *node, const tp_window_geometry *g, window_problem *p)
{
    int32_t axes[2] = {-1, -1}, count = 0;
    for (int32_t i = 0; i < g->rank; i++) {
        if (is_trivial(g, i)) continue;
        if (count == 2)
            return TP_FAIL(TPUCL_UNSUPPORTED,
                           "%s over more than two axes has no kernel: windows over %" PRId32
                           " axes",
                           node->def->name, g->rank);
        axes[count++] = i;
    }
    const int32_t h = count == 2 ? axes[0] : -1, w = count == 2 ? axes[1] : axes[0];
    *p = (window_problem){.a = 1,
                          .m = 1,
                          .c = 1,
                          .in_h = 1,
                          .in_w = 1,
                          .out_h = 1,
                          .out_w = 1,
                          .window_h = 1,
                          .window_w = 1,
                          .stride_h = 1,
                          .stride_w = 1};
    for (int32_t i = 0; i < g->rank; i++) {
        if (i == h || i == w) continue;
        int64_t *into = i < h ? &p->a : i < w && h >= 0 ? &p->m : i < w ? &p->a : &p->c;
        *into *= g->in.dims[i];
    }
    if (h >= 0) {
        p->in_h = g->in.dims[h];
        p->out_h = g->out.dims[h];
        p->window_h = g->window[h];
        p->stride_h = g->stride[h];
        p->pad_h = g->pad_low[h];
    }
    if (w >= 0) {
        p->in_w = g->in.dims[w];
        p->out_w = g->out.dims[w];
        p->window_w = g->window[w];
        p->stride_w = g->stride[w];
        p->pad_w = g->pad_low[w];
    }
    return TPUCL_OK;
}

/* Windows that do not overlap: then each one's gradient goes to cells of its own. */
static bool is_apart(const tp_node *node, const window_problem *p)
{
    return strcmp(node->def->name, "select_and_scatter") == 0 && p->window_h <= p->stride_h &&
           p->window_w <= p->stride_w;
}

static const char *window_options(tp_lowering *l, const tp_node *node, const window_problem *p)
{
    const tp_graph *graph = l->fusion->graph;
    const bool is_max = strcmp(tp_node_attr_text(node, "kind", ""), "max") == 0;
    const tp_node *gradient = node->input_count > 1 ? tp_graph_node(graph, node->inputs[1]) : NULL;
    const bool is_wide = l->options->caps->type == TP_DEVICE_CPU && p->c >= 16;
    /* A work-item of a CPU has several cells of a line. */
    const bool is_scatter =
        strcmp(node->def->name, "select_and_scatter") == 0 && !is_apart(node, p);
    const bool has_lines = is_scatter && l->options->caps->type == TP_DEVICE_CPU;
    return tp_arena_printf(
        l->fusion->arena, "-DWINDOW%s%s%s%s%s%s", is_wide ? " -DWINDOW_WIDE" : "",
        is_max ? " -DWINDOW_MAX" : "", has_lines ? " -DWINDOW_COLUMNS=64" : "",
        is_apart(node, p) ? " -DWINDOW_APART" : "", node->dtype == TP_BF16 ? " -DWINDOW_BF16" : "",
        gradient && gradient->dtype == TP_BF16 ? " -DWINDOW_GRADIENT_BF16" : "");
}

static int64_t windows_to_cover(int64_t cells, int64_t pad, int64_t stride)
{
    return (cells + pad + stride - 1) / stride;
}

/* Result positions: the windows, or (gradients) the cells. */
static void plan_grid(tp_lowering *l, const tp_node *node, const window_problem *p,
                      tp_launch *launch, tp_vpu_args *args)
{
    int64_t rows = p->in_w, height = p->in_h;
    if (strcmp(node->def->name, "reduce_window") == 0) {
        rows = p->out_w;
        height = p->out_h;
    } else if (is_apart(node, p)) {
        rows = windows_to_cover(p->in_w, p->pad_w, p->stride_w);
        height = windows_to_cover(p->in_h, p->pad_h, p->stride_h);
    }
    const int64_t nz = p->a * p->m * height;
    tp_vpu_grid grid = tp_vpu_grid_plan(l->options->caps, p->c, rows, nz, 4096);
    const int64_t geometry[] = {p->m,        p->c,        p->in_h,     p->in_w,
                                p->out_h,    p->out_w,    p->window_h, p->window_w,
                                p->stride_h, p->stride_w, p->pad_h,    p->pad_w};
    for (size_t i = 0; i < sizeof geometry / sizeof geometry[0]; i++)
        tp_vpu_args_add_int(args, geometry[i]);
    if (strcmp(node->def->name, "select_and_scatter") == 0) {
        tp_vpu_args_add_int(args, rows);
        tp_vpu_args_add_int(args, height);
    }
    tp_vpu_args_add_int(args, nz);
    tp_vpu_args_add_int(args, grid.chunk_x);
    tp_vpu_args_add_int(args, grid.chunk_y);
    for (int i = 0; i < 3; i++) {
        launch->global[i] = grid.global[i];
        launch->local[i] = grid.local[i];
    }
    launch->grid_z = launch->global[2];
}

tpucl_status tp_lower_window(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(graph, head);
    const bool is_gradient = strcmp(node->def->name, "reduce_window") != 0;
    const tp_shape *in = is_gradient ? &node->shape : &tp_graph_node(graph, node->inputs[0])->shape;
    tp_window_geometry g;
    window_problem problem;
    TP_TRY(tp_window_geometry_read(node, in, &g));
    TP_TRY(collapse(node, &g, &problem));

    tp_launch launch = {.kind = TP_LAUNCH_KERNEL,
                        .label = tp_lower_label(l, cluster),
                        .options = window_options(l, node, &problem),
                        .entry = node->def->name};
    launch.source = tp_arena_printf(l->fusion->arena, "#include \"window/%s.cl\"\n", launch.entry);
    if (!launch.options || !launch.source) return TPUCL_OUT_OF_MEMORY;
    tp_vpu_args args = {.arena = l->fusion->arena};
    for (int32_t i = 0; i < node->input_count; i++) {
        const tp_node *input = tp_graph_node(graph, node->inputs[i]);
        tp_vpu_args_add(&args, (tp_kernel_arg){.kind = TP_ARG_TENSOR, .tensor = node->inputs[i]});
        launch.bytes += (double)tp_shape_bytes(&input->shape, input->dtype);
    }
    tp_vpu_args_add(&args,
                    (tp_kernel_arg){.kind = TP_ARG_TENSOR, .tensor = head, .is_written = true});
    launch.bytes += (double)tp_shape_bytes(&node->shape, node->dtype);
    if (node->def->flops) launch.flops = node->def->flops(graph, node);
    plan_grid(l, node, &problem, &launch, &args);
    TP_TRY(args.status);
    launch.arg_count = args.count;
    TP_TRY(tp_lower_map_args(l, args.items, args.count, -1, &launch.args));
    return tp_lower_add_launch(l, cluster->level, !cluster->is_replicated, &launch);
}
