/* SPDX-License-Identifier: Apache-2.0
 * Reading, folders and names. Writing is in file_write.c. */
#include "core/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/array.h"
#include "core/file_error.h"

tpucl_status tp_file_fail(const char *action, const char *path, int code)
{
    char text[128];
    /* The GNU form returns the text, which need not be in the buffer. */
    const char *reason = strerror_r(code, text, sizeof text);
    tpucl_status status = code == ENOENT || code == ENOTDIR ? TPUCL_NOT_FOUND
                          : code == ENOMEM                  ? TPUCL_OUT_OF_MEMORY
                                                            : TPUCL_IO_ERROR;
    return TP_FAIL_CODE(status, code, "cannot %s '%s': %s", action, path, reason);
}

static tpucl_status no_memory(const char *path, size_t bytes)
{
    return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for the %zu bytes of '%s'", bytes, path);
}

/* Reads to the end of the file, whose size may change meanwhile or (pipes) be unknown. */
static tpucl_status read_all(int descriptor, const char *path, size_t max_bytes, size_t expected,
                             char **out_bytes, size_t *out_length)
{
    size_t capacity = (expected < max_bytes ? expected : max_bytes) + 1, length = 0;
    char *bytes = tp_alloc(capacity + 1);
    if (!bytes) return no_memory(path, capacity);
    for (;;) {
        if (length == capacity) {
            size_t wanted = capacity + capacity / 2 + 4096;
            char *grown = tp_alloc_grow(bytes, length, wanted + 1, 1);
            if (!grown) {
                tp_free(bytes);
                return no_memory(path, wanted);
            }
            bytes = grown;
            capacity = wanted;
        }
        ssize_t got = read(descriptor, bytes + length, capacity - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            int code = errno;
            tp_free(bytes);
            return tp_file_fail("read", path, code);
        }
        if (got == 0) break;
        length += (size_t)got;
        if (length > max_bytes) {
            tp_free(bytes);
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "'%s' is larger than %zu bytes, the most that is "
                           "read here",
                           path, max_bytes);
        }
    }
    bytes[length] = '\0';
    *out_bytes = bytes;
    *out_length = length;
    return TPUCL_OK;
}

tpucl_status tp_file_read(const char *path, size_t max_bytes, char **out_bytes, size_t *out_length)
{
    *out_bytes = NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return tp_file_fail("open", path, errno);
    struct stat info = {0};
    tpucl_status status = TPUCL_OK;
    size_t length = 0;
    if (max_bytes > SIZE_MAX / 4) max_bytes = SIZE_MAX / 4;
    const bool known = fstat(descriptor, &info) == 0;
    if (!S_ISREG(info.st_mode) && max_bytes > TP_FILE_MAX_UNSIZED_BYTES)
        max_bytes = TP_FILE_MAX_UNSIZED_BYTES;
    if (!known)
        status = tp_file_fail("examine", path, errno);
    else if (S_ISDIR(info.st_mode))
        status = tp_file_fail("read", path, EISDIR);
    else if (info.st_size > 0 && (uint64_t)info.st_size > max_bytes)
        status = TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' has %lld bytes, at most %zu are read here",
                         path, (long long)info.st_size, max_bytes);
    else
        status = read_all(descriptor, path, max_bytes, (size_t)info.st_size, out_bytes, &length);
    close(descriptor);
    if (out_length) *out_length = length;
    return status;
}

tpucl_status tp_file_read_head(const char *path, size_t bytes, void *out, size_t *out_length)
{
    struct stat info;
    *out_length = 0;
    if (stat(path, &info) != 0) return tp_file_fail("open", path, errno);
    if (S_ISFIFO(info.st_mode) || S_ISDIR(info.st_mode)) return TPUCL_OK;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return tp_file_fail("open", path, errno);
    ssize_t got = read(descriptor, out, bytes);
    tpucl_status status = got < 0 ? tp_file_fail("read", path, errno) : TPUCL_OK;
    close(descriptor);
    if (got > 0) *out_length = (size_t)got;
    return status;
}

bool tp_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool tp_file_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

tpucl_status tp_file_size(const char *path, uint64_t *out_bytes)
{
    struct stat info;
    if (stat(path, &info) != 0) return tp_file_fail("examine", path, errno);
    *out_bytes = (uint64_t)info.st_size;
    return TPUCL_OK;
}

tpucl_status tp_file_make_folders(const char *path)
{
    char *copy = tp_alloc_strdup(path);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = TPUCL_OK;
    for (char *end = copy; status == TPUCL_OK && *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char saved = *end;
        *end = '\0';
        int code = mkdir(copy, 0777) == 0 ? 0 : errno; /* the next call may change errno */
        if (code && !tp_file_is_folder(copy))
            status = tp_file_fail("make folder", copy, code == EEXIST ? ENOTDIR : code);
        if (!code) status = tp_file_sync_entry(copy);
        *end = saved;
    }
    tp_free(copy);
    return status;
}

TP_ARRAY_DEFINE(name_list, const char *)

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

tpucl_status tp_file_list(const char *path, tp_arena *arena, const char *const **out_names,
                          size_t *out_count)
{
    tpucl_status status = TPUCL_OK;
    name_list names = {0};
    const char **copy = NULL;
    DIR *folder = opendir(path);
    if (!folder) return tp_file_fail("list folder", path, errno);
    for (errno = 0;; errno = 0) {
        const struct dirent *entry = readdir(folder);
        if (!entry) break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        const char *name = tp_arena_strdup(arena, entry->d_name);
        status = name ? name_list_push(&names, name) : TPUCL_OUT_OF_MEMORY;
        if (status != TPUCL_OK) goto done;
    }
    if (errno) {
        status = tp_file_fail("list folder", path, errno);
        goto done;
    }
    copy = TP_ARENA_NEW_ARRAY(arena, const char *, names.count);
    if (!copy) {
        status = TPUCL_OUT_OF_MEMORY;
        goto done;
    }
    if (names.count) {
        qsort(names.items, names.count, sizeof names.items[0], compare_names);
        memcpy(copy, names.items, names.count * sizeof names.items[0]);
    }
    *out_names = copy;
    *out_count = names.count;
done:
    name_list_deinit(&names);
    closedir(folder);
    return status;
}

tpucl_status tp_file_remove(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT) return tp_file_fail("remove", path, errno);
    return TPUCL_OK;
}

tpucl_status tp_file_remove_folder(const char *path)
{
    if (rmdir(path) != 0 && errno != ENOENT) return tp_file_fail("remove folder", path, errno);
    return TPUCL_OK;
}

char *tp_file_join(tp_arena *arena, const char *folder, const char *name)
{
    if (name[0] == '/' || folder[0] == '\0') return tp_arena_strdup(arena, name);
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    return tp_arena_printf(arena, "%s%s%s", folder, slash, name);
}

const char *tp_file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
