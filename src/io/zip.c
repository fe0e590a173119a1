/* SPDX-License-Identifier: Apache-2.0
 * The only file that includes libzip. */
#include "io/zip.h"

#include <string.h>
#include <sys/stat.h>
#include <zip.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/file.h"
#include "core/map.h"
#include "core/str.h"

struct tp_zip {
    tp_arena *arena;
    const char *name;
    zip_t *archive;
    uint64_t bytes; /* of the archive */
    tp_zip_entry *entries;
    int32_t count;
    tp_map names;
};

static tpucl_status corrupt(const tp_zip *zip, const char *entry, const char *what)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': entry '%.100s' %s", zip->name, entry, what);
}

static tpucl_status fail_with(const char *name, zip_error_t *error)
{
    const bool is_memory = zip_error_code_zip(error) == ZIP_ER_MEMORY;
    const tpucl_status status = TP_FAIL_CODE(
        is_memory ? TPUCL_OUT_OF_MEMORY : TPUCL_CORRUPT_DATA, zip_error_code_zip(error),
        "'%s' is no zip archive that can be read: %s", name, zip_error_strerror(error));
    zip_error_fini(error);
    return status;
}

/* ---- checks ---- */

/* What is wrong with a name, or NULL. */
static const char *name_fault(const char *name, size_t length)
{
    if (length == 0) return "has no name";
    if (length > TP_ZIP_MAX_NAME_BYTES) return "has a name of more than 255 bytes";
    if (name[0] == '/') return "has a name that begins with '/'";
    for (size_t i = 0; i < length;) {
        const size_t step = tp_str_utf8_length(name + i, length - i);
        if (step == 0) return "has a name that is not UTF-8";
        if ((unsigned char)name[i] < 0x20 || name[i] == '\\')
            return "has a control character or a backslash in its name";
        i += step;
    }
    tp_view rest = {name, length}, part;
    while (tp_view_next(&rest, '/', &part))
        if (tp_view_equal_text(part, "..")) return "has '..' in its name";
    return NULL;
}

static const char *stat_fault(const tp_zip *zip, const zip_stat_t *stat)
{
    const zip_uint64_t needed =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((stat->valid & needed) != needed) return "does not say how large it is";
    if (stat->comp_size > zip->bytes) return "claims to be larger than the archive";
    if (stat->encryption_method != ZIP_EM_NONE) return "is encrypted";
    if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE)
        return "is neither stored nor deflated";
    if (stat->comp_method == ZIP_CM_STORE && stat->size != stat->comp_size)
        return "is stored, and has two sizes";
    if (stat->size > TP_ZIP_RATIO_FREE_BYTES && stat->size / TP_ZIP_MAX_RATIO > stat->comp_size)
        return "would unpack to more than 1000 times its size";
    return NULL;
}

static tpucl_status check_entry(tp_zip *zip, zip_uint64_t place, tp_zip_entry *entry)
{
    zip_stat_t stat;
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    if (zip_stat_index(zip->archive, place, 0, &stat) || !(stat.valid & ZIP_STAT_NAME))
        return corrupt(zip, "", "cannot be read");
    const char *fault = name_fault(stat.name, strlen(stat.name));
    if (!fault) fault = stat_fault(zip, &stat);
    if (fault) return corrupt(zip, stat.name, fault);
    if (zip_file_get_external_attributes(zip->archive, place, 0, &system, &attributes))
        return corrupt(zip, stat.name, "has no attributes");
    const mode_t mode = (mode_t)(attributes >> 16) & S_IFMT;
    if (system == ZIP_OPSYS_UNIX && mode && mode != S_IFREG && mode != S_IFDIR)
        return corrupt(zip, stat.name, "is a link or a device");
    *entry = (tp_zip_entry){.name = tp_arena_strdup(zip->arena, stat.name),
                            .bytes = stat.size,
                            .stored_bytes = stat.comp_size,
                            .place = place};
    return entry->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status read_entries(tp_zip *zip)
{
    uint64_t total = 0;
    const zip_int64_t count = zip_get_num_entries(zip->archive, 0);
    if (count > TP_ZIP_MAX_ENTRIES)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has %lld entries, a model has at most %d",
                       zip->name, (long long)count, TP_ZIP_MAX_ENTRIES);
    zip->entries = TP_ARENA_NEW_ARRAY(zip->arena, tp_zip_entry, (size_t)count + 1);
    if (!zip->entries) return TPUCL_OUT_OF_MEMORY;
    for (zip_int64_t i = 0; i < count; i++) {
        tp_zip_entry *entry = &zip->entries[zip->count];
        TP_TRY(check_entry(zip, (zip_uint64_t)i, entry));
        if (__builtin_add_overflow(total, entry->bytes, &total) || total > TP_ZIP_MAX_TOTAL_BYTES)
            return corrupt(zip, entry->name, "makes the archive unpack to more than 256 GiB");
        if (tp_map_find(&zip->names, entry->name, NULL))
            return corrupt(zip, entry->name, "stands twice in the archive");
        TP_TRY(tp_map_add(&zip->names, entry->name, (size_t)zip->count));
        if (!tp_str_ends_with(entry->name, "/")) zip->count++;
    }
    return TPUCL_OK;
}

/* ---- open, close ---- */

/* Takes over `source`. */
static tpucl_status open_source(zip_source_t *source, uint64_t bytes, const char *name,
                                tp_zip **out_zip)
{
    zip_error_t error;
    tp_arena *arena = NULL;
    tpucl_status status = tp_arena_create(0, &arena);
    tp_zip *zip = status == TPUCL_OK ? TP_ARENA_NEW(arena, tp_zip) : NULL;
    if (!zip || !(zip->name = tp_arena_strdup(arena, name))) {
        zip_source_free(source);
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    zip->arena = arena;
    zip->bytes = bytes;
    zip_error_init(&error);
    zip->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (!zip->archive) {
        zip_source_free(source);
        status = fail_with(name, &error);
        tp_zip_close(zip);
        return status;
    }
    zip_error_fini(&error);
    TP_TRY_GOTO(status, read_entries(zip), failed);
    *out_zip = zip;
    return TPUCL_OK;
failed:
    tp_zip_close(zip);
    return status;
}

tpucl_status tp_zip_open(const char *path, tp_zip **out_zip)
{
    zip_error_t error;
    uint64_t bytes;
    TP_TRY(tp_file_size(path, &bytes));
    zip_error_init(&error);
    zip_source_t *source = zip_source_file_create(path, 0, (zip_int64_t)bytes, &error);
    if (!source) return fail_with(path, &error);
    zip_error_fini(&error);
    return open_source(source, bytes, path, out_zip);
}

tpucl_status tp_zip_open_bytes(const void *bytes, size_t length, const char *name, tp_zip **out_zip)
{
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(bytes, length, 0, &error);
    if (!source) return fail_with(name, &error);
    zip_error_fini(&error);
    return open_source(source, length, name, out_zip);
}

void tp_zip_close(tp_zip *zip)
{
    if (!zip) return;
    if (zip->archive) zip_discard(zip->archive);
    tp_map_deinit(&zip->names);
    tp_arena_destroy(zip->arena);
}

/* ---- entries ---- */

int32_t tp_zip_count(const tp_zip *zip)
{
    return zip->count;
}

const tp_zip_entry *tp_zip_entry_at(const tp_zip *zip, int32_t index)
{
    return &zip->entries[index];
}

const tp_zip_entry *tp_zip_find(const tp_zip *zip, const char *name)
{
    for (int32_t i = 0; i < zip->count; i++)
        if (strcmp(zip->entries[i].name, name) == 0) return &zip->entries[i];
    return NULL;
}

/* Reads exactly the announced size; the read behind it is where libzip compares the checksum. */
static tpucl_status read_exactly(const tp_zip *zip, const tp_zip_entry *entry, zip_file_t *file,
                                 char *bytes)
{
    uint64_t done = 0;
    char extra;
    while (done < entry->bytes) {
        const zip_int64_t got = zip_fread(file, bytes + done, entry->bytes - done);
        if (got <= 0)
            return corrupt(zip, entry->name, got ? zip_file_strerror(file) : "is cut short");
        done += (uint64_t)got;
    }
    const zip_int64_t more = zip_fread(file, &extra, 1);
    if (more > 0) return corrupt(zip, entry->name, "is longer than it says");
    if (more < 0) return corrupt(zip, entry->name, "does not have the checksum that it should");
    return TPUCL_OK;
}

tpucl_status tp_zip_read(tp_zip *zip, const tp_zip_entry *entry, uint64_t max_bytes,
                         char **out_bytes, size_t *out_length)
{
    if (entry->bytes > max_bytes)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': entry '%s' has %llu bytes, expected at most %llu",
                       zip->name, entry->name, (unsigned long long)entry->bytes,
                       (unsigned long long)max_bytes);
    zip_file_t *file = zip_fopen_index(zip->archive, entry->place, 0);
    if (!file) return corrupt(zip, entry->name, zip_strerror(zip->archive));
    char *bytes = tp_alloc((size_t)entry->bytes + 1);
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    if (bytes) status = read_exactly(zip, entry, file, bytes);
    zip_fclose(file);
    if (status != TPUCL_OK) {
        tp_free(bytes);
        return status;
    }
    bytes[entry->bytes] = 0;
    *out_bytes = bytes;
    *out_length = (size_t)entry->bytes;
    return TPUCL_OK;
}

/* ---- writing ---- */

static tpucl_status add_member(zip_t *archive, const tp_zip_member *member)
{
    enum { FIRST_DAY_OF_1980 = (1 << 5) | 1 }; /* MS-DOS date: years since 1980, month, day */
    zip_source_t *source = zip_source_buffer(archive, member->bytes, member->length, 0);
    if (!source) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for a zip entry");
    const zip_int64_t place = zip_file_add(archive, member->name, source, ZIP_FL_ENC_UTF_8);
    if (place < 0) {
        zip_source_free(source);
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the entry '%s' cannot be added: %s", member->name,
                       zip_strerror(archive));
    }
    if (zip_set_file_compression(archive, (zip_uint64_t)place, ZIP_CM_STORE, 0) ||
        zip_file_set_dostime(archive, (zip_uint64_t)place, 0, FIRST_DAY_OF_1980, 0))
        return TP_FAIL(TPUCL_INTERNAL, "the entry '%s' cannot be set up: %s", member->name,
                       zip_strerror(archive));
    return TPUCL_OK;
}

/* The finished archive out of the source that it was written to. */
static tpucl_status write_source(zip_source_t *source, const char *path)
{
    zip_stat_t stat;
    char *bytes = NULL;
    tpucl_status status;
    zip_stat_init(&stat);
    if (zip_source_stat(source, &stat) || !(stat.valid & ZIP_STAT_SIZE) || zip_source_open(source))
        return TP_FAIL(TPUCL_INTERNAL, "the finished archive cannot be read back");
    bytes = tp_alloc(stat.size + 1);
    if (!bytes)
        status = TPUCL_OUT_OF_MEMORY;
    else if (zip_source_read(source, bytes, stat.size) != (zip_int64_t)stat.size)
        status = TP_FAIL(TPUCL_INTERNAL, "the finished archive cannot be read back");
    else
        status = tp_file_write_atomic(path, bytes, stat.size);
    zip_source_close(source);
    tp_free(bytes);
    return status;
}

tpucl_status tp_zip_write(const char *path, const tp_zip_member *members, int32_t count)
{
    zip_error_t error;
    tpucl_status status = TPUCL_OK;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, &error);
    if (!source) return fail_with(path, &error);
    zip_t *archive = zip_open_from_source(source, ZIP_TRUNCATE, &error);
    if (!archive) {
        zip_source_free(source);
        return fail_with(path, &error);
    }
    zip_error_fini(&error);
    zip_source_keep(source);
    for (int32_t i = 0; i < count && status == TPUCL_OK; i++)
        status = add_member(archive, &members[i]);
    if (status == TPUCL_OK && zip_close(archive) == 0) {
        status = write_source(source, path);
    } else {
        if (status == TPUCL_OK)
            status = TP_FAIL(TPUCL_INTERNAL, "the archive '%s' cannot be made: %s", path,
                             zip_strerror(archive));
        zip_discard(archive);
    }
    zip_source_free(source);
    return status;
}
