/* SPDX-License-Identifier: Apache-2.0
 * Scalars of a training into event files. */
#include "train/event_log.h"

#include <math.h>
#include "core/alloc.h"
#include "core/file.h"
#include "core/log.h"
#include "io/event_file.h"
#include "io/event_summary.h"
#include "train/session_internal.h"

enum { TRAIN, VALIDATION, PART_COUNT };
static const char *const part_names[PART_COUNT] = {"train", "validation"};
#define FLUSH_SECONDS 5.0

struct tp_event_log {
    const tp_session *session;
    tp_event_file *files[PART_COUNT]; /* NULL: nothing was written there yet */
    const char *folder;
    tp_arena *arena;
    int64_t first_step;
    double flushed_at;
    bool has_failed;
};

static void check(tp_event_log *log, tpucl_status status)
{
    if (status == TPUCL_OK || log->has_failed) return;
    log->has_failed = true;
    TP_LOG_WARNING("train", "no more is written for TensorBoard: %s", tpucl_last_error()->message);
    tp_error_clear();
}

static tpucl_status put(tp_event_log *log, int part, int64_t step, tp_str_builder *summary)
{
    tpucl_status status = TPUCL_OK;
    char *bytes = NULL;
    size_t length = 0;
    if (!log->files[part]) {
        const char *folder = tp_file_join(log->arena, log->folder, part_names[part]);
        status = folder ? tp_event_file_open(folder, log->first_step, &log->files[part])
                        : TPUCL_OUT_OF_MEMORY;
    }
    if (status == TPUCL_OK) status = tp_str_builder_finish(summary, &bytes, &length);
    if (status == TPUCL_OK)
        status = tp_event_file_put(log->files[part], tp_event_wall_seconds(), step,
                                   (tp_view){bytes, length});
    tp_str_builder_deinit(summary);
    tp_free(bytes);
    return status;
}

static void flush(tp_event_log *log)
{
    for (int i = 0; i < PART_COUNT; i++)
        if (log->files[i]) check(log, tp_event_file_flush(log->files[i]));
    log->flushed_at = tp_event_wall_seconds();
}

tp_event_log *tp_event_log_open(tp_session *session)
{
    const tp_config *config = session->config;
    tp_arena *arena = NULL;
    if (!*config->log_dir && !*config->output_dir) return NULL;
    tp_event_log *log =
        tp_arena_create(0, &arena) == TPUCL_OK ? TP_ARENA_NEW(arena, tp_event_log) : NULL;
    const char *folder = *config->log_dir ? config->log_dir
                         : log            ? tp_file_join(arena, config->output_dir, "logs")
                                          : NULL;
    if (!log || !folder) {
        tp_arena_destroy(arena);
        tp_error_clear();
        return NULL;
    }
    *log = (tp_event_log){.session = session,
                          .folder = folder,
                          .arena = arena,
                          .first_step = session->steps_done ? session->steps_done + 1 : 0};
    return log;
}

void tp_event_log_step(tp_event_log *log, int64_t step, double loss)
{
    if (!log || log->has_failed || step % log->session->config->log_every != 0) return;
    tp_str_builder summary = {0};
    tp_summary_scalar(&summary, "batch_loss", (float)loss);
    check(log, put(log, TRAIN, step, &summary));
    if (tp_event_wall_seconds() - log->flushed_at > FLUSH_SECONDS) flush(log);
}

static void add_metrics(const tp_event_log *log, const double *values, tp_str_builder *summary)
{
    for (int32_t i = 0; i < log->session->metrics.count; i++) {
        const char *tag =
            tp_arena_printf(log->arena, "epoch_%s", log->session->metrics.items[i].name);
        if (tag && !isnan(values[i])) tp_summary_scalar(summary, tag, (float)values[i]);
    }
}

void tp_event_log_epoch(tp_event_log *log, const tp_session_epoch *epoch)
{
    if (!log || log->has_failed) return;
    const int64_t step = log->session->steps_done;
    tp_str_builder summary = {0};
    tp_summary_scalar(&summary, "epoch_loss", (float)epoch->train_loss);
    if (log->session->has_accuracy)
        tp_summary_scalar(&summary, "epoch_accuracy", (float)epoch->train_accuracy);
    add_metrics(log, epoch->train_metrics, &summary);
    if (epoch->seconds > 0)
        tp_summary_scalar(&summary, "epoch_examples_per_second",
                          (float)((double)epoch->examples / epoch->seconds));
    check(log, put(log, TRAIN, step, &summary));
    if (epoch->has_eval && !log->has_failed) {
        tp_summary_scalar(&summary, "epoch_loss", (float)epoch->eval_loss);
        if (log->session->has_accuracy)
            tp_summary_scalar(&summary, "epoch_accuracy", (float)epoch->eval_accuracy);
        add_metrics(log, epoch->eval_metrics, &summary);
        check(log, put(log, VALIDATION, step, &summary));
    }
    if (!log->has_failed) flush(log);
}

void tp_event_log_close(tp_event_log *log)
{
    if (!log) return;
    for (int i = 0; i < PART_COUNT; i++) {
        if (!log->files[i]) continue;
        if (log->has_failed)
            tp_event_file_abandon(log->files[i]);
        else
            check(log, tp_event_file_close(log->files[i]));
    }
    tp_arena_destroy(log->arena);
}
