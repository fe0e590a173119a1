/* SPDX-License-Identifier: Apache-2.0
 * The table of known driver problems. To add a workaround: one row here and one regression test. A
 * row matches when each of its texts occurs (case-insensitively) in the device's field; NULL
 * matches all. */
#include "device/quirks.h"

#include <stdio.h>
#include <string.h>
#include "core/str.h"

typedef struct quirk_row {
    const char *platform, *name, *driver, *version; /* parts of tp_device_caps' fields */
    unsigned effects;
    const char *build_options; /* NULL: none */
    const char *reason;
    const char *source;
} quirk_row;

static const quirk_row rows[] = {
    {.platform = "Portable Computing Language",
     .effects = TP_QUIRK_ONE_COMPILER,
     .reason = "compiles for one thread of a process at a time",
     .source =
         "PoCL 3.1: pocl_llvm_codegen_lock and pocl_dlhandle_lock in lib/CL/devices/common.c"},
    {.platform = "Portable Computing Language",
     .name = "basic",
     .effects = TP_QUIRK_NO_SUB_DEVICES,
     .reason = "the 'basic' driver runs on one thread and cannot be split",
     .source = "PoCL 3.1: clCreateSubDevices gives CL_INVALID_VALUE"},
    {.platform = "Clover",
     .effects = TP_QUIRK_SKIP,
     .reason = "Mesa's Clover has OpenCL 1.1 and is no longer maintained; use Rusticl or the "
               "vendor's driver",
     .source = "Mesa 22.3 release; KataGo issue 798"},
    {.platform = "Oclgrind",
     .effects =
         TP_QUIRK_NOT_DEFAULT | TP_QUIRK_ONE_LANE | TP_QUIRK_NO_BINARIES | TP_QUIRK_SERIAL_BUILDS,
     .reason = "a simulator for finding errors: slow, used only when asked for",
     .source = "Oclgrind 21.10"},
    {.platform = "Oclgrind",
     .build_options = "-Drestrict=",
     .reason = "inlining a function with restrict pointers stops it",
     .source =
         "Oclgrind 21.10: 'Undefined external function: llvm.experimental.noalias.scope.decl'"},
    {.platform = "Oclgrind",
     .effects = TP_QUIRK_FMA_IS_FAST,
     .reason = "does not report fma, which costs as much as a multiply there",
     .source = "Oclgrind 21.10: CL_DEVICE_SINGLE_FP_CONFIG is 7, fma() calls the host's"},
    {.platform = "Oclgrind",
     .build_options = "-cl-opt-disable",
     .reason = "extends a vector mask to 255 where LLVM asks for 1",
     .source =
         "Oclgrind 21.10: tests/unit/num/test_device_math.c fails in sin_16, cos_16, pow_16 and "
         "integer division (zext <16 x i1> to <16 x i32>), and passes without the optimiser"},
    {.platform = "rusticl",
     .name = "llvmpipe",
     .effects = TP_QUIRK_NOT_DEFAULT,
     .reason = "Rusticl on llvmpipe crashes in simple kernels",
     .source = "tried with Mesa 22.3.6"},
    {.platform = "NVIDIA",
     .effects = TP_QUIRK_NO_BINARIES,
     .reason = "the driver keeps a cache of its own",
     .source =
         "~/.nv/ComputeCache; dlprimitives leaves its own cache off there for the same reason"},
};

static bool fits(const char *field, const char *part)
{
    return !part || tp_str_contains_nocase(field, part);
}

static void append(char *text, size_t room, const char *separator, const char *more)
{
    const size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", separator, more);
}

void tp_quirks_find(const tp_device_caps *caps, tp_quirks *out_quirks)
{
    memset(out_quirks, 0, sizeof *out_quirks);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const quirk_row *row = &rows[i];
        if (!fits(caps->platform, row->platform) || !fits(caps->name, row->name) ||
            !fits(caps->driver, row->driver) || !fits(caps->version, row->version))
            continue;
        out_quirks->effects |= row->effects;
        if (row->build_options)
            append(out_quirks->build_options, sizeof out_quirks->build_options, " ",
                   row->build_options);
        append(out_quirks->reasons, sizeof out_quirks->reasons, out_quirks->reasons[0] ? "; " : "",
               row->reason);
    }
}
