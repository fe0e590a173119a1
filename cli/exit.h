/* SPDX-License-Identifier: Apache-2.0
 * Exit codes of the command. Scripts rely on them: never renumbered. */
#ifndef TP_CLI_EXIT_H
#define TP_CLI_EXIT_H

#include <tpucl/status.h>

/* X(NAME, code, when) */
#define TP_EXIT_LIST(X)                                                                            \
    X(DONE, 0, "done")                                                                             \
    X(FAILED, 1, "failed: the message says why; also when verify found a difference")              \
    X(USAGE, 2, "wrong usage, or a configuration that cannot be right")                            \
    X(NO_DEVICE, 3, "no usable OpenCL device")                                                     \
    X(DEVICE_MEMORY, 4, "out of device memory")                                                    \
    X(INTERRUPTED, 5, "interrupted, with the state of the steps done written")

typedef enum tp_exit {
#define TP_EXIT_ENUM(name, code, when) TP_EXIT_##name = code,
    TP_EXIT_LIST(TP_EXIT_ENUM)
#undef TP_EXIT_ENUM
} tp_exit;

/* The code that belongs to a status of the library. */
tp_exit tp_exit_of_status(tpucl_status status);

#endif
