/* SPDX-License-Identifier: Apache-2.0
 * A program: everything exec needs to run one graph, and nothing about graphs. compile/ makes it.
 *
 * It is written for ONE core. The executor runs its per-core segments for waves of cores (see
 * kernel/launch.h) and its replicated segments once per device.
 *
 * Where tensors live (tp_space). The executor gives each space a base and a stride per core:
 *     CORE        slab of the core, `core_bytes` each: activations, gradients, scratch; reused
 * every wave REPLICATED  once per device: bf16 copies and packed forms of weights, reduced
 * gradients, scratch VARIABLE    once per device (and replica group): `variable` says which; own
 * buffer each INPUT       infeed record of the core, `input_bytes` each, filled by the host before
 * the step OUTPUT      outfeed record of the core, `output_bytes` each (predictions) RESULT one
 * record per step and device, `result_bytes` each (replicated outputs: loss, counts) CONSTANT once
 * per device, `constants` holds the bytes CORE and REPLICATED may be cut into slab segments,
 * because devices limit a single allocation; a buffer never straddles two. All offsets are
 * multiples of TP_PROGRAM_ALIGN_BYTES.
 *
 * Views. A buffer may be part of another one, without memory of its own: in a loop another part each
 * turn. Kernels see no difference: their tensor's offset moves.
 *
 * Segments run in order. Loops are ranges of launches of one segment that run several times. After a
 * per-core segment's last wave, its `reduce` (if any) has summed a flat f32 range of the CORE slab over
 * the cores of each replica group, by the balanced tree, into a range of REPLICATED, and, behind it
 * there, what launches of the segment sum over a wave's cores themselves (TP_ARG_SUM).
 *
 * A program is immutable after tp_program_builder_finish and may be used by several threads.
 */
#ifndef TP_PROGRAM_PROGRAM_H
#define TP_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/status.h"
#include "kernel/launch.h"
#include "num/dtype.h"
#include "num/shape.h"

#define TP_PROGRAM_ALIGN_BYTES                                                                     \
    128 /* a cache line pair; above every driver's base alignment for float16 */
#define TP_PROGRAM_MAX_SLAB_SEGMENTS 8

typedef enum tp_space {
    TP_SPACE_CORE,
    TP_SPACE_REPLICATED,
    TP_SPACE_VARIABLE,
    TP_SPACE_INPUT,
    TP_SPACE_OUTPUT,
    TP_SPACE_RESULT,
    TP_SPACE_CONSTANT
} tp_space;

/* In turn t the buffer begins offset_bytes + i * stride_bytes into buffer `of`, where i is t, or
 * (t + phase) % period when a period is given. */
typedef struct tp_program_view {
    bool is_view;
    int32_t of; /* no view itself */
    int32_t period, phase;
    uint64_t offset_bytes;
    int64_t stride_bytes; /* may be negative; 0: it stays where it is */
    int64_t turns;        /* of its loop */
} tp_program_view;

typedef struct tp_program_buffer {
    const char *name; /* node name or role, for listings: "dense/relu", "dense/kernel packed" */
    tp_dtype dtype;
    tp_shape shape;
    uint64_t bytes; /* of one core for per-core spaces */
    tp_space space;
    bool is_scratch;       /* no tensor of the graph: packed operands, partial sums of kernels */
    int32_t slab_segment;  /* CORE, REPLICATED */
    uint64_t offset_bytes; /* in its slab segment, record or constant block; 0 for VARIABLE */
    int32_t variable;      /* VARIABLE: index into `variables` */
    tp_program_view view;  /* its place above is that of index 0 */
    int32_t first_use,
        last_use; /* launch indexes; liveness as planned, for listings and the verifier */
} tp_program_buffer;

typedef struct tp_program_variable {
    const char *name;
    tp_dtype dtype;
    tp_shape shape;
    uint64_t bytes;
    int32_t init; /* tp_init_kind of graph.h, by value, with its two parameters */
    double init_a, init_b;
    bool is_trainable, is_model;
} tp_program_variable;

/* A named tensor that goes in or out; `buffer` indexes `buffers`. */
typedef struct tp_program_port {
    const char *name;
    int32_t buffer;
} tp_program_port;

typedef struct tp_program_reduce {
    int32_t core_slab_segment, replicated_slab_segment;
    uint64_t core_offset_bytes, replicated_offset_bytes;
    uint64_t core_elems; /* f32, summed from CORE */
    uint64_t elems; /* of REPLICATED: behind those, what launches sum by themselves (TP_ARG_SUM) */
} tp_program_reduce;

typedef struct tp_program_segment {
    bool is_per_core;
    int32_t first_launch, launch_count;
    bool has_reduce;
    tp_program_reduce reduce;
} tp_program_segment;

/* Launches of one segment that run `turns` times, one after the other. Loops do not overlap. */
typedef struct tp_program_loop {
    int32_t first_launch, launch_count;
    int64_t turns;
} tp_program_loop;

typedef struct tp_program {
    tp_arena *arena;  /* owns everything below */
    const char *name; /* "train", "evaluate" */
    tp_program_buffer *buffers;
    int32_t buffer_count;
    tp_launch *launches; /* TP_ARG_TENSOR indexes `buffers` */
    int32_t launch_count;
    tp_program_segment *segments;
    int32_t segment_count;
    tp_program_loop *loops; /* by rising first launch */
    int32_t loop_count;
    tp_program_variable *variables;
    int32_t variable_count;
    tp_program_port *inputs, *outputs, *results; /* INPUT, OUTPUT, RESULT ports */
    int32_t input_count, output_count, result_count;
    const unsigned char *constants;
    uint64_t constant_bytes;
    uint64_t core_bytes[TP_PROGRAM_MAX_SLAB_SEGMENTS],
        replicated_bytes[TP_PROGRAM_MAX_SLAB_SEGMENTS];
    int32_t core_slab_segments, replicated_slab_segments;
    uint64_t input_bytes, output_bytes, result_bytes; /* record sizes */
    uint64_t peak_core_bytes;                         /* what the plan reports: CORE at its peak */
    double flops_per_core, bytes_per_core;            /* of the per-core segments */
    int32_t group_cores; /* cores of a replica group that it is for; 0: any number */
    int32_t
        most_cores; /* in one wave: launches that sum cores have memory for so many; 0: any number */
    bool is_exact;  /* no launch outside the contract */
    bool is_resident; /* more than one per-core segment: CORE must be kept for all cores at once */
} tp_program;

void tp_program_destroy(tp_program *program);

/* The buffer whose memory it is: itself, or what it is a view of. */
int32_t tp_program_base(const tp_program *program, int32_t buffer);
/* Where a view is in a turn, in bytes from where it is at index 0. */
int64_t tp_program_view_shift(const tp_program_view *view, int64_t turn);
/* The loop that the launch is in, NULL. */
const tp_program_loop *tp_program_loop_at(const tp_program *program, int32_t launch);

/* One line per launch and buffer, with bytes and FLOPs; text lives in `arena`. */
tpucl_status tp_program_print(const tp_program *program, tp_arena *arena, const char **out_text);

/* Offsets inside their space, aligned; views inside their buffer in every turn; what a loop's turns
 * hand on has its memory for the whole loop; buffers live at once do not overlap; nothing is read before
 * it is written; every argument names a buffer. TPUCL_INTERNAL with the launch and buffer named. */
tpucl_status tp_program_verify(const tp_program *program);

#endif
