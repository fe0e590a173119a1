/* SPDX-License-Identifier: Apache-2.0
 * Status codes and the error record of a thread.
 *
 * Every call that can fail returns a tpucl_status; zero is success. The failing call also fills the
 * calling thread's error record with a sentence that holds the numbers, so read it on that thread.
 */
#ifndef TPUCL_STATUS_H
#define TPUCL_STATUS_H

#include <stdint.h>
#include <tpucl/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, when to use it). Values never change. */
#define TPUCL_STATUS_LIST(X)                                                                       \
    X(OK, 0, "success")                                                                            \
    X(INVALID_ARGUMENT, 1, "the caller passed something that can never be right")                  \
    X(INVALID_CONFIG, 2, "a configuration, model or topology is wrong; the message lists all")     \
    X(NOT_FOUND, 3, "a file, device, name or key does not exist")                                  \
    X(UNSUPPORTED, 4, "right, but this build, device or op cannot do it")                          \
    X(NO_DEVICE, 5, "no usable OpenCL device, or none that the selector matches")                  \
    X(OUT_OF_MEMORY, 6, "the host has no memory left")                                             \
    X(OUT_OF_DEVICE_MEMORY, 7, "a device's memory or a core's HBM is too small")                   \
    X(DEVICE_ERROR, 8, "OpenCL failed; the foreign code is the cl_int")                            \
    X(IO_ERROR, 9, "the operating system failed a file operation; the foreign code is errno")      \
    X(CORRUPT_DATA, 10, "bytes that do not follow their format: bad magic, checksum, length")      \
    X(END_OF_DATA, 11, "a data set has no further element; not an error by itself")                \
    X(INTERRUPTED, 12, "stopped on request, in a state that can be continued")                     \
    X(NOT_EXACT, 13, "a device or kernel did not reproduce the contract's bits")                   \
    X(INTERNAL, 14, "a broken invariant: a bug in tpucl")

typedef enum tpucl_status {
#define TPUCL_STATUS_ENUM(name, value, text) TPUCL_##name = value,
    TPUCL_STATUS_LIST(TPUCL_STATUS_ENUM)
#undef TPUCL_STATUS_ENUM
} tpucl_status;

/* What went wrong last on this thread. Fixed size: reporting "out of memory" needs no memory. */
typedef struct tpucl_error {
    tpucl_status status;
    /* cl_int, errno, ... of the component that failed; 0 when there is none */
    int64_t foreign_code;
    char message[2048]; /* one sentence or several lines, no trailing full stop or newline */
    char trail
        [1024]; /* "function (file:line)" of each frame passed, innermost first, newline separated */
} tpucl_error;

/* "TPUCL_NO_DEVICE" and so on; "TPUCL_UNKNOWN" for a number that is no status. Never NULL. */
TPUCL_API const char *tpucl_status_name(tpucl_status status);

/* The calling thread's record: borrowed, never NULL, valid until this thread's next failing call. */
TPUCL_API const tpucl_error *tpucl_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
