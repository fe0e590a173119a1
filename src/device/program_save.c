/* SPDX-License-Identifier: Apache-2.0
 * Storing binaries. With TP_QUIRK_LATE_BINARIES (PoCL) a binary is complete only after the first
 * launches, and asking for it costs as much as compiling again (measured: 0.3 s per program),
 * because the driver compiles a variant for unknown work sizes too. So a thread of low priority
 * does it, once nothing was compiled for QUIET_NS: a cold start is not made slower by preparing the
 * next one. */
#include "device/build_state.h"

#include <sys/resource.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/log.h"

#define QUIET_NS ((uint64_t)1000000000)
#define POLL_NS ((uint64_t)250000000)
enum { LOWEST_PRIORITY = 19 };

bool tp_device_keeps_binaries(const tp_device *device)
{
    return device->options.cache && !(device->quirks.effects & TP_QUIRK_NO_BINARIES);
}

void tp_device_program_save(tp_device_program *program)
{
    const tp_cl_api *cl = program->device->cl;
    size_t bytes = 0;
    /* One device per context, so one binary. */
    cl_int code =
        cl->GetProgramInfo(program->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL);
    if (code != CL_SUCCESS || !bytes) {
        TP_LOG_WARNING("device", "the driver gives no binary of '%s' (%s)", program->label,
                       tp_cl_error_name(code));
        return;
    }
    unsigned char *binary = tp_alloc(bytes);
    if (!binary) return; /* the cache stays cold, that is all */
    code = cl->GetProgramInfo(program->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL);
    if (code == CL_SUCCESS)
        tp_program_cache_store(program->device->options.cache, program->key, binary, bytes);
    else
        TP_LOG_WARNING("device", "the driver gives no binary of '%s' (%s)", program->label,
                       tp_cl_error_name(code));
    tp_free(binary);
}

/* With the mutex held: the next program to save, no longer marked, with a reference; or NULL. */
static tp_device_program *take_pending(tp_build_state *state)
{
    for (tp_device_program *program = state->programs; program; program = program->next) {
        if (!program->needs_saving || !program->first_launch) continue;
        program->needs_saving = false;
        atomic_fetch_add(&program->references, 1);
        return program;
    }
    return NULL;
}

/* With the mutex held: true while a first launch is under way, which is when the driver compiles.
 * */
static bool is_compiling(const tp_build_state *state)
{
    for (tp_device_program *program = state->programs; program; program = program->next)
        if (program->needs_saving && program->first_launch &&
            !tp_event_is_done((tp_event *)program->first_launch))
            return true;
    return false;
}

static bool may_save_now(tp_build_state *state)
{
    if (!state->saver_pending) return false;
    if (state->saver_hurries) return true;
    if (is_compiling(state)) state->last_activity_ns = tp_clock_now_ns();
    return tp_clock_now_ns() - state->last_activity_ns >= QUIET_NS;
}

static tpucl_status run_saver(void *user)
{
    tp_device *device = user;
    tp_build_state *state = device->build;
    (void)setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY); /* on Linux: of this thread alone */
    tp_mutex_lock(&state->mutex);
    while (!state->saver_stops) {
        if (!may_save_now(state)) {
            (void)tp_cond_wait_for(&state->changed, &state->mutex, POLL_NS);
            continue;
        }
        tp_device_program *program = take_pending(state);
        if (program) {
            tp_mutex_unlock(&state->mutex);
            tp_device_program_save(program);
            tp_device_program_drop(program);
            tp_mutex_lock(&state->mutex);
        }
        state->saver_pending--; /* a program that was forgotten meanwhile counts as done */
        tp_cond_broadcast(&state->changed);
    }
    tp_mutex_unlock(&state->mutex);
    return TPUCL_OK;
}

void tp_build_state_note_use(tp_device_program *program, tp_event *event)
{
    if (atomic_exchange(&program->was_used, true)) return;
    tp_device *device = program->device;
    tp_build_state *state = device->build;
    tp_mutex_lock(&state->mutex);
    state->last_activity_ns = tp_clock_now_ns();
    if (program->needs_saving && !state->saver_stops) {
        program->first_launch = (cl_event)tp_event_retain(event); /* NULL: not saved in this run */
        state->saver_pending += program->first_launch != NULL;
        if (program->first_launch && !state->saver &&
            tp_thread_create("tpucl save", run_saver, device, &state->saver) != TPUCL_OK)
            state->saver_pending = 0; /* no thread: the cache stays cold */
    }
    tp_mutex_unlock(&state->mutex);
}

void tp_device_save_programs(tp_device *device)
{
    tp_build_state *state = device->build;
    tpucl_error record;
    tp_error_capture(&record);
    if (tp_lane_finish(device, TP_LANE_COMPUTE) !=
        TPUCL_OK) { /* then there is nothing worth storing */
        tp_error_restore(&record);
        return;
    }
    tp_mutex_lock(&state->mutex);
    state->saver_hurries = true;
    tp_cond_broadcast(&state->changed);
    while (state->saver_pending && state->saver)
        tp_cond_wait(&state->changed, &state->mutex);
    state->saver_hurries = false;
    tp_mutex_unlock(&state->mutex);
}

void tp_build_state_stop(tp_device *device)
{
    tp_build_state *state = device->build;
    tp_mutex_lock(&state->mutex);
    state->saver_stops = true;
    tp_thread *saver = state->saver;
    state->saver = NULL;
    tp_cond_broadcast(&state->changed);
    tp_mutex_unlock(&state->mutex);
    if (saver) (void)tp_thread_join(saver);
}
