/* SPDX-License-Identifier: Apache-2.0
 * Second tier: what the command line tool is made of besides run.h. May change in a minor version. */
#ifndef TPUCL_TOOLS_H
#define TPUCL_TOOLS_H

#include <tpucl/run.h>
#include <tpucl/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---- */
/* Every OpenCL device there is, usable or not. Thread-safe to read. */
typedef struct tpucl_device_list tpucl_device_list;

/* Succeeds with an empty list when there is no loader, no driver or no device; the notes say so. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_device_list_create(tpucl_device_list **out_list);
TPUCL_API void tpucl_device_list_destroy(tpucl_device_list *list);
TPUCL_API int32_t tpucl_device_list_count(const tpucl_device_list *list);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_device_list_info(const tpucl_device_list *list,
                                                               int32_t index,
                                                               tpucl_device_info *out_info);
/* The place in the list of the one device that a selector means. TPUCL_NO_DEVICE with a list of
 * what there is. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_device_list_select(const tpucl_device_list *list,
                                                                 const char *selector,
                                                                 int32_t *out_index);
/* What was skipped and why, one sentence each; NULL past the end. Borrowed from the list. */
TPUCL_API const char *tpucl_device_list_note(const tpucl_device_list *list, int32_t index);

/* The list as docs/json.md describes it; `only` is the index of the one device to show, or -1.
 * Caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_device_list_json(const tpucl_device_list *list,
                                                               int32_t only, char **out_text);

/* ---- verify ---- */
/* Whether a device reproduces the bits of the numeric contract. */
typedef struct tpucl_verify_check {
    const char *name;    /* of the case: a product, a graph */
    const char *variant; /* the kernel that was checked */
    const char *status;  /* "passed", "failed", "skipped" */
    const char *reason;  /* why it failed or was skipped, or NULL */
    double seconds;
} tpucl_verify_check;

typedef struct tpucl_verify_options {
    size_t struct_size;
    const char *device;  /* selector; default as everywhere */
    bool quick;          /* leave out the cases that take long */
    const char *variant; /* only this kernel variant; default all */
    /* Called after each check; may be NULL. */
    void (*progress)(void *user, const tpucl_verify_check *check, int32_t done, int32_t total);
    void *user;
} tpucl_verify_options;

static inline tpucl_verify_options tpucl_verify_options_default(void)
{
    tpucl_verify_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

typedef struct tpucl_verify_summary {
    tpucl_device_info device;
    int32_t checks, passed, failed, skipped;
    bool exact; /* every kind of product has a variant that is right here, and all graphs agree */
} tpucl_verify_summary;

typedef struct tpucl_verify_report tpucl_verify_report;

/* Failing checks are no failure of the call. TPUCL_NO_DEVICE; TPUCL_INVALID_ARGUMENT for a variant that does
 * not exist. The caller destroys the report, which is read-only and so thread-safe. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_verify(const tpucl_verify_options *options,
                                                     tpucl_verify_report **out_report);
TPUCL_API void tpucl_verify_report_destroy(tpucl_verify_report *report);
TPUCL_API const tpucl_verify_summary *
tpucl_verify_report_summary(const tpucl_verify_report *report);
/* Borrowed from the report; `name` is NULL past the end. */
TPUCL_API tpucl_verify_check tpucl_verify_report_check(const tpucl_verify_report *report,
                                                       int32_t index);
/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_verify_report_json(const tpucl_verify_report *report,
                                                                 char **out_text);

/* ---- bench ---- */
typedef struct tpucl_bench_row {
    const char *suite, *name, *side; /* name: of the case; sides of one case are compared */
    double seconds, spread;          /* median, and (slowest - fastest) / median */
    double value;
    const char *unit;
    bool projected;   /* computed from a topology's figures, not measured */
    const char *note; /* or NULL */
    double share;     /* of the measured roofline; 0: not compared with it */
} tpucl_bench_row;

typedef struct tpucl_bench_ratio {
    const char *suite, *name;
    double value;
} tpucl_bench_ratio;

typedef struct tpucl_bench_options {
    size_t struct_size;
    const char *device; /* selector; default as everywhere */
    const char *suite;  /* only this one; default: roofline, gemm and train */
    bool quick;         /* fewer sizes and repeats: to see that it works, not to quote */
    /* Called as work goes on; may be NULL. */
    void (*progress)(void *user, const char *what, int32_t done, int32_t total);
    void *user;
} tpucl_bench_options;

static inline tpucl_bench_options tpucl_bench_options_default(void)
{
    tpucl_bench_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

typedef struct tpucl_bench_report tpucl_bench_report;

/* TPUCL_NO_DEVICE; TPUCL_INVALID_ARGUMENT for a suite that does not exist; TPUCL_NOT_EXACT when a side's
 * result was wrong. The caller destroys the report, which is read-only and so thread-safe. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_bench(const tpucl_bench_options *options,
                                                    tpucl_bench_report **out_report);
TPUCL_API void tpucl_bench_report_destroy(tpucl_bench_report *report);
/* Processor, device and driver on one line, without which no figure means anything. Borrowed. */
TPUCL_API const char *tpucl_bench_report_machine(const tpucl_bench_report *report);
/* All suites' rows and ratios one after the other; `name` is NULL past the end. Borrowed. */
TPUCL_API tpucl_bench_row tpucl_bench_report_row(const tpucl_bench_report *report, int32_t index);
TPUCL_API tpucl_bench_ratio tpucl_bench_report_ratio(const tpucl_bench_report *report,
                                                     int32_t index);
/* Which side is better in a suite and why, or NULL. */
TPUCL_API const char *tpucl_bench_report_sentence(const tpucl_bench_report *report,
                                                  const char *suite);
/* What was corrected or left out; NULL past the end. */
TPUCL_API const char *tpucl_bench_report_note(const tpucl_bench_report *report, int32_t index);
/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_bench_report_json(const tpucl_bench_report *report,
                                                                char **out_text);
/* Names of the suites; NULL past the end. */
TPUCL_API const char *tpucl_bench_suite_name(int32_t index);

/* ---- check ---- */
/* What a real TPU would say to a run, found without running it. All texts are borrowed from the report. */
typedef struct tpucl_finding {
    const char *severity; /* "error": it cannot run; "warning"; "note" */
    const char *rule;     /* stable name, for scripts: "mxu-padding" */
    const char *where;    /* layer, tensor or configuration key; "" for the whole run */
    const char *text;     /* one sentence with the numbers */
    const char *remedy;   /* what to do, or "" */
} tpucl_finding;

typedef struct tpucl_check_summary {
    int32_t errors, warnings, notes;
    const char *name, *topology; /* of the run; "" when the configuration could not be read */
    int32_t cores;
    int64_t per_core_batch, global_batch;
    double mxu_share; /* useful part of the step's MXU work, 0 to 1; 0 when there is none */
    double hbm_share; /* the same of the bytes of its arrays, in their best layouts */
    double flops_per_core_step; /* of its products */
} tpucl_check_summary;

/* A variable: what every device keeps between steps, once for each replica group. */
typedef struct tpucl_check_state {
    const char *name;
    /* "weight", "fixed" (frozen weights, moving statistics), "first_moment", "second_moment", "average" (of
     * weights), "scalar" (of the optimizer) */
    const char *kind;
    const char *of; /* the weight whose state it is, or "" */
    const char *dtype, *shape;
    int64_t elements, bytes;
} tpucl_check_state;

typedef struct tpucl_check_report tpucl_check_report;

/* Reads configuration, model and data, builds the training step and looks at it; no device is used. A run
 * that is refused is no failure of the call: its problems are findings of severity "error".
 * TPUCL_OUT_OF_MEMORY, TPUCL_INVALID_ARGUMENT. The caller destroys the report, which is read-only. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_check(const tpucl_run_options *options,
                                                    tpucl_check_report **out_report);
TPUCL_API void tpucl_check_report_destroy(tpucl_check_report *report);
TPUCL_API const tpucl_check_summary *tpucl_check_report_summary(const tpucl_check_report *report);
/* Errors first; `text` is NULL past the end. */
TPUCL_API tpucl_finding tpucl_check_report_finding(const tpucl_check_report *report, int32_t index);
/* The kinds, in the order in which they are listed; NULL past the end. Static. */
TPUCL_API const char *tpucl_check_state_kind(int32_t index);
/* In the order of the model, then of the optimizer; `name` is NULL past the end. */
TPUCL_API tpucl_check_state tpucl_check_report_state(const tpucl_check_report *report,
                                                     int32_t index);
/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_check_report_json(const tpucl_check_report *report,
                                                                char **out_text);

/* ---- import ---- */
/* A model that Keras wrote, as a run configuration and parameters (docs/keras.md). */
typedef struct tpucl_import_options {
    size_t struct_size;
    const char *model;   /* .keras, .h5, a folder, or what to_json() wrote */
    const char *weights; /* where the weights are when not there; default there */
} tpucl_import_options;

static inline tpucl_import_options tpucl_import_options_default(void)
{
    tpucl_import_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

typedef struct tpucl_import_layer {
    const char *name;   /* of the layer here */
    const char *type;   /* Keras' class */
    tpucl_shape output; /* of one example */
    int64_t params;
    const char *source; /* where its weights are in the file; "" when there are none */
} tpucl_import_layer;

typedef struct tpucl_import_summary {
    const char *name, *keras_version, *precision;
    int32_t layers, weights; /* weights: tensors that were read */
    int64_t params;
    int32_t errors, notes;
} tpucl_import_summary;

typedef struct tpucl_import tpucl_import;

/* What has no equal here is no failure of the call: it is a finding of severity "error", all of them at once.
 * TPUCL_NOT_FOUND, TPUCL_CORRUPT_DATA, TPUCL_INVALID_CONFIG, TPUCL_UNSUPPORTED (no file of Keras, or a build
 * without libzip or libhdf5). The caller destroys the import, which is read-only. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_import_create(const tpucl_import_options *options,
                                                            tpucl_import **out_import);
TPUCL_API void tpucl_import_destroy(tpucl_import *import);
/* Borrowed from the import, like all below. */
TPUCL_API const tpucl_import_summary *tpucl_import_get_summary(const tpucl_import *import);
/* `name` is NULL past the end. */
TPUCL_API tpucl_import_layer tpucl_import_layer_at(const tpucl_import *import, int32_t index);
/* Errors first; `text` is NULL past the end. */
TPUCL_API tpucl_finding tpucl_import_finding(const tpucl_import *import, int32_t index);
/* The run configuration as text; NULL with errors. */
TPUCL_API const char *tpucl_import_config(const tpucl_import *import);
/* run.json and, when there are weights, params.safetensors; the folder is made. TPUCL_INVALID_CONFIG with errors. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_import_save(const tpucl_import *import,
                                                          const char *folder);
/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_import_json(const tpucl_import *import,
                                                          char **out_text);

/* tpucl_check of a model that Keras wrote: what of it cannot be taken over, with what a TPU would do about it, and what
 * the rules find in its training step. Of `options` the overrides count; without one of "data" the model is looked at
 * without data, and a loss or an optimizer that neither the file nor an override names is stood in for. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_check_keras(const tpucl_import_options *model,
                                                          const tpucl_run_options *options,
                                                          tpucl_check_report **out_report);

/* ---- export ---- */
/* The model of a run configuration with its parameters (params.safetensors of a training or an import) as a file
 * that Keras 3 loads: .keras, or weights alone when `path` ends in .weights.h5. TPUCL_INVALID_CONFIG when they do
 * not fit together, TPUCL_UNSUPPORTED for another ending or a build without libzip or libhdf5. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_export(const char *config_file,
                                                     const char *params_file, const char *path);

/* ---- what there is ---- */
/* Built-in topologies in the order of their table; NULL past the end. */
TPUCL_API const char *tpucl_topology_name(int32_t index);
/* Every key of a run configuration for a terminal / as JSON Schema; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_config_help(char **out_text);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_config_schema(char **out_text);

typedef struct tpucl_environment_variable {
    const char *name, *value, *meaning; /* static texts */
} tpucl_environment_variable;
/* The variables that the library reads; `name` is NULL past the end. */
TPUCL_API tpucl_environment_variable tpucl_environment_at(int32_t index);

/* ---- files ---- */
/* Writes aside, syncs, renames: readers see the old file or the whole new one. What is there and is
 * no regular file (a pipe, a terminal) is written to directly. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_file_write(const char *path, const void *bytes,
                                                         size_t byte_count);
/* Whether tpucl_file_write could succeed there, found out without leaving anything behind: for
 * asking before long work instead of failing after it. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_file_can_write(const char *path);

#ifdef __cplusplus
}
#endif
#endif
