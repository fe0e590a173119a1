/* SPDX-License-Identifier: Apache-2.0
 * What a device keeps about its programs, shared by program_build.c (makes them) and program_save.c
 * (stores binaries). Private to src/device. */
#ifndef TP_DEVICE_BUILD_STATE_H
#define TP_DEVICE_BUILD_STATE_H

#include "device/internal.h"

/* A program with which the compiler ended its process: it is not tried in ours. */
typedef struct tp_crashed_key {
    uint8_t key[TP_SHA256_BYTES];
} tp_crashed_key;
TP_ARRAY_DEFINE(tp_crashed_keys, tp_crashed_key)

typedef struct tp_build_state {
    tp_mutex mutex;              /* guards everything here */
    tp_cond changed;             /* a program left TP_PROGRAM_BUILDING */
    tp_mutex compile_mutex;      /* held while compiling with TP_QUIRK_SERIAL_BUILDS */
    tp_device_program *programs; /* each with a reference of the list's own */
    tp_build_stats stats;
    tp_crashed_keys crashed;
    tp_mutex compilers_mutex; /* guards what follows; taken before `mutex` */
    struct tp_compilers *compilers;
    bool has_looked_for_compilers;
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

/* What a program is stored under; `options` are all of them, the device's first. */
void tp_device_program_key(const tp_device *device, const char *source, const char *options,
                           uint8_t out_key[TP_SHA256_BYTES]);
/* "<device's> <extra>"; free with tp_free, NULL when memory fails. */
char *tp_device_program_options(const tp_device *device, const char *extra);

/* Built from source for the disk cache alone. False when it does not build or is not stored. */
bool tp_device_program_store(tp_device *device, const char *label,
                             const uint8_t key[TP_SHA256_BYTES], const char *source,
                             const char *options);

/* The programs of `sources` that are neither in memory nor on disk, compiled into the disk cache by processes of
 * their own where that is possible and worth it. `out_is_reported` (may be NULL) says for which the callback came,
 * with `total` = count. Failures are left to who builds them. Returns how often the callback came. */
uint32_t tp_device_compile_apart(tp_device *device, const tp_device_program_source *sources,
                                 uint32_t count, tp_build_callback callback, void *user,
                                 bool *out_is_reported);

/* Drops a reference that does not keep the device alive. */
void tp_device_program_drop(tp_device_program *program);

#endif
