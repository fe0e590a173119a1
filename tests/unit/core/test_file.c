/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file.h"
#include "harness/alloc_loop.h"

static char folder[64], path[128];

static void make_folder(void)
{
    strcpy(folder, "/tmp/tpucl-file-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static size_t count_files(void)
{
    tp_arena *arena;
    const char *const *names;
    size_t count;
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    cr_assert_eq(tp_file_list(folder, arena, &names, &count), TPUCL_OK);
    tp_arena_destroy(arena);
    return count;
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(file, .init = make_folder, .fini = remove_folder);

static void expect_content(const char *expected)
{
    char *bytes;
    size_t length;
    cr_assert_eq(tp_file_read(path, 1 << 20, &bytes, &length), TPUCL_OK);
    cr_assert_eq(length, strlen(expected));
    cr_assert_str_eq(bytes, expected);
    tp_free(bytes);
}

Test(file, write_read_replace)
{
    char *bytes;
    cr_assert_eq(tp_file_write_atomic(path, "first", 5), TPUCL_OK);
    expect_content("first");
    cr_assert_eq(chmod(path, 0600), 0);
    cr_assert_eq(tp_file_write_atomic(path, "", 0), TPUCL_OK);
    expect_content("");
    struct stat info;
    stat(path, &info);
    cr_assert_eq(info.st_mode & 0777, 0600, "a replaced file keeps its mode");
    cr_assert_eq(count_files(), 1);
    cr_assert_eq(tp_file_write_atomic(path, "0123456789", 10), TPUCL_OK);
    cr_assert_eq(tp_file_read(path, 10, &bytes, NULL), TPUCL_OK);
    tp_free(bytes);
    cr_assert_eq(tp_file_read(path, 9, &bytes, NULL), TPUCL_INVALID_ARGUMENT);
    cr_assert_null(bytes);
}

Test(file, large_file_in_pieces)
{
    enum { PIECES = 1000 };
    tp_file_writer *writer;
    char piece[997], *bytes;
    size_t length;
    cr_assert_eq(tp_file_writer_open(path, &writer), TPUCL_OK);
    for (int i = 0; i < PIECES; i++) {
        memset(piece, 'a' + i % 26, sizeof piece);
        cr_assert_eq(tp_file_writer_write(writer, piece, sizeof piece), TPUCL_OK);
    }
    cr_assert_not(tp_file_exists(path));
    cr_assert_eq(tp_file_writer_commit(writer), TPUCL_OK);
    cr_assert_eq(tp_file_read(path, 1 << 20, &bytes, &length), TPUCL_OK);
    cr_assert_eq(length, PIECES * sizeof piece);
    for (size_t i = 0; i < length; i++)
        cr_assert_eq(bytes[i], (char)('a' + (i / sizeof piece) % 26));
    tp_free(bytes);
}

Test(file, abort_leaves_the_old_file)
{
    tp_file_writer *writer;
    cr_assert_eq(tp_file_write_atomic(path, "old", 3), TPUCL_OK);
    cr_assert_eq(tp_file_writer_open(path, &writer), TPUCL_OK);
    cr_assert_eq(tp_file_writer_write(writer, "new", 3), TPUCL_OK);
    tp_file_writer_abort(writer);
    tp_file_writer_abort(NULL);
    expect_content("old");
    cr_assert_eq(count_files(), 1);
}

/* A size limit stands for a full disk: both fail in write(). */
Test(file, failed_write_leaves_the_old_file)
{
    static char large[1 << 20];
    cr_assert_eq(tp_file_write_atomic(path, "old", 3), TPUCL_OK);
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {4096, 4096};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    /* the first fails while writing, the second, which fits into the buffer, in commit */
    cr_assert_eq(tp_file_write_atomic(path, large, sizeof large), TPUCL_IO_ERROR);
    cr_assert_eq(tpucl_last_error()->foreign_code, EFBIG);
    cr_assert_eq(tp_file_write_atomic(path, large, 5000), TPUCL_IO_ERROR);
    cr_assert_eq(tpucl_last_error()->foreign_code, EFBIG);
    cr_assert(strstr(tpucl_last_error()->message, path));
    expect_content("old");
    cr_assert_eq(count_files(), 1);
}

Test(file, errors_name_path_and_reason)
{
    char *bytes;
    cr_assert_eq(tp_file_read("/nonexistent/x", 10, &bytes, NULL), TPUCL_NOT_FOUND);
    cr_assert_str_eq(tpucl_last_error()->message,
                     "cannot open '/nonexistent/x': No such file or directory");
    cr_assert_eq(tpucl_last_error()->foreign_code, ENOENT);
    cr_assert_eq(tp_file_read(folder, 10, &bytes, NULL), TPUCL_IO_ERROR);
    cr_assert_eq(tpucl_last_error()->foreign_code, EISDIR);
    cr_assert_eq(tp_file_write_atomic(folder, "x", 1), TPUCL_IO_ERROR);
    cr_assert_eq(tp_file_write_atomic("/nonexistent/x", "x", 1), TPUCL_NOT_FOUND);
    uint64_t size;
    cr_assert_eq(tp_file_size("/nonexistent/x", &size), TPUCL_NOT_FOUND);
}

Test(file, folders)
{
    char deep[160], name[200];
    snprintf(deep, sizeof deep, "%s/a/b//c/", folder);
    cr_assert_eq(tp_file_make_folders(deep), TPUCL_OK);
    cr_assert_eq(tp_file_make_folders(deep), TPUCL_OK);
    cr_assert(tp_file_is_folder(deep));
    cr_assert_eq(tp_file_write_atomic(path, "x", 1), TPUCL_OK);
    snprintf(name, sizeof name, "%s/below", path);
    cr_assert_neq(tp_file_make_folders(name), TPUCL_OK);
    snprintf(name, sizeof name, "%s/link", deep);
    cr_assert_eq(symlink("nowhere", name), 0);
    cr_assert_neq(tp_file_make_folders(name), TPUCL_OK);
    cr_assert_eq(tpucl_last_error()->foreign_code, ENOTDIR, "%s", tpucl_last_error()->message);
    cr_assert_eq(count_files(), 2);
    cr_assert_eq(tp_file_remove(path), TPUCL_OK);
    cr_assert_eq(tp_file_remove(path), TPUCL_OK);
    cr_assert_eq(count_files(), 1);
}

Test(file, list_is_sorted_and_names_join)
{
    tp_arena *arena;
    const char *const *names;
    size_t count;
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    const char *const made[] = {"b", "a", "c"};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(tp_file_write_atomic(tp_file_join(arena, folder, made[i]), "", 0), TPUCL_OK);
    cr_assert_eq(tp_file_list(folder, arena, &names, &count), TPUCL_OK);
    cr_assert_eq(count, 3);
    cr_assert(!strcmp(names[0], "a") && !strcmp(names[1], "b") && !strcmp(names[2], "c"));
    cr_assert_str_eq(tp_file_join(arena, "x", "y"), "x/y");
    cr_assert_str_eq(tp_file_join(arena, "x/", "y"), "x/y");
    cr_assert_str_eq(tp_file_join(arena, "x", "/y"), "/y");
    cr_assert_str_eq(tp_file_join(arena, "", "y"), "y");
    cr_assert_str_eq(tp_file_base_name("a/b.cl"), "b.cl");
    tp_arena_destroy(arena);
}

static tpucl_status read_and_write(void *user)
{
    char *bytes;
    (void)user;
    TP_TRY(tp_file_write_atomic(path, "content", 7));
    TP_TRY(tp_file_read(path, 100, &bytes, NULL));
    tp_free(bytes);
    return TPUCL_OK;
}

Test(file, every_allocation_may_fail)
{
    alloc_loop_run(read_and_write, NULL);
}

/* Files without a size, such as those in /proc, are read to their end. */
Test(file, unknown_size)
{
    char *bytes;
    size_t length;
    cr_assert_eq(tp_file_read("/proc/self/maps", 1 << 24, &bytes, &length), TPUCL_OK);
    cr_assert_gt(length, 100);
    tp_free(bytes);
    cr_assert_eq(tp_file_read("/proc/self/maps", 10, &bytes, &length), TPUCL_INVALID_ARGUMENT);
}
