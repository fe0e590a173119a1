/* SPDX-License-Identifier: Apache-2.0
 * What becomes one launch, what is kept in memory, where it lies. No device: capabilities are described.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "../model/model_run.h"
#include "compile/compile.h"
#include "compile/vpu_kernel.h"
#include "harness/alloc_loop.h"
#include "harness/lstm_graph.h"
#include "harness/sample_graph.h"

static const tp_device_caps cpu = {.name = "described",
                                   .type = TP_DEVICE_CPU,
                                   .compute_units = 2,
                                   .max_work_group_size = 4096,
                                   .max_work_item_sizes = {4096, 4096, 4096},
                                   .memory_bytes = (uint64_t)8 << 30,
                                   .max_allocation_bytes = (uint64_t)2 << 30,
                                   .local_memory_bytes = 512 << 10,
                                   .local_memory_is_ordinary = true,
                                   .preferred_float_vector = 16,
                                   .fma_is_fast = true,
                                   .has_denormals = true,
                                   .has_correct_divide_sqrt = true};

static tp_program *compiled(const tp_graph *graph, uint64_t max_segment_bytes)
{
    const tp_compile_options options = {
        .name = "test", .caps = &cpu, .max_slab_segment_bytes = max_segment_bytes};
    tp_program *program = NULL;
    cr_assert_eq(tp_compile(graph, &options, &program), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    return program;
}

static int32_t count_entries(const tp_program *program, const char *entry)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->launch_count; i++)
        count += strncmp(program->launches[i].entry, entry, strlen(entry)) == 0;
    return count;
}

static int32_t count_products(const tp_program *program)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->launch_count; i++)
        count += strncmp(program->launches[i].entry, "mxu_", 4) == 0 &&
                 strncmp(program->launches[i].entry, "mxu_pack", 8) != 0;
    return count;
}

static const tp_sample_options sample = {128, 784, 512, 10, 8, 0.1, 0.25};

Test(fusion, an_mlp_step_is_few_launches)
{
    tp_graph *graph = tp_sample_graph(&sample);
    tp_program *program = compiled(graph, 0);
    /* Two forward, one gradient of the hidden layer, two of weights. */
    cr_assert_eq(count_products(program), 5);
    /* Maximum; sum and chosen logit together; mean loss. */
    cr_assert_eq(count_entries(program, "vpu_reduce_rows"), 3);
    /* Two biases' gradients. */
    cr_assert_eq(count_entries(program, "vpu_reduce_columns"), 2);
    /* The logits' gradient; four updates; the loss. */
    cr_assert_eq(count_entries(program, "vpu_map"), 6);
    cr_assert_eq(count_entries(program, "vpu_copy"), 0);
    cr_assert_eq(program->segment_count, 3);
    cr_assert(!program->is_resident && program->is_exact);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

Test(fusion, masks_are_not_stored)
{
    tp_graph *graph = tp_sample_graph(&sample);
    tp_program *program = compiled(graph, 0);
    for (int32_t i = 0; i < program->buffer_count; i++)
        cr_assert(program->buffers[i].dtype != TP_PRED, "'%s' is a stored mask",
                  program->buffers[i].name);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

Test(fusion, hidden_activations_are_stored_once_as_bf16)
{
    tp_graph *graph = tp_sample_graph(&(tp_sample_options){128, 784, 512, 10, 8, 0.1, 0});
    tp_program *program = compiled(graph, 0);
    int32_t f32_count = 0, bf16_count = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        if (buffer->space != TP_SPACE_CORE || buffer->shape.rank != 2 ||
            buffer->shape.dims[0] != 128 || buffer->shape.dims[1] != 512)
            continue;
        f32_count += buffer->dtype == TP_F32;
        bf16_count += buffer->dtype == TP_BF16;
    }
    /* The relu's result, and the gradient at the layer's output, which the bias wants in f32. */
    cr_assert_eq(bf16_count, 1);
    cr_assert_eq(f32_count, 1);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

/* Between a convolution and what batch normalisation makes of it there is nothing in f32. */
Test(fusion, normalised_images_are_in_memory_as_bf16_alone)
{
    tp_model_input input = {.dtype = TP_U8};
    EXPECT_OK(tp_shape_init(&input.shape, 3, (const int64_t[]){16, 16, 3}));
    tp_model *model =
        model_of("{\"type\": \"Conv2D\", \"filters\": 32, \"kernel_size\": 3, \"use_bias\": false},"
                 "{\"type\": \"BatchNormalization\"}, {\"type\": \"ReLU\"},"
                 "{\"type\": \"Conv2D\", \"filters\": 32, \"kernel_size\": 3, \"use_bias\": false},"
                 "{\"type\": \"BatchNormalization\"}, {\"type\": \"ReLU\"},"
                 "{\"type\": \"GlobalAveragePooling2D\"}, {\"type\": \"Dense\", \"units\": 10}",
                 input, &mixed_options);
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_cross_shard shards = {.shards = 1};
    const tp_model_train train = {64, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true,
                                  &optimizer, &shards};
    tp_graph *graph = NULL;
    EXPECT_OK(tp_model_build_train(model, &train, &graph));
    tp_program *program = compiled(graph, 0);
    int32_t bf16_count = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        if (buffer->space != TP_SPACE_CORE || buffer->shape.rank != 4 ||
            buffer->shape.dims[0] != 64 || buffer->shape.dims[3] != 32)
            continue;
        cr_expect_eq(buffer->dtype, TP_BF16, "'%s' is %s", buffer->name,
                     tp_dtype_name(buffer->dtype));
        bf16_count++;
    }
    /* Of each layer what goes in and what comes out, and as much of gradients. */
    cr_expect_leq(bf16_count, 8);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
}

Test(fusion, updates_are_written_in_place)
{
    tp_graph *graph = tp_sample_graph(&sample);
    tp_program *program = compiled(graph, 0);
    int32_t written = 0;
    for (int32_t i = 0; i < program->launch_count; i++)
        for (int32_t a = 0; a < program->launches[i].arg_count; a++) {
            const tp_kernel_arg *arg = &program->launches[i].args[a];
            if (arg->kind == TP_ARG_TENSOR && arg->is_written &&
                program->buffers[arg->tensor].space == TP_SPACE_VARIABLE)
                written++;
        }
    cr_assert_eq(written, 4);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

/* Adam on four variables: one launch each for weight and both slots, one for all scalars. */
Test(fusion, an_optimizer_step_is_one_launch_per_variable)
{
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 64, \"activation\": \"relu\"},"
                               "{\"type\": \"Dense\", \"units\": 10}",
                               f32_input(1, (int64_t[]){100}), &mixed_options);
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    const tp_cross_shard shards = {.shards = 8};
    const tp_model_train train = {32, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true,
                                  &optimizer, &shards};
    tp_graph *graph = NULL;
    EXPECT_OK(tp_model_build_train(model, &train, &graph));
    tp_program *program = compiled(graph, 0);
    const tp_program_segment *last = &program->segments[program->segment_count - 1];
    cr_assert(!last->is_per_core);
    cr_assert(last->launch_count <= 6, "%d launches", last->launch_count);
    cr_assert_eq(count_entries(program, "vpu_copy"), 0);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
}

/* One packed form of a weight, however many products ask for it; made once per step. */
Test(fusion, packed_weights_stand_once_per_device)
{
    tp_graph *graph = tp_sample_graph(&sample);
    tp_program *program = compiled(graph, 0);
    const tp_program_segment *first = &program->segments[0];
    cr_assert(!first->is_per_core);
    for (int32_t i = 0; i < first->launch_count; i++)
        cr_assert_str_eq(program->launches[i].entry, "mxu_pack_b");
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

Test(fusion, sums_lie_side_by_side_in_core_and_replicated_memory)
{
    tp_graph *graph = tp_sample_graph(&sample);
    tp_program *program = compiled(graph, 0);
    const tp_program_segment *segment = &program->segments[1];
    cr_assert(segment->is_per_core && segment->has_reduce);
    const uint64_t bytes = (784 * 512 + 512 + 512 * 10) * 4; /* and two of less than a line */
    cr_assert(segment->reduce.elems * 4 >= bytes + 40 + 4);
    cr_assert(segment->reduce.elems * 4 <= bytes + 5 * TP_PROGRAM_ALIGN_BYTES);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

Test(memory, buffers_are_spread_over_slab_segments)
{
    tp_graph *graph = tp_sample_graph(&sample);
    /* All gradients together need 1.6 MB; with them nothing else fits. */
    tp_program *program = compiled(graph, 1700 << 10);
    cr_assert(program->core_slab_segments > 1, "%d segments", program->core_slab_segments);
    for (int32_t s = 0; s < program->core_slab_segments; s++)
        cr_assert(program->core_bytes[s] <= 1700 << 10);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

Test(memory, a_buffer_too_large_for_the_device_is_named)
{
    tp_graph *graph = tp_sample_graph(&sample);
    const tp_compile_options options = {
        .name = "small", .caps = &cpu, .max_slab_segment_bytes = 100 << 10};
    tp_program *program = NULL;
    cr_assert_eq(tp_compile(graph, &options, &program), TPUCL_OUT_OF_DEVICE_MEMORY);
    cr_assert_null(program);
    cr_assert(strstr(tpucl_last_error()->message, "at most 102400 at once"), "%s",
              tpucl_last_error()->message);
    tp_graph_destroy(graph);
}

Test(memory, the_plan_wastes_little)
{
    tp_graph *graph = tp_sample_graph(&sample);
    tp_program *program = compiled(graph, 0);
    cr_assert_eq(program->core_slab_segments, 1);
    cr_assert(program->core_bytes[0] <= program->peak_core_bytes + program->peak_core_bytes / 10,
              "%llu bytes for a peak of %llu", (unsigned long long)program->core_bytes[0],
              (unsigned long long)program->peak_core_bytes);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

/* Compiling twice gives the same program: nothing depends on addresses. */
Test(compile, is_deterministic)
{
    tp_graph *graph = tp_sample_graph(&sample);
    tp_program *a = compiled(graph, 0), *b = compiled(graph, 0);
    const char *text_a = NULL, *text_b = NULL;
    EXPECT_OK(tp_program_print(a, a->arena, &text_a));
    EXPECT_OK(tp_program_print(b, b->arena, &text_b));
    cr_assert_str_eq(text_a, text_b);
    for (int32_t i = 0; i < a->launch_count; i++)
        cr_assert_str_eq(a->launches[i].source, b->launches[i].source);
    tp_program_destroy(a);
    tp_program_destroy(b);
    tp_graph_destroy(graph);
}

/* A kernel has room for 1024 bytes of arguments: a sum of a hundred tensors takes several launches. */
Test(fusion, a_kernel_reads_no_more_tensors_than_it_has_arguments_for)
{
    tp_graph *graph = NULL;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    tp_node_id sum = TP_NO_NODE;
    for (int i = 0; i < 100; i++) {
        char name[8];
        snprintf(name, sizeof name, "in%d", i);
        const tp_node_id x = tp_graph_add_input(graph, name, TP_F32, (tp_shape){1, {1000}});
        sum = i == 0 ? x : tp_op_add(graph, sum, tp_op_tanh(graph, x));
    }
    tp_graph_add_output(graph, "sum", tp_op_reduce(graph, sum, "add", (int64_t[]){0}, 1));
    tp_program *program = compiled(graph, 0);
    for (int32_t i = 0; i < program->launch_count; i++) {
        int32_t bytes = 0;
        for (int32_t a = 0; a < program->launches[i].arg_count; a++)
            bytes += program->launches[i].args[a].kind == TP_ARG_TENSOR ? 24 : 8;
        cr_assert(bytes <= 1024, "launch %d has %d bytes of arguments", i, bytes);
    }
    cr_assert(program->launch_count > 3 && program->launch_count < 8, "%d launches",
              program->launch_count);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

/* Gates of a recurrent layer: what is put side by side is computed where it is put. */
Test(fusion, pieces_and_what_they_are_made_of_are_one_launch)
{
    tp_graph *graph = NULL;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    tp_node_id parts[4];
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "in%d", i);
        parts[i] =
            tp_op_tanh(graph, tp_graph_add_input(graph, name, TP_F32, (tp_shape){2, {64, 128}}));
    }
    tp_graph_add_output(graph, "last", parts[3]);
    tp_graph_add_output(graph, "all", tp_op_concatenate(graph, parts, 4, 1));
    tp_program *program = compiled(graph, 0);
    cr_assert_eq(count_entries(program, "vpu_map"), 1);
    cr_assert_eq(program->launch_count, 1);
    tp_program_destroy(program);
    tp_graph_destroy(graph);
}

static tpucl_status compile_once(void *user)
{
    const tp_compile_options options = {.name = "test", .caps = &cpu};
    tp_program *program = NULL;
    const tpucl_status status = tp_compile(user, &options, &program);
    tp_program_destroy(program);
    return status;
}

Test(compile, survives_every_failing_allocation, .timeout = 100)
{
    tp_graph *graph = tp_sample_graph(&tp_sample_small);
    alloc_loop_run(compile_once, graph);
    tp_graph_destroy(graph);
}

Test(grid, work_groups_are_as_large_as_the_device_takes)
{
    tp_device_caps gpu = cpu;
    gpu.type = TP_DEVICE_GPU;
    tp_vpu_grid grid = tp_vpu_grid_plan(&gpu, 40, 1000, 3, 1);
    cr_assert(grid.local[0] == 64 && grid.local[1] == 4 && grid.local[2] == 1);
    gpu.max_work_group_size = 100;
    gpu.max_work_item_sizes[0] = 32;
    grid = tp_vpu_grid_plan(&gpu, 1000, 1000, 3, 1);
    cr_assert(grid.local[0] == 32 && grid.local[1] == 2 && grid.local[2] == 1);
    cr_assert(grid.global[0] == 1024 && grid.global[1] == 1000 && grid.global[2] == 3);
    gpu.max_work_group_size = 1;
    grid = tp_vpu_grid_plan(&gpu, 1000, 1000, 3, 1);
    cr_assert(grid.local[0] == 1 && grid.local[1] == 1);
}

Test(compile, survives_every_failing_allocation_of_a_loop, .timeout = 100)
{
    tp_graph *graph = NULL;
    lstm_graph lstm = {.turns = 3, .batch = 2, .features = 2, .units = 2, .precision = "default"};
    tp_node_id last[2], stack, d;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    lstm_ports(graph, &lstm);
    lstm_scan(graph, &lstm, last, &stack);
    tp_graph_gradients(graph, tp_op_reduce(graph, stack, "add", NULL, 0), &lstm.u, 1, &d);
    tp_graph_add_output(graph, "du", d);
    cr_assert_eq(tp_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    alloc_loop_run(compile_once, graph);
    tp_graph_destroy(graph);
}
