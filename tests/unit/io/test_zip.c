/* SPDX-License-Identifier: Apache-2.0
 * Round trip, and archives that nobody should trust. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/zip.h"

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/tpucl-zip-XXXXXX");
    int handle = mkstemp(path);
    cr_assert_geq(handle, 0);
    close(handle);
}

static void remove_path(void)
{
    unlink(path);
}

TestSuite(zip, .init = make_path, .fini = remove_path);

static char *write_two(size_t *out_length)
{
    const tp_zip_member members[] = {{"config.json", "{\"a\": 1}", 8}, {"assets/words.txt", "", 0}};
    char *bytes;
    cr_assert_eq(tp_zip_write(path, members, 2), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_file_read(path, 1 << 20, &bytes, out_length), TPUCL_OK);
    return bytes;
}

Test(zip, round_trip)
{
    tp_zip *zip;
    char *bytes;
    size_t length;
    tp_free(write_two(&length));
    cr_assert_eq(tp_zip_open(path, &zip), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_zip_count(zip), 2);
    cr_assert_str_eq(tp_zip_entry_at(zip, 1)->name, "assets/words.txt");
    const tp_zip_entry *entry = tp_zip_find(zip, "config.json");
    cr_assert_not_null(entry);
    cr_assert_eq(entry->bytes, 8);
    cr_assert_eq(entry->stored_bytes, 8);
    cr_assert_eq(tp_zip_read(zip, entry, 8, &bytes, &length), TPUCL_OK);
    cr_assert_eq(length, 8);
    cr_assert_str_eq(bytes, "{\"a\": 1}");
    tp_free(bytes);
    cr_assert_eq(tp_zip_read(zip, entry, 7, &bytes, &length), TPUCL_CORRUPT_DATA);
    cr_assert_null(tp_zip_find(zip, "Config.json"));
    tp_zip_close(zip);
}

Test(zip, same_members_give_same_bytes)
{
    size_t length, again;
    char *first = write_two(&length), *second = write_two(&again);
    cr_assert_eq(length, again);
    cr_assert_eq(memcmp(first, second, length), 0);
    tp_free(first);
    tp_free(second);
}

/* Replaces every `from` by `to`, of the same length. */
static void replace(char *bytes, size_t length, const char *from, const char *to)
{
    const size_t step = strlen(from);
    int found = 0;
    for (size_t i = 0; i + step <= length; i++)
        if (memcmp(bytes + i, from, step) == 0) {
            memcpy(bytes + i, to, step);
            found++;
        }
    cr_assert_gt(found, 0);
}

static void expect_refused(const char *bytes, size_t length, const char *sentence)
{
    tp_zip *zip = NULL;
    cr_assert_eq(tp_zip_open_bytes(bytes, length, "hostile", &zip), TPUCL_CORRUPT_DATA, "%s",
                 sentence);
    cr_assert_not_null(strstr(tpucl_last_error()->message, sentence), "'%s' in '%s'", sentence,
                       tpucl_last_error()->message);
}

Test(zip, names_that_leave_the_archive_are_refused)
{
    static const struct {
        const char *name, *sentence;
    } cases[] = {{"../fig.json", "'..'"},
                 {"/onfig.json", "begins with '/'"},
                 {"con\\ig.json", "backslash"},
                 {"con\nig.json", "control character"},
                 {"a/../g.json", "'..'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length;
        char *bytes = write_two(&length);
        replace(bytes, length, "config.json", cases[i].name);
        expect_refused(bytes, length, cases[i].sentence);
        tp_free(bytes);
    }
}

/* Offset of the first central directory record (APPNOTE.TXT 4.3.12). */
static size_t find_record(const char *bytes, size_t length)
{
    for (size_t i = 0; i + 4 < length; i++)
        if (memcmp(bytes + i, "PK\1\2", 4) == 0) return i;
    cr_assert_fail("no central directory");
    return 0;
}

Test(zip, links_encryption_and_bombs_are_refused)
{
    size_t length;
    char *bytes = write_two(&length);
    const size_t record = find_record(bytes, length);
    bytes[record + 5] = 3;                     /* made by: unix */
    bytes[record + 41] = (char)(0120777 >> 8); /* mode, upper half of the external attributes */
    bytes[record + 40] = (char)0120777;
    expect_refused(bytes, length, "link");
    tp_free(bytes);

    bytes = write_two(&length);
    bytes[record + 8] |= 1;
    expect_refused(bytes, length, "encrypted");
    tp_free(bytes);

    bytes = write_two(&length);
    bytes[record + 10] = 14; /* LZMA */
    expect_refused(bytes, length, "neither stored nor deflated");
    tp_free(bytes);

    bytes = write_two(&length);
    bytes[record + 10] = 8;   /* deflated, */
    bytes[record + 27] = 127; /* to 2 GiB from 8 bytes */
    expect_refused(bytes, length, "1000 times");
    tp_free(bytes);

    bytes = write_two(&length);
    bytes[record + 23] = bytes[record + 27] = 127;
    expect_refused(bytes, length, "larger than the archive");
    tp_free(bytes);
}

Test(zip, a_changed_byte_is_found)
{
    tp_zip *zip;
    size_t length, ignored;
    char *bytes = write_two(&length), *entry;
    replace(bytes, length, "{\"a\": 1}", "{\"a\": 2}");
    cr_assert_eq(tp_zip_open_bytes(bytes, length, "changed", &zip), TPUCL_OK);
    cr_assert_eq(tp_zip_read(zip, tp_zip_entry_at(zip, 0), 100, &entry, &ignored),
                 TPUCL_CORRUPT_DATA);
    tp_zip_close(zip);
    tp_free(bytes);
    cr_assert_eq(tp_zip_open_bytes("no zip at all", 13, "text", &zip), TPUCL_CORRUPT_DATA);
    cr_assert_eq(tp_zip_open("/nowhere/at/all.zip", &zip), TPUCL_NOT_FOUND);
}
