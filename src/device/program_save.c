/* SPDX-License-Identifier: Apache-2.0
 * Storing binaries. With TP_QUIRK_LATE_BINARIES (PoCL) a binary is complete only after the first
 * launches, and asking for it costs as much as compiling again (measured: 0.3 s per program),
 * because the driver compiles a variant for unknown work sizes too. While it does, PoCL 3.1 mixes
 * that variant up with those of kernels that are running, and its assertion on the reference count
 * of a loaded kernel ends the process. So binaries are asked for when nothing is in flight: when a
 * device is closed, or when tp_device_save_programs says so. */
#include "device/build_state.h"

#include "core/alloc.h"
#include "core/log.h"

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

/* With the mutex held: the next program whose binary is complete, no longer marked, with a reference; or
 * NULL. */
static tp_device_program *take_pending(tp_build_state *state)
{
    for (tp_device_program *program = state->programs; program; program = program->next) {
        if (!program->needs_saving || !atomic_load(&program->was_used)) continue;
        program->needs_saving = false;
        atomic_fetch_add(&program->references, 1);
        return program;
    }
    return NULL;
}

void tp_device_save_programs(tp_device *device)
{
    tp_build_state *state = device->build;
    tpucl_error record;
    tp_error_capture(&record);
    tpucl_status status = tp_device_finish(device);
    while (status == TPUCL_OK) { /* a device that failed has nothing worth storing */
        tp_mutex_lock(&state->mutex);
        tp_device_program *program = take_pending(state);
        tp_mutex_unlock(&state->mutex);
        if (!program) break;
        tp_device_program_save(program);
        tp_device_program_drop(program);
    }
    tp_error_restore(&record);
}
