/* SPDX-License-Identifier: Apache-2.0
 * Second tier: what a run would take, here and elsewhere, found by compiling alone. May change in a minor version.
 * Everything about time is projected, never measured. */
#ifndef TPUCL_PLAN_H
#define TPUCL_PLAN_H

#include <tpucl/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_plan_options {
    size_t struct_size;
    const char *
        topologies; /* "v2-8,here": names and files with commas, "here" for the device; NULL: the configuration's */
    bool without_device;   /* plans for a common CPU even if there are devices */
    bool without_data;     /* the data that the configuration names are not opened */
    int64_t examples;      /* of an epoch; 0: those of the data */
    double price_per_hour; /* of each topology; 0: no cost */
    void (*progress)(void *user, const char *what, int32_t done, int32_t total); /* may be NULL */
    void *user;
} tpucl_plan_options;

static inline tpucl_plan_options tpucl_plan_options_default(void)
{
    tpucl_plan_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/* One topology. Bytes are those of one core unless they say otherwise. */
typedef struct tpucl_plan_row {
    const char *topology, *precision;
    int32_t cores;
    int32_t micro_batches; /* that a core adds up in a step: `accumulate` */
    int64_t per_core_batch, global_batch;
    uint64_t capacity_bytes; /* HBM; 0: the topology does not say */
    uint64_t here_bytes;     /* with the system's reserve, which is nobody's buffer here */
    uint64_t tpu_bytes;      /* in tiles, with the reserve */
    uint64_t core_bytes; /* here_bytes without it: what a training then allocates, to the byte */
    double gap_share;    /* of the slabs here */
    bool fits;           /* the larger of both views fits */
    const char *refusal; /* NULL when it does */
    /* The largest per-core batches that fit and obey the batch rules, with the step to the next; 0: none does */
    int64_t largest_float32, largest_bfloat16, step_float32, step_bfloat16;
    /* Of the first device here, all its cores together, the evaluation included; 0 without a device */
    const char *device; /* NULL without one */
    int32_t wave_cores;
    uint64_t device_bytes, device_least_bytes, device_limit_bytes;
    uint64_t host_bytes, host_limit_bytes; /* staging and sums; what the host has */
    /* Projected, for this batch; all 0 where the topology has no figures to project with */
    const char *machine_class; /* "tpu": whose efficiency was taken; NULL: nothing is projected */
    double step_seconds, step_low_seconds, step_high_seconds;
    double device_seconds, feed_seconds, sum_seconds; /* of it; side by side or hidden */
    double examples_per_second;
    double epoch_seconds, epoch_low_seconds,
        epoch_high_seconds; /* 0: nobody knows how many examples */
    double epoch_cost;      /* 0 without a price */
    const char *limiter;    /* "products", "memory", "launches", "host link", "all-reduce" */
    double mxu_share;       /* useful part of the array's work; 1 without tiles */
    double peak_share;      /* of the peak */
    int64_t
        ridge_batch; /* per core, from which multiplications and not memory bound the products; 0: never */
    bool recurrent; /* the turns of a loop are most of the time */
} tpucl_plan_row;

/* A layer's part of the device's time, projected. */
typedef struct tpucl_plan_layer {
    const char *name, *limiter; /* name "": the loss, the optimizer */
    double seconds, mxu_share;
} tpucl_plan_layer;

typedef struct tpucl_plan_kind {
    const char *key, *text; /* "activations" */
    uint64_t here_bytes, tpu_bytes;
} tpucl_plan_kind;

typedef struct tpucl_plan_tensor {
    const char *name, *layer, *type, *kind, *note;
    uint64_t here_bytes, tpu_bytes;
    double padding;
} tpucl_plan_tensor;

typedef struct tpucl_plan_report tpucl_plan_report;

/* `run` as for tpucl_run_create; its topology is the first of the options'. A batch that does not fit is no failure of
 * the call. TPUCL_INVALID_CONFIG, TPUCL_NOT_FOUND, TPUCL_OUT_OF_MEMORY. The caller destroys the report, which is
 * read-only. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_plan(const tpucl_run_options *run,
                                                   const tpucl_plan_options *options,
                                                   tpucl_plan_report **out_report);
TPUCL_API void tpucl_plan_report_destroy(tpucl_plan_report *report);
/* All borrowed from the report; past the end `topology`, `key`, `name` and the texts are NULL. */
TPUCL_API tpucl_plan_row tpucl_plan_report_row(const tpucl_plan_report *report, int32_t row);
TPUCL_API tpucl_plan_kind tpucl_plan_report_kind(const tpucl_plan_report *report, int32_t row,
                                                 int32_t index);
/* The largest at the peak, at most ten. */
TPUCL_API tpucl_plan_tensor tpucl_plan_report_tensor(const tpucl_plan_report *report, int32_t row,
                                                     int32_t index);
/* Tensors that tiles more than double. */
TPUCL_API const char *tpucl_plan_report_warning(const tpucl_plan_report *report, int32_t row,
                                                int32_t index);
/* The longest first; `name` is NULL past the end. */
TPUCL_API tpucl_plan_layer tpucl_plan_report_layer(const tpucl_plan_report *report, int32_t row,
                                                   int32_t index);
/* What was assumed: no device, no data. */
TPUCL_API const char *tpucl_plan_report_note(const tpucl_plan_report *report, int32_t index);
/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_plan_report_json(const tpucl_plan_report *report,
                                                               char **out_text);

/* Projections beside what others published: what a projection is worth. */
typedef struct tpucl_published_row {
    const char *model, *topology, *machine_class, *unit, *source;
    int32_t machines;
    bool over_network;    /* the link from the user's machine bounds it, whatever the device does */
    int64_t global_batch; /* 0: in the model's name */
    double published, projected, low, high;
    double factor; /* how far off: the larger by the smaller */
} tpucl_published_row;

typedef struct tpucl_published_summary {
    int32_t rows, in_band;
    double mean_factor, worst_factor; /* geometric mean, largest */
} tpucl_published_summary;

typedef struct tpucl_published_report tpucl_published_report;
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_published(tpucl_published_report **out_report);
TPUCL_API void tpucl_published_report_destroy(tpucl_published_report *report);
TPUCL_API tpucl_published_summary
tpucl_published_report_summary(const tpucl_published_report *report);
/* `model` is NULL past the end. */
TPUCL_API tpucl_published_row tpucl_published_report_row(const tpucl_published_report *report,
                                                         int32_t index);
TPUCL_API TPUCL_MUST_CHECK tpucl_status
tpucl_published_report_json(const tpucl_published_report *report, char **out_text);

/* One array in tiles of 8 x 128: "f32[256,512,128,2]". TPUCL_INVALID_ARGUMENT for what is none. */
typedef struct tpucl_padded_array {
    uint64_t bytes, row_major_bytes,
        best_bytes; /* as it is; in tiles as declared; in its best layout */
    double row_major_padding, best_padding;
    char warning[512]; /* names the dimension when tiles more than double it as declared; else "" */
} tpucl_padded_array;
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_pad_array(const char *type,
                                                        tpucl_padded_array *out_array);

#ifdef __cplusplus
}
#endif
#endif
