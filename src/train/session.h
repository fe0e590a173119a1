/* SPDX-License-Identifier: Apache-2.0
 * A training session: a resolved run configuration made real. It opens data, model and devices, compiles
 * the graphs, and runs steps and evaluations. `tpucl_run_*` (api/api_run.c) is a thin layer over this.
 *
 *   tp_session_create(options, &session);    everything checked, compiled and loaded
 *   tp_session_train(session, callbacks);    to the end, or until tp_session_stop
 *   tp_session_evaluate(session, part, &epoch);
 *
 * Which shard core c gets: rows c*B .. (c+1)*B-1 of the global batch, B the per-core batch. Rows that are no
 * examples have weight 0, and each core is told the sum of weights of its replica group, so that partial
 * batches count exactly.
 *
 * Threads: thread-compatible, except tp_session_stop.
 */
#ifndef TP_TRAIN_SESSION_H
#define TP_TRAIN_SESSION_H

#include "core/hash.h"
#include "core/status.h"
#include "data/pipeline.h"
#include "device/program_build.h"
#include "exec/executor.h"
#include "graph/graph.h"
#include "model/model.h"
#include "prof/breakdown.h"
#include "topo/config.h"
#include "topo/topology.h"

typedef struct tp_session tp_session;

typedef struct tp_session_options {
    /* read, not yet resolved; adopted (destroyed with the session, also on failure) */
    tp_config *config;
    const char *selector; /* devices, as exec/placement.h; NULL: the topology's placement */
    int32_t split;        /* sub-devices of each; 0 or 1: whole */
    bool synchronous;
    /* trains on this instead of what the configuration names, and tests on nothing; adopted as `config`
     * is. NULL: opens what is named */
    tp_source *source;
    tp_topology
        *topology;  /* instead of the one that the configuration names; adopted. NULL: that one */
    bool plan_only; /* data, model and graphs only, no device: for tp_session_build_graphs */
    bool
        opens_devices; /* with plan_only: devices are opened, for tp_session_plan_batch; nothing is loaded */
    const char *cache_dir; /* disk cache of compiled kernels; NULL: the default folder; "": none */
    tp_build_callback build_progress; /* may be NULL */
    void *build_user;
} tp_session_options;

/* All problems of configuration, model and topology are reported before any device memory is taken. */
tpucl_status tp_session_create(const tp_session_options *options, tp_session **out_session);
void tp_session_destroy(tp_session *session);

/* Borrowed, all read-only. */
const tp_config *tp_session_config(const tp_session *session);
/* With `accumulate` its `cores` are all micro-batches. */
const tp_topology *tp_session_topology(const tp_session *session);
int32_t tp_session_real_cores(const tp_session *session);
const tp_core_map *tp_session_core_map(const tp_session *session);
tp_variables *tp_session_variables(tp_session *session);
const tp_source *tp_session_train_source(const tp_session *session);
const tp_source *tp_session_test_source(const tp_session *session); /* NULL: there is none */

/* The graph that it trains; borrowed. */
const tp_graph *tp_session_train_graph(const tp_session *session);
/* The training and evaluation graphs for another per-core batch; the caller destroys them. */
tpucl_status tp_session_build_graphs(const tp_session *session, int64_t per_core_batch,
                                     tp_graph **out_train, tp_graph **out_evaluate);

/* Where the time until the end of the first step went, in its order: seconds that add up to first_step_seconds. */
typedef struct tp_startup {
    double data;    /* configuration resolved, data sets opened, as far as it is waited for */
    double model;   /* layers and the graph of a step */
    double devices; /* the driver, contexts */
    double verify;  /* kernels that had to prove themselves on this device */
    double compile; /* from the graph to a program */
    double memory;  /* slabs, variables and their first values */
    double kernels; /* programs built or loaded, kernels and their arguments */
    double
        first_step; /* the first batch and what it takes to train on it, and what the caller did before */
    /* programs of kernels, those of verification included */
    uint32_t compiled, from_disk;
} tp_startup;

typedef struct tp_session_info {
    int64_t train_examples, test_examples; /* test 0: there is no test part */
    int64_t steps, steps_per_epoch, epochs;
    uint64_t parameter_count;
    double flops_per_core_step;
    double build_seconds;      /* compiling and building kernels, in all */
    double first_step_seconds; /* from tp_session_create to the end of the first step; 0 before */
    tp_startup startup;        /* of the first device, where programs are counted */
    tp_loaded_info memory;
    uint64_t peak_core_bytes;
    uint64_t device_bytes; /* in buffers of the first device now */
} tp_session_info;
void tp_session_get_info(const tp_session *session, tp_session_info *out_info);

enum { TP_SESSION_MAX_OUTPUTS = 16, TP_SESSION_MAX_METRICS = 64 };

typedef struct tp_session_epoch {
    int64_t epoch; /* from 1 */
    int64_t steps, examples;
    double seconds;                    /* training alone */
    double train_loss, train_accuracy; /* means over the epoch; accuracy -1: the loss has none */
    bool has_eval;
    double eval_loss, eval_accuracy, eval_seconds;
    /* tp_session_metric_name; NaN: nothing counted */
    double train_metrics[TP_SESSION_MAX_METRICS], eval_metrics[TP_SESSION_MAX_METRICS];
} tp_session_epoch;

typedef struct tp_session_progress {
    int64_t step, steps, epoch, epochs;
    double loss; /* latest that was read back; NaN before the first */
    double examples_per_second;
} tp_session_progress;

typedef struct tp_session_callbacks {
    void (*progress)(void *user,
                     const tp_session_progress *progress); /* after each loop of steps */
    void (*epoch)(void *user, const tp_session_epoch *epoch);
    void *user;
} tp_session_callbacks;

/* Trains to the configured end; goes on where an earlier call was stopped. TPUCL_INTERRUPTED after
 * tp_session_stop: the step that ran is finished, the results are those of the steps done. */
tpucl_status tp_session_train(tp_session *session, const tp_session_callbacks *callbacks);

/* `count` further steps, without evaluation or an epoch's record, for measuring: *out_seconds from the first
 * batch to the last result. Goes beyond the configured end if asked to. */
tpucl_status tp_session_run_steps(tp_session *session, int64_t count, double *out_seconds);

/* `count` further steps with every launch waited for and timed: tp_session_launch_time says what each took. Only
 * where there are launches: the reference interpreter has none. */
tpucl_status tp_session_measure_steps(tp_session *session, int64_t count, double *out_seconds);
int32_t tp_session_launch_count(const tp_session *session);
void tp_session_launch_time(const tp_session *session, int32_t index, tp_launch_time *out_time);

/* Ends the training that runs after its step, or the next one before its first when none runs. May be called
 * from a signal handler and from any thread. */
void tp_session_stop(tp_session *session);

/* Forward only over the whole "test" or "train" part; fills loss, accuracy, examples and seconds. */
tpucl_status tp_session_evaluate(tp_session *session, const char *part,
                                 tp_session_epoch *out_result);

/* The configured metrics but accuracy, in their order; of a model with several outputs the loss, the accuracy
 * and the metrics of each. Names are borrowed: "auc", "box/auc". */
int32_t tp_session_metric_count(const tp_session *session);
const char *tp_session_metric_name(const tp_session *session, int32_t index);
/* The two parts of that name; the output is NULL where the model has one. */
const char *tp_session_metric_output(const tp_session *session, int32_t index);
const char *tp_session_metric_key(const tp_session *session, int32_t index);

int64_t tp_session_steps_done(const tp_session *session);
/* Borrowed until the next call of tp_session_train. */
const tp_session_epoch *tp_session_epochs(const tp_session *session, int32_t *out_count);
const tp_breakdown *tp_session_breakdown(const tp_session *session);
/* Of the input of the training that runs, or ran last; borrowed until the next call. */
const tp_pipeline_stats *tp_session_input_stats(tp_session *session);
tpucl_status tp_session_params_sha256(tp_session *session, char out_hex[TP_SHA256_HEX_BYTES]);

/* The model's variables of replica group 0 as a safetensors file, replaced atomically; and back: names,
 * shapes and dtypes must be the model's, all differences are listed at once. */
tpucl_status tp_session_save_params(tp_session *session, const char *path);
tpucl_status tp_session_load_params(tp_session *session, const char *path);

/* ---- checkpoints ---- */
typedef struct tp_session_resumed {
    char path[1024];
    int64_t step;
} tp_session_resumed;

/* Puts the session where a checkpoint's training was: the one in `path`, or NULL: the newest whole one of the
 * configuration's folder; warnings in the log say which were passed over and why, and in which keys the
 * configurations differ. TPUCL_NOT_FOUND when there is none, TPUCL_INVALID_CONFIG with all differences when it is of
 * another training. */
tpucl_status tp_session_resume(tp_session *session, const char *path,
                               tp_session_resumed *out_resumed);
/* Before a training: that its checkpoints can be written, and, unless it was resumed, that the folder has none of an
 * earlier one; with `overwrite` they are removed. */
tpucl_status tp_session_prepare_checkpoints(tp_session *session, bool overwrite);

/* Fills every core's infeed record from host arrays, one per field of `source`, of global batch rows. */
void tp_session_fill_feed(const tp_session *session, const tp_program *program,
                          const tp_source *source, void *const *arrays, int64_t valid,
                          const tp_feed *feed);

#endif
