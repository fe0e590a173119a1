/* SPDX-License-Identifier: Apache-2.0
 * Names and limits that writing and reading checkpoints share. */
#ifndef TP_IO_CHECKPOINT_INTERNAL_H
#define TP_IO_CHECKPOINT_INTERNAL_H

enum { TP_CHECKPOINT_FORMAT = 1, TP_CHECKPOINT_MAX_FILES = 16 };
#define TP_CHECKPOINT_MANIFEST "manifest.json"
/* Of a file: of its bytes. Of the manifest: of the compact text of the object without this member. */
#define TP_CHECKPOINT_SUM "crc32c"
#define TP_CHECKPOINT_SUFFIX ".safetensors"
/* Twelve digits: names in byte order are in the order of their steps. */
#define TP_CHECKPOINT_STEP_FORMAT "step-%012lld"
#define TP_CHECKPOINT_MAX_STEP 999999999999

#endif
