/* SPDX-License-Identifier: Apache-2.0
 * Compiling for a device that has to prove itself: product variants that did not reproduce the contract there
 * are passed over, and a device whose generated kernels give other bits is refused. What was found is kept
 * (verify/verdicts.h), so only the first use of a device takes longer.
 */
#ifndef TP_VERIFY_COMPILE_VERIFIED_H
#define TP_VERIFY_COMPILE_VERIFIED_H

#include "compile/compile.h"
#include "exec/placement.h"
#include "verify/verdicts.h"

typedef struct tp_compile_verified_options {
    const char *name;  /* of the program */
    int32_t cores;     /* of the device, at most, that run it in one wave; 0: one */
    bool is_fast_math; /* then nothing is promised, and generated kernels are not checked */
    uint64_t max_slab_segment_bytes; /* 0: what the device allocates at once */
    const char *cache_folder;        /* for verdicts; NULL: not kept */
    tp_verdicts_progress progress;   /* may be NULL */
    void *user;
    double *inout_verify_seconds; /* NULL, or what verdicts took is added to it */
} tp_compile_verified_options;

/* TPUCL_NOT_EXACT names the first check that the device failed. */
tpucl_status tp_compile_verified(const tp_graph *graph, tp_device *device,
                                 const tp_compile_verified_options *options,
                                 tp_program **out_program);

/* For every device of the map; `cores` 0: as many as the device with most of them has. Devices that report the same capabilities share a program. `out_programs`:
 * [device_count], all NULL before; to be given to tp_programs_destroy whether or not this succeeds. */
tpucl_status tp_compile_for_devices(const tp_graph *graph, const tp_core_map *map,
                                    const tp_compile_verified_options *options,
                                    tp_program **out_programs);
void tp_programs_destroy(tp_program **programs, int32_t device_count);

#endif
