/* SPDX-License-Identifier: Apache-2.0
 * What a device keeps about its programs, shared by program_build.c (makes them) and program_save.c
 * (stores binaries). Private to src/device. */
#ifndef TP_DEVICE_BUILD_STATE_H
#define TP_DEVICE_BUILD_STATE_H

#include "device/internal.h"

typedef struct tp_build_state {
    tp_mutex mutex;              /* guards everything here */
    tp_cond changed;             /* a program left TP_PROGRAM_BUILDING */
    tp_mutex compile_mutex;      /* held while compiling with TP_QUIRK_SERIAL_BUILDS */
    tp_device_program *programs; /* each with a reference of the list's own */
    tp_build_stats stats;
} tp_build_state;

/* Takes the binary from the driver and gives it to the disk cache. */
void tp_device_program_save(tp_device_program *program);

/* True when binaries of this device go to disk at all. */
bool tp_device_keeps_binaries(const tp_device *device);

/* tp_device_program_build, and how long it took and whether the compiler was spared. */
tpucl_status tp_device_program_build_timed(tp_device *device,
                                           const tp_device_program_source *request,
                                           tp_device_program **out_program, double *out_seconds,
                                           bool *out_was_cached);

/* Drops a reference that does not keep the device alive. */
void tp_device_program_drop(tp_device_program *program);

#endif
