/* SPDX-License-Identifier: Apache-2.0
 * Second tier: tuning how products are computed on a device, and why they are computed as they are.
 * Records change the time of a run, never a bit of it (docs/tuning.md). May change in a minor version. */
#ifndef TPUCL_TUNE_H
#define TPUCL_TUNE_H

#include <tpucl/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_tune_progress {
    int32_t product, products; /* which of how many, from 0 */
    double share;              /* of this one that is done, 0 to 1, an estimate */
    const char *name;          /* of the product */
    double best_ratio;         /* the fastest so far: times as fast as without records */
} tpucl_tune_progress;

typedef struct tpucl_tune_options {
    size_t struct_size;
    const char *device;           /* selector; default as everywhere */
    const tpucl_run_options *run; /* the products of this training are tuned; or: */
    const char *problems_file;    /* those of a file of problem lines */
    const char *folder;           /* of the records; default where runs look for them */
    double seconds;               /* stop after about so long; default when all is done */
    int32_t rounds;               /* of the last comparison; default 7 */
    bool again;                   /* what has a record of this device, driver and version, too */
    bool cpu_time; /* count the processor's time, not the clock's: for busy machines */
    void (*progress)(void *user, const tpucl_tune_progress *progress); /* may be NULL */
    bool (*should_stop)(void *user); /* asked often; may be NULL */
    void *user;
} tpucl_tune_options;

static inline tpucl_tune_options tpucl_tune_options_default(void)
{
    tpucl_tune_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/* All texts are borrowed from the report. */
typedef struct tpucl_tune_product {
    const char *name;
    const char *state; /* "better", "default" (nothing is), "known", "left" (not done), "failed" */
    int64_t uses;      /* how often it is in a step, or in the file */
    const char *best, *heuristic; /* settings; NULL when there is no record */
    double ratio, spread;         /* of the two times, over `rounds` rounds in alternation */
    double best_seconds, default_seconds;
    int32_t rounds, timed, wrong; /* settings that were timed; that had other bits and were not */
    const char *text;             /* why it failed, or "" */
} tpucl_tune_product;

typedef struct tpucl_tune_report tpucl_tune_report;

/* Each record is on disk before the next product begins. What is stopped or out of time is no failure of the
 * call. TPUCL_NO_DEVICE, TPUCL_INVALID_CONFIG, TPUCL_INVALID_ARGUMENT (a malformed problem line, with all of
 * them in the message), TPUCL_IO_ERROR. The caller destroys the report, which is read-only. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_tune(const tpucl_tune_options *options,
                                                   tpucl_tune_report **out_report);
TPUCL_API void tpucl_tune_report_destroy(tpucl_tune_report *report);
/* `name` is NULL past the end. */
TPUCL_API tpucl_tune_product tpucl_tune_report_product(const tpucl_tune_report *report,
                                                       int32_t index);
/* Settings with other bits, one sentence each; NULL past the end. */
TPUCL_API const char *tpucl_tune_report_wrong(const tpucl_tune_report *report, int32_t index);
TPUCL_API const char *tpucl_tune_report_file(const tpucl_tune_report *report);
/* Whether should_stop ended it. */
TPUCL_API bool tpucl_tune_report_stopped(const tpucl_tune_report *report);
/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_tune_report_json(const tpucl_tune_report *report,
                                                               char **out_text);

/* ---- why ---- */
/* Which kernel computes a product on a device, with which settings, and why: what each place for tuning records
 * says of it, and with which sentence each variant declines. `product`: "dot_general:MxNxK[,OPTION=VALUE]...",
 * "convolution:IMAGESxHxWxCxFILTERS,KHxKW[,...]" (also convolution_input_grad, convolution_filter_grad), or a
 * problem line (docs/tuning.md). Nothing is run. Both texts are the caller's (tpucl_free); JSON as
 * docs/json.md describes it. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_why(const char *device, const char *product,
                                                  char **out_text, char **out_json);

#ifdef __cplusplus
}
#endif
#endif
