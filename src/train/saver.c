/* SPDX-License-Identifier: Apache-2.0
 * When to save, and the thread that writes. */
#include "train/saver.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/log.h"
#include "core/thread.h"
#include "train/session_internal.h"
#include "train/snapshot.h"

struct tp_saver {
    tp_session *session;
    tp_arena *arena;
    const char *folder;
    const char *best; /* a name of the results; "": none */
    bool best_is_highest;
    tp_thread *writer; /* of the save that is going on; NULL: none */
    atomic_bool is_writing;
    tp_snapshot *snapshot;
    int64_t last_step; /* saved, or being saved; -1: none */
    tpucl_status status;
    tpucl_error error; /* of the last save, when status is none of TPUCL_OK */
};

/* ---- which is the best ---- */

/* As Keras' ModelCheckpoint in mode "auto": what is a loss or an error is better when it is lower. */
static bool is_better_higher(const tp_session *session)
{
    static const char *const low[] = {"loss", "error", "entropy", "divergence", "hinge", "poisson"};
    const char *name = session->config->checkpoint.best;
    if (session->config->checkpoint.best_mode != TP_BEST_AUTO)
        return session->config->checkpoint.best_mode == TP_BEST_MAX;
    for (size_t i = 0; i < sizeof low / sizeof low[0]; i++)
        if (strstr(name, low[i])) return false;
    return true;
}

/* Of the test part where there is one. */
static double monitored(const tp_saver *saver, const tp_session_epoch *epoch)
{
    const tp_session *session = saver->session;
    if (strcmp(saver->best, "loss") == 0)
        return epoch->has_eval ? epoch->eval_loss : epoch->train_loss;
    if (strcmp(saver->best, "accuracy") == 0 && session->has_accuracy)
        return epoch->has_eval ? epoch->eval_accuracy : epoch->train_accuracy;
    for (int32_t i = 0; i < session->metrics.count; i++)
        if (strcmp(session->metrics.items[i].name, saver->best) == 0)
            return epoch->has_eval ? epoch->eval_metrics[i] : epoch->train_metrics[i];
    return (double)NAN;
}

static tpucl_status check_best(const tp_saver *saver)
{
    const tp_session *session = saver->session;
    bool is_known = !*saver->best || strcmp(saver->best, "loss") == 0 ||
                    (strcmp(saver->best, "accuracy") == 0 && session->has_accuracy);
    for (int32_t i = 0; i < session->metrics.count; i++)
        is_known = is_known || strcmp(session->metrics.items[i].name, saver->best) == 0;
    if (is_known) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "checkpoint.best is '%s', expected 'loss'%s or the name of a metric",
                   saver->best, session->has_accuracy ? ", 'accuracy'" : "");
}

/* ---- what is kept ---- */

/* -1: none has the figure. */
static int64_t find_best(const tp_saver *saver, tp_arena *arena, const tp_checkpoint_steps *steps)
{
    int64_t best = -1;
    double best_value = 0;
    for (size_t i = 0; *saver->best && i < steps->complete_count; i++) {
        tp_checkpoint *manifest = NULL;
        const char *name = "", *path = tp_checkpoint_path(arena, saver->folder, steps->complete[i]);
        double value = (double)NAN;
        if (!path || tp_checkpoint_open_manifest(path, &manifest) != TPUCL_OK) {
            tp_error_clear();
            continue;
        }
        const tp_json *state = tp_checkpoint_state(manifest);
        const bool is_read =
            tp_json_get_string(state, "monitor", &name) == TPUCL_OK &&
            tp_json_get_double(state, "monitor_value", -DBL_MAX, DBL_MAX, &value) == TPUCL_OK;
        if (!is_read) tp_error_clear();
        if (is_read && strcmp(name, saver->best) == 0 && !isnan(value) &&
            (best < 0 || (saver->best_is_highest ? value > best_value : value < best_value))) {
            best = steps->complete[i];
            best_value = value;
        }
        tp_checkpoint_close(manifest);
    }
    return best;
}

static tpucl_status remove_old(const tp_saver *saver, tp_arena *arena)
{
    tp_checkpoint_steps steps;
    TP_TRY(tp_checkpoint_list(saver->folder, arena, &steps));
    const int64_t best = find_best(saver, arena, &steps);
    const size_t keep = (size_t)saver->session->config->checkpoint.keep;
    for (size_t i = 0; i + keep < steps.complete_count; i++)
        if (steps.complete[i] != best)
            TP_TRY(tp_checkpoint_remove(saver->folder, steps.complete[i]));
    for (size_t i = 0; i < steps.incomplete_count; i++)
        TP_TRY(tp_checkpoint_remove(saver->folder, steps.incomplete[i]));
    return TPUCL_OK;
}

/* ---- writing ---- */

static tpucl_status write_and_remove(const tp_saver *saver)
{
    const tp_snapshot *snapshot = saver->snapshot;
    tp_arena *arena = NULL;
    TP_TRY(tp_checkpoint_write(saver->folder, snapshot->step, snapshot->parts, 2, snapshot->state));
    TP_LOG_INFO("train", "saved step %lld in '%s'", (long long)snapshot->step, saver->folder);
    tpucl_status status = tp_arena_create(0, &arena);
    if (status == TPUCL_OK) status = remove_old(saver, arena);
    tp_arena_destroy(arena);
    if (status != TPUCL_OK) /* what was to be saved is */
        TP_LOG_WARNING("train", "an older checkpoint could not be removed: %s",
                       tpucl_last_error()->message);
    return TPUCL_OK;
}

static tpucl_status write_snapshot(void *user)
{
    tp_saver *saver = user;
    const tpucl_status status = write_and_remove(saver);
    atomic_store(&saver->is_writing, false);
    return status;
}

static void report(const tp_saver *saver)
{
    char kept[256] = "none was saved before";
    tp_arena *arena = NULL;
    tp_checkpoint_steps steps = {0};
    if (tp_arena_create(0, &arena) == TPUCL_OK &&
        tp_checkpoint_list(saver->folder, arena, &steps) == TPUCL_OK && steps.complete_count)
        snprintf(kept, sizeof kept, "the last one is that of step %lld",
                 (long long)steps.complete[steps.complete_count - 1]);
    tp_arena_destroy(arena);
    TP_LOG_WARNING("train", "no checkpoint of step %lld: %s; %s", (long long)saver->last_step,
                   saver->error.message, kept);
}

/* Until nothing is being written. */
static void join(tp_saver *saver)
{
    if (!saver->snapshot) return;
    if (saver->writer) {
        saver->status = tp_thread_join(saver->writer);
        if (saver->status != TPUCL_OK) tp_error_capture(&saver->error);
    }
    saver->writer = NULL;
    tp_snapshot_destroy(saver->snapshot);
    saver->snapshot = NULL;
    if (saver->status == TPUCL_OK) return;
    tp_error_clear();
    report(saver);
}

static void save(tp_saver *saver, const tp_snapshot_monitor *monitor)
{
    join(saver);
    saver->last_step = saver->session->steps_done;
    saver->status = tp_snapshot_take(saver->session, monitor, &saver->snapshot);
    atomic_store(&saver->is_writing, saver->status == TPUCL_OK);
    if (saver->status == TPUCL_OK)
        saver->status = tp_thread_create("checkpoint", write_snapshot, saver, &saver->writer);
    if (saver->status == TPUCL_OK) return;
    tp_error_capture(&saver->error);
    tp_snapshot_destroy(saver->snapshot);
    saver->snapshot = NULL;
    report(saver);
}

/* ---- for the loop ---- */

tpucl_status tp_saver_create(tp_session *session, tp_saver **out_saver)
{
    tp_arena *arena = NULL;
    *out_saver = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tp_saver *saver = TP_ARENA_NEW(arena, tp_saver);
    tpucl_status status = saver ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) {
        *saver = (tp_saver){.session = session,
                            .arena = arena,
                            .best = session->config->checkpoint.best,
                            .best_is_highest = is_better_higher(session),
                            .last_step = -1};
        atomic_init(&saver->is_writing, false);
        status = tp_session_checkpoint_folder(session, arena, &saver->folder);
    }
    if (status == TPUCL_OK) status = check_best(saver);
    if (status == TPUCL_OK && saver->folder)
        *out_saver = saver;
    else
        tp_arena_destroy(arena);
    return status;
}

void tp_saver_destroy(tp_saver *saver)
{
    if (!saver) return;
    join(saver);
    tp_arena_destroy(saver->arena);
}

bool tp_saver_is_due(const tp_saver *saver, bool is_end_of_epoch)
{
    if (!saver) return false;
    const int64_t every = saver->session->config->checkpoint.every;
    if (is_end_of_epoch && *saver->best) return true;
    /* Epochs that are shorter than a save are not held up: the next one, or the end, is saved. */
    if (is_end_of_epoch && every == 0) return !atomic_load(&saver->is_writing);
    return every > 0 && saver->session->steps_done % every == 0;
}

void tp_saver_save(tp_saver *saver, const tp_session_epoch *epoch)
{
    if (!saver) return;
    const tp_snapshot_monitor monitor = {.name = epoch ? saver->best : "",
                                         .value = epoch ? monitored(saver, epoch) : (double)NAN};
    save(saver, &monitor);
}

tpucl_status tp_saver_finish(tp_saver *saver)
{
    if (!saver) return TPUCL_OK;
    join(saver);
    if (saver->last_step != saver->session->steps_done || saver->status != TPUCL_OK) {
        save(saver, &(tp_snapshot_monitor){.name = ""});
        join(saver);
    }
    if (saver->status == TPUCL_OK) return TPUCL_OK;
    tp_error_restore(&saver->error);
    return saver->status;
}
