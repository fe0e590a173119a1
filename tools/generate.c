/* SPDX-License-Identifier: Apache-2.0
 * Writes what is made from tables in the code: configs/schema/run.schema.json, docs/ops.md, and the
 * tables inside docs/config.md, docs/environment.md, docs/expressions.md and docs/topology.md.
 *
 *   tpucl_generate write <source folder>    brings them up to date
 *   tpucl_generate check <source folder>    exit code 1 and a list when one is not (run by the tests)
 *
 * Inside a document the part between "<!-- generated -->" and "<!-- end of generated -->" is replaced. */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/env.h"
#include "core/file.h"
#include "core/str.h"
#include "model/expression.h"
#include "ops/registry.h"
#include "topo/config.h"
#include "topo/topology.h"

static const char begin_mark[] = "<!-- generated -->\n", end_mark[] = "<!-- end of generated -->\n";
enum { MAX_FILE_BYTES = 1 << 20 };

static tpucl_status make_environment(char **out_text)
{
    tp_str_builder text = {0};
    tp_str_append(&text, "| variable | value | meaning |\n|---|---|---|\n");
    for (int id = 0; id < TP_ENV_COUNT; id++) {
        const tp_env_row *row = tp_env_describe((tp_env_id)id);
        tp_str_builder_printf(&text, "| `%s` | %s | %s |\n", row->name, row->value, row->meaning);
    }
    return tp_str_builder_finish(&text, out_text, NULL);
}

static tpucl_status make_figures(char **out_text)
{
    tp_str_builder text = {0};
    tp_str_append(&text, "| figure | unit | meaning |\n|---|---|---|\n");
#define FIGURE_ROW(id, key, unit, meaning)                                                         \
    tp_str_builder_printf(&text, "| `%s` | %s | %s |\n", key, unit, meaning);
    TP_FIGURE_LIST(FIGURE_ROW)
#undef FIGURE_ROW
    return tp_str_builder_finish(&text, out_text, NULL);
}

static const struct {
    const char *path;
    bool whole; /* the file is nothing but the text */
    tpucl_status (*make)(char **out_text);
} outputs[] = {
    {"configs/schema/run.schema.json", true, tp_config_schema},
    {"docs/config.md", false, tp_config_markdown},
    {"docs/environment.md", false, make_environment},
    {"docs/topology.md", false, make_figures},
    {"docs/expressions.md", false, tp_expression_markdown},
    {"docs/ops.md", true, tp_ops_markdown},
};

/* The document with its generated part replaced. */
static tpucl_status splice(const char *path, const char *document, const char *part,
                           char **out_text)
{
    const char *begin = strstr(document, begin_mark);
    const char *end = begin ? strstr(begin, end_mark) : NULL;
    if (!end)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "expected '%.18s' and '%.25s' in '%s'", begin_mark,
                       end_mark, path);
    tp_str_builder text = {0};
    begin += strlen(begin_mark);
    tp_str_append_bytes(&text, document, (size_t)(begin - document));
    tp_str_append(&text, part);
    tp_str_append(&text, end);
    return tp_str_builder_finish(&text, out_text, NULL);
}

/* Compares one output with what is there, and writes it when `write` says so. */
static tpucl_status bring_up_to_date(const char *path, size_t index, bool write, bool *out_stale)
{
    char *part = NULL, *document = NULL, *wanted = NULL;
    tpucl_status status = outputs[index].make(&part);
    if (status != TPUCL_OK) goto done;
    status = tp_file_read(path, MAX_FILE_BYTES, &document, NULL);
    bool absent = status == TPUCL_NOT_FOUND && outputs[index].whole;
    if (status != TPUCL_OK && !absent) goto done;
    status = outputs[index].whole ? TPUCL_OK : splice(path, document, part, &wanted);
    if (status != TPUCL_OK) goto done;
    const char *text = outputs[index].whole ? part : wanted;
    *out_stale = absent || strcmp(document, text) != 0;
    if (*out_stale && write) status = tp_file_write_atomic(path, text, strlen(text));
done:
    tp_free(part);
    tp_free(document);
    tp_free(wanted);
    return status;
}

int main(int argument_count, char **arguments)
{
    bool write = argument_count == 3 && strcmp(arguments[1], "write") == 0;
    bool check = argument_count == 3 && strcmp(arguments[1], "check") == 0;
    int stale_count = 0;
    if (!write && !check) {
        fprintf(stderr, "usage: tpucl_generate write|check <source folder>\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        char path[4096];
        bool stale = false;
        snprintf(path, sizeof path, "%s/%s", arguments[2], outputs[i].path);
        if (bring_up_to_date(path, i, write, &stale) != TPUCL_OK) {
            fprintf(stderr, "tpucl_generate: %s\n", tpucl_last_error()->message);
            return 1;
        }
        if (!stale) continue;
        stale_count++;
        fprintf(stderr, "%s: %s\n", outputs[i].path, write ? "written" : "not up to date");
    }
    if (check && stale_count) {
        fprintf(stderr, "run: tpucl_generate write %s\n", arguments[2]);
        return 1;
    }
    return 0;
}
