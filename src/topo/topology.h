/* SPDX-License-Identifier: Apache-2.0
 * The machine that a run pretends to be: hosts, chips, cores, what each core has, and where the
 * cores live (placement). Read from JSON: see docs/topology.md. Cores are numerics, devices are
 * speed: `cores` and `numeric` decide what is computed, `placement` only how fast, the figures only
 * what plans and projections say. A topology is read-only after it was made: thread-safe. */
#ifndef TP_TOPO_TOPOLOGY_H
#define TP_TOPO_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>
#include "core/json.h"
#include "core/status.h"

enum { TP_TOPOLOGY_MAX_CORES = 2048 }; /* a full v3 pod */

typedef enum tp_math { TP_MATH_EXACT, TP_MATH_FAST } tp_math;
typedef enum tp_precision_policy {
    TP_PRECISION_FLOAT32,
    TP_PRECISION_MIXED_BFLOAT16,
    TP_PRECISION_BFLOAT16,
    TP_PRECISION_POLICY_COUNT
} tp_precision_policy;
typedef enum tp_matmul_precision { /* bf16 passes of a product: 1, 3, 6 */
                                   TP_MATMUL_DEFAULT,
                                   TP_MATMUL_HIGH,
                                   TP_MATMUL_HIGHEST
} tp_matmul_precision;

/* "float32", "mixed_bfloat16", "bfloat16"; NULL for a value outside the enum. */
const char *tp_precision_policy_name(tp_precision_policy precision);

/* One figure with where it comes from. X(ID, "key", "unit", meaning). Per core unless it says
 * otherwise. */
#define TP_FIGURE_LIST(X)                                                                          \
    X(MXU_COUNT, "mxu_count", "units", "matrix units of a core")                                   \
    X(MXU_ROWS, "mxu_rows", "cells", "depth of a matrix unit's array")                             \
    X(MXU_COLUMNS, "mxu_columns", "cells", "width of a matrix unit's array")                       \
    X(VPU_SUBLANES, "vpu_sublanes", "lanes", "rows of the vector unit")                            \
    X(VPU_LANES, "vpu_lanes", "lanes", "columns of the vector unit")                               \
    X(PEAK_BF16, "peak_bf16", "FLOP/s", "bf16 products with f32 sums; a multiply-add is 2 FLOP")   \
    X(PEAK_F32, "peak_f32", "FLOP/s", "f32 products")                                              \
    X(HBM_BYTES, "hbm_bytes", "B", "memory of a core")                                             \
    X(HBM_RESERVED, "hbm_reserved", "B", "part of it that the system takes first")                 \
    X(HBM_BANDWIDTH, "hbm_bandwidth", "B/s", "between a core and its memory")                      \
    X(HOST_LINK, "host_link", "B/s", "between the host and one chip, one way")                     \
    X(USER_LINK, "user_link", "B/s", "from the user's machine to the host")                        \
    X(ICI_LINKS, "ici_links", "links", "links of a chip to other chips")                           \
    X(ICI_BANDWIDTH, "ici_bandwidth", "B/s", "of one such link, one way")                          \
    X(ICI_LATENCY, "ici_latency", "s", "of one hop between chips")                                 \
    X(POWER, "power", "W", "mean draw of a chip")

typedef enum tp_figure_id {
#define TP_FIGURE_ENUM(id, key, unit, meaning) TP_FIGURE_##id,
    TP_FIGURE_LIST(TP_FIGURE_ENUM)
#undef TP_FIGURE_ENUM
        TP_FIGURE_COUNT
} tp_figure_id;

typedef struct tp_figure {
    bool known;
    double value; /* in the unit of TP_FIGURE_LIST; the file may say "TFLOP/s", "GiB", "GB/s" */
    const char *source; /* never NULL when known */
    const char *note;   /* conflicting figures and caveats, or NULL */
} tp_figure;

/* Cores that live on one device (or, with split > 1, on that many equal sub-devices of it). */
typedef struct tp_placement {
    const char *device;   /* selector; see device/ */
    const int32_t *cores; /* core ids, rising */
    size_t core_count;
    int32_t split; /* 1: the whole device */
} tp_placement;

typedef struct tp_topology {
    const char *name, *generation, *description, *source; /* never NULL */
    int32_t hosts, chips, cores; /* in all; cores = chips * cores_per_chip */
    int32_t cores_per_chip;
    tp_figure figures[TP_FIGURE_COUNT];
    struct {
        int32_t mxu_chunk, vpu_lanes; /* contract 1: both 128 */
        tp_math math;
        tp_precision_policy precision;
        tp_matmul_precision matmul_precision;
        int64_t per_core_batch;
    } numeric;                     /* defaults of a run on this topology, except the two sizes */
    const tp_placement *placement; /* every core exactly once */
    size_t placement_count;        /* 0: all cores on the default device */
    const char *file;              /* where it was read from, for messages */
    struct tp_arena *arena;        /* owns all of the above */
} tp_topology;

/* `name_or_path`: one of the built-in names ("v2-8") or, when it holds a '/' or ends in ".json", a
 * file. */
tpucl_status tp_topology_load(const char *name_or_path,
                              tp_topology **out_topology) TPUCL_MUST_CHECK;
/* Reports all problems at once (TPUCL_INVALID_CONFIG). The document may be destroyed afterwards. */
tpucl_status tp_topology_from_json(const tp_json *root,
                                   tp_topology **out_topology) TPUCL_MUST_CHECK;
/* The same as JSON text (tp_free); reading it back gives an equal topology. */
tpucl_status tp_topology_to_json(const tp_topology *topology, char **out_text) TPUCL_MUST_CHECK;
void tp_topology_destroy(tp_topology *topology);

/* Built-in names in the order of the table; NULL past the end. */
const char *tp_topology_builtin_name(size_t index);

/* Value of a figure, or `fallback` when the file does not state it. */
double tp_topology_figure(const tp_topology *topology, tp_figure_id id, double fallback);
const char *tp_figure_key(tp_figure_id id);

#endif
