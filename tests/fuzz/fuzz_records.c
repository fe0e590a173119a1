/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: files of tuning records. Whatever the bytes are, each thing that is wrong has a sentence, what was
 * read is written and read back as the same, and every choice that was read is planned or declined for products of
 * all kinds. */
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/file.h"
#include "kernel/records.h"

static void require(bool condition)
{
    if (!condition) abort();
}

static const tp_device_caps cpu = {.type = TP_DEVICE_CPU,
                                   .compute_units = 4,
                                   .max_work_group_size = 4096,
                                   .max_allocation_bytes = 1 << 30,
                                   .local_memory_bytes = 1 << 18,
                                   .local_memory_is_ordinary = true,
                                   .preferred_float_vector = 16,
                                   .has_bf16_pairs = true};

static const tp_mxu_problem problems[] = {
    {.kind = TP_MXU_DOT,
     .batch = 2,
     .m = 65,
     .n = 64,
     .k = 200,
     .a = {.dtype = TP_BF16, .stride_batch = 65 * 200, .stride_outer = 1, .stride_inner = 65},
     .b = {.dtype = TP_BF16, .stride_batch = 64 * 200, .stride_outer = 1, .stride_inner = 64}},
    {.kind = TP_MXU_CONV_FILTER_GRAD,
     .batch = 1,
     .m = 16,
     .n = 32,
     .k = 14 * 14,
     .a = {.dtype = TP_BF16},
     .b = {.dtype = TP_F32},
     .conv = {1, 14, 14, 16, 14, 14, 32, 1, 1, 1, 1, 0, 0, 1, 1, 1}},
    {.kind = TP_MXU_CONV,
     .batch = 1,
     .m = 3 * 3,
     .n = 12,
     .k = 9,
     .a = {.dtype = TP_BF16},
     .b = {.dtype = TP_BF16},
     .conv = {1, 7, 7, 12, 3, 3, 12, 3, 3, 2, 2, 0, 0, 1, 1, 12}},
};

/* Followed, or declined with a reason. */
static void plan(const tp_mxu_record *record)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        tp_arena *arena = NULL;
        tp_mxu_problem problem = problems[i];
        tp_mxu_plan made;
        const tp_mxu_allow allow = {.forced_choice = &record->best};
        require(tp_arena_create(0, &arena) == TPUCL_OK);
        require(tp_mxu_plain_epilogue(&problem, arena) == TPUCL_OK);
        const tpucl_status status = tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, &made);
        require(status == TPUCL_OK || (status == TPUCL_UNSUPPORTED && made.declined_count == 1));
        require(status != TPUCL_OK || tp_mxu_choice_equal(&made.choice, &record->best));
        tp_arena_destroy(arena);
    }
}

static void compare(const tp_mxu_record *a, const tp_mxu_record *b)
{
    require(strcmp(a->problem, b->problem) == 0 && a->has_best == b->has_best);
    require(!a->has_best || tp_mxu_choice_equal(&a->best, &b->best));
    require(tp_mxu_choice_equal(&a->heuristic, &b->heuristic));
    require(a->ratio == b->ratio && a->spread == b->spread && a->rounds == b->rounds);
    require(a->best_seconds == b->best_seconds && a->default_seconds == b->default_seconds);
    require(strcmp(a->device, b->device) == 0 && strcmp(a->kernels, b->kernels) == 0);
}

/* What the writer makes of the file is the same file. */
static void read_back(const tp_record_file *file, tp_arena *arena)
{
    tp_json_writer writer = {.compact = true};
    char *text = NULL;
    tp_problems wrong = {0};
    tp_record_file again;
    tp_record_file_write(&writer, file);
    require(tp_json_writer_finish(&writer, &text) == TPUCL_OK);
    require(tp_record_file_parse(text, strlen(text), "again", arena, &wrong, &again) == TPUCL_OK);
    require(wrong.count == 0 && again.records.count == file->records.count);
    for (size_t i = 0; i < again.records.count; i++)
        compare(&file->records.items[i], &again.records.items[i]);
    tp_record_file_deinit(&again);
    tp_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_arena *arena = NULL;
    tp_problems wrong = {0};
    tp_record_file file;
    require(tp_arena_create(0, &arena) == TPUCL_OK);
    require(tp_record_file_parse((const char *)data, size, "fuzz", arena, &wrong, &file) ==
            TPUCL_OK);
    require(wrong.count == 0 || wrong.text[0] != '\0');
    for (size_t i = 0; i < file.records.count; i++) {
        require(tp_record_file_find(&file, file.records.items[i].problem) ==
                &file.records.items[i]);
        if (file.records.items[i].has_best) plan(&file.records.items[i]);
    }
    if (*file.device_class && *file.width_class) read_back(&file, arena);
    tp_record_file_deinit(&file);
    tp_arena_destroy(arena);
    return 0;
}
