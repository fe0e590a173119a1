/* SPDX-License-Identifier: Apache-2.0
 * Second tier: what the command line tool shows about devices. May change in a minor version. */
#ifndef TPUCL_TOOLS_H
#define TPUCL_TOOLS_H

#include <tpucl/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---- */
/* Every OpenCL device there is, usable or not. Thread-safe to read. */
typedef struct tpucl_device_list tpucl_device_list;

/* Succeeds with an empty list when there is no loader, no driver or no device; the notes say so. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_device_list_create(tpucl_device_list **out_list);
TPUCL_API void tpucl_device_list_destroy(tpucl_device_list *list);
TPUCL_API int32_t tpucl_device_list_count(const tpucl_device_list *list);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_device_list_info(const tpucl_device_list *list,
                                                               int32_t index,
                                                               tpucl_device_info *out_info);
/* The place in the list of the one device that a selector means. TPUCL_NO_DEVICE with a list of
 * what there is. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_device_list_select(const tpucl_device_list *list,
                                                                 const char *selector,
                                                                 int32_t *out_index);
/* What was skipped and why, one sentence each; NULL past the end. Borrowed from the list. */
TPUCL_API const char *tpucl_device_list_note(const tpucl_device_list *list, int32_t index);

#ifdef __cplusplus
}
#endif
#endif
