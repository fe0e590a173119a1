/* SPDX-License-Identifier: Apache-2.0
 * A hand-written program, run under every mapping of cores to devices, groups and waves, against the same
 * arithmetic in C. Bits, not tolerances.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/json.h"
#include "exec/executor.h"
#include "num/exact_math.h"
#include "num/init.h"
#include "num/reduce.h"
#include "program/program_builder.h"

enum { N = 37, FEW = 5, CORES = 8, STEPS = 5 };

static const char source[] =
    "#include \"lib/platform.clh\"\n"
    "#include \"lib/tensor.clh\"\n"
    "__kernel void work(TP_TENSOR(const float, x), TP_TENSOR(const float, w), TP_TENSOR(float, "
    "g),\n"
    "                   TP_TENSOR(float, y), uint core_base, uint core_step, uint step) {\n"
    "    size_t i = get_global_id(0), core = get_group_id(2);\n"
    "    float id = (float)((core_base + core * core_step) * 3 + step);\n"
    "    float value = TP_AT(x, core)[i] * TP_AT(w, core)[i];\n"
    "    value = value + id * 0.37f;\n"
    "    TP_AT(g, core)[i] = value;\n"
    "    TP_AT(y, core)[i] = value;\n"
    "}\n"
    /* the sum over cores in the launch itself */
    "__kernel void sum_few(TP_TENSOR(const float, x), TP_TENSOR(const float, w),\n"
    "                      __global float *sum, ulong offset, uint is_result, uint cores,\n"
    "                      uint core_base, uint core_step, uint step) {\n"
    "    size_t i = get_global_id(0);\n"
    "    float part[8];\n"
    "    for (uint c = 0; c < cores; c++) {\n"
    "        float id = (float)((core_base + c * core_step) * 3 + step);\n"
    "        part[c] = TP_AT(x, c)[i] * TP_AT(w, c)[i];\n"
    "        part[c] = part[c] + id * 0.37f;\n"
    "    }\n"
    "    for (uint d = 1; d < cores; d *= 2)\n"
    "        for (uint left = 0; left + d < cores; left += 2 * d)\n"
    "            part[left] += part[left + d];\n"
    "    float s = part[0];\n"
    "    if (is_result && fabs(s) < 0x1p-126f) s = copysign(0.0f, s);\n"
    "    sum[offset + i] = s;\n"
    "}\n"
    "__kernel void update(TP_TENSOR(const float, few), TP_TENSOR(const float, more),\n"
    "                     TP_TENSOR(const float, sum),\n"
    "                     TP_TENSOR(float, w), TP_TENSOR(float, r)) {\n"
    "    size_t i = get_global_id(0);\n"
    "    float scaled = TP_AT(sum, 0)[i] * 0.01f;\n"
    "    TP_AT(w, 0)[i] = TP_AT(w, 0)[i] - scaled;\n"
    "    TP_AT(r, 0)[i] = TP_AT(sum, 0)[i];\n"
    "    if (i < FEW) TP_AT(r, 0)[i] = TP_AT(few, 0)[i] == TP_AT(more, 0)[i] ? TP_AT(few, 0)[i]\n"
    "                                                                        : NAN;\n"
    "}\n";

static int32_t add_buffer(tp_program_builder *builder, const char *name, tp_space space,
                          uint64_t offset)
{
    int32_t index = -1;
    tp_program_buffer buffer = {
        .name = name, .dtype = TP_F32, .space = space, .offset_bytes = offset};
    cr_assert_eq(tp_shape_init(&buffer.shape, 1, (int64_t[]){N}), TPUCL_OK);
    cr_assert_eq(tp_program_builder_add_buffer(builder, &buffer, &index), TPUCL_OK);
    return index;
}

static tp_program *make_program(void)
{
    tp_program_builder *builder = NULL;
    tp_program *program = NULL;
    int32_t w_index = -1;
    cr_assert_eq(tp_program_builder_create("toy", &builder), TPUCL_OK);
    tp_program_variable variable = {.name = "w",
                                    .dtype = TP_F32,
                                    .bytes = N * 4,
                                    .init = TP_INIT_NORMAL,
                                    .init_a = 1,
                                    .init_b = 0.5,
                                    .is_trainable = true,
                                    .is_model = true};
    cr_assert_eq(tp_shape_init(&variable.shape, 1, (int64_t[]){N}), TPUCL_OK);
    cr_assert_eq(tp_program_builder_add_variable(builder, &variable, &w_index), TPUCL_OK);
    int32_t x = add_buffer(builder, "x", TP_SPACE_INPUT, 128);
    int32_t w = add_buffer(builder, "w", TP_SPACE_VARIABLE, 0);
    int32_t g = add_buffer(builder, "g", TP_SPACE_CORE, 256);
    int32_t y = add_buffer(builder, "y", TP_SPACE_OUTPUT, 0);
    int32_t few = add_buffer(builder, "few", TP_SPACE_REPLICATED, 0);
    int32_t sum = add_buffer(builder, "sum", TP_SPACE_REPLICATED, 256);
    int32_t more = add_buffer(builder, "more", TP_SPACE_REPLICATED, 512);
    int32_t r = add_buffer(builder, "r", TP_SPACE_RESULT, 128);
    tp_program *draft = tp_program_builder_program(builder);
    draft->input_bytes = 384, draft->output_bytes = 256, draft->result_bytes = 384;
    draft->core_slab_segments = draft->replicated_slab_segments = 1;
    draft->core_bytes[0] = 512, draft->replicated_bytes[0] = 768;
    draft->most_cores = CORES;
    const tp_kernel_arg work_args[] = {{.kind = TP_ARG_TENSOR, .tensor = x},
                                       {.kind = TP_ARG_TENSOR, .tensor = w},
                                       {.kind = TP_ARG_TENSOR, .tensor = g},
                                       {.kind = TP_ARG_TENSOR, .tensor = y},
                                       {.kind = TP_ARG_CORE_BASE},
                                       {.kind = TP_ARG_CORE_STEP},
                                       {.kind = TP_ARG_STEP}};
    const tp_kernel_arg few_args[] = {{.kind = TP_ARG_TENSOR, .tensor = x},
                                      {.kind = TP_ARG_TENSOR, .tensor = w},
                                      {.kind = TP_ARG_SUM, .tensor = more, .is_written = true},
                                      {.kind = TP_ARG_CORES},
                                      {.kind = TP_ARG_CORE_BASE},
                                      {.kind = TP_ARG_CORE_STEP},
                                      {.kind = TP_ARG_STEP}};
    const tp_kernel_arg update_args[] = {{.kind = TP_ARG_TENSOR, .tensor = few},
                                         {.kind = TP_ARG_TENSOR, .tensor = more},
                                         {.kind = TP_ARG_TENSOR, .tensor = sum},
                                         {.kind = TP_ARG_TENSOR, .tensor = w},
                                         {.kind = TP_ARG_TENSOR, .tensor = r}};
    tp_launch work = {.label = "work",
                      .source = source,
                      .options = "-DFEW=5",
                      .entry = "work",
                      .args = work_args,
                      .arg_count = 7,
                      .global = {N, 1, 1},
                      .local = {1, 1, 1},
                      .grid_z = 1,
                      .is_per_core = true};
    tp_launch update = work;
    update.label = update.entry = "update";
    update.args = update_args, update.arg_count = 5, update.is_per_core = false;
    tp_launch sum_few = work;
    sum_few.label = sum_few.entry = "sum_few";
    sum_few.args = few_args, sum_few.global[0] = FEW, sum_few.sums_cores = true;
    /* two sums of different sizes, the smaller one first; behind the larger one, what a launch sums */
    const tp_program_reduce sums[] = {
        {.core_offset_bytes = 256, .replicated_offset_bytes = 0, .core_elems = FEW, .elems = FEW},
        {.core_offset_bytes = 256,
         .replicated_offset_bytes = 256,
         .core_elems = 64,
         .elems = 64 + FEW}};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(tp_program_builder_begin_segment(builder, true), TPUCL_OK);
        cr_assert_eq(tp_program_builder_add_launch(builder, &work), TPUCL_OK);
        if (i == 1) cr_assert_eq(tp_program_builder_add_launch(builder, &sum_few), TPUCL_OK);
        draft = tp_program_builder_program(builder);
        draft->segments[i].has_reduce = true;
        draft->segments[i].reduce = sums[i];
    }
    cr_assert_eq(tp_program_builder_begin_segment(builder, false), TPUCL_OK);
    cr_assert_eq(tp_program_builder_add_launch(builder, &update), TPUCL_OK);
    cr_assert_eq(tp_program_builder_add_port(builder, TP_PORT_INPUT, "x", x), TPUCL_OK);
    cr_assert_eq(tp_program_builder_add_port(builder, TP_PORT_OUTPUT, "y", y), TPUCL_OK);
    cr_assert_eq(tp_program_builder_add_port(builder, TP_PORT_RESULT, "r", r), TPUCL_OK);
    cr_assert_eq(tp_program_builder_finish(builder, &program), TPUCL_OK);
    return program;
}

static float input_of(int32_t core, int step, int i)
{
    return (float)((core * 131 + step * 17 + i * 7) % 97) * 0.031f - 1.0f;
}

typedef struct expectation {
    float w[CORES][N];           /* [group] */
    float sums[STEPS][CORES][N]; /* [step][group] */
    float y[CORES][N];           /* of the last step */
} expectation;

static void expect(const int32_t *cores, int32_t groups, expectation *out)
{
    int32_t size = CORES / groups;
    for (int32_t g = 0; g < groups; g++)
        cr_assert_eq(tp_init_fill(TP_INIT_NORMAL, 1, 0.5, "w", 11, TP_F32, N, out->w[g]), TPUCL_OK);
    for (int step = 0; step < STEPS; step++)
        for (int32_t g = 0; g < groups; g++)
            for (int i = 0; i < N; i++) {
                float parts[CORES];
                for (int32_t p = 0; p < size; p++) {
                    int32_t core = cores[g * size + p];
                    float value = input_of(core, step, i) * out->w[g][i];
                    value = value + (float)(core * 3 + step) * 0.37f;
                    parts[p] = out->y[core][i] = value;
                }
                float sum = tp_flush(tp_tree_reduce(TP_REDUCE_ADD, parts, size, 1));
                float scaled = sum * 0.01f;
                out->sums[step][g][i] = sum;
                out->w[g][i] = out->w[g][i] - scaled;
            }
}

static tp_topology *make_topology(void)
{
    tp_topology *topology = NULL;
    cr_assert_eq(tp_topology_load("v2-8", &topology), TPUCL_OK, "%s", tpucl_last_error()->message);
    return topology;
}

/* Submits all steps before it asks for any result. */
static void run(const tp_placement_options *placement, const tp_executor_options *options,
                const expectation *expected)
{
    tp_topology *topology = make_topology();
    tp_program *program = make_program();
    tp_core_map *map = NULL;
    tp_executor *executor = NULL;
    tp_loaded *loaded = NULL;
    const tp_program *programs[CORES];
    uint64_t tickets[STEPS];
    for (int i = 0; i < CORES; i++)
        programs[i] = program;
    cr_assert_eq(tp_core_map_open(topology, placement, &map), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_executor_create(map, options, &executor), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_executor_load(executor, programs, NULL, NULL, &loaded), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    for (int step = 0; step < STEPS; step++) {
        tp_feed *feed = NULL;
        cr_assert_eq(tp_loaded_acquire(loaded, &feed), TPUCL_OK);
        for (int32_t core = 0; core < CORES; core++) {
            float *x = (float *)((char *)tp_feed_record(feed, core) + 128);
            for (int i = 0; i < N; i++)
                x[i] = input_of(core, step, i);
        }
        cr_assert_eq(tp_loaded_submit(loaded, feed, (uint32_t)step, &tickets[step]), TPUCL_OK, "%s",
                     tpucl_last_error()->message);
    }
    int32_t groups = options->group_cores ? options->group_count : 1;
    for (int step = 0; step < STEPS; step++)
        for (int32_t g = 0; g < groups; g++) {
            const void *record = NULL;
            cr_assert_eq(tp_loaded_result(loaded, tickets[step], g, &record), TPUCL_OK);
            cr_assert_arr_eq((const char *)record + 128, expected->sums[step][g], N * 4,
                             "step %d group %d", step, g);
        }
    for (int32_t core = 0; core < CORES; core++) {
        float y[64];
        cr_assert_eq(tp_loaded_output(loaded, tickets[STEPS - 1], core, y), TPUCL_OK);
        cr_assert_arr_eq(y, expected->y[core], N * 4, "core %d", core);
    }
    for (int32_t g = 0; g < groups; g++) {
        float w[N];
        cr_assert_eq(tp_variables_read(tp_executor_variables(executor), 0, g, w), TPUCL_OK);
        cr_assert_arr_eq(w, expected->w[g], N * 4, "group %d", g);
    }
    tp_executor_unload(loaded);
    tp_executor_destroy(executor);
    tp_core_map_close(map);
    tp_program_destroy(program);
    tp_topology_destroy(topology);
}

static void eight_units(void)
{
    setenv("POCL_MAX_PTHREAD_COUNT", "8", 1);
}

TestSuite(executor, .init = eight_units, .timeout = 100);

static const int32_t all_cores[CORES] = {0, 1, 2, 3, 4, 5, 6, 7};

Test(executor, waves_give_the_same_bits)
{
    static expectation expected;
    expect(all_cores, 1, &expected);
    for (int32_t wave = 0; wave <= CORES; wave++)
        run(&(tp_placement_options){0}, &(tp_executor_options){.seed = 11, .wave_cores = wave},
            &expected);
}

Test(executor, sub_devices_and_synchronous_launches_give_the_same_bits)
{
    static expectation expected;
    expect(all_cores, 1, &expected);
    for (int32_t split = 1; split <= CORES; split *= 2)
        for (int32_t wave = 0; wave <= 2; wave++)
            run(&(tp_placement_options){.split = split, .device.synchronous = wave == 1},
                &(tp_executor_options){.seed = 11, .wave_cores = wave}, &expected);
}

Test(executor, uneven_devices_give_the_same_bits)
{
    static expectation expected;
    expect(all_cores, 1, &expected);
    run(&(tp_placement_options){.selector = "0,0,0"}, &(tp_executor_options){.seed = 11},
        &expected);
    run(&(tp_placement_options){.selector = "0,0,0,0,0"},
        &(tp_executor_options){.seed = 11, .wave_cores = 1}, &expected);
}

Test(executor, replica_groups_do_not_see_each_other)
{
    static const int32_t interleaved[CORES] = {0, 2, 4, 6, 7, 5, 3, 1};
    static expectation expected;
    for (int32_t groups = 2; groups <= 4; groups *= 2) {
        memset(&expected, 0, sizeof expected);
        expect(interleaved, groups, &expected);
        for (int32_t split = 1; split <= 4; split *= 2)
            run(&(tp_placement_options){.split = split},
                &(tp_executor_options){
                    .seed = 11, .group_cores = interleaved, .group_count = groups},
                &expected);
    }
}

Test(executor, a_core_that_does_not_fit_its_hbm_is_refused_with_numbers)
{
    tp_topology *topology = make_topology();
    tp_program *program = make_program();
    tp_core_map *map = NULL;
    tp_executor *executor = NULL;
    tp_loaded *loaded = NULL;
    const tp_program *programs[1] = {program};
    tp_executor_options options = {.core_hbm_bytes = 1000};
    cr_assert_eq(tp_core_map_open(topology, &(tp_placement_options){0}, &map), TPUCL_OK);
    cr_assert_eq(tp_executor_create(map, &options, &executor), TPUCL_OK);
    cr_assert_eq(tp_executor_load(executor, programs, NULL, NULL, &loaded),
                 TPUCL_OUT_OF_DEVICE_MEMORY);
    cr_assert(strstr(tpucl_last_error()->message, "HBM"), "%s", tpucl_last_error()->message);
    tp_executor_destroy(executor);
    tp_core_map_close(map);
    tp_program_destroy(program);
    tp_topology_destroy(topology);
}

Test(executor, wrong_groups_and_misuse_are_refused)
{
    tp_topology *topology = make_topology();
    tp_core_map *map = NULL;
    tp_executor *executor = NULL;
    static const int32_t twice[CORES] = {0, 1, 2, 3, 4, 5, 6, 6};
    cr_assert_eq(tp_core_map_open(topology, &(tp_placement_options){0}, &map), TPUCL_OK);
    cr_assert_eq(tp_executor_create(map,
                                    &(tp_executor_options){.group_cores = twice, .group_count = 2},
                                    &executor),
                 TPUCL_INVALID_CONFIG);
    cr_assert_eq(
        tp_executor_create(map, &(tp_executor_options){.group_cores = all_cores, .group_count = 3},
                           &executor),
        TPUCL_INVALID_CONFIG);
    tp_core_map_close(map);
    tp_topology_destroy(topology);
}
