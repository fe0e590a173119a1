/* SPDX-License-Identifier: Apache-2.0
 * Files. Every failure names the path, what was tried and the system's text; the foreign code is
 * errno. TPUCL_NOT_FOUND when the file or folder does not exist, TPUCL_IO_ERROR otherwise. */
#ifndef TP_CORE_FILE_H
#define TP_CORE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "core/arena.h"
#include "core/status.h"

/* The whole file, with a zero behind its last byte. More than `max_bytes`, or than
 * TP_FILE_MAX_UNSIZED_BYTES of what is no regular file (it may never end), is
 * TPUCL_INVALID_ARGUMENT. Free with tp_free. `out_length` may be NULL. */
enum { TP_FILE_MAX_UNSIZED_BYTES = 1 << 30 };
tpucl_status tp_file_read(const char *path, size_t max_bytes, char **out_bytes,
                          size_t *out_length) TPUCL_MUST_CHECK;

/* At most `bytes` from the beginning, to see what it is before all of it is read. *out_length is 0 for an
 * empty file, and for pipes, of which nothing can be read twice. */
tpucl_status tp_file_read_head(const char *path, size_t bytes, void *out, size_t *out_length);

/* ---- atomic replacement ---- */
/* Bytes go to a file aside in the same folder; commit syncs it, renames it over `path` and syncs
 * the folder. Until commit has returned TPUCL_OK the old file is untouched. Missing parent folders
 * are not made. */
typedef struct tp_file_writer tp_file_writer;
tpucl_status tp_file_writer_open(const char *path, tp_file_writer **out_writer) TPUCL_MUST_CHECK;
tpucl_status tp_file_writer_write(tp_file_writer *writer, const void *bytes,
                                  size_t length) TPUCL_MUST_CHECK;
/* Closes and frees in every case; on failure the file aside is removed. */
tpucl_status tp_file_writer_commit(tp_file_writer *writer) TPUCL_MUST_CHECK;
/* Gives up: removes the file aside. Accepts NULL. */
void tp_file_writer_abort(tp_file_writer *writer);

/* All of the above at once. */
tpucl_status tp_file_write_atomic(const char *path, const void *bytes,
                                  size_t length) TPUCL_MUST_CHECK;

/* ---- folders and names ---- */
bool tp_file_exists(const char *path);
bool tp_file_is_folder(const char *path);
tpucl_status tp_file_size(const char *path, uint64_t *out_bytes) TPUCL_MUST_CHECK;
/* Like mkdir -p; a folder that exists is fine, one that is made outlives a power failure. */
tpucl_status tp_file_make_folders(const char *path) TPUCL_MUST_CHECK;
/* Names in a folder without "." and "..", in byte order, in `arena`. */
tpucl_status tp_file_list(const char *path, tp_arena *arena, const char *const **out_names,
                          size_t *out_count) TPUCL_MUST_CHECK;
/* A file that does not exist is fine. */
tpucl_status tp_file_remove(const char *path) TPUCL_MUST_CHECK;
/* An empty folder; one that does not exist is fine. */
tpucl_status tp_file_remove_folder(const char *path) TPUCL_MUST_CHECK;
/* Syncs the folder that `path` is in, so that what was made, renamed or removed there stays so. */
tpucl_status tp_file_sync_entry(const char *path) TPUCL_MUST_CHECK;
/* "a" and "b" give "a/b"; an absolute `name` stands alone. NULL when memory fails. */
char *tp_file_join(tp_arena *arena, const char *folder, const char *name);
/* The part behind the last '/'. Borrowed. */
const char *tp_file_base_name(const char *path);

#endif
