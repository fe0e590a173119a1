/* SPDX-License-Identifier: Apache-2.0
 * Memory plans: of single arrays against sizes that were published, of a program against counting by hand, and of
 * numbers that are far too large.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "plan/memory.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

static tp_shape shape_of(int rank, const int64_t *dims)
{
    tp_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}
#define SHAPE(...)                                                                                 \
    shape_of(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static void expect_array(tp_dtype dtype, tp_shape shape, uint64_t bytes, uint64_t row_major,
                         double times, const char *tiles)
{
    char text[160];
    const tp_padded_array padded = tp_pad_array(dtype, &shape);
    cr_expect_eq(padded.bytes, bytes);
    cr_expect_eq(padded.row_major, row_major);
    cr_expect_eq(padded.row_padding, times);
    tp_describe_tiles(dtype, &shape, shape.rank - 2, shape.rank - 1, text, sizeof text);
    cr_expect_str_eq(text, tiles);
}

/* tensorflow/tensorflow issue 30803; DifferentiableUniverseInitiative/flowpm issue 27. */
Test(memory, published_arrays)
{
    expect_array(TP_F32, SHAPE(256, 512, 128, 2), 128 * MIB, 8 * GIB, 64,
                 "dimension 3 of 2 fills 128");
    expect_array(TP_S32, SHAPE(8388608, 8, 4), GIB, 32 * GIB, 32, "dimension 2 of 4 fills 128");
}

/* openxla/xla, docs/errors/error_1000.md says 256 x 1024 for the first, which holds for a minor dimension of 129 only. */
Test(memory, tiles_are_named)
{
    expect_array(TP_F32, SHAPE(129, 1024), 129 * 4096, 136 * 4096, 136 / 129.0,
                 "dimension 0 of 129 fills 136");
    expect_array(TP_F32, SHAPE(1024, 129), 129 * 4096, 256 * 4096, 256 / 129.0,
                 "dimension 1 of 129 fills 256");
    expect_array(TP_BF16, SHAPE(3, 100), 600, 8 * 256, 2048 / 600.0,
                 "dimension 1 of 100 fills 128, dimension 0 of 3 fills 8");
    expect_array(TP_F32, SHAPE(8, 128), 4096, 4096, 1, "");
    expect_array(TP_F32, SHAPE(7), 28, 28, 1, "");
}

/* ---- programs ---- */

static tp_topology make_topology(double hbm, double reserved, bool is_tiled)
{
    tp_topology topology = {.name = "sample", .cores = 8};
    topology.figures[TP_FIGURE_HBM_BYTES] = (tp_figure){.known = hbm > 0, .value = hbm};
    topology.figures[TP_FIGURE_HBM_RESERVED] = (tp_figure){.known = true, .value = reserved};
    topology.figures[TP_FIGURE_MXU_ROWS] = (tp_figure){.known = is_tiled, .value = 128};
    return topology;
}

enum { WEIGHT, SLOT, COPY, FIRST, SECOND, GRADIENT, SUM, IMAGE, BUFFERS };

typedef struct sample {
    tp_program program;
    tp_program_buffer buffers[BUFFERS];
    tp_program_variable variables[2];
    tp_launch launches[4];
    tp_program_segment segments[3];
} sample;

static tp_program_buffer make_buffer(const char *name, tp_space space, tp_dtype dtype,
                                     tp_shape shape, uint64_t offset, int32_t first, int32_t last)
{
    return (tp_program_buffer){.name = name,
                               .space = space,
                               .dtype = dtype,
                               .shape = shape,
                               .bytes = (uint64_t)tp_shape_bytes(&shape, dtype),
                               .offset_bytes = offset,
                               .first_use = first,
                               .last_use = last};
}

/* A copy of weights (launch 0), two activations of which one makes room for the gradient (1, 2), an update (3). */
static void make_program(sample *s)
{
    memset(s, 0, sizeof *s);
    tp_program_buffer *b = s->buffers;
    b[WEIGHT] = make_buffer("dense/kernel", TP_SPACE_VARIABLE, TP_F32, SHAPE(100, 128), 0, 0, 3);
    b[SLOT] = make_buffer("sgd/dense/kernel", TP_SPACE_VARIABLE, TP_F32, SHAPE(100, 128), 0, 3, 3);
    b[SLOT].variable = 1;
    b[COPY] = make_buffer("dense/kernel packed", TP_SPACE_REPLICATED, TP_BF16, SHAPE(100, 128),
                          51200, 0, 2);
    b[FIRST] = make_buffer("dense/maximum", TP_SPACE_CORE, TP_F32, SHAPE(64, 128), 0, 1, 1);
    b[SECOND] = make_buffer("gradient/dense/select", TP_SPACE_CORE, TP_BF16, SHAPE(3000, 4, 4),
                            32768, 1, 2);
    b[GRADIENT] =
        make_buffer("gradient/dense", TP_SPACE_CORE, TP_F32, SHAPE(100, 128), 128768, 2, 2);
    b[SUM] = make_buffer("all_reduce", TP_SPACE_REPLICATED, TP_F32, SHAPE(100, 128), 0, 1, 3);
    b[IMAGE] = make_buffer("image", TP_SPACE_INPUT, TP_U8, SHAPE(32, 1000), 0, 1, 1);
    s->variables[0] = (tp_program_variable){.name = "w", .bytes = 51200, .is_model = true};
    s->variables[1] = (tp_program_variable){.name = "m", .bytes = 51200};
    for (int i = 0; i < 2; i++) {
        s->variables[i].dtype = TP_F32;
        s->variables[i].shape = SHAPE(100, 128);
    }
    s->launches[1].label = "forward";
    s->launches[2].label = "backward";
    s->segments[0] = (tp_program_segment){.first_launch = 0, .launch_count = 1};
    s->segments[1] = (tp_program_segment){
        .is_per_core = true,
        .first_launch = 1,
        .launch_count = 2,
        .has_reduce = true,
        .reduce = {.core_offset_bytes = 128768, .core_elems = 12800, .elems = 12800}};
    s->segments[2] = (tp_program_segment){.first_launch = 3, .launch_count = 1};
    s->program = (tp_program){.buffers = s->buffers,
                              .buffer_count = BUFFERS,
                              .launches = s->launches,
                              .launch_count = 4,
                              .segments = s->segments,
                              .segment_count = 3,
                              .variables = s->variables,
                              .variable_count = 2,
                              .core_bytes = {180096},
                              .core_slab_segments = 1,
                              .replicated_bytes = {76800},
                              .replicated_slab_segments = 1,
                              .input_bytes = 32000,
                              .result_bytes = 128};
}

Test(memory, kinds_of_a_program_here)
{
    sample s;
    make_program(&s);
    const tp_topology topology = make_topology(1e9, 1000, false);
    tp_memory_plan *plan = NULL;
    cr_assert_eq(tp_memory_plan_create(&s.program, &topology, 1, &plan), TPUCL_OK);
    const uint64_t *bytes = plan->here.bytes;
    cr_expect_eq(bytes[TP_MEMORY_WEIGHTS], 51200);
    cr_expect_eq(bytes[TP_MEMORY_SLOTS], 51200);
    cr_expect_eq(bytes[TP_MEMORY_COPIES], 25600);
    cr_expect_eq(bytes[TP_MEMORY_COLLECTIVE], 51200);
    cr_expect_eq(bytes[TP_MEMORY_ACTIVATIONS], 96000);
    cr_expect_eq(bytes[TP_MEMORY_GRADIENTS], 51200);
    cr_expect_eq(bytes[TP_MEMORY_GAPS], 180096 - 96000 - 51200);
    cr_expect_eq(bytes[TP_MEMORY_INFEED], 3 * 32000);
    cr_expect_eq(bytes[TP_MEMORY_RESULTS], 64 * 128);
    cr_expect_eq(bytes[TP_MEMORY_RESERVE], 1000);
    tp_footprint one;
    tp_program_footprint(&s.program, TP_INFEED_DEPTH, TP_RESULTS_DEPTH, &one);
    cr_expect_eq(plan->here.total, tp_footprint_bytes(&one) + 1000);
    cr_expect_str_eq(plan->here.peak_at, "backward");
    /* no tiles: what is alive, without gaps */
    cr_expect_eq(plan->tpu.total, plan->here.total - bytes[TP_MEMORY_GAPS]);
    cr_expect_eq(plan->warning_count, 0);
    tp_memory_plan_destroy(plan);
}

/* Gradients lie side by side: a slab that is full of activations while one of two is there has room for both. */
Test(memory, summed_buffers_are_held_together)
{
    sample s;
    make_program(&s);
    s.buffers[SECOND].last_use = 1;
    s.buffers[FIRST].first_use = s.buffers[FIRST].last_use = 1;
    tp_program_buffer more[BUFFERS + 1];
    memcpy(more, s.buffers, sizeof s.buffers);
    more[BUFFERS] = s.buffers[GRADIENT]; /* the other half, which is made one launch earlier */
    more[BUFFERS].offset_bytes += 51200;
    more[BUFFERS].first_use = 1;
    s.program.buffers = more;
    s.program.buffer_count = BUFFERS + 1;
    s.program.core_bytes[0] += 51200;
    s.segments[1].reduce.core_elems *= 2;
    const tp_topology topology = make_topology(1e9, 0, false);
    tp_memory_plan *plan = NULL;
    cr_assert_eq(tp_memory_plan_create(&s.program, &topology, 1, &plan), TPUCL_OK);
    cr_expect_str_eq(plan->here.peak_at, "forward");
    cr_expect_eq(plan->here.bytes[TP_MEMORY_GRADIENTS], 2 * 51200);
    cr_expect_eq(plan->here.bytes[TP_MEMORY_ACTIVATIONS], 96000 + 32768);
    cr_expect_eq(plan->here.bytes[TP_MEMORY_GAPS], 128); /* as the slab is given above */
    tp_memory_plan_destroy(plan);
}

Test(memory, kinds_of_a_program_in_tiles)
{
    sample s;
    make_program(&s);
    s.buffers[SECOND].shape = SHAPE(12000, 2, 2, 8);
    s.buffers[SECOND].bytes = 2 * 384000;
    const tp_topology topology = make_topology(1e9, 0, true);
    tp_memory_plan *plan = NULL;
    cr_assert_eq(tp_memory_plan_create(&s.program, &topology, 1, &plan), TPUCL_OK);
    /* 12000 fills 12032 lanes, 8 is a whole tile */
    cr_expect_eq(plan->tpu.bytes[TP_MEMORY_ACTIVATIONS], 2 * 12032 * 32);
    /* 100 rows fill 104 */
    cr_expect_eq(plan->tpu.bytes[TP_MEMORY_WEIGHTS], 104 * 512);
    cr_expect_eq(plan->tpu.bytes[TP_MEMORY_GRADIENTS], 104 * 512);
    cr_expect_eq(plan->tpu.bytes[TP_MEMORY_COPIES], 104 * 256);
    cr_assert_eq(plan->largest_count, 6);
    cr_expect_str_eq(plan->largest[0].layer, "dense");
    cr_expect_str_eq(plan->largest[0].type, "bf16[12000,2,2,8]");
    cr_expect_eq(plan->largest[0].kind, TP_MEMORY_ACTIVATIONS);
    tp_memory_plan_destroy(plan);
}

Test(memory, what_tiles_double_is_warned_of_with_its_dimension)
{
    sample s;
    make_program(&s);
    s.buffers[SECOND].shape = SHAPE(40, 60, 20, 40);
    s.buffers[SECOND].bytes = 2 * 1920000;
    s.buffers[IMAGE].shape = SHAPE(64, 224, 224, 3);
    const tp_topology topology = make_topology(1e9, 0, true);
    tp_memory_plan *plan = NULL;
    cr_assert_eq(tp_memory_plan_create(&s.program, &topology, 1, &plan), TPUCL_OK);
    cr_assert_eq(plan->warning_count, 2);
    cr_expect(strstr(plan->warnings[0], "dimension 1 of 60 fills 128"), "%s", plan->warnings[0]);
    cr_expect(strstr(plan->warnings[1], "dimension 3 of 3 fills 128"), "%s", plan->warnings[1]);
    cr_expect(strstr(plan->warnings[1], "'image'"), "%s", plan->warnings[1]);
    tp_memory_plan_destroy(plan);
}

Test(memory, a_refusal_has_all_numbers)
{
    sample s;
    make_program(&s);
    const tp_topology topology = make_topology(300 * 1024, 1 << 20, false);
    const tp_remedy remedies[] = {{"per_core_batch=8 needs 0.1 GiB"}};
    tp_memory_plan *plan = NULL;
    cr_assert_eq(tp_memory_plan_create(&s.program, &topology, 1, &plan), TPUCL_OK);
    cr_expect(!tp_memory_plan_fits(plan, &topology));
    cr_expect_eq(tp_memory_refuse(plan, &topology, 16, remedies, 1), TPUCL_OUT_OF_DEVICE_MEMORY);
    static const char *const parts[] = {"16 examples per core (128 on 8 cores)",
                                        "needs 1.44 MiB",
                                        "has 0.29 MiB",
                                        "1.15 MiB too much",
                                        "what helps: per_core_batch=8",
                                        "reserve of the system 1.00 MiB",
                                        "weights 0.05 MiB",
                                        "bf16[3000,4,4] dense",
                                        "f32[100,128] dense",
                                        "at the peak, backward"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_expect(strstr(tpucl_last_error()->message, parts[i]), "'%s' in: %s", parts[i],
                  tpucl_last_error()->message);
    tp_memory_plan_destroy(plan);
}

Test(memory, nothing_overflows)
{
    sample s;
    make_program(&s);
    const tp_topology topology = make_topology(0x1p62, 0x1p63, true);
    s.program.core_bytes[0] = UINT64_MAX - 5;
    s.program.input_bytes = UINT64_MAX / 2;
    s.buffers[FIRST].shape = SHAPE((int64_t)1 << 40, 1); /* 2^47 and more in tiles */
    s.buffers[FIRST].bytes = UINT64_MAX / 4;
    tp_memory_plan *plan = NULL;
    cr_assert_eq(tp_memory_plan_create(&s.program, &topology, 1, &plan), TPUCL_OK);
    cr_expect_eq(plan->here.total, UINT64_MAX);
    cr_expect_eq(plan->tpu.total, UINT64_MAX);
    cr_expect(!tp_memory_plan_fits(plan, &topology));
    tp_memory_plan_destroy(plan);
    cr_expect_eq(tp_add_bytes(UINT64_MAX, 1), UINT64_MAX);
    cr_expect_eq(tp_multiply_bytes((uint64_t)1 << 33, (uint64_t)1 << 33), UINT64_MAX);
}

Test(memory, without_a_capacity_everything_fits)
{
    sample s;
    make_program(&s);
    const tp_topology topology = make_topology(0, 0, false);
    tp_memory_plan *plan = NULL;
    cr_assert_eq(tp_memory_plan_create(&s.program, &topology, 1, &plan), TPUCL_OK);
    cr_expect(tp_memory_plan_fits(plan, &topology));
    cr_expect_eq(tp_memory_capacity(&topology), 0);
    tp_memory_plan_destroy(plan);
}
