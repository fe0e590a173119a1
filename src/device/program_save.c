/* SPDX-License-Identifier: Apache-2.0
 * Storing binaries, right after a program was built and before any of its kernels runs. Asking PoCL for a binary
 * compiles its kernels to the end, for any work size; cl_api.c tells it to run these kernels, too, instead of
 * compiling one for each work size at its first launch. Asking later is dangerous: PoCL 3.1 mixes the kernels of
 * the binary up with those that are running, and its assertion on a reference count ends the process. */
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
