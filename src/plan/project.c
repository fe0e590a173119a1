/* SPDX-License-Identifier: Apache-2.0
 * See project.h.
 */
#include "plan/project.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "check/padding.h"
#include "core/str.h"

/* Share of a step in which finished gradients can travel: backward work, two thirds of all. */
#define HIDING_SHARE (2.0 / 3)
/* Between devices of one host that have no links of their own: PCIe generation 3, 16 lanes, as host_link of v2. */
#define DEFAULT_LINK 12.5e9

static const struct {
    const char *name;
    double efficiency, launch_seconds, passes;
} classes[TP_MACHINE_CLASS_COUNT] = {
#define ROW(id, name, efficiency, launch, passes, meaning) {name, efficiency, launch, passes},
    TP_MACHINE_CLASS_LIST(ROW)
#undef ROW
};

static const char *const limiters[TP_LIMITER_COUNT] = {"products", "memory", "launches",
                                                       "host link", "all-reduce"};

const char *tp_machine_class_name(tp_machine_class machine)
{
    return classes[machine].name;
}

double tp_machine_efficiency(tp_machine_class machine)
{
    return classes[machine].efficiency;
}

const char *tp_limiter_name(tp_limiter limiter)
{
    return limiters[limiter];
}

tp_machine_class tp_machine_class_of(const tp_topology *topology, const tp_work *work)
{
    bool has_bf16 = false;
    for (size_t i = 0; i < work->items.count; i++)
        has_bf16 = has_bf16 || (work->items.items[i].is_product && !work->items.items[i].is_f32);
    if (topology->figures[TP_FIGURE_MXU_ROWS].known) return TP_MACHINE_TPU;
    if (tp_str_contains_nocase(topology->generation, "CPU")) return TP_MACHINE_CPU;
    return has_bf16 && topology->figures[TP_FIGURE_PEAK_BF16].known ? TP_MACHINE_MATRIX
                                                                    : TP_MACHINE_GPU;
}

/* ---- the machine ---- */

typedef struct machine {
    tp_machine_class machine;
    double peak_f32, peak_bf16, bandwidth, launch_seconds;
    double rows, columns; /* of the array; 0: no tiles */
} machine;

static tpucl_status read_machine(const tp_topology *topology, tp_machine_class kind, machine *out)
{
    const double f32 = tp_topology_figure(topology, TP_FIGURE_PEAK_F32, 0);
    const double bf16 = tp_topology_figure(topology, TP_FIGURE_PEAK_BF16, 0);
    *out = (machine){.machine = kind,
                     .peak_f32 = f32 > 0 ? f32 : bf16,
                     .peak_bf16 = bf16 > 0 ? bf16 : f32,
                     .bandwidth = tp_topology_figure(topology, TP_FIGURE_HBM_BANDWIDTH, 0),
                     .launch_seconds = classes[kind].launch_seconds,
                     .rows = tp_topology_figure(topology, TP_FIGURE_MXU_ROWS, 0),
                     .columns = tp_topology_figure(topology, TP_FIGURE_MXU_COLUMNS, 128)};
    if (out->peak_f32 > 0 && out->bandwidth > 0) return TPUCL_OK;
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "topology '%s' has no 'peak_f32' or 'hbm_bandwidth' to project with",
                   topology->name);
}

/* ---- layers ---- */

typedef struct item_time {
    double products, memory, launch, useful, spent;
} item_time;

static item_time time_item(const tp_work_item *item, const machine *m)
{
    item_time t = {.memory = item->bytes / m->bandwidth, .launch = m->launch_seconds};
    if (!item->is_product) {
        t.memory *= classes[m->machine].passes;
        return t;
    }
    t.useful = 2 * item->batch * item->m * item->n * item->k;
    t.spent = t.useful;
    if (m->rows > 0)
        t.spent = 2 * item->batch * tp_mxu_work(item->m, item->n, item->k, m->rows, m->columns);
    const double left = m->rows > 0 ? t.spent : t.useful * item->fast_share;
    t.products = left / (item->is_f32 ? m->peak_f32 : m->peak_bf16);
    return t;
}

/* What a layer's time is made of, while it is added up. */
typedef struct layer_sum {
    tp_projected_layer layer;
    double by[TP_LIMITER_COUNT];
} layer_sum;
TP_ARRAY_DEFINE(layer_sums, layer_sum)

static tpucl_status find_layer(layer_sums *sums, const char *name, layer_sum **out_sum)
{
    for (size_t i = 0; i < sums->count; i++) {
        *out_sum = &sums->items[i];
        if (strcmp(sums->items[i].layer.name, name) == 0) return TPUCL_OK;
    }
    TP_TRY(layer_sums_push(sums, (layer_sum){.layer = {.name = name}}));
    *out_sum = &sums->items[sums->count - 1];
    return TPUCL_OK;
}

static void add_item(const tp_work_item *item, const machine *m, layer_sum *sum,
                     double total[TP_LIMITER_COUNT])
{
    const item_time t = time_item(item, m);
    const double longest = fmax(fmax(t.products, t.memory), t.launch);
    const tp_limiter limiter = longest == t.products ? TP_LIMITER_PRODUCTS
                               : longest == t.memory ? TP_LIMITER_MEMORY
                                                     : TP_LIMITER_LAUNCH;
    const double seconds = item->count * longest / classes[m->machine].efficiency;
    sum->layer.seconds += seconds;
    sum->by[limiter] += seconds;
    total[limiter] += seconds;
    sum->layer.useful_flops += item->count * t.useful;
    sum->layer.spent_flops += item->count * t.spent;
}

static tp_limiter largest_of(const double by[TP_LIMITER_COUNT])
{
    int largest = 0;
    for (int i = 1; i < TP_LIMITER_COUNT; i++)
        if (by[i] > by[largest]) largest = i;
    return (tp_limiter)largest;
}

static int compare_layers(const void *a, const void *b)
{
    const tp_projected_layer *x = a, *y = b;
    if (x->seconds != y->seconds) return x->seconds > y->seconds ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The longer of both sums, and each layer by as much. */
static void overlap(const double total[TP_LIMITER_COUNT], tp_projection *p)
{
    const double longer = fmax(total[TP_LIMITER_PRODUCTS], total[TP_LIMITER_MEMORY]);
    const double all = p->device_seconds;
    p->device_seconds = longer + total[TP_LIMITER_LAUNCH];
    for (size_t i = 0; i < p->layers.count && all > 0; i++)
        p->layers.items[i].seconds *= p->device_seconds / all;
}

static tpucl_status add_layers(const tp_work *work, const machine *m, layer_sums *sums,
                               tp_projection *p)
{
    double total[TP_LIMITER_COUNT] = {0}, useful = 0, spent = 0;
    for (size_t i = 0; i < work->items.count; i++) {
        layer_sum *sum = NULL;
        TP_TRY(find_layer(sums, work->items.items[i].layer, &sum));
        add_item(&work->items.items[i], m, sum, total);
    }
    for (size_t i = 0; i < sums->count; i++) {
        tp_projected_layer layer = sums->items[i].layer;
        layer.limiter = largest_of(sums->items[i].by);
        layer.name = tp_arena_strdup(p->arena, layer.name);
        if (!layer.name) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_projected_layers_push(&p->layers, layer));
        p->device_seconds += layer.seconds;
        useful += layer.useful_flops;
        spent += layer.spent_flops;
    }
    if (p->layers.count)
        qsort(p->layers.items, p->layers.count, sizeof *p->layers.items, compare_layers);
    p->limiter = largest_of(total);
    if (m->machine == TP_MACHINE_TPU) overlap(total, p);
    p->mxu_share = spent > 0 ? useful / spent : 0;
    p->peak_share = p->device_seconds > 0 ? useful / m->peak_bf16 / p->device_seconds : 0;
    p->is_recurrent = work->longest_loop > 1 && p->limiter == TP_LIMITER_LAUNCH;
    return TPUCL_OK;
}

/* The batch from which the products' multiplications take longer than their bytes: of both, what grows with the batch
 * and what does not (weights) are told apart by the operand of the product that has no batch. */
static double find_ridge(const tp_work *work, const machine *m)
{
    double products = 0, moving = 0, fixed = 0;
    for (size_t i = 0; i < work->items.count; i++) {
        const tp_work_item *item = &work->items.items[i];
        if (!item->is_product) continue;
        const item_time t = time_item(item, m);
        const double weights =
            fmin(item->bytes, (item->is_f32 ? 4 : 2) * item->batch * item->k * item->n);
        products += item->count * t.products;
        fixed += item->count * weights / m->bandwidth;
        moving += item->count * (item->bytes - weights) / m->bandwidth;
    }
    if (products <= moving || work->examples < 1) return 0;
    return ceil(fixed / ((products - moving) / (double)work->examples));
}

/* ---- beside the device ---- */

static double feed_seconds(const tp_work *work, const tp_topology *topology,
                           const tp_project_options *options)
{
    const double link = tp_topology_figure(topology, TP_FIGURE_HOST_LINK, DEFAULT_LINK);
    const double network = tp_topology_figure(topology, TP_FIGURE_USER_LINK, 0);
    const double seconds = work->input_bytes * topology->cores_per_chip / link;
    if (!options->feeds_over_network || network <= 0) return seconds;
    return fmax(seconds, work->input_bytes * topology->cores / network);
}

/* A ring over chips moves 2 (n - 1) / n of the gradients through each of them, both ways at once where there are
 * links; cores of a chip add up first. */
static double sum_seconds(const tp_work *work, const tp_topology *topology, int32_t machines)
{
    const double chips = (double)topology->chips * machines;
    const double links = tp_topology_figure(topology, TP_FIGURE_ICI_LINKS, 0);
    const double link = tp_topology_figure(topology, TP_FIGURE_ICI_BANDWIDTH, 0);
    const double host = tp_topology_figure(topology, TP_FIGURE_HOST_LINK, DEFAULT_LINK);
    const double hop = tp_topology_figure(topology, TP_FIGURE_ICI_LATENCY, 1e-6);
    if (chips <= 1) return 0;
    const double bandwidth = link > 0 && links > 0 ? link * fmin(links, 2) : host;
    return 2 * (chips - 1) / chips * work->gradient_bytes / bandwidth + 2 * (chips - 1) * hop;
}

static void add_rest(const tp_work *work, const tp_topology *topology,
                     const tp_project_options *options, tp_projection *p)
{
    const int32_t machines = options->machines > 1 ? options->machines : 1;
    const double turns = options->micro_batches > 1 ? options->micro_batches : 1;
    p->device_seconds *= turns;
    for (size_t i = 0; i < p->layers.count; i++)
        p->layers.items[i].seconds *= turns;
    p->feed_seconds = turns * feed_seconds(work, topology, options);
    p->sum_seconds = sum_seconds(work, topology, machines);
    p->exposed_sum_seconds = fmax(0, p->sum_seconds - HIDING_SHARE * p->device_seconds);
    const double computing = p->device_seconds + p->exposed_sum_seconds;
    p->seconds = fmax(computing, p->feed_seconds);
    if (p->feed_seconds > computing)
        p->limiter = TP_LIMITER_FEED;
    else if (p->exposed_sum_seconds > p->device_seconds)
        p->limiter = TP_LIMITER_SUMS;
    p->low = p->seconds / TP_PROJECT_BAND;
    p->high = p->seconds * TP_PROJECT_BAND;
    if (p->seconds > 0)
        p->examples_per_second =
            turns * (double)work->examples * topology->cores * machines / p->seconds;
}

tpucl_status tp_project(const tp_work *work, const tp_topology *topology,
                        const tp_project_options *options, tp_projection **out_projection)
{
    machine m;
    tp_arena *arena = NULL;
    layer_sums sums = {0};
    TP_TRY(read_machine(topology, options->machine, &m));
    TP_TRY(tp_arena_create(0, &arena));
    tp_projection *p = TP_ARENA_NEW(arena, tp_projection);
    if (!p) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    p->arena = arena;
    p->machine = options->machine;
    const tpucl_status status = add_layers(work, &m, &sums, p);
    layer_sums_deinit(&sums);
    if (status != TPUCL_OK) {
        tp_projection_destroy(p);
        return status;
    }
    p->ridge_batch = find_ridge(work, &m);
    add_rest(work, topology, options, p);
    *out_projection = p;
    return TPUCL_OK;
}

void tp_projection_destroy(tp_projection *projection)
{
    if (!projection) return;
    tp_projected_layers_deinit(&projection->layers);
    tp_arena_destroy(projection->arena);
}
