/* SPDX-License-Identifier: Apache-2.0
 * Shared by the file sources: a failed system call as an error. */
#ifndef TP_CORE_FILE_ERROR_H
#define TP_CORE_FILE_ERROR_H

#include "core/status.h"

/* "cannot <action> '<path>': <text of errno value `code`>"; TPUCL_NOT_FOUND, TPUCL_OUT_OF_MEMORY or
 * TPUCL_IO_ERROR by the code. */
tpucl_status tp_file_fail(const char *action, const char *path, int code);

#endif
