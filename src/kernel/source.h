/* SPDX-License-Identifier: Apache-2.0
 * Kernel sources. The library carries kernels/ and the headers of num/ that compile as OpenCL C; a
 * program's text names them in #include lines, and tp_kernel_source_expand() puts their text in
 * place, so that what reaches the driver is complete. TPUCL_KERNEL_DIR names a folder to read
 * kernels/ from instead, for work on kernels without rebuilding.
 */
#ifndef TP_KERNEL_SOURCE_H
#define TP_KERNEL_SOURCE_H

#include "core/arena.h"
#include "core/embedded.h"
#include "core/status.h"

/* The text of one file: "mxu/mxu_register.cl", "lib/tensor.clh", "num/exact_math.h". Borrowed:
 * static, or in `arena` when read from TPUCL_KERNEL_DIR. TPUCL_NOT_FOUND names the file. */
tpucl_status tp_kernel_source_find(const char *name, tp_arena *arena, const char **out_text);

/* `text` with every line `#include "name"` replaced by that file's text, and the lines in it
 * likewise, each time: exact_math.h counts on being included several times. Left out are comments that begin a line,
 * and a file all of which stands in an include guard, after the first time: an MXU kernel's text is 0.2 MB so instead of
 * 0.5, and texts are hashed at every start. Each piece is followed by #line, so that build logs point into the file.
 * `#include <...>` is left alone. The result lives in `arena`. TPUCL_NOT_FOUND with the includer's name,
 * TPUCL_INVALID_ARGUMENT for files that include each other in a circle. */
tpucl_status tp_kernel_source_expand(const char *text, tp_arena *arena, const char **out_text);

/* All embedded files, for listings and for the program cache's key; ended by a NULL name. */
const tp_embedded_file *tp_kernel_source_files(void);

#endif
