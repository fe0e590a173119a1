/* SPDX-License-Identifier: Apache-2.0
 * The training loop. Steps are enqueued ahead; what they returned is read a loop of steps later, so that
 * reading losses never stalls the devices.
 */
#include <math.h>
#include <string.h>
#include "core/clock.h"
#include "core/log.h"
#include "train/event_log.h"
#include "train/saver.h"
#include "train/session_internal.h"

enum { MAX_LAG = 64 }; /* results that the executor keeps */

typedef struct loop {
    tp_session *session;
    const tp_session_callbacks *callbacks;
    uint64_t tickets[MAX_LAG]; /* submitted and not read yet, a ring */
    int64_t submitted, read;
    tp_metric_sums latest;
    tp_saver *saver;                      /* NULL: no checkpoints */
    tp_event_log *log;                    /* NULL: none */
    uint64_t epoch_begin_ns, excluded_ns; /* excluded: evaluation */
    int64_t total_examples;
    uint64_t begin_ns;
    uint64_t input_ns, fill_ns, read_ns; /* read_ns: until a step's results were there */
    int64_t first_measured;       /* submitted before times counted: a first step builds kernels */
    tp_loaded_times times_before; /* of an earlier call */
    bool has_warned;
} loop;

static tpucl_status read_one(loop *l)
{
    tp_metric_sums step = {
        .values = l->session->running.sums.values}; /* metrics are of whole epochs only */
    const uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(tp_metrics_add(l->session, &l->session->train, l->tickets[l->read % MAX_LAG], &step));
    l->read_ns += tp_clock_now_ns() - begin_ns;
    l->read++;
    tp_metrics_add_sums(&l->session->running.sums, &step);
    l->latest = step;
    int64_t number = l->session->steps_done - l->submitted + l->read; /* of this step, from 1 */
    if (number % l->session->config->log_every == 0)
        TP_LOG_INFO("train", "step %lld: loss %.6g", (long long)number, tp_metrics_loss(&step));
    tp_event_log_step(l->log, number, tp_metrics_loss(&step));
    if (!isfinite(step.loss) && !l->has_warned) {
        l->has_warned = true;
        TP_LOG_WARNING("train",
                       "the loss of step %lld is %s: the training has diverged; try a "
                       "smaller learning rate or float32, and look for inputs that are no numbers",
                       (long long)number, isnan(step.loss) ? "not a number" : "infinite");
    }
    return TPUCL_OK;
}

static tpucl_status read_up_to(loop *l, int64_t count)
{
    while (l->read < count)
        TP_TRY(read_one(l));
    return TPUCL_OK;
}

/* Times and rates are those of the steps from here on. */
static void measure_from_now(loop *l)
{
    tp_loaded_get_times(l->session->train.loaded, &l->times_before);
    l->input_ns = l->fill_ns = l->read_ns = 0;
    l->first_measured = l->submitted;
    l->total_examples = 0;
    l->excluded_ns = 0;
    l->begin_ns = tp_clock_now_ns();
}

static tpucl_status submit_batch(loop *l, const tp_batch *batch)
{
    tp_session *session = l->session;
    tp_feed *feed = NULL;
    if (l->submitted - l->read >= MAX_LAG) TP_TRY(read_one(l));
    TP_TRY(tp_loaded_acquire(session->train.loaded, &feed));
    uint64_t begin_ns = tp_clock_now_ns();
    tp_session_fill_feed(session, session->train.programs[0], session->train_source, batch->arrays,
                         batch->valid, feed);
    l->fill_ns += tp_clock_now_ns() - begin_ns;
    TP_TRY(tp_loaded_submit(session->train.loaded, feed, (uint32_t)session->steps_done,
                            &l->tickets[l->submitted % MAX_LAG]));
    l->submitted++;
    session->running.steps++;
    session->running.examples += batch->valid;
    l->total_examples += batch->valid;
    session->steps_done++;
    if (session->first_step_seconds == 0) {
        TP_TRY(read_up_to(l, 1));
        session->startup.first_step = tp_session_lap(session);
        session->first_step_seconds = 1e-9 * (double)(session->lap_ns - session->created_ns);
        measure_from_now(l);
    }
    return TPUCL_OK;
}

static void report_progress(loop *l)
{
    const tp_session *session = l->session;
    if (!l->callbacks || !l->callbacks->progress) return;
    double seconds = 1e-9 * (double)(tp_clock_now_ns() - l->begin_ns - l->excluded_ns);
    tp_session_progress progress = {.step = session->steps_done,
                                    .steps = session->steps_total,
                                    .epoch = tp_session_epoch_of(session, session->steps_done),
                                    .epochs = tp_session_epoch_of(session, session->steps_total),
                                    .loss = tp_metrics_loss(&l->latest),
                                    .examples_per_second =
                                        seconds > 0 ? (double)l->total_examples / seconds : 0};
    l->callbacks->progress(l->callbacks->user, &progress);
}

static void add_breakdown(loop *l, uint64_t total_ns)
{
    tp_loaded_times times;
    const tp_loaded_times *before = &l->times_before;
    tp_loaded_get_times(l->session->train.loaded, &times);
    /* for the devices, with a step still to be fed */
    uint64_t waited_ns = times.wait_ns - before->wait_ns;
    uint64_t enqueue_ns = times.enqueue_ns - before->enqueue_ns;
    uint64_t reduce_ns = times.reduce_ns - before->reduce_ns;
    const int64_t steps = l->submitted - l->first_measured;
    if (steps > 0)
        tp_breakdown_add(&l->session->breakdown, (uint64_t)steps, total_ns, l->input_ns,
                         waited_ns + enqueue_ns + l->read_ns - reduce_ns, l->fill_ns + reduce_ns);
}

bool tp_session_is_epoch_due(const tp_session *session)
{
    return session->running.steps > 0 && session->steps_done % session->steps_per_epoch == 0 &&
           !atomic_load(&session->is_stopped);
}

void tp_session_begin_training(tp_session *session)
{
    if (session->running.is_recorded)
        session->epochs.count--; /* its record was not the last word */
    session->running.is_recorded = false;
    if (session->running.steps == 0)
        session->running.sums = tp_metrics_begin(session, session->train_values);
}

tpucl_status tp_session_record_epoch(tp_session *session, tp_session_epoch *epoch, bool is_ended)
{
    const tp_session_running *running = &session->running;
    epoch->epoch = (int64_t)session->epochs.count + 1;
    epoch->steps = running->steps;
    epoch->examples = running->examples;
    epoch->train_loss = tp_metrics_loss(&running->sums);
    epoch->train_accuracy = tp_metrics_accuracy(session, &running->sums);
    tp_metrics_finish(session, &running->sums, epoch->train_metrics);
    if (is_ended && session->test_count && !session->reference) {
        tp_session_epoch eval;
        TP_TRY(tp_session_evaluate(session, "test", &eval));
        epoch->has_eval = true;
        epoch->eval_loss = eval.train_loss;
        epoch->eval_accuracy = eval.train_accuracy;
        memcpy(epoch->eval_metrics, eval.train_metrics, sizeof epoch->eval_metrics);
        epoch->eval_seconds = eval.seconds;
    }
    TP_TRY(tp_session_epoch_list_push(&session->epochs, *epoch));
    session->running.is_recorded = !is_ended;
    if (!is_ended) return TPUCL_OK;
    session->running =
        (tp_session_running){.sums = tp_metrics_begin(session, session->train_values)};
    return TPUCL_OK;
}

/* Reads what is outstanding, evaluates, and keeps the epoch's figures. */
static tpucl_status end_epoch(loop *l, bool is_ended)
{
    tp_session *session = l->session;
    TP_TRY(read_up_to(l, l->submitted));
    TP_TRY(tp_executor_finish(session->executor));
    uint64_t now_ns = tp_clock_now_ns();
    tp_session_epoch epoch = {.seconds = 1e-9 * (double)(now_ns - l->epoch_begin_ns)};
    TP_TRY(tp_session_record_epoch(session, &epoch, is_ended));
    if (is_ended) tp_event_log_epoch(l->log, &epoch);
    if (l->callbacks && l->callbacks->epoch) l->callbacks->epoch(l->callbacks->user, &epoch);
    l->epoch_begin_ns = tp_clock_now_ns();
    l->excluded_ns += l->epoch_begin_ns - now_ns;
    return TPUCL_OK;
}

static tpucl_status end_whole_epoch(loop *l)
{
    const tp_session_epoch_list *epochs = &l->session->epochs;
    TP_TRY(end_epoch(l, true));
    if (!tp_saver_is_due(l->saver, true)) return TPUCL_OK;
    const uint64_t begin_ns = tp_clock_now_ns();
    tp_saver_save(l->saver, &epochs->items[epochs->count - 1]);
    l->excluded_ns += tp_clock_now_ns() - begin_ns;
    return TPUCL_OK;
}

tpucl_status tp_session_run_steps(tp_session *session, int64_t count, double *out_seconds)
{
    loop l = {.session = session};
    uint64_t begin_ns = tp_clock_now_ns();
    tpucl_status status = TPUCL_OK;
    if (!session->pipeline) TP_TRY(tp_session_open_pipeline(session));
    for (int64_t i = 0; status == TPUCL_OK && i < count; i++) {
        const tp_batch *batch = NULL;
        status = tp_pipeline_next(session->pipeline, &batch);
        if (status == TPUCL_OK) status = submit_batch(&l, batch);
    }
    if (status == TPUCL_OK) status = read_up_to(&l, l.submitted);
    *out_seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    return status;
}

tpucl_status tp_session_measure_steps(tp_session *session, int64_t count, double *out_seconds)
{
    tp_loaded_measure_begin(session->train.loaded);
    const tpucl_status status = tp_session_run_steps(session, count, out_seconds);
    tp_loaded_measure_end(session->train.loaded);
    return status;
}

int32_t tp_session_launch_count(const tp_session *session)
{
    return session->train.loaded ? tp_loaded_launch_count(session->train.loaded) : 0;
}

void tp_session_launch_time(const tp_session *session, int32_t index, tp_launch_time *out_time)
{
    tp_loaded_launch_time(session->train.loaded, index, out_time);
}

static tpucl_status save_within_epoch(loop *l)
{
    const uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(read_up_to(l, l->submitted));
    tp_saver_save(l->saver, NULL);
    l->excluded_ns += tp_clock_now_ns() - begin_ns;
    return TPUCL_OK;
}

static tpucl_status run_steps(loop *l)
{
    tp_session *session = l->session;
    int64_t per_loop = session->config->steps_per_loop;
    if (per_loop > MAX_LAG / 2) per_loop = MAX_LAG / 2;
    /* stopped between the last step of an epoch and its evaluation */
    if (tp_session_is_epoch_due(session)) TP_TRY(end_whole_epoch(l));
    while (session->steps_done < session->steps_total && !atomic_load(&session->is_stopped)) {
        const tp_batch *batch = NULL;
        uint64_t begin_ns = tp_clock_now_ns();
        TP_TRY(tp_pipeline_next(session->pipeline, &batch));
        l->input_ns += tp_clock_now_ns() - begin_ns;
        TP_TRY(submit_batch(l, batch));
        if (session->steps_done % per_loop == 0) {
            TP_TRY(read_up_to(l, l->submitted - per_loop));
            report_progress(l);
        }
        if (tp_session_is_epoch_due(session))
            TP_TRY(end_whole_epoch(l));
        else if (tp_saver_is_due(l->saver, false))
            TP_TRY(save_within_epoch(l));
    }
    TP_TRY(read_up_to(l, l->submitted));
    const tpucl_status status = tp_saver_finish(l->saver);
    if (session->running.steps) { /* stopped, or the last epoch is no whole one */
        tpucl_error error;
        tp_error_capture(&error);
        TP_TRY(end_epoch(l, session->steps_done == session->steps_total));
        if (status != TPUCL_OK) tp_error_restore(&error);
    }
    report_progress(l);
    return status;
}

static tpucl_status train_on_devices(tp_session *session, const tp_session_callbacks *callbacks)
{
    tp_session_close_pipeline(session); /* of tp_session_run_steps */
    TP_TRY(tp_session_open_pipeline(session));
    loop l = {.session = session, .callbacks = callbacks, .begin_ns = tp_clock_now_ns()};
    l.epoch_begin_ns = l.begin_ns;
    tp_session_begin_training(session);
    tp_loaded_get_times(session->train.loaded, &l.times_before);
    tpucl_status status = tp_saver_create(session, &l.saver);
    l.log = tp_event_log_open(session);
    if (status == TPUCL_OK) status = run_steps(&l);
    tp_saver_destroy(l.saver);
    tp_event_log_close(l.log);
    add_breakdown(&l, tp_clock_now_ns() - l.begin_ns - l.excluded_ns);
    tp_session_close_pipeline(session);
    TP_TRY(status);
    if (session->steps_done < session->steps_total)
        return TP_FAIL(TPUCL_INTERRUPTED, "stopped after step %lld of %lld",
                       (long long)session->steps_done, (long long)session->steps_total);
    return TPUCL_OK;
}

tpucl_status tp_session_train(tp_session *session, const tp_session_callbacks *callbacks)
{
    tpucl_status status = session->reference ? tp_session_train_reference(session, callbacks)
                                             : train_on_devices(session, callbacks);
    if (status == TPUCL_OK) status = tp_session_finish_average(session);
    atomic_store(&session->is_stopped,
                 false); /* not before: a stop may come between create and train */
    return status;
}
