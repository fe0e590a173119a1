/* SPDX-License-Identifier: Apache-2.0
 * Files written by tools, names and texts that help is made of. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tpucl/tools.h>
#include <unistd.h>

static char folder[64];

static void enter_folder(void)
{
    strcpy(folder, "/tmp/tpucl-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

static int entries(void)
{
    FILE *list = popen("ls -A | wc -l", "r");
    int count = -1;
    cr_assert_eq(fscanf(list, "%d", &count), 1);
    pclose(list);
    return count;
}

TestSuite(tools, .init = enter_folder, .fini = leave_folder);

Test(tools, a_file_is_replaced_whole)
{
    char text[16] = {0};
    cr_assert_eq(tpucl_file_write("a", "first version", 13), TPUCL_OK);
    cr_assert_eq(tpucl_file_write("a", "second", 6), TPUCL_OK);
    FILE *file = fopen("a", "r");
    cr_assert_eq(fread(text, 1, sizeof text, file), 6);
    fclose(file);
    cr_assert_str_eq(text, "second");
    cr_assert_eq(entries(), 1);
}

Test(tools, asking_leaves_nothing)
{
    cr_assert_eq(tpucl_file_can_write("b"), TPUCL_OK);
    cr_assert_eq(entries(), 0);
    cr_assert_neq(tpucl_file_can_write("no/b"), TPUCL_OK);
    cr_assert_neq(tpucl_file_can_write("."), TPUCL_OK);
}

Test(tools, a_device_file_is_written_not_replaced)
{
    struct stat info;
    cr_assert_eq(tpucl_file_write("/dev/null", "x", 1), TPUCL_OK);
    cr_assert_eq(tpucl_file_write("/dev/full", "x", 1), TPUCL_IO_ERROR);
    cr_assert(strstr(tpucl_last_error()->message, "/dev/full"));
    cr_assert_eq(stat("/dev/full", &info), 0);
    cr_assert(S_ISCHR(info.st_mode));
}

Test(tools, tables_end)
{
    int32_t count = 0;
    while (tpucl_topology_name(count))
        count++;
    cr_assert_gt(count, 3);
    cr_assert_null(tpucl_topology_name(-1));
    cr_assert_str_eq(tpucl_environment_at(0).name, "TPUCL_CACHE_DIR");
    cr_assert_null(tpucl_environment_at(-1).name);
    cr_assert_null(tpucl_environment_at(1000).name);
    char *text = NULL;
    cr_assert_eq(tpucl_config_help(&text), TPUCL_OK);
    cr_assert(strstr(text, "optimizer.learning_rate"));
    tpucl_free(text);
}
