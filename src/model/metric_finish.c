/* SPDX-License-Identifier: Apache-2.0
 * Metrics from their sums, in double (keras/src/metrics: result()).
 */
#include <math.h>
#include "model/metric.h"

#define KERAS_EPSILON 1e-7

/* 0 / 0 is 0, as Keras' divide_no_nan. */
static double divide(double above, double below)
{
    return below != 0 ? above / below : 0;
}

/* Trapezoids under recall over the rate of false positives (confusion_metrics.py, AUC.result). */
static double area_roc(const double *tp, const double *fp, double positives, double negatives,
                       int64_t count)
{
    double area = 0;
    for (int64_t i = 0; i + 1 < count; i++) {
        const double width = divide(fp[i], negatives) - divide(fp[i + 1], negatives);
        area += width * (divide(tp[i], positives) + divide(tp[i + 1], positives)) / 2;
    }
    return area;
}

/* The curve of precision over recall, interpolated between thresholds (Davis and Goadrich 2006; AUC's
 * interpolate_pr_auc). */
static double area_pr(const double *tp, const double *fp, double positives, int64_t count)
{
    double area = 0;
    for (int64_t i = 0; i + 1 < count; i++) {
        const double before = tp[i] + fp[i], after = tp[i + 1] + fp[i + 1];
        const double slope = divide(tp[i] - tp[i + 1], fmax(before - after, 0));
        const double intercept = tp[i + 1] - slope * after;
        const double ratio = before > 0 && after > 0 ? before / after : 1;
        area += divide(slope * (tp[i] - tp[i + 1] + intercept * log(ratio)), positives);
    }
    return area;
}

static double f1_of(double both, double predicted, double labelled)
{
    const double precision = both / (predicted + KERAS_EPSILON);
    const double recall = both / (labelled + KERAS_EPSILON);
    return 2 * precision * recall / (precision + recall + KERAS_EPSILON);
}

static double f1_score(const double *both, const double *predicted, const double *labelled,
                       int64_t classes, tp_metric_average average)
{
    double sums[3] = {0}, score = 0;
    for (int64_t i = 0; i < classes; i++) {
        sums[0] += both[i];
        sums[1] += predicted[i];
        sums[2] += labelled[i];
    }
    if (average == TP_AVERAGE_MICRO) return f1_of(sums[0], sums[1], sums[2]);
    for (int64_t i = 0; i < classes; i++) {
        const double share = average == TP_AVERAGE_WEIGHTED
                                 ? labelled[i] / (sums[2] + KERAS_EPSILON)
                                 : 1 / (double)classes;
        score += share * f1_of(both[i], predicted[i], labelled[i]);
    }
    return score;
}

static bool is_target(const tp_metric_options *options, tp_metric_kind kind, int64_t class_id)
{
    if (kind == TP_METRIC_MEAN_IO_U || options->target_count == 0) return true;
    for (int64_t i = 0; i < options->target_count; i++)
        if (options->target_class_ids[i] == (double)class_id) return true;
    return false;
}

/* Mean over the classes that occur. */
static double mean_iou(const double *const *sums, int64_t classes, tp_metric_kind kind,
                       const tp_metric_options *options)
{
    double sum = 0, valid = 0;
    for (int64_t i = 0; i < classes; i++) {
        const double either = sums[1][i] + sums[2][i] - sums[0][i];
        if (!is_target(options, kind, i) || !(either > 1e-9)) continue;
        sum += sums[0][i] / (either + KERAS_EPSILON);
        valid += 1;
    }
    return sum / (valid + KERAS_EPSILON);
}

double tp_metric_finish(tp_metric_kind kind, const tp_metric_options *options,
                        const double *const *sums, const int64_t *counts)
{
    switch (kind) {
    case TP_METRIC_AUC:
        return options->curve == TP_CURVE_PR
                   ? area_pr(sums[0], sums[1], sums[2][0], counts[0])
                   : area_roc(sums[0], sums[1], sums[2][0], sums[3][0], counts[0]);
    case TP_METRIC_PRECISION:
    case TP_METRIC_RECALL:
        return divide(sums[0][0], sums[1][0]);
    case TP_METRIC_F1_SCORE:
        return f1_score(sums[0], sums[1], sums[2], counts[0], options->average);
    case TP_METRIC_IO_U:
    case TP_METRIC_MEAN_IO_U:
        return mean_iou(sums, counts[0], kind, options);
    case TP_METRIC_ROOT_MEAN_SQUARED_ERROR:
        return sums[1][0] > 0 ? sqrt(sums[0][0] / sums[1][0]) : (double)NAN;
    default:
        return sums[1][0] > 0 ? sums[0][0] / sums[1][0] : (double)NAN;
    }
}
