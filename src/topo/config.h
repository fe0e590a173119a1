/* SPDX-License-Identifier: Apache-2.0
 * The run configuration. One table (topo/config_table.h) lists every key with its type, default,
 * range and sentence; the reader, --set overrides, help, docs/config.md and
 * configs/schema/run.schema.json all come from it. Read-only after tp_config_resolve: thread-safe.
 */
#ifndef TP_TOPO_CONFIG_H
#define TP_TOPO_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include "core/json.h"
#include "core/status.h"
#include "topo/config_choices.h"
#include "topo/topology.h"

#define TP_CONFIG_LOSS_ID(id, symbol, name, keys) TP_LOSS_##id,
typedef enum tp_config_loss { TP_LOSS_LIST(TP_CONFIG_LOSS_ID) } tp_config_loss;
#undef TP_CONFIG_LOSS_ID
#define TP_CONFIG_OPTIMIZER_ID(id, symbol, name, keys) TP_OPTIMIZER_##id,
typedef enum tp_config_optimizer { TP_OPTIMIZER_LIST(TP_CONFIG_OPTIMIZER_ID) } tp_config_optimizer;
#undef TP_CONFIG_OPTIMIZER_ID
#define TP_CONFIG_SCHEDULE_ID(id, symbol, name, keys) TP_SCHEDULE_##id,
typedef enum tp_config_schedule { TP_SCHEDULE_LIST(TP_CONFIG_SCHEDULE_ID) } tp_config_schedule;
#undef TP_CONFIG_SCHEDULE_ID
typedef enum tp_config_clip { TP_CLIP_AFTER, TP_CLIP_REPLICA } tp_config_clip;
typedef enum tp_config_dtype { TP_CONFIG_FLOAT32, TP_CONFIG_BFLOAT16 } tp_config_dtype;
typedef enum tp_config_rounding { TP_ROUNDING_NEAREST, TP_ROUNDING_STOCHASTIC } tp_config_rounding;
typedef enum tp_config_reduction { TP_REDUCTION_MEAN, TP_REDUCTION_SUM } tp_config_reduction;
typedef enum tp_config_dataset {
    TP_DATASET_FASHION_MNIST,
    TP_DATASET_IDX,
    TP_DATASET_NPY,
    TP_DATASET_RECORDS,
    TP_DATASET_IMAGES
} tp_config_dataset;
typedef enum tp_config_augment {
    TP_CONFIG_AUGMENT_NONE,
    TP_CONFIG_AUGMENT_HOST,
    TP_CONFIG_AUGMENT_DEVICE
} tp_config_augment;
typedef enum tp_config_damage { TP_DAMAGE_STOP, TP_DAMAGE_SKIP } tp_config_damage;
typedef enum tp_config_resize {
    TP_CONFIG_RESIZE_NONE,
    TP_CONFIG_RESIZE_STRETCH,
    TP_CONFIG_RESIZE_CROP,
    TP_CONFIG_RESIZE_PAD,
    TP_CONFIG_RESIZE_RANDOM_AREA
} tp_config_resize;

typedef enum tp_config_best { TP_BEST_AUTO, TP_BEST_MIN, TP_BEST_MAX } tp_config_best;

/* Lists of names and of numbers: borrowed from the configuration. */
typedef struct tp_config_ints {
    const int64_t *items;
    size_t count;
} tp_config_ints;
typedef struct tp_config_strings {
    const char *const *items;
    size_t count;
} tp_config_strings;
typedef struct tp_config_numbers {
    const double *items;
    size_t count;
} tp_config_numbers;

/* Fields of the keys that config_choices.h lists. Numbers that are not given and have no default: NaN. */
#define TP_CONFIG_NUMBER_FIELD(field, low, high, open, meaning) double field;
#define TP_CONFIG_FLAG_FIELD(field, meaning) bool field;
#define TP_CONFIG_COUNT_FIELD(field, low, high, meaning) int64_t field;

/* Files of arrays: one without a name (names[0] is NULL), or several by name. count 0: none. */
typedef struct tp_config_files {
    const char *const *names;
    const char *const *paths;
    size_t count;
} tp_config_files;

/* The loss of one output of a model that has several. NaN: not given. */
typedef struct tp_config_output_loss {
    const char *output;
    int32_t name; /* tp_config_loss */
    bool from_logits;
#define TP_CONFIG_LOSS_NUMBER(field, low, high, open, meaning) double field;
#define TP_CONFIG_LOSS_FLAG(field, meaning) bool field;
    TP_LOSS_KEYS(TP_CONFIG_LOSS_NUMBER, TP_CONFIG_LOSS_FLAG)
#undef TP_CONFIG_LOSS_NUMBER
#undef TP_CONFIG_LOSS_FLAG
    double weight;
    const char *expression, *mask; /* "": none */
} tp_config_output_loss;
typedef struct tp_config_losses {
    const tp_config_output_loss *items;
    size_t count;
} tp_config_losses;

/* A metric of all outputs (output NULL), or of one. */
#define TP_CONFIG_METRIC_ID(id, symbol, name) TP_CONFIG_METRIC_##id,
typedef enum tp_config_metric_name { TP_METRIC_LIST(TP_CONFIG_METRIC_ID) } tp_config_metric_name;
#undef TP_CONFIG_METRIC_ID
typedef struct tp_config_metric {
    const char *output, *label;      /* label: as it is reported */
    int32_t name;                    /* tp_config_metric_name */
    const char *expression, *weight; /* NULL: none */
    const char *path;                /* of the key, "metrics[1]" or "metrics.box[0]" */
} tp_config_metric;
typedef struct tp_config_metrics {
    const tp_config_metric *items;
    size_t count;
    bool is_by_output; /* how it was written */
} tp_config_metrics;

typedef struct tp_config {
    const char *name;
    const char *topology;       /* built-in name or path */
    const tp_json *model;       /* raw object, read by the model layer; never NULL */
    tp_config_ints input_shape; /* of one example; count 0: taken from the data */
    struct {
        int32_t name; /* tp_config_loss */
        bool from_logits;
        TP_LOSS_KEYS(TP_CONFIG_NUMBER_FIELD, TP_CONFIG_FLAG_FIELD)
        tp_config_numbers class_weight; /* of class 0, 1, ...; count 0: all 1 */
        const char *expression, *mask;  /* "": none */
    } loss;
    tp_config_losses losses; /* of outputs that `loss` is not for */
    tp_config_metrics metrics;
    struct {
        int64_t k, num_thresholds;
        double threshold; /* NaN: not given */
        int32_t curve;    /* 0: ROC, 1: PR */
        int32_t average;  /* macro, micro, weighted */
        tp_config_numbers target_class_ids;
    } metric_options;
    struct {
        int32_t name; /* tp_config_optimizer */
        TP_OPTIMIZER_KEYS(TP_CONFIG_NUMBER_FIELD, TP_CONFIG_FLAG_FIELD)
        tp_config_strings exclude_from_weight_decay;
        double clipnorm, clipvalue, global_clipnorm; /* NaN: not given */
        int32_t clip;                                /* tp_config_clip */
        bool use_ema;
        double ema_momentum;
        int64_t ema_overwrite_frequency; /* steps; 0: at the end only */
        struct {
            int32_t name; /* tp_config_schedule */
            TP_SCHEDULE_KEYS(TP_CONFIG_NUMBER_FIELD, TP_CONFIG_FLAG_FIELD, TP_CONFIG_COUNT_FIELD)
            tp_config_numbers boundaries, values;
            int64_t warmup_steps;
            double warmup_target; /* NaN: not given */
        } schedule;
    } optimizer;
    struct {
        int32_t reduction;     /* tp_config_reduction */
        tp_config_ints groups; /* core ids, group after group; count 0: one group of all cores */
        int64_t group_size;    /* cores in each group; 0 when there are none */
    } cross_shard;
    struct {
        int32_t policy;  /* tp_precision_policy; -1 until resolved when not given */
        int32_t weights; /* tp_config_dtype; -1 until resolved: the policy's */
        int32_t first_moment, second_moment; /* tp_config_dtype, of the optimizer's state */
        int32_t gradients;                   /* tp_config_dtype, as cores send them to each other */
        int32_t weights_rounding;            /* tp_config_rounding, of bf16 weights */
    } precision;
    int32_t matmul_precision; /* tp_matmul_precision; -1 until resolved when not given */
    int32_t math;             /* tp_math, likewise */
    int32_t batch;        /* 0: "auto", until the batches below are chosen; -1: they are given */
    int64_t global_batch; /* 0 until resolved when not given; afterwards per_core_batch * cores */
    int64_t per_core_batch;
    int64_t accumulate; /* micro-batches of a step on each core */
    struct {
        int32_t dataset; /* tp_config_dataset */
        const char *folder;
        struct {
            tp_config_files inputs, labels;
            const char *weights; /* of examples; "": all 1 */
        } train, test;
        double scale,
            offset; /* input = value * scale + offset; scale 0: 1/255 for bytes, 1 for floats */
        int32_t input_dtype; /* tp_config_dtype, of floats as they are fed */
        const char *preset;  /* of records' features; "": `features` */
        struct {
            tp_config_files inputs, labels; /* what a field is made of, by its name */
        } features;
        int32_t on_damage; /* tp_config_damage */
        int64_t cycle_length, block_length;
        int64_t resident_bytes, cache_bytes;
        struct {
            tp_config_ints size; /* height, width; count 0: as the first record's */
            int64_t channels;    /* 0: likewise */
            int32_t resize;      /* tp_config_resize */
            bool antialias, upright;
            double least_area;
        } image;
        struct {
            int32_t on;          /* tp_config_augment */
            tp_config_ints crop; /* height, width; count 0: the image's */
            int64_t pad;
            int32_t flip; /* 0: none, 1: along x, 2: along y, 3: both */
            double contrast, brightness, saturation, noise;
        } augment;
        bool shuffle, repeat, drop_remainder;
        int64_t shuffle_buffer; /* examples; 0: the whole set */
        int64_t prefetch;       /* batches; 0: found */
        int64_t parallelism;    /* threads; 0: found */
        bool enforce_link;
        double validation_split;
    } data;
    int64_t epochs;
    int64_t steps; /* 0: as many as `epochs` needs */
    int64_t steps_per_loop;
    int64_t seed;
    const char *output_dir; /* "": nothing is written */
    int64_t log_every;      /* steps */
    const char *log_dir;    /* of TensorBoard's event files; "": logs in output_dir, or none */
    struct {
        const char *folder; /* "": "checkpoints" in output_dir, or none without one */
        int64_t every;      /* steps; 0: at the end of each epoch */
        int64_t keep;       /* newest ones */
        const char *best;   /* a name of the results; "": none is kept for being the best */
        int32_t best_mode;  /* tp_config_best */
    } checkpoint;
    int64_t wave_cores; /* 0: as many as memory allows */

    const char *file;              /* for messages */
    struct tp_config_store *store; /* documents and strings; which keys were given */
} tp_config;

/* Reads a file (or `text`, called `name` in messages), then applies `overrides` ("epochs=3",
 * "optimizer.learning_rate=1e-2"; the value is JSON, or a string when it is not JSON). All problems
 * are reported at once (TPUCL_INVALID_CONFIG). */
tpucl_status tp_config_read_file(const char *path, const char *const *overrides,
                                 size_t override_count, tp_config **out_config) TPUCL_MUST_CHECK;
tpucl_status tp_config_parse(const char *text, size_t length, const char *name,
                             const char *const *overrides, size_t override_count,
                             tp_config **out_config) TPUCL_MUST_CHECK;
void tp_config_destroy(tp_config *config);

/* Whether the file or an override gave this key ("optimizer.momentum"). */
bool tp_config_given(const tp_config *config, const char *path);

/* Fills what the topology (precision, math, batch) and the loss (metrics) decide and checks what
 * depends on it: batch against cores, groups, wave size. All problems at once. */
tpucl_status tp_config_resolve(tp_config *config, const tp_topology *topology) TPUCL_MUST_CHECK;

/* Batch per core and in all from what the configuration gives (either, both, or neither: then
 * `default_per_core`). Refused, naming both numbers and the nearest valid ones, when they do not
 * fit. */
tpucl_status tp_config_resolve_batch(const tp_config *config, int32_t cores,
                                     int64_t default_per_core, int64_t *out_per_core,
                                     int64_t *out_global) TPUCL_MUST_CHECK;

/* The whole configuration with its defaults, keys in the table's order (tp_free). */
tpucl_status tp_config_to_json(const tp_config *config, char **out_text) TPUCL_MUST_CHECK;
/* Of the compact form of that text without the keys that change no result. */
tpucl_status tp_config_sha256(const tp_config *config, char out_hex[65]) TPUCL_MUST_CHECK;

/* Texts generated from the table (tp_free). */
tpucl_status tp_config_schema(char **out_text) TPUCL_MUST_CHECK;   /* JSON Schema 2020-12 */
tpucl_status tp_config_markdown(char **out_text) TPUCL_MUST_CHECK; /* the table of docs/config.md */
tpucl_status tp_config_help(char **out_text) TPUCL_MUST_CHECK;     /* for a terminal */

#endif
