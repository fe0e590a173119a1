/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: everything that a training needs to go on, in a folder per step.
 *
 *   FOLDER/step-000000001200/params.safetensors    one file per part
 *                            state.safetensors
 *                            manifest.json         written last: sizes and CRC-32C of the files
 *
 * The manifest is the commit mark: a folder without one was not finished, or is being removed, and is never read.
 * Every file is written aside, synced and renamed, so that this holds after a crash at any point, and in buckets,
 * where one object is replaced at once and several are not.
 *
 * What is read is hostile until its sizes and sums are those of the manifest.
 *
 * Threads: functions of the folder are for one writer at a time; readers may come at any time.
 */
#ifndef TP_IO_CHECKPOINT_H
#define TP_IO_CHECKPOINT_H

#include "core/arena.h"
#include "core/json.h"
#include "core/problems.h"
#include "io/safetensors.h"

/* ---- writing ---- */

typedef struct tp_checkpoint_part {
    const char *name; /* "params": the file is params.safetensors */
    const tp_tensor_entry *entries;
    int32_t count;
} tp_checkpoint_part;

/* Writes the checkpoint of `step`; one that is there already is replaced. `state`, the text of a JSON object, becomes
 * a member of the manifest. On failure the folder has no complete checkpoint of this step, and the others are as
 * they were. Makes `folder` where it is missing. */
tpucl_status tp_checkpoint_write(const char *folder, int64_t step, const tp_checkpoint_part *parts,
                                 int32_t part_count, const char *state) TPUCL_MUST_CHECK;

/* Removes one: its manifest first. One that does not exist is fine. */
tpucl_status tp_checkpoint_remove(const char *folder, int64_t step) TPUCL_MUST_CHECK;

/* ---- what is there ---- */

/* Steps of the complete ones, rising, in `arena`; and of those without a manifest. A folder that does not exist has
 * none. */
typedef struct tp_checkpoint_steps {
    const int64_t *complete, *incomplete;
    size_t complete_count, incomplete_count;
} tp_checkpoint_steps;
tpucl_status tp_checkpoint_list(const char *folder, tp_arena *arena,
                                tp_checkpoint_steps *out_steps) TPUCL_MUST_CHECK;

/* FOLDER/step-000000001200, in `arena`; NULL when memory fails. */
const char *tp_checkpoint_path(tp_arena *arena, const char *folder, int64_t step);

/* ---- reading ---- */

typedef struct tp_checkpoint tp_checkpoint;

/* Opens FOLDER/step-..., or the folder itself that `path` is (step -1). Reads its parts and compares sizes and sums.
 * TPUCL_NOT_FOUND without a manifest, TPUCL_CORRUPT_DATA names the file and what is wrong. */
tpucl_status tp_checkpoint_open(const char *path, tp_checkpoint **out_checkpoint) TPUCL_MUST_CHECK;
/* The newest one that is complete and whole; what was passed over, newest first, is added to `skipped`.
 * TPUCL_NOT_FOUND when there is none. */
tpucl_status tp_checkpoint_open_newest(const char *folder, tp_problems *skipped,
                                       tp_checkpoint **out_checkpoint) TPUCL_MUST_CHECK;
/* The manifest alone, for listings: nothing is compared and there are no parts. */
tpucl_status tp_checkpoint_open_manifest(const char *path,
                                         tp_checkpoint **out_checkpoint) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_checkpoint_close(tp_checkpoint *checkpoint);

/* Borrowed until closed. */
const char *tp_checkpoint_name(const tp_checkpoint *checkpoint); /* its path */
int64_t tp_checkpoint_step(const tp_checkpoint *checkpoint);
const tp_json *tp_checkpoint_state(const tp_checkpoint *checkpoint); /* an object */
/* NULL: it has no such part. */
const tp_safetensors *tp_checkpoint_find_part(const tp_checkpoint *checkpoint, const char *name);

/* The files, as the manifest has them. */
typedef struct tp_checkpoint_file {
    const char *name;
    uint64_t bytes;
    uint32_t crc32c;
} tp_checkpoint_file;
int32_t tp_checkpoint_file_count(const tp_checkpoint *checkpoint);
const tp_checkpoint_file *tp_checkpoint_file_at(const tp_checkpoint *checkpoint, int32_t index);

#endif
