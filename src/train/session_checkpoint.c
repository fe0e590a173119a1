/* SPDX-License-Identifier: Apache-2.0
 * Where a session's checkpoints are, and going on from one. */
#include <stdio.h>
#include "core/file.h"
#include "core/log.h"
#include "core/problems.h"
#include "io/store.h"
#include "train/session_internal.h"
#include "train/snapshot.h"

tpucl_status tp_session_checkpoint_folder(const tp_session *session, tp_arena *arena,
                                          const char **out_folder)
{
    const tp_config *config = session->config;
    *out_folder = NULL;
    if (*config->checkpoint.folder)
        *out_folder = tp_arena_strdup(arena, config->checkpoint.folder);
    else if (*config->output_dir)
        *out_folder = tp_file_join(arena, config->output_dir, "checkpoints");
    else
        return TPUCL_OK;
    return *out_folder ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status open_newest(const tp_session *session, tp_arena *arena,
                                tp_checkpoint **out_checkpoint)
{
    const char *folder = NULL;
    tp_problems skipped = {0};
    TP_TRY(tp_session_checkpoint_folder(session, arena, &folder));
    if (!folder)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "there is no folder of checkpoints to go on from; set output_dir or "
                       "checkpoint.folder");
    const tpucl_status status = tp_checkpoint_open_newest(folder, &skipped, out_checkpoint);
    if (skipped.count) TP_LOG_WARNING("train", "passed over: %s", skipped.text);
    return status;
}

tpucl_status tp_session_resume(tp_session *session, const char *path,
                               tp_session_resumed *out_resumed)
{
    tp_arena *arena = NULL;
    tp_checkpoint *checkpoint = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status =
        path ? tp_checkpoint_open(path, &checkpoint) : open_newest(session, arena, &checkpoint);
    if (status == TPUCL_OK) status = tp_snapshot_restore(session, checkpoint);
    if (status == TPUCL_OK) {
        session->is_resumed = true;
        out_resumed->step = session->steps_done;
        snprintf(out_resumed->path, sizeof out_resumed->path, "%s", tp_checkpoint_name(checkpoint));
    }
    tp_checkpoint_close(checkpoint);
    tp_arena_destroy(arena);
    return status;
}

/* What a killed process left behind costs money, not correctness: the training begins without this, too. */
static void abort_uploads(const char *folder, tp_arena *arena)
{
    size_t count = 0;
    const char *prefix = tp_store_join(arena, folder, "step-");
    if (!prefix) return;
    const tpucl_status status = tp_store_abort_uploads(prefix, NULL, &count);
    if (status != TPUCL_OK)
        TP_LOG_WARNING("train", "unfinished uploads were not looked for: %s",
                       tpucl_last_error()->message);
    else if (count)
        TP_LOG_INFO("train", "aborted %zu unfinished uploads below '%s'", count, folder);
    tp_error_clear();
}

static tpucl_status check_folder(const tp_session *session, const char *folder, bool overwrite,
                                 tp_arena *arena)
{
    tp_checkpoint_steps steps;
    TP_TRY(tp_store_make_folder(folder));
    abort_uploads(folder, arena);
    TP_TRY(tp_checkpoint_list(folder, arena, &steps));
    if (session->is_resumed || session->steps_done || !steps.complete_count) return TPUCL_OK;
    if (!overwrite)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "'%s' holds checkpoints of an earlier training, the newest of step %lld; go "
                       "on from it (--resume), begin anew and remove them (--overwrite), or choose "
                       "another folder",
                       folder, (long long)steps.complete[steps.complete_count - 1]);
    for (size_t i = 0; i < steps.complete_count; i++)
        TP_TRY(tp_checkpoint_remove(folder, steps.complete[i]));
    return TPUCL_OK;
}

tpucl_status tp_session_prepare_checkpoints(tp_session *session, bool overwrite)
{
    tp_arena *arena = NULL;
    const char *folder = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status = tp_session_checkpoint_folder(session, arena, &folder);
    if (status == TPUCL_OK && folder) status = check_folder(session, folder, overwrite, arena);
    tp_arena_destroy(arena);
    return status;
}
