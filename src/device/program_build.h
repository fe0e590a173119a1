/* SPDX-License-Identifier: Apache-2.0
 * Source text to program. A device keeps every program it has built (memory cache) until it is
 * closed or tp_device_forget_programs is called; behind that stands the disk cache of its options.
 *
 * The source must be complete: #include lines are resolved before (kernel/source.h). Build options
 * are, in this order: what the device needs (tp_device_build_options), then the caller's.
 *
 * A failed build is TPUCL_DEVICE_ERROR; the message names the program and holds the first ten lines
 * of the compiler's log.
 */
#ifndef TP_DEVICE_PROGRAM_BUILD_H
#define TP_DEVICE_PROGRAM_BUILD_H

#include "device/device.h"

typedef struct tp_device_program tp_device_program;

typedef struct tp_device_program_source {
    const char *label;   /* for messages: "mxu_register", "vpu cluster 12" */
    const char *source;  /* OpenCL C */
    const char *options; /* "-DTILE_M=14", "" or NULL */
} tp_device_program_source;

/* "-cl-std=CL1.2 ...", derived from the capabilities and quirks; what the macros mean is in
 * kernels/lib/platform.clh. Borrowed. */
const char *tp_device_build_options(const tp_device *device);

/* The caller gets a reference and releases it. Programs with equal source and options are one
 * program. */
tpucl_status tp_device_program_build(tp_device *device, const tp_device_program_source *source,
                                     tp_device_program **out_program);
void tp_device_program_release(tp_device_program *program);

typedef struct tp_build_progress {
    uint32_t done, total;
    const char *label; /* of the program that was just finished */
    double seconds;    /* it took */
    bool was_cached;
} tp_build_progress;
typedef void (*tp_build_callback)(const tp_build_progress *progress, void *user);

/* Builds all, `threads` at a time (0: as many as the host has processors, at most 8). The callback
 * (may be NULL) comes from any of these threads, never two at once. On failure nothing is handed
 * out and the first error in the order of `sources` is reported. */
tpucl_status tp_device_program_build_many(tp_device *device,
                                          const tp_device_program_source *sources, uint32_t count,
                                          uint32_t threads, tp_build_callback callback, void *user,
                                          tp_device_program **out_programs);

/* Where programs can be compiled in processes of their own (PoCL: tpucl-compiler), does that for all that are new,
 * so that they come from the disk cache when they are built; the callback comes for those, from this thread.
 * Elsewhere, and for what does not compile, nothing happens. */
void tp_device_programs_prepare(tp_device *device, const tp_device_program_source *sources,
                                uint32_t count, tp_build_callback callback, void *user);

/* How long building took on this device so far, and how often it was avoided. */
typedef struct tp_build_stats {
    uint32_t from_source, from_disk, from_memory;
    uint32_t apart; /* by processes of their own; from_disk counts them again */
    double source_seconds, disk_seconds, apart_seconds; /* of all threads, of all processes */
} tp_build_stats;
void tp_device_get_build_stats(const tp_device *device, tp_build_stats *out_stats);

/* Drops the memory cache's references. */
void tp_device_forget_programs(tp_device *device);

#endif
