/* SPDX-License-Identifier: Apache-2.0
 * Compiling in processes of their own: tpucl-compiler, a program that lies beside the library, takes programs
 * from a socket on its standard input, builds them and puts their binaries into the disk cache. A driver that
 * compiles for one thread of a process at a time (TP_QUIRK_ONE_COMPILER) thus keeps all processors busy, and one
 * that ends its process while compiling does not end a training. Private to src/device.
 *
 * Messages, in the byte order of the machine that both sides run on: a request, its label, options and source
 * without terminating zeros; a reply for each, and one reply, TP_COMPILER_READY, when the device is open.
 */
#ifndef TP_DEVICE_COMPILER_H
#define TP_DEVICE_COMPILER_H

#include "device/build_state.h"

typedef struct tp_compiler_request {
    uint32_t magic; /* TP_COMPILER_MAGIC */
    uint32_t label_bytes, options_bytes, source_bytes;
    uint8_t key[TP_SHA256_BYTES]; /* under which the binary is stored */
} tp_compiler_request;

typedef enum tp_compiler_outcome {
    TP_COMPILER_READY,
    TP_COMPILER_STORED,
    TP_COMPILER_NOT_STORED /* it does not build, or the cache takes nothing */
} tp_compiler_outcome;

typedef struct tp_compiler_reply {
    uint32_t magic, outcome;
    double seconds; /* that the compiler took */
} tp_compiler_reply;

enum {
    TP_COMPILER_MAGIC = 0x31637074,
    TP_COMPILER_MAX_BYTES = 64 << 20, /* of a text */
    TP_COMPILER_IDLE_MS = 3000        /* a process without work for so long ends */
};

/* The compiler's side: serves `socket` until it is closed or idle. `label` is that of the parent's device, "0:1";
 * `identity` what the device here must have. */
tpucl_status tp_compiler_serve(int socket, const char *label, const char *identity,
                               const char *cache_folder);

/* The other side, one per device. */
typedef struct tp_compilers tp_compilers;
/* NULL when this device's programs are not compiled in processes of their own. */
tp_compilers *tp_compilers_create(tp_device *device);
void tp_compilers_destroy(tp_compilers *compilers);

typedef struct tp_compile_job {
    tp_compiler_request request;
    const char *label, *options, *source;
    uint32_t crashes, kills;
    bool has_crashed; /* out: the compiler ended, twice */
    bool is_done;     /* out */
} tp_compile_job;
typedef void (*tp_compile_callback)(const tp_compile_job *job, double seconds, void *user);

/* Compiles all, in no particular order; the callback comes once per job, from the calling thread. What did not
 * work is left for the caller, who finds no binary. */
void tp_compilers_run(tp_compilers *compilers, tp_compile_job *jobs, uint32_t count,
                      tp_compile_callback callback, void *user);

#endif
