/* SPDX-License-Identifier: Apache-2.0
 * See source.h. The embedded tables are written by cmake/embed_files.cmake.
 */
#include "kernel/source.h"

#include <string.h>
#include "core/alloc.h"
#include "core/env.h"
#include "core/file.h"
#include "core/str.h"

extern const tp_embedded_file tp_kernel_files[];
extern const tp_embedded_file tp_kernel_num_files[];

/* Far above the deepest real chain (4); only a circle gets there. */
#define MAX_DEPTH 16
#define MAX_FILE_BYTES ((size_t)1 << 20)

const tp_embedded_file *tp_kernel_source_files(void)
{
    return tp_kernel_files;
}

static tpucl_status find_in(const tp_embedded_file *files, const char *name, const char **out_text)
{
    for (; files->name != NULL; files++) {
        if (strcmp(files->name, name) == 0) {
            *out_text = files->text;
            return TPUCL_OK;
        }
    }
    return TP_FAIL(TPUCL_NOT_FOUND, "there is no kernel source '%.200s'", name);
}

tpucl_status tp_kernel_source_find(const char *name, tp_arena *arena, const char **out_text)
{
    if (tp_str_starts_with(name, "num/")) return find_in(tp_kernel_num_files, name, out_text);
    const char *folder = tp_env_text(TP_ENV_KERNEL_DIR);
    if (folder == NULL) return find_in(tp_kernel_files, name, out_text);

    const char *path = tp_file_join(arena, folder, name);
    if (path == NULL) return TPUCL_OUT_OF_MEMORY;
    char *bytes = NULL;
    TP_TRY(tp_file_read(path, MAX_FILE_BYTES, &bytes, NULL));
    *out_text = tp_arena_strdup(arena, bytes);
    tp_free(bytes);
    return *out_text == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
}

enum { MAX_GUARDED = 64 };

typedef struct expansion {
    tp_arena *arena;
    tp_str_builder builder;
    const char *guarded[MAX_GUARDED]; /* files that were included and need not be again */
    int guarded_count;
    int conditions; /* #if that are open, and how many of them are include guards */
    int guards;
} expansion;

static bool begins(tp_view line, const char *word)
{
    const size_t length = strlen(word);
    return line.length >= length && memcmp(line.data, word, length) == 0;
}

/* Takes comments out that begin a line; no tokens change. */
static void strip_comment(tp_view *inout_line, bool *inout_is_inside)
{
    tp_view line = tp_view_trim(*inout_line);
    if (!*inout_is_inside && !begins(line, "/*")) return;
    const size_t skipped = *inout_is_inside ? 0 : 2;
    *inout_is_inside = true;
    for (size_t i = skipped; i + 1 < line.length; i++) {
        if (line.data[i] != '*' || line.data[i + 1] != '/') continue;
        *inout_is_inside = false;
        *inout_line = (tp_view){line.data + i + 2, line.length - i - 2};
        return;
    }
    *inout_line = (tp_view){line.data, 0};
}

/* The name in `#include "name"`, or the empty view. */
static tp_view included_name(tp_view line)
{
    const tp_view none = {0};
    line = tp_view_trim(line);
    if (line.length == 0 || line.data[0] != '#') return none;
    line = tp_view_trim((tp_view){line.data + 1, line.length - 1});
    const size_t word = sizeof "include" - 1;
    if (line.length < word || memcmp(line.data, "include", word) != 0) return none;
    line = tp_view_trim((tp_view){line.data + word, line.length - word});
    if (line.length < 3 || line.data[0] != '"') return none;
    const char *end = memchr(line.data + 1, '"', line.length - 1);
    if (end == NULL) return none;
    return (tp_view){line.data + 1, (size_t)(end - line.data - 1)};
}

/* Is all of the text between #ifndef NAME, #define NAME and the #endif that belongs to them? */
static bool is_guarded(const char *text)
{
    tp_view rest = tp_view_of(text), line;
    int depth = 0, lines = 0;
    bool is_comment = false, is_closed = false;
    while (tp_view_next(&rest, '\n', &line)) {
        strip_comment(&line, &is_comment);
        line = tp_view_trim(line);
        if (line.length == 0) continue;
        if (is_closed) return false;
        lines++;
        if (lines == 1 && !begins(line, "#ifndef")) return false;
        if (lines == 2 && !begins(line, "#define")) return false;
        depth += begins(line, "#if");
        depth -= begins(line, "#endif");
        is_closed = depth == 0;
    }
    return is_closed;
}

/* Was the file included before, where no condition but include guards could leave it out? If not, it is now. */
static bool is_known(expansion *e, const char *name, bool has_guard)
{
    for (int i = 0; i < e->guarded_count; i++)
        if (strcmp(e->guarded[i], name) == 0) return true;
    if (has_guard && e->conditions == e->guards && e->guarded_count < MAX_GUARDED)
        e->guarded[e->guarded_count++] = name;
    return false;
}

static tpucl_status append_text(expansion *e, const char *name, const char *text, int depth)
{
    if (depth > MAX_DEPTH)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "kernel source '%.200s' is included %d levels deep: it includes itself",
                       name, depth);
    tp_view rest = tp_view_of(text), line;
    bool is_comment = false;
    for (int number = 1; tp_view_next(&rest, '\n', &line); number++) {
        strip_comment(&line, &is_comment);
        e->conditions += begins(tp_view_trim(line), "#if") - begins(tp_view_trim(line), "#endif");
        const tp_view included = included_name(line);
        if (included.length == 0) {
            tp_str_append_bytes(&e->builder, line.data, line.length);
            tp_str_append_char(&e->builder, '\n');
            continue;
        }
        const char *file = tp_arena_strndup(e->arena, included.data, included.length);
        const char *body = NULL;
        if (file == NULL) return TPUCL_OUT_OF_MEMORY;
        const tpucl_status status = tp_kernel_source_find(file, e->arena, &body);
        if (status != TPUCL_OK) {
            tp_error_note("line %d of '%.200s'", number, name);
            return status;
        }
        const bool has_guard = is_guarded(body);
        if (is_known(e, file, has_guard)) {
            tp_str_append_char(&e->builder, '\n');
            continue;
        }
        e->guards += has_guard;
        tp_str_builder_printf(&e->builder, "#line 1 \"%s\"\n", file);
        TP_TRY(append_text(e, file, body, depth + 1));
        e->guards -= has_guard;
        tp_str_builder_printf(&e->builder, "#line %d \"%s\"\n", number + 1, name);
    }
    return TPUCL_OK;
}

tpucl_status tp_kernel_source_expand(const char *text, tp_arena *arena, const char **out_text)
{
    expansion e = {.arena = arena};
    char *whole = NULL;
    tpucl_status status = TPUCL_OK;
    TP_TRY_GOTO(status, append_text(&e, "program", text, 0), done);
    TP_TRY_GOTO(status, tp_str_builder_finish(&e.builder, &whole, NULL), done);
    *out_text = tp_arena_strdup(arena, whole);
    if (*out_text == NULL) status = TPUCL_OUT_OF_MEMORY;
done:
    tp_free(whole);
    tp_str_builder_deinit(&e.builder);
    return status;
}
