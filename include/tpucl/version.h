/* SPDX-License-Identifier: Apache-2.0
 * The version: written here and nowhere else (CMake reads this file).
 * MAJOR changes when a first-tier call changes meaning or signature, MINOR when something is added, PATCH
 * for fixes. The numeric contract has its own number: results of two versions agree bit for bit exactly
 * when TPUCL_CONTRACT_VERSION is the same.
 */
#ifndef TPUCL_VERSION_H
#define TPUCL_VERSION_H

#include <tpucl/export.h>

#define TPUCL_VERSION_MAJOR 0
#define TPUCL_VERSION_MINOR 1
#define TPUCL_VERSION_PATCH 0
#define TPUCL_CONTRACT_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": the version of the library that is linked, which may differ from the header's. Thread-safe. */
TPUCL_API const char *tpucl_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
