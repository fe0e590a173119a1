/* SPDX-License-Identifier: Apache-2.0
 * Evaluation: forward only over a whole part, every example once. */
#include <string.h>
#include "core/clock.h"
#include "train/session_internal.h"

enum { MAX_LAG = 16 };

static tpucl_status run_part(tp_session *session, tp_pipeline *pipeline, const tp_source *source,
                             tp_metric_sums *sums, int64_t *out_examples)
{
    uint64_t tickets[MAX_LAG];
    int64_t submitted = 0, read = 0;
    const tp_batch *batch = NULL;
    tpucl_status status;
    while ((status = tp_pipeline_next(pipeline, &batch)) == TPUCL_OK) {
        tp_feed *feed = NULL;
        *out_examples += batch->valid;
        if (submitted - read == MAX_LAG)
            TP_TRY(tp_metrics_add(session, &session->evaluate, tickets[read++ % MAX_LAG], sums));
        TP_TRY(tp_loaded_acquire(session->evaluate.loaded, &feed));
        tp_session_fill_feed(session, session->evaluate.programs[0], source, batch->arrays,
                             batch->valid, feed);
        TP_TRY(
            tp_loaded_submit(session->evaluate.loaded, feed, 0, &tickets[submitted++ % MAX_LAG]));
    }
    if (status != TPUCL_END_OF_DATA) return status;
    while (read < submitted)
        TP_TRY(tp_metrics_add(session, &session->evaluate, tickets[read++ % MAX_LAG], sums));
    return TPUCL_OK;
}

tpucl_status tp_session_evaluate(tp_session *session, const char *part,
                                 tp_session_epoch *out_result)
{
    bool is_test = strcmp(part, "test") == 0;
    if (!is_test && strcmp(part, "train") != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "part '%s'; expected 'train' or 'test'", part);
    if (is_test && !session->test_count)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "this configuration has no test data; set data.test or "
                       "data.validation_split");
    if (session->reference)
        return TP_FAIL(TPUCL_UNSUPPORTED, "the reference interpreter only trains");
    const tp_source *source =
        is_test && session->test_source ? session->test_source : session->train_source;
    TP_TRY(tp_session_need_evaluate(session));
    tp_pipeline_options options = {.batch = session->config->global_batch,
                                   .first = is_test ? session->test_first : session->train_first,
                                   .count = is_test ? session->test_count : session->train_count,
                                   .prefetch = (int32_t)session->config->data.prefetch,
                                   .threads = (int32_t)session->config->data.parallelism,
                                   .epochs = 1};
    tp_pipeline *pipeline = NULL;
    tp_metric_sums sums = tp_metrics_begin(session, session->evaluate_values);
    int64_t examples = 0;
    uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(tp_pipeline_create(source, &options, &pipeline));
    tpucl_status status = run_part(session, pipeline, source, &sums, &examples);
    tp_pipeline_destroy(pipeline);
    TP_TRY(status);
    *out_result = (tp_session_epoch){.epoch = (int64_t)session->epochs.count,
                                     .examples = examples,
                                     .seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns),
                                     .train_loss = tp_metrics_loss(&sums),
                                     .train_accuracy = tp_metrics_accuracy(session, &sums)};
    tp_metrics_finish(session, &sums, out_result->train_metrics);
    return TPUCL_OK;
}
