/* SPDX-License-Identifier: Apache-2.0
 * The disk cache; layout and rules are in the header. A cache must never be the reason why
 * something fails: every problem here ends as a miss or as an unstored file. */
#include "device/program_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/array.h"
#include "core/env.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/str.h"
#include "core/thread.h"

enum { HEADER_BYTES = 56, CRC_START = 16, STALE_SECONDS = 3600 };
static const char magic[8] = {'T', 'P', 'U', 'C', 'L', 'B', 'I', 'N'};
static const char suffix[] = ".clbin";

/* Far above any binary seen (about 0.1 MB from PoCL), far below what would hurt. */
#define MAX_FILE_BYTES ((size_t)256 << 20)

struct tp_program_cache {
    char *folder;
    uint64_t max_bytes;
    tp_mutex mutex; /* guards what follows */
    tp_program_cache_counts counts;
    uint64_t estimated_bytes; /* what is stored, as far as this process knows */
    bool has_estimate;
};

/* ---- bytes ---- */

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get_u32(const uint8_t *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static uint32_t checksum(const uint8_t *bytes, size_t length)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, length);
}

/* Why a file is not what was stored under `key`, or NULL when it is. */
static const char *find_flaw(const uint8_t *bytes, size_t length, const uint8_t key[32])
{
    if (length < HEADER_BYTES) return "too short";
    if (memcmp(bytes, magic, sizeof magic) != 0) return "wrong magic";
    if (get_u32(bytes + 8) != TP_PROGRAM_CACHE_FORMAT) return "wrong version";
    if (memcmp(bytes + 16, key, 32) != 0) return "wrong key";
    if (get_u64(bytes + 48) != length - HEADER_BYTES) return "wrong length";
    if (get_u32(bytes + 12) != checksum(bytes + CRC_START, length - CRC_START))
        return "wrong checksum";
    return NULL;
}

/* ---- places ---- */

static tpucl_status default_folder(char **out_folder)
{
    static const struct {
        tp_env_id id;
        const char *below;
    } places[] = {{TP_ENV_CACHE_DIR, "/programs"},
                  {TP_ENV_XDG_CACHE_HOME, "/tpucl/programs"},
                  {TP_ENV_HOME, "/.cache/tpucl/programs"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *base = tp_env_text(places[i].id);
        if (!base) continue;
        tp_str_builder builder = {0};
        tp_str_append(&builder, base);
        tp_str_append(&builder, places[i].below);
        return tp_str_builder_finish(&builder, out_folder, NULL);
    }
    return TP_FAIL(
        TPUCL_NOT_FOUND,
        "no place for compiled kernels: none of TPUCL_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
}

/* NULL when memory fails; free with tp_free. */
static char *path_of(const tp_program_cache *cache, const uint8_t key[32])
{
    const size_t folder_length = strlen(cache->folder);
    const size_t room = folder_length + 1 + 64 + sizeof suffix;
    char *path = tp_alloc(room);
    if (!path) return NULL;
    memcpy(path, cache->folder, folder_length);
    path[folder_length] = '/';
    for (int i = 0; i < 32; i++)
        snprintf(path + folder_length + 1 + 2 * i, 3, "%02x", key[i]);
    memcpy(path + folder_length + 65, suffix, sizeof suffix);
    return path;
}

tpucl_status tp_program_cache_open(const char *folder, uint64_t max_bytes,
                                   tp_program_cache **out_cache)
{
    *out_cache = NULL;
    tp_program_cache *cache = TP_NEW(tp_program_cache);
    if (!cache) return TPUCL_OUT_OF_MEMORY;
    cache->max_bytes = max_bytes ? max_bytes : TP_PROGRAM_CACHE_DEFAULT_BYTES;
    tpucl_status status = TPUCL_OK;
    if (!folder)
        status = default_folder(&cache->folder);
    else if (!(cache->folder = tp_alloc_strdup(folder)))
        status = TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = tp_mutex_init(&cache->mutex);
    if (status != TPUCL_OK) {
        tp_free(cache->folder);
        tp_free(cache);
        return status;
    }
    *out_cache = cache;
    return TPUCL_OK;
}

void tp_program_cache_close(tp_program_cache *cache)
{
    if (!cache) return;
    tp_mutex_deinit(&cache->mutex);
    tp_free(cache->folder);
    tp_free(cache);
}

const char *tp_program_cache_folder(const tp_program_cache *cache)
{
    return cache->folder;
}

void tp_program_cache_get_counts(tp_program_cache *cache, tp_program_cache_counts *out_counts)
{
    tp_mutex_lock(&cache->mutex);
    *out_counts = cache->counts;
    tp_mutex_unlock(&cache->mutex);
}

static void count(tp_program_cache *cache, uint64_t *counter)
{
    tp_mutex_lock(&cache->mutex);
    (*counter)++;
    tp_mutex_unlock(&cache->mutex);
}

/* ---- load ---- */

void tp_program_cache_reject(tp_program_cache *cache, const uint8_t key[32])
{
    char *path = path_of(cache, key);
    if (path) (void)unlink(path);
    tp_free(path);
    count(cache, &cache->counts.rejected);
}

bool tp_program_cache_has(const tp_program_cache *cache, const uint8_t key[32])
{
    char *path = path_of(cache, key);
    const bool has = path && tp_file_exists(path);
    tp_free(path);
    return has;
}

static tpucl_status load_file(tp_program_cache *cache, const char *path, const uint8_t key[32],
                              void **out_data, size_t *out_bytes)
{
    char *bytes = NULL;
    size_t length = 0;
    if (!tp_file_exists(path)) return TP_FAIL(TPUCL_NOT_FOUND, "'%s' does not exist", path);
    if (tp_file_read(path, MAX_FILE_BYTES, &bytes, &length) != TPUCL_OK) {
        tp_error_note("while reading the program cache");
        return TPUCL_NOT_FOUND;
    }
    const char *flaw = find_flaw((const uint8_t *)bytes, length, key);
    if (flaw) {
        tp_free(bytes);
        TP_LOG_WARNING("device", "'%s' is damaged (%s) and is removed", path, flaw);
        tp_program_cache_reject(cache, key);
        return TP_FAIL(TPUCL_NOT_FOUND, "'%s' is damaged: %s", path, flaw);
    }
    memmove(bytes, bytes + HEADER_BYTES, length - HEADER_BYTES);
    (void)utimensat(AT_FDCWD, path, NULL, 0); /* used now: goes last when room is needed */
    *out_data = bytes;
    *out_bytes = length - HEADER_BYTES;
    return TPUCL_OK;
}

tpucl_status tp_program_cache_load(tp_program_cache *cache, const uint8_t key[32], void **out_data,
                                   size_t *out_bytes)
{
    *out_data = NULL;
    *out_bytes = 0;
    char *path = path_of(cache, key);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = load_file(cache, path, key, out_data, out_bytes);
    tp_free(path);
    count(cache, status == TPUCL_OK ? &cache->counts.hits : &cache->counts.misses);
    return status;
}

/* ---- room ---- */

typedef struct stored_file {
    const char *name; /* in the arena of the listing */
    uint64_t bytes;
    struct timespec used;
} stored_file;
TP_ARRAY_DEFINE(stored_files, stored_file)

static int compare_use(const void *left, const void *right)
{
    const stored_file *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* "<key>.clbin.<unique>.part", which only tp_file_writer makes: the folder may hold files of others. */
static bool is_aside(const char *name)
{
    return strlen(name) > 64 && strncmp(name + 64, suffix, sizeof suffix - 1) == 0 &&
           tp_str_ends_with(name, ".part");
}

/* All binaries, oldest use first, and their sum. Files aside that a crashed writer left are
 * removed. */
static tpucl_status list_stored(const tp_program_cache *cache, tp_arena *arena, stored_files *files,
                                uint64_t *out_total)
{
    const char *const *names = NULL;
    size_t name_count = 0;
    *out_total = 0;
    TP_TRY(tp_file_list(cache->folder, arena, &names, &name_count));
    const time_t now = time(NULL);
    for (size_t i = 0; i < name_count; i++) {
        const char *path = tp_file_join(arena, cache->folder, names[i]);
        if (!path) return TPUCL_OUT_OF_MEMORY;
        struct stat info;
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
            continue; /* another process removed it */
        if (!tp_str_ends_with(names[i], suffix)) {
            const bool is_stale = now - info.st_mtim.tv_sec > STALE_SECONDS;
            if (is_stale && is_aside(names[i])) (void)unlink(path);
            continue;
        }
        const stored_file file = {
            .name = path, .bytes = (uint64_t)info.st_size, .used = info.st_mtim};
        TP_TRY(stored_files_push(files, file));
        *out_total += file.bytes;
    }
    if (files->count) qsort(files->items, files->count, sizeof files->items[0], compare_use);
    return TPUCL_OK;
}

/* With the mutex held: counts what is there, and removes the least recently used beyond the limit.
 * */
static tpucl_status make_room(tp_program_cache *cache)
{
    tp_arena *arena = NULL;
    stored_files files = {0};
    uint64_t total = 0;
    TP_TRY(tp_arena_create(0, &arena));
    const tpucl_status status = list_stored(cache, arena, &files, &total);
    if (status == TPUCL_OK && total > cache->max_bytes) {
        for (size_t i = 0; i < files.count && total > cache->max_bytes / 4 * 3; i++) {
            if (unlink(files.items[i].name) != 0) continue;
            total -= files.items[i].bytes;
            cache->counts.evicted++;
        }
    }
    cache->estimated_bytes = total;
    cache->has_estimate = status == TPUCL_OK;
    stored_files_deinit(&files);
    tp_arena_destroy(arena);
    return status;
}

/* ---- store ---- */

static tpucl_status store_file(tp_program_cache *cache, const uint8_t key[32], const void *data,
                               size_t bytes)
{
    uint8_t header[HEADER_BYTES] = {0};
    memcpy(header, magic, sizeof magic);
    put_u32(header + 8, TP_PROGRAM_CACHE_FORMAT);
    memcpy(header + 16, key, 32);
    put_u64(header + 48, bytes);
    uLong sum = crc32_z(crc32_z(0, NULL, 0), header + CRC_START, HEADER_BYTES - CRC_START);
    sum = crc32_z(sum, data, bytes);
    put_u32(header + 12, (uint32_t)sum);

    TP_TRY(tp_file_make_folders(cache->folder));
    char *path = path_of(cache, key);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    tp_file_writer *writer = NULL;
    tpucl_status status = tp_file_writer_open(path, &writer);
    tp_free(path);
    if (status != TPUCL_OK) return status;
    status = tp_file_writer_write(writer, header, sizeof header);
    if (status == TPUCL_OK) status = tp_file_writer_write(writer, data, bytes);
    if (status == TPUCL_OK) return tp_file_writer_commit(writer);
    tp_file_writer_abort(writer);
    return status;
}

void tp_program_cache_store(tp_program_cache *cache, const uint8_t key[32], const void *data,
                            size_t bytes)
{
    tpucl_error record;
    tp_error_capture(&record); /* the caller's error, if there is one, is not ours to change */
    tpucl_status status = TPUCL_OK;
    if (bytes > MAX_FILE_BYTES - HEADER_BYTES || bytes > cache->max_bytes)
        status =
            TP_FAIL(TPUCL_UNSUPPORTED, "a binary of %zu bytes is larger than the cache", bytes);
    else
        status = store_file(cache, key, data, bytes);
    tp_mutex_lock(&cache->mutex);
    if (status == TPUCL_OK) {
        cache->counts.stores++;
        cache->estimated_bytes += bytes + HEADER_BYTES;
        if (!cache->has_estimate || cache->estimated_bytes > cache->max_bytes)
            status = make_room(cache);
    }
    if (status != TPUCL_OK) {
        const bool is_first =
            !cache->counts.last_problem[0]; /* the others are the same once more */
        snprintf(cache->counts.last_problem, sizeof cache->counts.last_problem, "%.250s",
                 tpucl_last_error()->message);
        if (is_first)
            TP_LOG_WARNING("device",
                           "compiled kernels are not kept: %s; TPUCL_CACHE_DIR names another place",
                           cache->counts.last_problem);
    }
    tp_mutex_unlock(&cache->mutex);
    tp_error_restore(&record);
}
