/* SPDX-License-Identifier: Apache-2.0
 * Rules about what tiles waste: products on the MXU's array, arrays in HBM.
 */
#include <stdio.h>
#include <string.h>
#include "check/padding.h"
#include "check/rules.h"
#include "graph/opdef.h"

/* ---- products ---- */

/* A layer's products, forward and backward together. */
typedef struct layer_work {
    const char *layer;
    double useful, spent;   /* multiply-adds */
    tp_check_product worst; /* of its products the one that wastes most */
    double worst_wasted;
} layer_work;

TP_ARRAY_DEFINE(layer_works, layer_work)

static tpucl_status add_product(layer_works *works, const char *layer,
                                const tp_check_product *product, double spent)
{
    const double useful = product->batch * product->m * product->n * product->k;
    size_t i = 0;
    while (i < works->count && strcmp(works->items[i].layer, layer) != 0)
        i++;
    if (i == works->count) TP_TRY(layer_works_push(works, (layer_work){.layer = layer}));
    layer_work *work = &works->items[i];
    work->useful += useful;
    work->spent += spent;
    if (spent - useful >= work->worst_wasted) {
        work->worst_wasted = spent - useful;
        work->worst = *product;
    }
    return TPUCL_OK;
}

/* " (m 10 is padded to 16, ...)": names the dimensions that are off. */
static void describe_padding(const tp_check_product *p, double rows, double columns, char *out,
                             size_t room)
{
    const struct {
        const char *name;
        double size, step;
    } dims[] = {{"m", p->m, 8}, {"n", p->n, columns}, {"k", p->k, rows}};
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < 3; i++) {
        const double over =
            dims[i].size - dims[i].step * (double)(int64_t)(dims[i].size / dims[i].step);
        if (over == 0 || used >= room) continue;
        used +=
            (size_t)snprintf(out + used, room - used, "%s%s = %.0f fills %.0f", used ? ", " : "",
                             dims[i].name, dims[i].size, dims[i].size + dims[i].step - over);
    }
}

static tpucl_status report_layer(const layer_work *work, double total, double rows, double columns,
                                 tp_check_report *report)
{
    const double share = work->useful / work->spent;
    if (share >= 0.5 || work->spent < 0.05 * total) return TPUCL_OK;
    char padding[160];
    describe_padding(&work->worst, rows, columns, padding, sizeof padding);
    return tp_check_add(
        report, TP_SEVERITY_WARNING, "mxu-padding", work->layer,
        "make channels and units multiples of 128, or of 8 with 128 examples per core",
        "its products use %.0f %% of the MXU and take %.0f %% of the step's MXU "
        "time; of the largest, m = %.0f, n = %.0f, k = %.0f: %s",
        100 * share, 100 * work->spent / total, work->worst.m, work->worst.n, work->worst.k,
        padding);
}

tpucl_status tp_rule_mxu_padding(const tp_check_input *input, tp_check_report *report)
{
    const double rows = tp_topology_figure(input->topology, TP_FIGURE_MXU_ROWS, 0);
    const double columns = tp_topology_figure(input->topology, TP_FIGURE_MXU_COLUMNS, 0);
    const tp_graph *graph = input->train;
    const bool has_mxu = rows > 0 && columns > 0;
    layer_works works = {0};
    tpucl_status status = TPUCL_OK;
    double useful = 0, total = 0;
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        tp_check_product p;
        if (!tp_check_read_product(graph, id, &p)) continue;
        const double work = p.batch * p.m * p.n * p.k;
        const double spent = has_mxu ? p.batch * tp_mxu_work(p.m, p.n, p.k, rows, columns) : work;
        const char *layer = tp_check_layer_of(graph, id, report->arena);
        useful += work;
        total += spent;
        status = layer ? add_product(&works, layer, &p, spent) : TPUCL_OUT_OF_MEMORY;
        TP_TRY_GOTO(status, status, done);
    }
    report->summary.flops = 2 * useful;
    report->summary.mxu_flops = 2 * total;
    for (size_t i = 0; i < works.count && has_mxu; i++)
        TP_TRY_GOTO(status, report_layer(&works.items[i], total, rows, columns, report), done);
done:
    layer_works_deinit(&works);
    return status;
}

/* ---- arrays ---- */

enum { MOST_TENSORS = 8 };

/* Padding more than doubles it whatever the layout, and it is not small: 1 MB per core. */
static tpucl_status report_tensor(const tp_check_input *input, tp_node_id id,
                                  const tp_best_layout *best, tp_check_report *report)
{
    const tp_node *node = tp_graph_node(input->train, id);
    char shape[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&node->shape, shape, sizeof shape);
    const double bytes = tp_unpadded_bytes(&node->shape, node->dtype);
    return tp_check_add(report, TP_SEVERITY_WARNING, "hbm-padding", node->name,
                        "let one of its dimensions be a multiple of 128 and another one of 8",
                        "%s%s takes %.1f MB of HBM for %.1f MB in its best layout, %.1f times: "
                        "the dimensions of %lld and %lld fill tiles of 128 and 8",
                        tp_dtype_name(node->dtype), shape, 1e-6 * best->bytes, 1e-6 * bytes,
                        best->bytes / bytes, (long long)node->shape.dims[best->minor],
                        (long long)node->shape.dims[best->second]);
}

/* What the host feeds lies row-major until the device has changed that. */
static tpucl_status report_input(const tp_node *node, tp_check_report *report)
{
    const int32_t rank = node->shape.rank;
    const double bytes = tp_unpadded_bytes(&node->shape, node->dtype);
    const double padded = tp_padded_bytes(&node->shape, node->dtype, rank - 2, rank - 1);
    if (padded <= 2 * bytes || padded < 1e6) return TPUCL_OK;
    char shape[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&node->shape, shape, sizeof shape);
    return tp_check_add(report, TP_SEVERITY_NOTE, "input-layout", node->name,
                        "TPU code feeds such arrays flat or with the batch last and turns them "
                        "round on the device; tpucl feeds them as they are, nothing to do here",
                        "fed as %s%s it would take %.1f MB of HBM for %.1f MB: %lld fills 128",
                        tp_dtype_name(node->dtype), shape, 1e-6 * padded, 1e-6 * bytes,
                        (long long)node->shape.dims[rank - 1]);
}

tpucl_status tp_rule_hbm_padding(const tp_check_input *input, tp_check_report *report)
{
    const tp_graph *graph = input->train;
    int reported = 0;
    if (tp_topology_figure(input->topology, TP_FIGURE_MXU_ROWS, 0) <= 0) return TPUCL_OK;
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        const tp_node *node = tp_graph_node(graph, id);
        if (node->shape.rank < 2) continue;
        const tp_best_layout best = tp_find_best_layout(&node->shape, node->dtype);
        const double bytes = tp_unpadded_bytes(&node->shape, node->dtype);
        report->summary.tensor_bytes += bytes;
        report->summary.padded_bytes += best.bytes;
        if (tp_node_is(node, "input")) TP_TRY(report_input(node, report));
        const bool is_own = node->def->op_class == TP_OP_MXU || tp_node_is(node, "variable");
        if (!is_own || best.bytes <= 2 * bytes || best.bytes < 1e6 || reported >= MOST_TENSORS)
            continue;
        reported++;
        TP_TRY(report_tensor(input, id, &best, report));
    }
    return TPUCL_OK;
}
