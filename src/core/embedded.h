/* SPDX-License-Identifier: Apache-2.0
 * A file that the build put into the library (kernels, configurations). Tables end with a NULL
 * name. */
#ifndef TP_CORE_EMBEDDED_H
#define TP_CORE_EMBEDDED_H

#include <stddef.h>

typedef struct tp_embedded_file {
    const char *name; /* path relative to its root, e.g. "gemm/gemm_ref.cl" */
    const char *text; /* zero-terminated, so that it can be used as a string */
    size_t length_bytes;
} tp_embedded_file;

#endif
