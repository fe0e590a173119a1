/* SPDX-License-Identifier: Apache-2.0
 * What TensorBoard shows: values of a Summary message (TensorBoard, compat/proto/summary.proto and the plugins'
 * metadata.py). Each call appends one value to `to`, the bytes of a Summary, in the form that needs no
 * conversion: a tensor with the metadata of its plugin. One tag belongs to one kind for the whole run.
 *
 * Failures of memory stick to the builder.
 */
#ifndef TP_IO_EVENT_SUMMARY_H
#define TP_IO_EVENT_SUMMARY_H

#include "core/str.h"

void tp_summary_scalar(tp_str_builder *to, const char *tag, float value);

/* `count` images of one size, each a whole PNG or JPEG file. */
void tp_summary_images(tp_str_builder *to, const char *tag, uint32_t width, uint32_t height,
                       const tp_view *encoded, size_t count);

/* Markdown. */
void tp_summary_text(tp_str_builder *to, const char *tag, const char *text);

enum { TP_HISTOGRAM_BUCKETS = 30 }; /* TensorBoard's own number */
typedef struct tp_histogram {
    double edges[TP_HISTOGRAM_BUCKETS + 1]; /* rising */
    double counts[TP_HISTOGRAM_BUCKETS];
} tp_histogram;
/* Buckets of equal width from the smallest to the largest finite value; others are left out. Where all are
 * equal, buckets have no width and the last holds all, as in TensorBoard. */
void tp_histogram_of(const float *values, size_t count, tp_histogram *out);
void tp_summary_histogram(tp_str_builder *to, const char *tag, const tp_histogram *histogram);

/* ---- hyperparameters ---- */
typedef struct tp_hparam {
    const char *name;
    const char *text; /* NULL: a number */
    double number;
} tp_hparam;

/* Which hyperparameters there are and which scalars (tags) they are judged by; once, before the session. */
void tp_summary_hparams_experiment(tp_str_builder *to, const tp_hparam *hparams, size_t count,
                                   const char *const *metric_tags, size_t metric_count);
/* Their values in this run. */
void tp_summary_hparams_start(tp_str_builder *to, const tp_hparam *hparams, size_t count,
                              const char *group, double start_seconds);
void tp_summary_hparams_end(tp_str_builder *to, bool is_success, double end_seconds);

#endif
