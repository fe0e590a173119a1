/* SPDX-License-Identifier: Apache-2.0
 * Updates see the values from before the step, whatever they read and wherever they are written. Three
 * steps of each, bits of the reference.
 */
#include <criterion/criterion.h>
#include "graph/builder.h"
#include "graph/verify.h"
#include "harness/program_run.h"
#include "ops/registry.h"

enum { ROWS = 70, COLUMNS = 70 };

typedef struct updates {
    tp_graph *g;
    tp_node_id a, b; /* variables [ROWS, COLUMNS] */
    tp_node_id x;    /* input of the same shape, per core */
} updates;

static tp_node_id variable(tp_graph *g, const char *name)
{
    const tp_variable v = {.name = name,
                           .dtype = TP_F32,
                           .shape = {2, {ROWS, COLUMNS}},
                           .init = TP_INIT_NORMAL,
                           .init_b = 1,
                           .is_model = true};
    return tp_graph_add_variable(g, &v);
}

static updates begin(void)
{
    updates u;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &u.g), TPUCL_OK);
    u.a = variable(u.g, "a");
    u.b = variable(u.g, "b");
    u.x = tp_graph_add_input(u.g, "x", TP_F32, (tp_shape){2, {ROWS, COLUMNS}});
    return u;
}

static void run(updates *u, int32_t steps_in_place)
{
    cr_assert_eq(tp_graph_check(u->g), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_graph_verify(u->g), TPUCL_OK, "%s", tpucl_last_error()->message);
    const program_run_options options = {.cores = 3, .wave_cores = 2, .steps = 3, .seed = 4};
    tp_program *program = program_run_compile(u->g, &options);
    int32_t copies = 0;
    for (int32_t i = 0; i < program->launch_count; i++)
        copies += strcmp(program->launches[i].entry, "vpu_copy") == 0;
    cr_assert_eq(u->g->update_count - copies, steps_in_place, "%d updates, %d copies",
                 u->g->update_count, copies);
    tp_program_destroy(program);
    program_run_expect_equal(u->g, &options);
    tp_graph_destroy(u->g);
}

static tp_node_id transposed(tp_graph *g, tp_node_id a)
{
    return tp_op_transpose(g, a, (int64_t[]){1, 0});
}

TestSuite(update, .timeout = 100);

Test(update, of_the_same_element_is_in_place)
{
    updates u = begin();
    const tp_node_id sum = tp_op_all_reduce(u.g, u.x);
    tp_graph_add_update(u.g, u.a, tp_op_add(u.g, tp_op_multiply_scalar(u.g, u.a, 0.5), sum));
    run(&u, 1);
}

Test(update, that_reads_other_elements_is_copied)
{
    updates u = begin();
    tp_graph_add_update(u.g, u.a, tp_op_add(u.g, transposed(u.g, u.a), u.a));
    run(&u, 0);
}

Test(update, may_swap_two_variables)
{
    updates u = begin();
    tp_graph_add_update(u.g, u.a, u.b);
    tp_graph_add_update(u.g, u.b, u.a);
    run(&u, 1); /* the second waits for the first */
}

Test(update, may_mix_two_variables)
{
    updates u = begin();
    tp_graph_add_update(u.g, u.a, tp_op_add(u.g, u.a, u.b));
    tp_graph_add_update(u.g, u.b, tp_op_subtract(u.g, u.a, u.b));
    run(&u, 2);
}

/* a wants the old b transposed, b wants the old a transposed, in one kernel. */
Test(update, in_a_circle_is_copied)
{
    updates u = begin();
    tp_graph_add_update(u.g, u.a, tp_op_add(u.g, u.a, transposed(u.g, u.b)));
    tp_graph_add_update(u.g, u.b, tp_op_tanh(u.g, transposed(u.g, u.a)));
    run(&u, 0);
}

Test(update, comes_after_all_readers_of_the_old_value)
{
    updates u = begin();
    const tp_node_id sum = tp_op_all_reduce(u.g, tp_op_multiply(u.g, u.x, transposed(u.g, u.a)));
    tp_graph_add_update(u.g, u.a, tp_op_subtract(u.g, u.a, sum));
    /* Read by cores again, behind the sum. */
    const tp_node_id late = tp_op_multiply(u.g, tp_op_multiply(u.g, u.x, sum), u.a);
    tp_graph_add_output(u.g, "late", tp_op_reduce(u.g, late, "add", (int64_t[]){0, 1}, 2));
    tp_graph_add_output(u.g, "old", tp_op_reduce(u.g, u.a, "max", (int64_t[]){0, 1}, 2));
    run(&u, 1);
}

Test(update, may_use_the_new_value_of_another)
{
    updates u = begin();
    const tp_node_id a = tp_op_multiply_scalar(u.g, u.a, 1.5);
    tp_graph_add_update(u.g, u.a, a);
    tp_graph_add_update(u.g, u.b, tp_op_add(u.g, u.b, transposed(u.g, a)));
    tp_graph_add_output(u.g, "new", a);
    run(&u, 1);
}

Test(update, may_give_two_variables_one_value)
{
    updates u = begin();
    const tp_node_id sum = tp_op_all_reduce(u.g, u.x);
    tp_graph_add_update(u.g, u.a, sum);
    tp_graph_add_update(u.g, u.b, sum);
    run(&u, 2);
}

Test(update, with_its_own_value_or_a_constant_is_fine)
{
    updates u = begin();
    tp_graph_add_update(u.g, u.a, u.a);
    tp_graph_add_update(u.g, u.b, tp_op_fill(u.g, TP_F32, (tp_shape){2, {ROWS, COLUMNS}}, 0.25));
    run(&u, 2);
}

/* The packed form of the old value must not be taken for the new one's. */
Test(update, products_of_old_and_new_value_differ)
{
    updates u = begin();
    const tp_node_id a = tp_op_add_scalar(u.g, u.a, 1);
    tp_graph_add_update(u.g, u.a, a);
    tp_graph_add_output(u.g, "old", tp_op_matmul(u.g, u.b, u.a, "default"));
    tp_graph_add_output(u.g, "new", tp_op_matmul(u.g, u.b, a, "default"));
    run(&u, 1);
}
