/* SPDX-License-Identifier: Apache-2.0
 * Projections of work that was written down by hand: each ceiling, and what stands beside the device.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "plan/project.h"
#include "plan/published.h"

/* 1 TFLOP/s of bf16, a quarter of f32, 100 GB/s; one chip of one core. */
static tp_topology make_topology(bool is_tiled)
{
    tp_topology topology = {
        .name = "sample", .generation = "", .cores = 1, .chips = 1, .cores_per_chip = 1};
    const struct {
        tp_figure_id id;
        double value;
    } figures[] = {{TP_FIGURE_PEAK_BF16, 1e12},
                   {TP_FIGURE_PEAK_F32, 0.25e12},
                   {TP_FIGURE_HBM_BANDWIDTH, 100e9},
                   {TP_FIGURE_HOST_LINK, 10e9},
                   {TP_FIGURE_USER_LINK, 0.5e9}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        topology.figures[figures[i].id] = (tp_figure){.known = true, .value = figures[i].value};
    if (is_tiled) {
        topology.figures[TP_FIGURE_MXU_ROWS] = (tp_figure){.known = true, .value = 128};
        topology.figures[TP_FIGURE_MXU_COLUMNS] = (tp_figure){.known = true, .value = 128};
    }
    return topology;
}

static tp_projection *project(const tp_topology *topology, tp_work_item *items, size_t count,
                              tp_work work, tp_project_options options)
{
    tp_projection *projection = NULL;
    work.items = (tp_work_items){items, count, count};
    if (!work.examples) work.examples = 128;
    if (!work.longest_loop) work.longest_loop = 1;
    cr_assert_eq(tp_project(&work, topology, &options, &projection), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    return projection;
}

#define PRODUCT(name, m_, n_, k_, bytes_)                                                          \
    {                                                                                              \
        .layer = name, .count = 1, .is_product = true, .batch = 1, .m = m_, .n = n_, .k = k_,      \
        .fast_share = 1, .bytes = bytes_                                                           \
    }

static void expect_near(double found, double wanted)
{
    cr_expect(fabs(found - wanted) <= 1e-9 * fabs(wanted), "%.12g, expected %.12g", found, wanted);
}

/* 2 * 1024^3 FLOP, unless something else takes longer. */
Test(project, each_ceiling)
{
    const tp_topology topology = make_topology(false);
    const double efficiency = tp_machine_efficiency(TP_MACHINE_MATRIX);
    tp_work_item items[] = {PRODUCT("a", 1024, 1024, 1024, 6e6),
                            PRODUCT("b", 8, 8, 8, 5e9),
                            {.layer = "c", .count = 25, .fast_share = 1, .bytes = 10}};
    tp_projection *p = project(&topology, items, 3, (tp_work){.longest_loop = 25},
                               (tp_project_options){.machine = TP_MACHINE_MATRIX});
    cr_assert_eq(p->layers.count, 3);
    cr_expect_str_eq(p->layers.items[0].name, "b");
    cr_expect_eq(p->layers.items[0].limiter, TP_LIMITER_MEMORY);
    expect_near(p->layers.items[0].seconds, 0.05 / efficiency);
    cr_expect_str_eq(p->layers.items[1].name, "a");
    cr_expect_eq(p->layers.items[1].limiter, TP_LIMITER_PRODUCTS);
    expect_near(p->layers.items[1].seconds, 2.0 * (1 << 30) / 1e12 / efficiency);
    cr_expect_eq(p->layers.items[2].limiter, TP_LIMITER_LAUNCH);
    expect_near(p->layers.items[2].seconds, 25 * 8e-6 / efficiency);
    cr_expect_eq(p->limiter, TP_LIMITER_MEMORY);
    expect_near(p->low * TP_PROJECT_BAND, p->seconds);
    expect_near(p->examples_per_second, 128 / p->seconds);
    tp_projection_destroy(p);
}

Test(project, f32_and_fast_convolution)
{
    const tp_topology topology = make_topology(false);
    tp_work_item item = PRODUCT("conv", 1024, 1024, 1024, 0);
    item.is_f32 = true;
    item.fast_share = 4.0 / 9;
    tp_projection *p = project(&topology, &item, 1, (tp_work){.examples = 1},
                               (tp_project_options){.machine = TP_MACHINE_GPU});
    expect_near(p->device_seconds,
                4.0 / 9 * 2 * (1 << 30) / 0.25e12 / tp_machine_efficiency(TP_MACHINE_GPU));
    tp_projection_destroy(p);
}

/* k of 9 fills 128: an array has no fast convolution, and a TPU does both sums side by side. */
Test(project, an_array_is_padded_and_fetches_ahead)
{
    const tp_topology topology = make_topology(true);
    tp_work_item items[] = {PRODUCT("conv", 1 << 20, 128, 9, 0),
                            {.layer = "norm", .count = 1, .fast_share = 1, .bytes = 1e9}};
    items[0].fast_share = 4.0 / 9;
    tp_projection *p = project(&topology, items, 2, (tp_work){.examples = 1},
                               (tp_project_options){.machine = TP_MACHINE_TPU});
    const double products = 2.0 * (1 << 20) * 128 * 128 / 1e12, memory = 0.01;
    cr_expect_gt(products, memory);
    expect_near(p->device_seconds, products / tp_machine_efficiency(TP_MACHINE_TPU));
    expect_near(p->mxu_share, 9 / 128.0);
    expect_near(p->layers.items[0].seconds + p->layers.items[1].seconds, p->device_seconds);
    tp_projection_destroy(p);
}

Test(project, the_feed_and_the_sums)
{
    tp_topology topology = make_topology(true);
    tp_work_item item = PRODUCT("dense", 1024, 1024, 1024, 0);
    const tp_project_options options = {.machine = TP_MACHINE_TPU};
    const tp_work fed = {.input_bytes = 1e9};
    tp_projection *p = project(&topology, &item, 1, fed, options);
    expect_near(p->feed_seconds, 0.1);
    cr_expect_eq(p->limiter, TP_LIMITER_FEED);
    expect_near(p->seconds, 0.1);
    tp_projection_destroy(p);
    p = project(&topology, &item, 1, fed,
                (tp_project_options){.machine = TP_MACHINE_TPU, .feeds_over_network = true});
    expect_near(p->seconds, 2);
    tp_projection_destroy(p);
    /* four chips in a ring of links of 1 GB/s, both ways */
    topology.chips = topology.cores = 4;
    topology.figures[TP_FIGURE_ICI_LINKS] = (tp_figure){.known = true, .value = 4};
    topology.figures[TP_FIGURE_ICI_BANDWIDTH] = (tp_figure){.known = true, .value = 1e9};
    topology.figures[TP_FIGURE_ICI_LATENCY] = (tp_figure){.known = true, .value = 1e-6};
    p = project(&topology, &item, 1, (tp_work){.gradient_bytes = 1e9}, options);
    expect_near(p->sum_seconds, 1.5 * 1e9 / 2e9 + 6e-6);
    expect_near(p->seconds, p->device_seconds / 3 + p->sum_seconds);
    cr_expect_eq(p->limiter, TP_LIMITER_SUMS);
    tp_projection_destroy(p);
    /* nothing to sum with one chip, little enough is hidden */
    p = project(&topology, &item, 1, (tp_work){.gradient_bytes = 1}, options);
    expect_near(p->seconds, p->device_seconds);
    tp_projection_destroy(p);
}

/* 1024 x 1024 weights of 2 MiB and 4 KiB an example at 100 GB/s, 2 MFLOP an example at 1 TFLOP/s. */
Test(project, the_ridge)
{
    const tp_topology topology = make_topology(false);
    const double weights = 2.0 * 1024 * 1024, moved = 4096;
    tp_work_item item = PRODUCT("dense", 128, 1024, 1024, weights + 128 * moved);
    tp_projection *p = project(&topology, &item, 1, (tp_work){.examples = 128},
                               (tp_project_options){.machine = TP_MACHINE_MATRIX});
    const double each = 2.0 * 1024 * 1024 / 1e12 - moved / 100e9;
    cr_expect_eq(p->ridge_batch, each > 0 ? ceil(weights / 100e9 / each) : 0);
    tp_projection_destroy(p);
}

Test(project, what_cannot_be_projected)
{
    tp_topology topology = make_topology(false);
    tp_projection *projection = NULL;
    tp_work work = {.examples = 1};
    const tp_project_options options = {.machine = TP_MACHINE_GPU};
    topology.figures[TP_FIGURE_HBM_BANDWIDTH].known = false;
    topology.figures[TP_FIGURE_HBM_BANDWIDTH].value = 0;
    cr_expect_eq(tp_project(&work, &topology, &options, &projection), TPUCL_UNSUPPORTED);
    cr_expect(strstr(tpucl_last_error()->message, "hbm_bandwidth"));
}

Test(project, classes)
{
    tp_work_item item = PRODUCT("dense", 8, 8, 8, 8);
    tp_work work = {.items = {&item, 1, 1}};
    tp_topology topology = make_topology(false);
    cr_expect_eq(tp_machine_class_of(&topology, &work), TP_MACHINE_MATRIX);
    item.is_f32 = true;
    cr_expect_eq(tp_machine_class_of(&topology, &work), TP_MACHINE_GPU);
    topology.generation = "host CPU";
    cr_expect_eq(tp_machine_class_of(&topology, &work), TP_MACHINE_CPU);
    topology = make_topology(true);
    cr_expect_eq(tp_machine_class_of(&topology, &work), TP_MACHINE_TPU);
}

/* Their files are there, and the paper's rows follow its roofline: 92 TOPS, or operations a byte at 34 GB/s. */
Test(project, published_rows)
{
    const tp_published_row *row;
    char name[64];
    int32_t count = 0;
    for (; (row = tp_published_row_at(count))->model; count++) {
        snprintf(name, sizeof name, "%s.json", row->model);
        cr_expect(tp_published_file(name), "%s", name);
        cr_expect(!strchr(row->topology, '/') || tp_published_file(row->topology));
        cr_expect(row->examples_per_second > 0 && row->per_core_batch > 0 && row->machines > 0);
    }
    cr_expect_gt(count, 30);
    cr_expect_null(tp_published_row_at(-1)->model);
    expect_near(tp_paper_project(tp_paper_row_at(0)), 0.79 * 13.6e12);
    expect_near(tp_paper_project(tp_paper_row_at(2)), 0.79 * 92e12);
}
