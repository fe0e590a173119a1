/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kernel/source.h"

static tp_arena *arena;

static void setup(void)
{
    unsetenv("TPUCL_KERNEL_DIR");
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
}

static void teardown(void)
{
    tp_arena_destroy(arena);
}

TestSuite(source, .init = setup, .fini = teardown);

static const char *expand(const char *text)
{
    const char *out = NULL;
    cr_assert(tp_kernel_source_expand(text, arena, &out) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    return out;
}

Test(source, text_without_includes_stays)
{
    cr_assert_str_eq(expand("a\n  b \n\nc\n"), "a\n  b \n\nc\n");
}

Test(source, system_includes_and_other_directives_stay)
{
    cr_assert_str_eq(expand("#include <opencl.h>\n#define include \"x\"\n"),
                     "#include <opencl.h>\n#define include \"x\"\n");
}

Test(source, includes_are_replaced_down_to_the_last)
{
    const char *begin_text = "before\n#line 1 \"mxu/mxu_direct.cl\"\n";
    const char *end_text = "#line 3 \"program\"\nafter\n";
    const char *out = expand("before\n # include \"mxu/mxu_direct.cl\" // comment\nafter\n");
    cr_assert(strstr(out, "kernel void mxu_direct(") != NULL);
    cr_assert(strstr(out, "static inline mxu_place mxu_find_place") != NULL, "mxu/operands.clh");
    cr_assert(strstr(out, "#define TP_TENSOR(") != NULL, "lib/tensor.clh, two levels down");
    cr_assert(strstr(out, "flush)(EM_FLOAT x)") != NULL, "num/exact_basic.h, from another root");
    cr_assert(strstr(out, "\n#include \"") == NULL); /* comments may quote one */
    cr_assert(strncmp(out, begin_text, strlen(begin_text)) == 0);
    const char *end = strstr(out, end_text);
    cr_assert(end != NULL && end[strlen(end_text)] == '\0');
}

/* exact_math.h is a template: each width is an inclusion of its own. */
Test(source, a_file_may_be_included_twice)
{
    const char *once = expand("#include \"num/exact_math.h\"\n");
    const char *twice = expand("#include \"num/exact_math.h\"\n#include \"num/exact_math.h\"\n");
    cr_assert(strlen(twice) > 2 * strlen(once) - 40);
}

Test(source, a_guarded_file_is_included_once)
{
    const char *once = expand("#include \"lib/tensor.clh\"\n");
    const char *twice = expand("#include \"lib/tensor.clh\"\n#include \"lib/tensor.clh\"\nx\n");
    cr_assert(strstr(once, "#define TP_TENSOR(") != NULL);
    cr_assert(strncmp(twice, once, strlen(once) - 1) == 0);
    cr_assert_str_eq(twice + strlen(once), "\nx\n");
}

/* Whether the first time counts is not known here. */
Test(source, a_guarded_file_in_a_condition_is_included_again)
{
    const char *include = "#include \"lib/tensor.clh\"\n";
    const char *out = expand("#if X\n#include \"lib/tensor.clh\"\n#endif\n"
                             "#include \"lib/tensor.clh\"\n");
    cr_assert(strlen(out) > 2 * strlen(expand(include)) - 40);
}

Test(source, comments_that_begin_a_line_are_left_out)
{
    cr_assert_str_eq(expand("/* one\n * two */\na /* three */ b\n  /* four */ c\n"),
                     "\n\na /* three */ b\n c\n");
}

Test(source, a_missing_file_is_named_with_its_includer)
{
    const char *out = NULL;
    cr_assert(tp_kernel_source_expand("x\n#include \"lib/none.clh\"\n", arena, &out) ==
              TPUCL_NOT_FOUND);
    const char *message = tpucl_last_error()->message;
    cr_assert(strstr(message, "'lib/none.clh'") != NULL, "%s", message);
    cr_assert(strstr(message, "line 2 of 'program'") != NULL, "%s", message);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fputs(text, file);
    fclose(file);
}

Test(source, a_folder_replaces_the_embedded_kernels)
{
    char folder[] = "/tmp/tpucl-source-XXXXXX", path[512];
    const char *out = NULL;
    cr_assert(mkdtemp(folder) != NULL);
    write_file(folder, "mine.cl", "#include \"num/exact_basic.h\"\nmine\n");
    write_file(folder, "circle.cl", "#include \"circle.cl\"\n");
    setenv("TPUCL_KERNEL_DIR", folder, 1);
    out = expand("#include \"mine.cl\"\n");
    cr_assert(strstr(out, "mine\n") != NULL);
    cr_assert(strstr(out, "flush)(EM_FLOAT x)") != NULL, "num/ is always the embedded one");
    cr_assert(tp_kernel_source_expand("#include \"lib/tensor.clh\"\n", arena, &out) ==
              TPUCL_NOT_FOUND);
    cr_assert(tp_kernel_source_expand("#include \"circle.cl\"\n", arena, &out) ==
              TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "includes itself") != NULL);
    snprintf(path, sizeof path, "%s/mine.cl", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/circle.cl", folder);
    unlink(path);
    rmdir(folder);
}

/* Nothing that a kernel includes may be missing from the library. */
Test(source, every_embedded_file_expands)
{
    int count = 0;
    for (const tp_embedded_file *file = tp_kernel_source_files(); file->name != NULL; file++) {
        const char *out = NULL;
        cr_expect(tp_kernel_source_expand(file->text, arena, &out) == TPUCL_OK, "%s: %s",
                  file->name, tpucl_last_error()->message);
        count++;
    }
    cr_expect(count >= 12, "only %d files", count);
}
