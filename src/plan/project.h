/* SPDX-License-Identifier: Apache-2.0
 * How long a step would take on a machine that is not here. A roofline per operation: each takes the longest of its
 * multiplications at the machine's peak (on a TPU padded to the MXU's array, elsewhere with fast convolution), its
 * bytes at the bandwidth, and one launch. On a TPU, which fetches ahead into its own memory, what is bound by
 * multiplications runs beside what is bound by bytes, and the longer of both sums counts; elsewhere all of it is one
 * after the other, and element-wise work goes through memory twice as often as where it is fused. That divided by the
 * efficiency of the machine's class is the device's time. Beside it stand what the host feeds over its link and the sums over cores, as far as backward work does not
 * hide them.
 *
 * The efficiencies are fitted on published rows (plan/published.h), one per class and never per model: the geometric
 * mean of published by projected, in which each pair of model and machine counts once. Everything is
 * projected: true to about a factor of two, because the same machine differed by as much with the software of one year
 * (docs/plan.md).
 */
#ifndef TP_PLAN_PROJECT_H
#define TP_PLAN_PROJECT_H

#include "plan/work.h"
#include "topo/topology.h"

/* X(ID, "name", efficiency, seconds of a launch, times that unfused work goes through memory, meaning) */
#define TP_MACHINE_CLASS_LIST(X)                                                                   \
    X(TPU, "tpu", 0.35, 2e-6, 1, "matrix units with a tiled memory")                               \
    X(GPU, "gpu", 0.55, 8e-6, 2, "f32 units")                                                      \
    X(MATRIX, "gpu-matrix", 0.42, 8e-6, 2, "a GPU's matrix units, 16-bit operands")                \
    X(CPU, "cpu", 0.51, 2e-6, 2, "vector units of a processor")

typedef enum tp_machine_class {
#define TP_MACHINE_CLASS_ID(id, name, efficiency, launch, passes, meaning) TP_MACHINE_##id,
    TP_MACHINE_CLASS_LIST(TP_MACHINE_CLASS_ID)
#undef TP_MACHINE_CLASS_ID
        TP_MACHINE_CLASS_COUNT
} tp_machine_class;

const char *tp_machine_class_name(tp_machine_class machine);
double tp_machine_efficiency(tp_machine_class machine);

typedef enum tp_limiter {
    TP_LIMITER_PRODUCTS, /* multiplications: "MXU" on a TPU */
    TP_LIMITER_MEMORY,
    TP_LIMITER_LAUNCH,
    TP_LIMITER_FEED, /* the host's link, or the user's */
    TP_LIMITER_SUMS, /* all-reduce */
    TP_LIMITER_COUNT
} tp_limiter;

const char *tp_limiter_name(tp_limiter limiter);

typedef struct tp_project_options {
    tp_machine_class machine; /* see tp_machine_class_of */
    bool feeds_over_network;  /* the user's link, not the host's alone */
    int32_t micro_batches;    /* of a step, on each core of the work's; 0: one */
    int32_t machines;         /* of this topology side by side; 0: one */
} tp_project_options;

typedef struct tp_projected_layer {
    const char *name; /* in the projection's arena; "" is all that belongs to none */
    double seconds;   /* its part of the device's time */
    tp_limiter limiter;
    double useful_flops, spent_flops; /* of its products: without and with padding */
} tp_projected_layer;
TP_ARRAY_DEFINE(tp_projected_layers, tp_projected_layer)

/* Seconds of a step: low and high are the band. */
typedef struct tp_projection {
    tp_arena *arena;
    tp_projected_layers layers; /* the longest first */
    tp_machine_class machine;
    double device_seconds, feed_seconds, sum_seconds, exposed_sum_seconds;
    double seconds, low, high;
    double examples_per_second; /* of all cores */
    tp_limiter limiter;
    double
        mxu_share; /* useful part of what products spend on the array; 1 without tiles, 0 without products */
    double peak_share; /* of the peak that useful multiplications reach */
    double
        ridge_batch; /* per core, from which products as a whole are bound by multiplications; 0: never */
    bool is_recurrent; /* launches of a loop's turns are most of the time */
} tp_projection;

/* From the topology: TPU with matrix units, CPU by its generation, else a GPU: its matrix units when products are bf16
 * and the topology has a figure for them. */
tp_machine_class tp_machine_class_of(const tp_topology *topology, const tp_work *work);

/* TPUCL_UNSUPPORTED when the topology has no peak or bandwidth to project with. */
tpucl_status tp_project(const tp_work *work, const tp_topology *topology,
                        const tp_project_options *options,
                        tp_projection **out_projection) TPUCL_MUST_CHECK;
void tp_projection_destroy(tp_projection *projection);

/* Published throughput lies within this factor of a projection that is not calibrated. */
#define TP_PROJECT_BAND 2.0

#endif
