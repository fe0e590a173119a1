/* SPDX-License-Identifier: Apache-2.0
 * TPUCL_API marks what the library exports; everything else is hidden. TPUCL_MUST_CHECK makes the compiler
 * warn when a status is ignored. */
#ifndef TPUCL_EXPORT_H
#define TPUCL_EXPORT_H

#if defined(TPUCL_BUILDING)
#define TPUCL_API __attribute__((visibility("default")))
#else
#define TPUCL_API
#endif
#define TPUCL_MUST_CHECK __attribute__((warn_unused_result))

#endif
