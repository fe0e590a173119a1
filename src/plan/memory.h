/* SPDX-License-Identifier: Apache-2.0
 * What a core's memory holds while a program runs, from the compiled program alone, in two views:
 *
 *   here   what the executor allocates for a core: slabs with their alignment and gaps, rings, variables
 *          (program/footprint.h); the same number to the byte
 *   tpu    what a core of a real TPU would need: arrays in tiles of 8 x 128 (check/padding.h), each in the
 *          layout that pads it least, alive at the launch where their sum is largest; a pred takes four
 *          bytes. Topologies without matrix units have no tiles: arrays as they are
 *
 * Both are counted against the topology's HBM with what its system takes first (hbm_reserved: 528 MiB on v2 and
 * v3, pytorch/xla issue 1735), and the larger one decides. Sums stick at the largest number instead of
 * overflowing.
 */
#ifndef TP_PLAN_MEMORY_H
#define TP_PLAN_MEMORY_H

#include "core/arena.h"
#include "program/footprint.h"
#include "program/program.h"
#include "topo/topology.h"

/* X(ID, "key", "in sentences") */
#define TP_MEMORY_KIND_LIST(X)                                                                     \
    X(WEIGHTS, "weights", "weights")                                                               \
    X(SLOTS, "slots", "optimizer slots")                                                           \
    X(COPIES, "copies", "compute copies of weights")                                               \
    X(GRADIENTS, "gradients", "gradients of weights")                                              \
    X(ACTIVATIONS, "activations", "activations")                                                   \
    X(INFEED, "infeed", "infeed ring")                                                             \
    X(RESULTS, "results", "outfeed and results")                                                   \
    X(COLLECTIVE, "collective", "sums over cores")                                                 \
    X(CONSTANTS, "constants", "constants")                                                         \
    X(GAPS, "gaps", "gaps and alignment")                                                          \
    X(RESERVE, "reserve", "reserve of the system")

typedef enum tp_memory_kind {
#define TP_MEMORY_KIND_ID(id, key, text) TP_MEMORY_##id,
    TP_MEMORY_KIND_LIST(TP_MEMORY_KIND_ID)
#undef TP_MEMORY_KIND_ID
        TP_MEMORY_KIND_COUNT
} tp_memory_kind;

/* Keys for results, words for sentences. Static. */
const char *tp_memory_kind_key(tp_memory_kind kind);
const char *tp_memory_kind_text(tp_memory_kind kind);

typedef struct tp_memory_view {
    uint64_t bytes[TP_MEMORY_KIND_COUNT];
    uint64_t total;      /* of all kinds */
    const char *peak_at; /* label of the launch; never NULL */
} tp_memory_view;

/* A tensor that is alive at the peak of the tpu view. Texts live in the plan. */
typedef struct tp_memory_tensor {
    const char *name, *layer; /* layer "": of none */
    const char *type;         /* "bf16[32,28,28,64]" */
    tp_memory_kind kind;
    uint64_t bytes;   /* here */
    uint64_t tpu;     /* in tiles */
    double padding;   /* tpu to its bytes without tiles; 1 when there is none */
    const char *note; /* the dimensions that fill tiles when padding is above 2, or "" */
} tp_memory_tensor;

enum { TP_MEMORY_TENSORS = 10 };

typedef struct tp_memory_plan {
    tp_arena *arena; /* owns everything below */
    tp_memory_view here, tpu;
    bool is_tiled; /* the topology has tiles */
    tp_memory_tensor
        largest[TP_MEMORY_TENSORS]; /* alive at the tpu view's peak, the largest first */
    int32_t largest_count;
    const char **warnings; /* tensors that tiles more than double, each with its dimension */
    int32_t warning_count;
    double waste; /* of the slabs here: the share of gaps at their peak */
} tp_memory_plan;

/* `program` is only read and need not outlive the plan. `micro_batches` of a core: each has records of its own in the
 * rings, and the balanced tree over them keeps a partial sum of the gradients for each of its levels: one for two
 * micro-batches, two for up to four. */
tpucl_status tp_memory_plan_create(const tp_program *program, const tp_topology *topology,
                                   int32_t micro_batches,
                                   tp_memory_plan **out_plan) TPUCL_MUST_CHECK;
void tp_memory_plan_destroy(tp_memory_plan *plan);

/* The larger view: what is counted against HBM. */
uint64_t tp_memory_plan_bytes(const tp_memory_plan *plan);

/* HBM of a core in whole bytes; 0: the topology does not say. */
uint64_t tp_memory_capacity(const tp_topology *topology);
/* Any figure in bytes, whole; 0: the topology does not say. */
uint64_t tp_memory_whole_figure(const tp_topology *topology, tp_figure_id id);

/* Whether it fits; where the topology does not say how much HBM there is, everything does. */
bool tp_memory_plan_fits(const tp_memory_plan *plan, const tp_topology *topology);

/* ---- one array ---- */

typedef struct tp_padded_array {
    uint64_t bytes;                   /* a pred counts one byte, as it is stored here */
    uint64_t row_major;               /* in tiles, as declared */
    uint64_t best;                    /* in the layout that pads least */
    double row_padding, best_padding; /* to the bytes on a TPU without tiles */
    int32_t minor, second;            /* of the best layout: dimension numbers */
} tp_padded_array;
tp_padded_array tp_pad_array(tp_dtype dtype, const tp_shape *shape);

/* Names the dimensions of a layout that do not fill their tiles: "dimension 3 of 2 fills 128". "" when all do. */
void tp_describe_tiles(tp_dtype dtype, const tp_shape *shape, int32_t second, int32_t minor,
                       char *out_text, size_t room);

/* ---- refusal ---- */

typedef struct tp_remedy {
    char text[160]; /* "a per-core batch of 64 needs 7.1 GiB" */
} tp_remedy;

/* Fails with TPUCL_OUT_OF_DEVICE_MEMORY: used, capacity, excess, the split by kind, the largest tensors at the peak,
 * the remedies. `per_core_batch`: of the plan, for the message. */
tpucl_status tp_memory_refuse(const tp_memory_plan *plan, const tp_topology *topology,
                              int64_t per_core_batch, const tp_remedy *remedies,
                              int32_t remedy_count) TPUCL_MUST_CHECK;

#endif
