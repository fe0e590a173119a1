/* SPDX-License-Identifier: Apache-2.0
 * The files of tests/golden/layers, written by tests/golden/gen_layers.py: a model, its inputs, and what
 * Keras makes of them in float64. Of tests that go through all of them.
 */
#ifndef TESTS_HARNESS_LAYER_CASE_H
#define TESTS_HARNESS_LAYER_CASE_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>

#include "golden/golden.h"
#include "harness/graph_run.h"
#include "model/model.h"

enum { LAYER_CASE_INPUTS = 8, LAYER_CASES = 1000 };

typedef struct layer_case {
    char name[128]; /* "add" */
    tp_json_document *document;
    const tp_json *root;
    int64_t batch;
    tp_model_input inputs[LAYER_CASE_INPUTS];
    int32_t input_count;
    void *arrays[LAYER_CASE_INPUTS]; /* f32 or s32 [batch, input...] */
} layer_case;

static inline int layer_case_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of all cases, sorted; freed by nobody. */
static inline int layer_case_list(char *out_paths[LAYER_CASES])
{
    static const char folder[] = TPUCL_SOURCE_DIR "/tests/golden/layers";
    int count = 0;
    DIR *dir = opendir(folder);
    cr_assert(dir, "%s", folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const size_t length = strlen(entry->d_name);
        if (length < 6 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
        cr_assert(count < LAYER_CASES);
        out_paths[count] = malloc(sizeof folder + length + 1);
        sprintf(out_paths[count++], "%s/%s", folder, entry->d_name);
    }
    closedir(dir);
    qsort(out_paths, (size_t)count, sizeof *out_paths, layer_case_compare);
    return count;
}

static inline void layer_case_read_input(layer_case *c, const tp_json *value)
{
    const int32_t index = c->input_count++;
    tp_model_input *input = &c->inputs[index];
    const tp_json *shape = tp_json_member(value, "shape"), *limit = tp_json_member(value, "limit");
    *input = (tp_model_input){.dtype = limit ? TP_S32 : TP_F32,
                              .name = tp_json_member(value, "name")->string,
                              .shape.rank = (int)shape->count};
    for (size_t d = 0; d < shape->count; d++)
        input->shape.dims[d] = shape->items[d].integer;
    const int64_t elems = c->batch * tp_shape_elems(&input->shape);
    float *array = malloc((size_t)elems * sizeof *array);
    c->arrays[index] = array;
    for (int64_t i = 0; i < elems; i++) {
        array[i] = golden_value((uint32_t)index + 1, (uint32_t)i);
        if (!limit) continue;
        const int64_t scaled = (int64_t)(((double)array[i] + 1) / 2 * (double)limit->integer);
        ((int32_t *)(void *)array)[i] =
            (int32_t)(scaled < limit->integer ? scaled : limit->integer - 1);
    }
}

static inline void layer_case_open(const char *path, layer_case *c)
{
    *c = (layer_case){0};
    const char *file = strrchr(path, '/') + 1;
    snprintf(c->name, sizeof c->name, "%.*s", (int)strlen(file) - 5, file);
    EXPECT_OK(tp_json_read_file(path, 1 << 24, &c->document));
    c->root = tp_json_root(c->document);
    c->batch = tp_json_member(c->root, "batch")->integer;
    const tp_json *inputs = tp_json_member(c->root, "inputs");
    for (size_t i = 0; i < inputs->count; i++)
        layer_case_read_input(c, &inputs->items[i]);
}

static inline void layer_case_close(layer_case *c)
{
    for (int32_t i = 0; i < c->input_count; i++)
        free(c->arrays[i]);
    tp_json_destroy(c->document);
}

static inline tp_model *layer_case_model(const layer_case *c, const tp_model_options *options)
{
    tp_model *model = NULL;
    const tpucl_status status = tp_model_create_many(tp_json_member(c->root, "model"), c->inputs,
                                                     c->input_count, options, &model);
    cr_assert(status == TPUCL_OK, "%s: %s", c->name, tpucl_last_error()->message);
    return model;
}

#endif
