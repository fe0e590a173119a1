/* SPDX-License-Identifier: Apache-2.0
 * Second tier: what is in a file or folder that a training reads or writes. May change in a minor version. */
#ifndef TPUCL_INSPECT_H
#define TPUCL_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <tpucl/export.h>
#include <tpucl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was found; texts and rows are borrowed until it is destroyed. */
typedef struct tpucl_inspection tpucl_inspection;

/* One checkpoint of a folder, one tensor of a file, one tag of event files. */
typedef struct tpucl_inspection_row {
    const char *name; /* NULL: there is no such row */
    const char *type; /* "f32[784,128]", "scalar"; "" */
    uint64_t bytes;
    const char *note; /* "steps 0 to 1200, 13 values, the last 0.25"; "" */
    bool is_bad;      /* the note says what is wrong */
} tpucl_inspection_row;

/* Looks at `path`: a folder of checkpoints, one checkpoint, a .safetensors file, a Keras file of a model or of
 * weights, a file of TensorBoard's events, or a folder of such. Which one is seen from its content. Everything that
 * has a checksum is compared with it. TPUCL_NOT_FOUND, TPUCL_CORRUPT_DATA (the message names the file and what is
 * wrong), TPUCL_UNSUPPORTED: of no kind that is known here; files of other records have tpucl_records_read. */
TPUCL_API tpucl_status tpucl_inspect(const char *path,
                                     tpucl_inspection **out_inspection) TPUCL_MUST_CHECK;
TPUCL_API void tpucl_inspection_destroy(tpucl_inspection *inspection); /* accepts NULL */

/* "checkpoints", "checkpoint", "safetensors", "keras" or "events". */
TPUCL_API const char *tpucl_inspection_kind(const tpucl_inspection *inspection);
/* A sentence without its full stop: "12 tensors, 3.1 MB". */
TPUCL_API const char *tpucl_inspection_summary(const tpucl_inspection *inspection);
TPUCL_API tpucl_inspection_row tpucl_inspection_row_at(const tpucl_inspection *inspection,
                                                       int32_t index);
/* How many rows are bad. */
TPUCL_API int32_t tpucl_inspection_faults(const tpucl_inspection *inspection);
/* docs/json.md; free with tpucl_free. */
TPUCL_API tpucl_status tpucl_inspection_json(const tpucl_inspection *inspection,
                                             char **out_text) TPUCL_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
