/* SPDX-License-Identifier: Apache-2.0
 * Optimizers on bf16 weights: steps of Keras' formulas in f32 and of PyTorch (tests/golden/gen_optim_bfloat16.py),
 * what is kept in bf16, what cores send each other, and rounding by chance.
 */
#include <criterion/criterion.h>
#include "golden/golden.h"
#include "golden/optim_bfloat16.h"
#include "harness/graph_run.h"
#include "num/bf16.h"
#include "optim/cross_shard.h"
#include "optim_case.h"

enum { CASES = sizeof golden_optim_bfloat16 / sizeof golden_optim_bfloat16[0], CORES = 8 };

static const tp_shape shapes[2] = {{2, {3, 4}}, {1, {5}}};
static const char *const names[2] = {"layer/kernel", "layer/bias"};

static void add_weight(tp_graph *graph, const char *name, tp_dtype dtype, tp_shape shape,
                       tp_init_kind init, tp_optim_gradient *out_gradient)
{
    const tp_variable variable = {.name = name,
                                  .dtype = dtype,
                                  .shape = shape,
                                  .init = init,
                                  .is_trainable = true,
                                  .is_model = true};
    char input[64];
    snprintf(input, sizeof input, "d %s", name);
    tp_graph_add_variable(graph, &variable);
    *out_gradient = (tp_optim_gradient){graph->variable_count - 1,
                                        tp_graph_add_input(graph, input, TP_F32, shape)};
}

static tp_reference *start(tp_graph *graph, int32_t cores)
{
    tp_reference *reference;
    const tp_reference_options options = {.cores = cores, .seed = 4};
    EXPECT_OK(tp_graph_check(graph));
    EXPECT_OK(tp_graph_verify(graph));
    EXPECT_OK(tp_reference_create(graph, &options, &reference));
    return reference;
}

/* ---- golden steps ---- */

/* How many weights differ; none by more than an ulp of bf16. */
static int compare_case(int index)
{
    const char *name = golden_optim_bfloat16[index].name;
    const bool is_torch = strcmp(name, "torch") == 0;
    const char *moments = golden_optim_bfloat16[index].moments;
    tp_optim_config config =
        config_of(is_torch ? "SGD" : name, golden_optim_bfloat16[index].arguments);
    config.first_moment = strstr(moments, "first") ? TP_BF16 : TP_F32;
    config.second_moment = strstr(moments, "second") ? TP_BF16 : TP_F32;
    config.gradients = is_torch ? TP_BF16 : TP_F32;
    tp_graph *graph;
    tp_optim_gradient gradients[2];
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    for (int i = 0; i < 2; i++)
        add_weight(graph, names[i], TP_BF16, shapes[i], TP_INIT_ZEROS, &gradients[i]);
    tp_cross_shard_apply(graph, &config, gradients, 2);
    tp_reference *reference = start(graph, 1);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t j = 0; j < tp_shape_elems(&shapes[i]); j++)
            ((tp_bf16 *)tp_reference_variable(reference, 0, (int32_t)i)->data)[j] =
                tp_bf16_from_f32(golden_value(1 + i, j));
    const uint16_t *golden = golden_optim_bfloat16[index].weights;
    int differing = 0;
    for (uint32_t step = 0; step < GOLDEN_BFLOAT16_STEPS; step++) {
        float g[2][12];
        for (uint32_t i = 0; i < 2; i++)
            for (uint32_t j = 0; j < tp_shape_elems(&shapes[i]); j++)
                g[i][j] = golden_value(10 * (step + 1) + i, j);
        const void *inputs[] = {g[0], g[1]};
        EXPECT_OK(tp_reference_step(reference, inputs, step));
        for (int v = 0; v < 2; v++) {
            const tp_bf16 *found = tp_reference_variable(reference, 0, v)->data;
            for (int64_t i = 0; i < tp_shape_elems(&shapes[v]); i++, golden++) {
                differing += found[i] != *golden;
                cr_assert(abs((int)found[i] - (int)*golden) <= 1, "%s, step %u, %s[%d]: %g, not %g",
                          name, step, names[v], (int)i, (double)tp_bf16_to_f32(found[i]),
                          (double)tp_bf16_to_f32(*golden));
            }
        }
    }
    cr_expect(!is_torch || differing == 0, "PyTorch's SGD has other bits");
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
    return differing;
}

/* An f32 step that differs by an ulp (2^-24) from Keras' is rounded the other way once in 2^15 cases. */
Test(optim_bfloat16, golden_steps)
{
    int differing = 0;
    for (int i = 0; i < CASES; i++)
        differing += compare_case(i);
    cr_expect_leq(differing, 1, "%d weights differ", differing);
}

/* ---- state ---- */

/* The slots' dtypes, and that a second moment in bf16 does not decay at beta_2 = 0.999: it loses 1/1000 a step,
 * half an ulp is 1/512 at most. */
Test(optim_bfloat16, a_second_moment_in_bf16_does_not_decay)
{
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        tp_graph *graph;
        tp_optim_gradient gradient;
        tp_optim_config config = tp_optim_defaults(TP_OPTIM_ADAM);
        config.second_moment = is_narrow ? TP_BF16 : TP_F32;
        EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
        add_weight(graph, "w", TP_BF16, (tp_shape){1, {3}}, TP_INIT_ONES, &gradient);
        tp_cross_shard_apply(graph, &config, &gradient, 1);
        const int32_t slot = tp_graph_find_variable(graph, "adam/w/velocity");
        const int32_t first = tp_graph_find_variable(graph, "adam/w/momentum");
        cr_assert(graph->variables[slot].role == TP_ROLE_SECOND_MOMENT &&
                  graph->variables[slot].dtype == config.second_moment);
        cr_assert(graph->variables[first].role == TP_ROLE_FIRST_MOMENT &&
                  graph->variables[first].dtype == TP_F32);
        cr_assert_str_eq(graph->variables[slot].slot_of, "w");
        tp_reference *reference = start(graph, 1);
        tp_host_tensor *v = tp_reference_variable(reference, 0, slot);
        for (int i = 0; i < 3; i++)
            if (is_narrow)
                ((tp_bf16 *)v->data)[i] = tp_bf16_from_f32(1);
            else
                ((float *)v->data)[i] = 1;
        const float none[3] = {0};
        const void *inputs[] = {none};
        for (uint32_t step = 0; step < 200; step++)
            EXPECT_OK(tp_reference_step(reference, inputs, step));
        const float left = is_narrow ? tp_bf16_to_f32(((tp_bf16 *)v->data)[0]) : *(float *)v->data;
        cr_expect(is_narrow ? left == 1 : fabsf(left - 0.8186f) < 1e-3f, "%g", (double)left);
        tp_reference_destroy(reference);
        tp_graph_destroy(graph);
    }
}

/* Of an m x n weight Adafactor keeps m + n numbers, in the dtype of second moments. */
Test(optim_bfloat16, adafactor_keeps_rows_and_columns)
{
    tp_graph *graph;
    tp_optim_gradient gradient;
    tp_optim_config config = tp_optim_defaults(TP_OPTIM_ADAFACTOR);
    config.second_moment = TP_BF16;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    add_weight(graph, "w", TP_BF16, (tp_shape){2, {300, 70}}, TP_INIT_ONES, &gradient);
    tp_cross_shard_apply(graph, &config, &gradient, 1);
    int64_t elems = 0, bytes = 0;
    for (int32_t i = 1; i < graph->variable_count; i++) {
        elems += tp_shape_elems(&graph->variables[i].shape);
        bytes += tp_shape_bytes(&graph->variables[i].shape, graph->variables[i].dtype);
    }
    cr_expect(elems == 370 && bytes == 740, "%d numbers", (int)elems);
    tp_graph_destroy(graph);
}

/* ---- over cores ---- */

/* What a core sends, and the sum, are bf16; partial sums are not. */
Test(optim_bfloat16, gradients_on_the_wire)
{
    static float g[CORES][40];
    const void *inputs[CORES];
    for (uint32_t core = 0; core < CORES; core++) {
        inputs[core] = g[core];
        for (uint32_t i = 0; i < 40; i++)
            g[core][i] = golden_value(80 + core, i);
    }
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        tp_graph *graph;
        tp_optim_gradient gradient;
        tp_optim_config config = tp_optim_defaults(TP_OPTIM_SGD);
        config.learning_rate = 1;
        config.gradients = is_narrow ? TP_BF16 : TP_F32;
        EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
        add_weight(graph, "w", TP_F32, (tp_shape){1, {40}}, TP_INIT_ZEROS, &gradient);
        tp_cross_shard_apply(graph, &config, &gradient, 1);
        tp_reference *reference = start(graph, CORES);
        EXPECT_OK(tp_reference_step(reference, inputs, 0));
        int other = 0;
        for (int i = 0; i < 40; i++) {
            float sums[CORES];
            for (int core = 0; core < CORES; core++)
                sums[core] = tp_bf16_to_f32(tp_bf16_from_f32(g[core][i]));
            for (int half = CORES / 2; half; half /= 2) /* the tree: neighbours first */
                for (int core = 0; core < half; core++)
                    sums[core] = sums[2 * core] + sums[2 * core + 1];
            const float expected = -tp_bf16_to_f32(tp_bf16_from_f32(sums[0]));
            other += ((float *)tp_reference_variable(reference, 0, 0)->data)[i] != expected;
        }
        cr_expect(is_narrow ? other == 0 : other > 20, "%d of 40", other);
        tp_reference_destroy(reference);
        tp_graph_destroy(graph);
    }
}

/* ---- rounding by chance ---- */

/* 64 steps of 2^-11 from 1, where ulps are 2^-8 below 1 and half of one is 2^-9: to nearest nothing moves. By
 * chance the mean of many weights goes on as f32 does, and all cores do the same. */
Test(optim_bfloat16, small_steps_by_chance)
{
    enum { ELEMS = 4000, STEPS = 64 };
    static float g[ELEMS];
    for (int i = 0; i < ELEMS; i++)
        g[i] = 0x1p-12f; /* of each of two cores */
    for (int is_stochastic = 0; is_stochastic < 2; is_stochastic++) {
        tp_graph *graph;
        tp_optim_gradient gradients[2];
        tp_optim_config config = tp_optim_defaults(TP_OPTIM_SGD);
        config.learning_rate = 1;
        config.rounds_stochastically = is_stochastic;
        EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
        for (int i = 0; i < 2; i++)
            add_weight(graph, names[i], TP_BF16, (tp_shape){1, {ELEMS}}, TP_INIT_ONES,
                       &gradients[i]);
        tp_cross_shard_apply(graph, &config, gradients, 2);
        tp_reference *reference = start(graph, 2);
        const void *inputs[] = {g, g, g, g};
        for (uint32_t step = 0; step < STEPS; step++)
            EXPECT_OK(tp_reference_step(reference, inputs, step));
        const tp_bf16 *w[2];
        double sum = 0;
        int equal = 0;
        for (int v = 0; v < 2; v++)
            w[v] = tp_reference_variable(reference, 0, v)->data;
        for (int i = 0; i < ELEMS; i++) {
            sum += (double)tp_bf16_to_f32(w[0][i]);
            equal += w[0][i] == w[1][i];
        }
        const double mean = sum / ELEMS;
        if (!is_stochastic) {
            cr_expect_eq(mean, 1);
        } else { /* variance of a step p (1 - p) ulp^2, p = 1/8: 0.01 after 64; four deviations of the mean */
            cr_expect(fabs(mean - (1 - STEPS * 0x1p-11)) < 7e-4, "%g", mean);
            cr_expect_lt(equal, ELEMS / 2, "two weights draw the same numbers");
        }
        tp_reference_destroy(reference);
        tp_graph_destroy(graph);
    }
}
