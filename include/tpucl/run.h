/* SPDX-License-Identifier: Apache-2.0
 * Second tier: a whole run from one configuration file (docs/config.md): topology, model, data,
 * optimizer. This is what the command line tool is made of. May change in a minor version.
 * tpucl_run is thread-compatible, except tpucl_run_stop. */
#ifndef TPUCL_RUN_H
#define TPUCL_RUN_H

#include <tpucl/runtime.h>
#include <tpucl/trainer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_run tpucl_run;

typedef struct tpucl_run_options {
    size_t struct_size;
    const char *config_file;      /* or: */
    const char *config_text;      /* JSON; used when there is no file */
    const char *const *overrides; /* "key.path=value" each */
    int32_t override_count;
    const char *device; /* as in tpucl_runtime_options; these three win over the topology's */
    int32_t split;
    bool synchronous;
    /* Called while kernels are checked and built, which takes a while the first time on a device; `total`
     * is 0 while it is not known. From any thread, never two at once. May be NULL. */
    void (*building)(void *user, const char *what, int32_t done, int32_t total);
    void *building_user;
    bool
        overwrite; /* checkpoints of an earlier run in the same folder are removed, not a reason to stop */
} tpucl_run_options;

static inline tpucl_run_options tpucl_run_options_default(void)
{
    tpucl_run_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/* What the configuration came to. Strings are borrowed from the run. */
typedef struct tpucl_run_info {
    const char *name, *topology, *precision, *optimizer;
    const char *math; /* "exact", "fast" */
    char config_sha256[65];
    int32_t cores, devices;
    int64_t per_core_batch, global_batch;
    int64_t train_examples, test_examples;
    int64_t steps, steps_per_epoch, epochs;
    uint64_t parameter_count;
    uint64_t peak_core_bytes, variable_bytes;
    double flops_per_core_step;
    const char *output_dir; /* "" when nothing is written */
} tpucl_run_info;

enum { TPUCL_MAX_METRICS = 64 };

typedef struct tpucl_epoch {
    int64_t epoch; /* from 1 */
    int64_t steps;
    double seconds, examples_per_second; /* training alone */
    double train_loss, train_accuracy;   /* means over the epoch; accuracy -1 when not asked for */
    double eval_loss, eval_accuracy;     /* on the test part; loss -1 when there is none */
    double eval_seconds;
    bool has_eval; /* eval_loss is one: losses may be below 0 */
    /* The configured metrics but accuracy, in their order; of a model with several outputs the loss, accuracy
     * and metrics of each ("box/loss"). NaN when nothing was counted. Names are borrowed from the run. */
    int32_t metric_count;
    const char *const *metric_names;
    double train_metrics[TPUCL_MAX_METRICS], eval_metrics[TPUCL_MAX_METRICS];
} tpucl_epoch;

typedef struct tpucl_progress {
    int64_t step, steps;   /* done, in all */
    int64_t epoch, epochs; /* running (from 1), in all */
    double loss;           /* latest that was read back; NaN before the first */
    double examples_per_second;
} tpucl_progress;

/* Called on the training thread; either may be NULL. */
typedef struct tpucl_run_callbacks {
    void (*progress)(void *user, const tpucl_progress *progress); /* after each loop of steps */
    void (*epoch)(void *user, const tpucl_epoch *epoch);
    void *user;
} tpucl_run_callbacks;

/* Shares of the time of steps; they add up to one. */
typedef struct tpucl_breakdown {
    double input, compute, memory, idle;
    char verdict[256]; /* one sentence */
} tpucl_breakdown;

typedef struct tpucl_run_result {
    int64_t steps;
    int32_t epoch_count;
    const tpucl_epoch *epochs; /* borrowed until the run's next call */
    char params_sha256[65];
    tpucl_breakdown breakdown;
    double first_step_seconds; /* from tpucl_run_create to the end of the first step */
    double build_seconds;      /* of it, spent building kernels */
    bool interrupted;
} tpucl_run_result;

/* Reads, checks (all problems at once), opens data and devices, compiles. TPUCL_INVALID_CONFIG,
 * TPUCL_NOT_FOUND, TPUCL_NO_DEVICE, TPUCL_NOT_EXACT, TPUCL_OUT_OF_DEVICE_MEMORY. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_create(const tpucl_run_options *options,
                                                         tpucl_run **out_run);
TPUCL_API void tpucl_run_destroy(tpucl_run *run);
/* Borrowed from the run. */
TPUCL_API const tpucl_run_info *tpucl_run_get_info(const tpucl_run *run);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_device_info(const tpucl_run *run, int32_t index,
                                                              tpucl_device_info *out_info);

typedef struct tpucl_resumed {
    const char *path; /* of the checkpoint; borrowed from the run */
    int64_t step;
} tpucl_resumed;

/* Before tpucl_run_train: puts the run where a checkpoint was made, so that the rest gives the same parameters to
 * the last bit as if nothing had happened. `path` is one checkpoint (".../step-000000001200"), or NULL for the newest
 * whole one of the run's folder (checkpoint.folder, or checkpoints in output_dir); the log says which were passed
 * over and why, and in which keys the configuration differs. TPUCL_NOT_FOUND when there is none, TPUCL_CORRUPT_DATA,
 * or TPUCL_INVALID_CONFIG with all differences when it is of another training; nothing is changed then. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_resume(tpucl_run *run, const char *path,
                                                         tpucl_resumed *out_resumed);

/* Trains to the end. With an `output_dir` it leaves params.safetensors, config.json and result.json
 * there, and fails before the first step when it could not; checkpoints as the configuration says, the last one of the
 * last step. Stopped by tpucl_run_stop: TPUCL_INTERRUPTED, with the same files of the steps done. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_train(tpucl_run *run,
                                                        const tpucl_run_callbacks *callbacks,
                                                        tpucl_run_result *out_result);
/* "test" (also NULL) or "train"; fills in the eval_ fields, every example counts once.
 * TPUCL_INVALID_CONFIG when there is no test part. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_evaluate(tpucl_run *run, const char *part,
                                                           tpucl_epoch *out_result);
/* From a params.safetensors. Names, shapes and dtypes must be the model's: TPUCL_INVALID_CONFIG with all
 * differences; TPUCL_CORRUPT_DATA for a file that is none. Nothing is changed then. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_load_params(tpucl_run *run, const char *path);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_params_sha256(tpucl_run *run, char out_hex[65]);
/* Results as docs/json.md describes them; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_result_json(tpucl_run *run, char **out_text);

TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_evaluation_json(tpucl_run *run, const char *part,
                                                                  const tpucl_epoch *result,
                                                                  char **out_text);

/* Where the time of a step goes. Every launch of the program is waited for and timed, so the sum is more than a step
 * takes when launches follow each other freely. */
typedef struct tpucl_launch_profile {
    const char *name;    /* "dense_1/dot_general mxu_pairs 14x32"; borrowed from the run */
    const char *kernel;  /* its OpenCL kernel: "mxu_pairs" */
    double runs;         /* per step, over all waves and turns of loops */
    double seconds;      /* per step */
    double flops, bytes; /* per step, as planned: every operand is moved once */
} tpucl_launch_profile;

typedef struct tpucl_profile {
    int64_t steps;           /* that were measured, each way */
    double step_seconds;     /* of a step as it is trained */
    double measured_seconds; /* of a step whose launches are waited for */
    double
        launch_seconds; /* of that, in launches; the rest: feeding, sums across cores, the host */
    int32_t launch_count;
    const tpucl_launch_profile
        *launches; /* in the program's order; borrowed until the run's next call */
} tpucl_profile;

/* Trains a step to warm up, `steps` steps freely and `steps` steps measured; the run's parameters are then those of
 * so many steps. TPUCL_INVALID_ARGUMENT unless 1 <= steps <= 1000000, TPUCL_UNSUPPORTED on the reference
 * interpreter, which has no launches. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_profile(tpucl_run *run, int64_t steps,
                                                          tpucl_profile *out_profile);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_run_profile_json(tpucl_run *run,
                                                               const tpucl_profile *profile,
                                                               char **out_text);

/* Asks a training to end after the step that is running; when none is, the next one ends before its
 * first step. May be called from a signal handler and from any thread. */
TPUCL_API void tpucl_run_stop(tpucl_run *run);

#ifdef __cplusplus
}
#endif
#endif
