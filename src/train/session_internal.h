/* SPDX-License-Identifier: Apache-2.0
 * What the files of train/ share. */
#ifndef TP_TRAIN_SESSION_INTERNAL_H
#define TP_TRAIN_SESSION_INTERNAL_H

#include <stdatomic.h>
#include "core/array.h"
#include "num/augment.h"
#include "model/metric.h"
#include "reference/reference.h"
#include "train/session.h"
#include "verify/compile_verified.h"

/* One graph, compiled for every device of the map, and loaded when it is first used. */
typedef struct tp_session_graph {
    const char *name; /* "train", "evaluate" */
    tp_graph *graph;
    tp_program **programs; /* [device_count]; equal devices share one */
    tp_loaded *loaded;
} tp_session_graph;

/* Sums over examples, in double, in step order. */
typedef struct tp_metric_sums {
    double loss, weight, correct;
    double *values; /* [tp_metric_layout.value_count]: sums of metrics; NULL: not wanted */
} tp_metric_sums;

/* Where the sums of metrics are among the outputs of graphs, and in tp_metric_sums.values. */
typedef struct tp_metric_part {
    const char *output; /* "metric/auc/0" */
    int64_t offset, count;
} tp_metric_part;

/* A number of the results: a metric, or the loss or accuracy of one of several outputs, whose sums are outputs
 * of the graph anyway. The loss and accuracy of the whole are none of these. */
typedef struct tp_session_metric {
    const char *name, *key; /* "box/auc", "auc"; both the same where the model has one output */
    int32_t output;         /* -1: the model has one */
    tp_metric_kind kind;
    tp_metric_options options;
    /* "loss_sum", "correct": a mean of that by "weight_sum"; NULL: the kind's parts */
    const char *sums;
    tp_metric_part parts[TP_METRIC_MAX_PARTS];
    int32_t part_count;
} tp_session_metric;

typedef struct tp_metric_layout {
    tp_session_metric items[TP_SESSION_MAX_METRICS];
    int32_t count;
    tp_model_metric asked[TP_SESSION_MAX_METRICS]; /* of the graphs, borrows from items */
    int32_t asked_count;
    int64_t value_count;
} tp_metric_layout;

TP_ARRAY_DEFINE(tp_session_epoch_list, tp_session_epoch)

/* The epoch that is going on: what its record will be made of. */
typedef struct tp_session_running {
    tp_metric_sums sums; /* values: the session's train_values */
    int64_t steps, examples;
    bool is_recorded; /* as far as it went: the training was stopped in it */
} tp_session_running;

struct tp_session {
    tp_session_options options;
    tp_config *config;
    /* `cores` of it: all micro-batches, real_cores * accumulate. The tree, the shards and the random numbers take each
     * for a core of its own. */
    tp_topology *topology;
    int32_t real_cores;
    tp_arena *arena;
    tp_source *train_source, *test_source;                    /* test: NULL when there is none */
    int64_t train_first, train_count, test_first, test_count; /* ranges of their sources */
    tp_model *model;
    tp_model_loss loss;
    tp_loss_options loss_options;
    tp_metric_layout metrics;
    double *train_values, *evaluate_values; /* [metrics.value_count] */
    tp_model_score score;                   /* borrows metrics.asked and targets */
    tp_model_target *targets;               /* [outputs of the model] */
    bool has_accuracy;
    tp_core_map *map;
    tp_program_cache *cache;
    tp_executor *executor;
    tp_core_group *groups;
    tp_cross_shard cross_shard; /* borrows groups */
    int32_t *group_cores;
    tp_session_graph train, evaluate;
    tp_reference *reference; /* instead of devices: selector "reference" */

    int64_t steps_total, steps_per_epoch, steps_done;
    tp_pipeline *pipeline; /* of the training that is going on */
    tp_pipeline_stats input_stats;
    tp_session_epoch_list epochs;
    tp_session_running running;
    bool is_resumed;
    tp_breakdown breakdown;
    uint64_t created_ns, lap_ns;
    tp_startup startup;
    double build_seconds, verify_seconds, first_step_seconds;
    atomic_bool is_stopped;
};

/* session_data.c */
tpucl_status tp_session_open_pipeline(tp_session *session);
/* Keeps its figures. */
void tp_session_close_pipeline(tp_session *session);
tpucl_status tp_session_open_data(tp_session *session);
/* session_records.c; the window's sides are 0 where it is the image. */
tp_augment tp_session_augment(const tp_config *config);
bool tp_session_augments_on_device(const tp_session *session);
/* Changes the images on the host, or crops them, as the configuration says. */
tpucl_status tp_session_augment_source(const tp_session *session, tp_source **inout_source);
tpucl_status tp_session_open_records(const tp_session *session, bool is_test,
                                     tp_source **out_source);
tpucl_status tp_session_open_images(const tp_session *session, bool is_test,
                                    tp_source **out_source);
/* session_model.c; the labels are checked against the model's outputs and their losses. */
tpucl_status tp_session_build_model(tp_session *session);
tpucl_status tp_session_check_labels(const tp_session *session);
/* session_graphs.c: graphs, then programs and what is loaded. */
tpucl_status tp_session_prepare_train(tp_session *session); /* labels and groups, before: */
tpucl_status tp_session_build_train(tp_session *session);
tpucl_status tp_session_load(tp_session *session, tp_session_graph *graph);
/* Builds, compiles and loads the evaluation when it is first asked for. */
tpucl_status tp_session_need_evaluate(tp_session *session);
void tp_session_graph_deinit(tp_session *session, tp_session_graph *graph);

/* session_checkpoint.c: the folder of checkpoints, in `arena`; NULL: there are none. */
tpucl_status tp_session_checkpoint_folder(const tp_session *session, tp_arena *arena,
                                          const char **out_folder);

/* train_loop.c, for both loops: goes on with an epoch that was stopped, or begins the first one. */
void tp_session_begin_training(tp_session *session);
/* Its last step is done, and the training was not stopped in it. */
bool tp_session_is_epoch_due(const tp_session *session);
/* The record of the running epoch; a new one begins unless the training was stopped in it. */
tpucl_status tp_session_record_epoch(tp_session *session, tp_session_epoch *epoch, bool is_ended);

/* average.c: weights become their moving average when a training with one is over. */
tpucl_status tp_session_finish_average(tp_session *session);

/* session_reference.c: the same training in the reference interpreter, no OpenCL involved. */
bool tp_session_is_reference(const tp_session *session);
tpucl_status tp_session_open_reference(tp_session *session);
tpucl_status tp_session_train_reference(tp_session *session, const tp_session_callbacks *callbacks);
tpucl_status tp_session_reference_sha256(tp_session *session, char out_hex[TP_SHA256_HEX_BYTES]);

/* Seconds since the last call, or since the session was made. */
double tp_session_lap(tp_session *session);

/* From 1: the epoch that the step with this number, also from 1, belongs to. */
static inline int64_t tp_session_epoch_of(const tp_session *session, int64_t step)
{
    return (step + session->steps_per_epoch - 1) / session->steps_per_epoch;
}

static inline int32_t tp_session_group_count(const tp_session *session)
{
    return session->groups ? session->cross_shard.group_count : 1;
}

/* Cores of the device that has most, without their further micro-batches. */
int32_t tp_session_wave_cores(const tp_session *session);
/* feed.c: the sum of weights in a core's replica group. */
float tp_session_group_weight(const tp_session *session, int32_t core, int64_t valid);

/* metrics.c: adds the results of a step, over all replica groups. */
tpucl_status tp_metrics_add(tp_session *session, tp_session_graph *graph, uint64_t ticket,
                            tp_metric_sums *sums);
/* Adds the output `name` of a step of any graph to the sums that it belongs to. */
void tp_metrics_add_output(const tp_session *session, const char *name, const float *data,
                           tp_metric_sums *sums);
/* All but `values`. */
void tp_metrics_add_sums(tp_metric_sums *sums, const tp_metric_sums *more);
double tp_metrics_loss(const tp_metric_sums *sums);
/* Takes from the configuration which metrics there are, for the targets; then, from the outputs of a graph,
 * their layout. */
tpucl_status tp_metrics_choose(tp_session *session);
tpucl_status tp_metrics_lay_out(tp_session *session, const tp_graph *graph);
/* All sums 0, those of metrics in `values` (may be NULL). */
tp_metric_sums tp_metrics_begin(const tp_session *session, double *values);
void tp_metrics_finish(const tp_session *session, const tp_metric_sums *sums,
                       double out_values[TP_SESSION_MAX_METRICS]);
double tp_metrics_accuracy(const tp_session *session, const tp_metric_sums *sums);

#endif
