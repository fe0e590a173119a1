/* SPDX-License-Identifier: Apache-2.0
 * Tuning records: which choice (kernel/mxu_choice.h) was measured to be the fastest for a product on a
 * class of devices. They come from files, in this order; the first file that has the problem counts:
 *
 *   overlay   <folder>/<device class>.json, written by `tpucl tune`. Folder: $TPUCL_TUNING_DIR, else
 *             $XDG_DATA_HOME/tpucl/tuning, else $HOME/.local/share/tpucl/tuning (XDG Base Directory
 *             Specification 0.8: data, because measuring it again takes a while)
 *   shipped   tuning/<device class>.json of the repository, inside the library
 *   related   shipped files of other device classes with the same width class
 *
 * A problem that no file has is planned by heuristics. TPUCL_TUNING=0 leaves all records out.
 *
 * A file is
 *     {"format": 1, "device_class": TEXT, "width_class": TEXT, "records": [RECORD, ...]}
 *     RECORD  {"problem": TEXT,            tp_mxu_key_print
 *              "best": CHOICE or null,     null: nothing beats the heuristics
 *              "default": CHOICE,          what heuristics chose when it was measured
 *              "best_seconds", "default_seconds", "ratio", "spread": NUMBER, "rounds": INTEGER,
 *              "clock": "wall" or "processor",   which time it is
 *              "device", "driver", "tpucl", "kernels", "date": TEXT, "contract": INTEGER}
 *     CHOICE  {"variant": TEXT, "TILE_M": INTEGER, ...}   every knob of the variant, no other
 * and hostile input: what is malformed is left out and told of, once per process, by a warning.
 *
 * A set of records is read-only once open, and so thread-safe.
 */
#ifndef TP_KERNEL_RECORDS_H
#define TP_KERNEL_RECORDS_H

#include "core/arena.h"
#include "core/array.h"
#include "core/hash.h"
#include "core/json_write.h"
#include "core/problems.h"
#include "kernel/mxu_choice.h"

#define TP_RECORDS_FORMAT 1
#define TP_RECORDS_MAX_FILE_BYTES ((size_t)8 << 20)

typedef struct tp_mxu_record {
    const char *problem; /* its key */
    bool has_best;       /* false: heuristics are */
    tp_mxu_choice best, heuristic;
    double best_seconds, default_seconds; /* medians of the rounds */
    double ratio;                         /* median of default / best, round by round */
    double spread;                        /* (largest - smallest of these) / median */
    int32_t rounds;
    const char *clock; /* "wall" or "processor" */
    /* where it comes from: as in tp_device_caps; version and SHA-256 of the kernel sources; UTC day */
    const char *device, *driver, *tpucl, *kernels, *date;
    int32_t contract;
} tp_mxu_record;
TP_ARRAY_DEFINE(tp_mxu_record_array, tp_mxu_record)

/* ---- names ---- */

enum { TP_MXU_KEY_BYTES = 512, TP_DEVICE_CLASS_BYTES = 192 };

/* The text under which a problem is recorded, one for each problem that is planned alike: kind, sizes,
 * geometry, strides, dtypes, precision; not its epilogue, nor which operands stand once per device.
 * "dot 128 512 784 bf16*bf16", "conv 32 28 28 1 8 3x3 pad=1,1 out=28x28 bf16*bf16 op=filter_grad".
 * Returns out_text. */
const char *tp_mxu_key_print(const tp_mxu_problem *problem, char out_text[TP_MXU_KEY_BYTES]);

/* "pocl-cpu-v16-pairs": platform, type, floats of a vector, pairs of bf16; of GPUs and accelerators,
 * which differ more than that tells, the device's name, too. */
void tp_device_class_print(const tp_device_caps *caps, char out_text[TP_DEVICE_CLASS_BYTES]);
/* "cpu-v16-pairs": what devices of several classes may share. */
void tp_width_class_print(const tp_device_caps *caps, char out_text[TP_DEVICE_CLASS_BYTES]);

/* SHA-256 over all kernel sources as they are used (TPUCL_KERNEL_DIR may stand in). */
tpucl_status tp_kernel_sources_hash(char out_hex[TP_SHA256_HEX_BYTES]);

/* Where `tpucl tune` writes; NULL when none of the three variables is set, or memory fails. */
const char *tp_records_folder(tp_arena *arena);

/* ---- files ---- */

typedef struct tp_record_file {
    const char *device_class, *width_class;
    tp_mxu_record_array records; /* sorted by problem */
} tp_record_file;

/* Everything that is wrong goes into `problems`, with line and key; what is right is kept. `name` is for
 * messages. Texts live in `arena`. Fails for lack of memory only. */
tpucl_status tp_record_file_parse(const char *text, size_t length, const char *name,
                                  tp_arena *arena, tp_problems *problems, tp_record_file *out_file);
void tp_record_file_deinit(tp_record_file *file);

/* NULL when the file does not have it. */
const tp_mxu_record *tp_record_file_find(const tp_record_file *file, const char *problem);

/* Adds the record or puts it in the place of the one for the same problem. Texts are borrowed. */
tpucl_status tp_record_file_put(tp_record_file *file, const tp_mxu_record *record);

/* The whole file as one object. */
void tp_record_file_write(tp_json_writer *writer, const tp_record_file *file);

/* Writes aside, syncs, renames. */
tpucl_status tp_record_file_save(const tp_record_file *file, const char *path);

/* One element of "records", without its braces; api/ writes records with it, too. */
void tp_mxu_record_write(tp_json_writer *writer, const tp_mxu_record *record);

/* ---- sets ---- */

typedef enum tp_record_tier {
    TP_RECORDS_OVERLAY,
    TP_RECORDS_SHIPPED,
    TP_RECORDS_RELATED
} tp_record_tier;
/* "overlay", "shipped", "related" */
const char *tp_record_tier_name(tp_record_tier tier);

typedef struct tp_record_source {
    tp_record_tier tier;
    const char *name; /* path, or "tuning/<class>.json" */
    bool is_there;
    tp_record_file file;
    const char *problems; /* what of it was left out and why, or NULL */
} tp_record_source;

typedef struct tp_mxu_records tp_mxu_records;

/* The files for such a device; with TPUCL_TUNING=0 none. What is wrong in them is no failure. */
tpucl_status tp_mxu_records_open(const tp_device_caps *caps, tp_mxu_records **out_records);
void tp_mxu_records_close(tp_mxu_records *records);

/* In the order in which they are asked, those that are not there included; NULL past the end. */
const tp_record_source *tp_mxu_records_source(const tp_mxu_records *records, int32_t index);

/* The record that counts and where it stands, or NULL. `out_source` may be NULL. */
const tp_mxu_record *tp_mxu_records_find(const tp_mxu_records *records,
                                         const tp_mxu_problem *problem,
                                         const tp_record_source **out_source);

/* Logs a warning about records the first time in a process, later ones as information. */
void tp_mxu_records_warn(const char *text);

#endif
