/* SPDX-License-Identifier: Apache-2.0
 * Metrics by Keras' names (keras/src/metrics): the graphs give sums over the core's elements, which are added
 * over cores (all_reduce, f32) and over steps (double); the metric is made of them on the host. So padding and
 * masked elements have no part in it, and it does not depend on how examples are cut into batches and
 * shards: unlike a mean of each batch's precision or AUC. Counts are exact while those of a step stay below
 * 2^24.
 *
 *   mean of an element's value     sum of w * value, sum of w; values: docs/metrics.md
 *   precision, recall              sums of w where both, where the result, where the label is of class 1
 *   auc                            the same at each threshold
 *   f1_score, io_u, mean_io_u      the same for each class
 *   expression                     sum of w * value, sum of w, both expressions (loss_expression.h)
 *
 * Results that are logits (loss.from_logits) go through sigmoid or softmax first, as the loss says; sparse
 * labels are one-hot where a metric wants one number per class.
 */
#ifndef TP_MODEL_METRIC_H
#define TP_MODEL_METRIC_H

#include "model/loss.h"

typedef enum tp_metric_kind {
#define TP_METRIC_ID(id, symbol, name) TP_METRIC_##id,
    TP_METRIC_LIST(TP_METRIC_ID)
#undef TP_METRIC_ID
} tp_metric_kind;

typedef enum tp_metric_curve { TP_CURVE_ROC, TP_CURVE_PR } tp_metric_curve;
typedef enum tp_metric_average {
    TP_AVERAGE_MACRO,
    TP_AVERAGE_MICRO,
    TP_AVERAGE_WEIGHTED
} tp_metric_average;

struct tp_metric_options {
    int64_t k;              /* top_k, >= 1 */
    double threshold;       /* NaN: the metric's default */
    int64_t num_thresholds; /* auc, 2 to 4096 */
    tp_metric_curve curve;
    tp_metric_average average;
    const double *target_class_ids; /* io_u; borrowed */
    int64_t target_count;
    /* EXPRESSION, borrowed: what is averaged, and the weight of each element (NULL: what counts in the loss);
     * the key path of both for messages ("metrics[1]"). */
    const char *expression, *weight, *path;
};

/* Keras' defaults; average: macro, for Keras' is one number per class. */
tp_metric_options tp_metric_defaults(void);

/* Static. The kind of that name; false: there is none. */
const char *tp_metric_name(tp_metric_kind kind);
bool tp_metric_find(const char *name, tp_metric_kind *out_kind);

/* Sums of one core, f32 vectors or scalars. */
enum { TP_METRIC_MAX_PARTS = 4 };
typedef struct tp_metric_parts {
    tp_node_id nodes[TP_METRIC_MAX_PARTS];
    int32_t count;
} tp_metric_parts;

/* TPUCL_INVALID_CONFIG when the metric and the loss's labels or the result do not fit together. */
tpucl_status tp_metric_build(tp_graph *graph, tp_metric_kind kind, const tp_metric_options *options,
                             const tp_loss_input *input, const tp_loss_weights *weights,
                             tp_metric_parts *out_parts) TPUCL_MUST_CHECK;

/* The metric from the parts' sums, sums[i] of counts[i] numbers. NaN when nothing was counted, 0 where Keras
 * says so. */
double tp_metric_finish(tp_metric_kind kind, const tp_metric_options *options,
                        const double *const *sums, const int64_t *counts);

#endif
