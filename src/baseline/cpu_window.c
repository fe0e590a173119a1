/* SPDX-License-Identifier: Apache-2.0
 * Windows: every image by itself, by the op's own rule, images shared among threads. */
#include <string.h>
#include "baseline/cpu_internal.h"
#include "graph/geometry.h"

enum { MAX_ATTRS = 8 };

typedef struct window_run {
    tp_cpu_runner *runner;
    tp_node_id id;
} window_run;

static tp_host_tensor one_image(const tp_host_tensor *tensor, int64_t image)
{
    tp_host_tensor part = *tensor;
    int64_t elems = tp_shape_elems(&tensor->shape) / tensor->shape.dims[0];
    part.shape.dims[0] = 1;
    part.data = (char *)tensor->data + (size_t)(image * elems) * tp_dtype_size(tensor->dtype);
    return part;
}

static tpucl_status run_images(void *user, size_t begin, size_t end, int worker)
{
    const window_run *run = user;
    const tp_node *node = tp_cpu_node(run->runner, run->id);
    const tp_eval_context context = {.seed = run->runner->seed, .step = run->runner->step};
    int64_t dims[TP_MAX_RANK];
    tp_attr attrs[MAX_ATTRS];
    tp_node part = *node;
    (void)worker;
    part.shape.dims[0] = 1;
    part.attrs = attrs;
    for (int32_t i = 0; i < node->attr_count; i++) {
        attrs[i] = node->attrs[i];
        if (strcmp(attrs[i].name, "input_dims") != 0) continue; /* speaks of all images */
        memcpy(dims, attrs[i].ints, (size_t)attrs[i].ints_count * sizeof *dims);
        dims[0] = 1;
        attrs[i].ints = dims;
    }
    for (int64_t image = (int64_t)begin; image < (int64_t)end; image++) {
        tp_host_tensor inputs[TP_MAX_INPUTS];
        for (int32_t i = 0; i < node->input_count; i++)
            inputs[i] = one_image(&run->runner->values[node->inputs[i]], image);
        tp_host_tensor out = one_image(&run->runner->values[run->id], image);
        TP_TRY(node->def->evaluate(&part, inputs, &context, &out));
    }
    return TPUCL_OK;
}

static bool is_per_image(const tp_cpu_runner *runner, const tp_node *node)
{
    tp_window_geometry g;
    const tp_shape *in = strcmp(node->def->name, "reduce_window_grad") == 0
                             ? &node->shape
                             : &tp_cpu_node(runner, node->inputs[0])->shape;
    return node->attr_count <= MAX_ATTRS && tp_window_geometry_read(node, in, &g) == TPUCL_OK &&
           g.rank > 1 && g.window[0] == 1 && g.stride[0] == 1;
}

tpucl_status tp_cpu_run_window(tp_cpu_runner *runner, tp_node_id id)
{
    const tp_node *node = tp_cpu_node(runner, id);
    if (!is_per_image(runner, node)) return tp_cpu_run_plain(runner, id);
    window_run run = {runner, id};
    return tp_pool_parallel_for(runner->pool, (size_t)node->shape.dims[0], 1, run_images, &run);
}
