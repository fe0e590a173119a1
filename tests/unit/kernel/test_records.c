/* SPDX-License-Identifier: Apache-2.0
 * Tuning records: the names they are filed under, files good and bad, the order of sources, and what a plan
 * makes of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/embedded.h"
#include "core/file.h"
#include "core/str.h"
#include "harness/sample_device.h"
#include "kernel/records.h"

static tp_arena *arena;
static tp_mxu_problem problem;
static tp_device_caps cpu;
static char folder[] = "/tmp/tpucl_records_XXXXXX";

static void setup(void)
{
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
    cr_assert(mkdtemp(folder) != NULL);
    setenv("TPUCL_TUNING_DIR", folder, 1);
    unsetenv("TPUCL_TUNING");
    cpu = sample_cpu();
    snprintf(cpu.platform, sizeof cpu.platform, "Some Platform");
    problem = sample_dense(130);
    problem.b.dtype = TP_F32;
    cr_assert(tp_mxu_plain_epilogue(&problem, arena) == TPUCL_OK);
}

static void teardown(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/some-platform-cpu-v16.json", folder);
    remove(path);
    rmdir(folder);
    tp_arena_destroy(arena);
}

TestSuite(records, .init = setup, .fini = teardown);

#define PROVENANCE                                                                                 \
    "\"best_seconds\":1e-3,\"default_seconds\":2e-3,\"ratio\":2,\"spread\":0.1,\"rounds\":7,"      \
    "\"clock\":\"wall\","                                                                          \
    "\"device\":\"d\",\"driver\":\"v\",\"tpucl\":\"0.1.0\",\"contract\":1,\"kernels\":\"ab\","     \
    "\"date\":\"2026-01-02\""
#define DIRECT "{\"variant\":\"mxu_direct\",\"TILE_M\":5}"
#define RECORD(problem, best)                                                                      \
    "{\"problem\":\"" problem "\",\"best\":" best ",\"default\":" DIRECT "," PROVENANCE "}"
#define FILE_OF(records)                                                                           \
    "{\"format\":1,\"device_class\":\"some-platform-cpu-v16\",\"width_class\":\"cpu-v16\","        \
    "\"records\":[" records "]}"
#define KEY "dot 130 512 784 bf16*f32"

static void write_overlay(const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/some-platform-cpu-v16.json", folder);
    cr_assert(tp_file_write_atomic(path, text, strlen(text)) == TPUCL_OK);
}

static tp_mxu_records *open_records(void)
{
    tp_mxu_records *records = NULL;
    cr_assert(tp_mxu_records_open(&cpu, &records) == TPUCL_OK, "%s", tpucl_last_error()->message);
    return records;
}

static void expect_problem(const char *text, const char *found)
{
    tp_problems problems = {0};
    tp_record_file file;
    cr_assert(tp_record_file_parse(text, strlen(text), "my.json", arena, &problems, &file) ==
              TPUCL_OK);
    cr_assert(problems.count == 1 && strstr(problems.text, found) != NULL, "%zu: %s",
              problems.count, problems.count ? problems.text : "accepted");
    cr_assert(file.records.count == 0);
    tp_record_file_deinit(&file);
}

Test(records, problems_have_one_name)
{
    char key[TP_MXU_KEY_BYTES];
    cr_assert_str_eq(tp_mxu_key_print(&problem, key), KEY);
    problem.a.stride_outer = 1;
    problem.a.stride_inner = 130;
    problem.precision = TP_PRECISION_HIGH;
    cr_assert_str_eq(tp_mxu_key_print(&problem, key),
                     "dot 130 512 784 layout=TN bf16*f32 precision=high");
    problem.batch = 3;
    problem.b.stride_inner = 600;
    cr_assert_str_eq(
        tp_mxu_key_print(&problem, key),
        "dot 130 512 784 batch=3 a=101920,1,130 b=401408,1,600 bf16*f32 precision=high");
    problem.kind = TP_MXU_CONV_FILTER_GRAD;
    problem.precision = TP_PRECISION_DEFAULT;
    problem.conv = (tp_mxu_conv){.images = 2,
                                 .in_h = 9,
                                 .in_w = 8,
                                 .in_c = 4,
                                 .out_h = 5,
                                 .out_w = 4,
                                 .out_c = 6,
                                 .kernel_h = 3,
                                 .kernel_w = 2,
                                 .stride_h = 2,
                                 .stride_w = 2,
                                 .pad_top = 1,
                                 .dilation_h = 1,
                                 .dilation_w = 2,
                                 .groups = 2};
    cr_assert_str_eq(tp_mxu_key_print(&problem, key),
                     "conv 2 9 8 4 6 3x2 stride=2 pad=1,0 out=5x4 dilation=1x2 groups=2 bf16*f32 "
                     "op=filter_grad");
}

Test(records, devices_have_classes)
{
    char text[TP_DEVICE_CLASS_BYTES];
    tp_device_caps caps = {
        .platform = "Portable Computing Language", .name = "whatever", .preferred_float_vector = 8};
    tp_device_class_print(&caps, text);
    cr_assert_str_eq(text, "pocl-cpu-v8");
    caps.preferred_float_vector = 16;
    caps.has_bf16_pairs = true;
    tp_device_class_print(&caps, text);
    cr_assert_str_eq(text, "pocl-cpu-v16-pairs");
    tp_width_class_print(&caps, text);
    cr_assert_str_eq(text, "cpu-v16-pairs");
    caps = (tp_device_caps){.platform = "  ACME(R) OpenCL/../..",
                            .name = "Model 7 \xc3\xa4 ",
                            .type = TP_DEVICE_GPU,
                            .preferred_float_vector = 1};
    tp_device_class_print(&caps, text);
    cr_assert_str_eq(text, "acme-r-opencl-model-7-gpu-v1");
    memset(caps.platform, 'x', sizeof caps.platform - 1);
    memset(caps.name, 'y', sizeof caps.name - 1);
    tp_device_class_print(&caps, text);
    cr_assert(strlen(text) < 150 && strstr(text, "-gpu-v1") != NULL);
}

Test(records, what_is_written_reads_back)
{
    const char *text =
        FILE_OF(RECORD("b", "null") "," RECORD("a", "{\"variant\":\"mxu_reference\"}"));
    tp_problems problems = {0};
    tp_record_file file, again;
    char path[256], *bytes = NULL;
    size_t length = 0;
    cr_assert(tp_record_file_parse(text, strlen(text), "f", arena, &problems, &file) == TPUCL_OK);
    cr_assert(problems.count == 0, "%s", problems.text);
    tp_mxu_record record = file.records.items[0];
    cr_assert_str_eq(record.problem, "a");
    record.problem = "0 first";
    record.ratio = 1.25;
    cr_assert(tp_record_file_put(&file, &record) == TPUCL_OK);
    cr_assert(tp_record_file_put(&file, &record) == TPUCL_OK && file.records.count == 3);
    snprintf(path, sizeof path, "%s/some-platform-cpu-v16.json", folder);
    cr_assert(tp_record_file_save(&file, path) == TPUCL_OK);
    cr_assert(tp_file_read(path, 1 << 20, &bytes, &length) == TPUCL_OK);
    cr_assert(tp_record_file_parse(bytes, length, "f", arena, &problems, &again) == TPUCL_OK);
    cr_assert(problems.count == 0 && again.records.count == 3, "%s", problems.text);
    const tp_mxu_record *found = tp_record_file_find(&again, "0 first");
    cr_assert(found != NULL && found->ratio == 1.25 && found->has_best && found->rounds == 7);
    cr_assert_str_eq(found->best.variant, "mxu_reference");
    found = tp_record_file_find(&again, "b");
    cr_assert(found != NULL && !found->has_best && found->heuristic.values[TP_MXU_TILE_M] == 5);
    cr_assert_null(tp_record_file_find(&again, "c"));
    tp_free(bytes);
    tp_record_file_deinit(&file);
    tp_record_file_deinit(&again);
}

Test(records, what_is_wrong_is_named_with_its_place)
{
    expect_problem("{", "my.json:1");
    expect_problem("[]", "expected an object");
    expect_problem("{\"format\":2,\"device_class\":\"c\",\"width_class\":\"w\",\"records\":[]}",
                   "'format'");
    expect_problem("{\"format\":1,\"device_class\":\"c\",\"width_class\":\"w\"}", "records");
    expect_problem("{\"format\":1,\"device_class\":\"c\",\"width_class\":\"w\",\"recods\":[],"
                   "\"records\":[]}",
                   "recods");
    expect_problem(FILE_OF("\n3"), "my.json:2:1");
    expect_problem(FILE_OF(RECORD("p", "{\"variant\":\"mxu_driect\",\"TILE_M\":1}")), "mxu_direct");
    expect_problem(FILE_OF(RECORD("p", "{\"variant\":\"clblast_sgemm\"}")), "order of its own");
    expect_problem(FILE_OF(RECORD("p", "{\"variant\":\"mxu_direct\"}")), "TILE_M");
    expect_problem(FILE_OF(RECORD("p", "{\"variant\":\"mxu_direct\",\"TILE_M\":17}")),
                   "records[0].best.TILE_M");
    expect_problem(FILE_OF(RECORD("p", "{\"variant\":\"mxu_direct\",\"TILE_M\":-1}")), "TILE_M");
    expect_problem(FILE_OF(RECORD("p", "{\"variant\":\"mxu_direct\",\"TILE_M\":1.5}")), "TILE_M");
    expect_problem(FILE_OF(RECORD("p", "{\"variant\":\"mxu_direct\",\"TILE_M\":1,\"TILE_K\":1}")),
                   "TILE_K");
    expect_problem(FILE_OF(RECORD("p", "\"mxu_direct\"")), "expected an object");
    expect_problem(FILE_OF(RECORD("", "null")), "problem");
    expect_problem(FILE_OF(RECORD("p", "null") "," RECORD("p", DIRECT)),
                   "2 records for problem 'p'");
}

Test(records, one_bad_record_does_not_take_the_others_along)
{
    write_overlay(FILE_OF(RECORD("bad", "{}") "," RECORD(KEY, DIRECT)));
    tp_mxu_records *records = open_records();
    const tp_record_source *source = tp_mxu_records_source(records, 0);
    cr_assert(source->is_there && strstr(source->problems, "variant") != NULL);
    cr_assert_not_null(tp_mxu_records_find(records, &problem, NULL));
    tp_mxu_records_close(records);
}

Test(records, sources_are_asked_in_order)
{
    const tp_record_source *source;
    tp_mxu_records *records = open_records();
    source = tp_mxu_records_source(records, 0);
    cr_assert(source->tier == TP_RECORDS_OVERLAY && !source->is_there && !source->problems);
    source = tp_mxu_records_source(records, 1);
    cr_assert(source->tier == TP_RECORDS_SHIPPED && !source->is_there);
    cr_assert_str_eq(source->name, "tuning/some-platform-cpu-v16.json");
    source = tp_mxu_records_source(records, 2);
    cr_assert(source->tier == TP_RECORDS_RELATED && source->is_there);
    cr_assert_str_eq(source->name, "tuning/pocl-cpu-v16.json");
    cr_assert_null(tp_mxu_records_source(records, 3));
    tp_mxu_records_close(records);

    write_overlay("{\"format\":1,\"device_class\":\"other\",\"width_class\":\"w\",\"records\":[]}");
    records = open_records();
    source = tp_mxu_records_source(records, 0);
    cr_assert(strstr(source->problems, "'device_class' is 'other'") != NULL);
    tp_mxu_records_close(records);

    setenv("TPUCL_TUNING", "0", 1);
    records = open_records();
    cr_assert_null(tp_mxu_records_source(records, 0));
    tp_mxu_records_close(records);
}

static void plan_with_overlay(const char *overlay, tp_mxu_plan *out_plan)
{
    write_overlay(overlay);
    tp_mxu_records *records = open_records();
    const tp_mxu_allow allow = {.records = records};
    cr_assert(tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, out_plan) == TPUCL_OK);
    if (out_plan->record) out_plan->record = tp_arena_strdup(arena, out_plan->record);
    tp_mxu_records_close(records);
}

Test(records, a_plan_follows_its_record)
{
    tp_mxu_plan plan;
    plan_with_overlay(FILE_OF(RECORD(KEY, DIRECT)), &plan);
    cr_assert_str_eq(plan.variant, "mxu_direct");
    cr_assert(strstr(plan.launches[0].options, "-DTILE_M=5") != NULL);
    cr_assert(strstr(plan.record, "some-platform-cpu-v16.json") != NULL);
    plan_with_overlay(FILE_OF(RECORD(KEY, "null")), &plan);
    cr_assert_str_eq(plan.variant, "mxu_register");
    cr_assert_not_null(plan.record);
    problem.m = 131;
    plan_with_overlay(FILE_OF(RECORD(KEY, DIRECT)), &plan);
    cr_assert(strcmp(plan.variant, "mxu_register") == 0 && plan.record == NULL);
}

Test(records, a_record_that_cannot_be_followed_is_declined_with_its_reason)
{
    tp_mxu_plan plan;
    plan_with_overlay(FILE_OF(RECORD(KEY, "{\"variant\":\"mxu_register\",\"TILE_M\":8,"
                                          "\"VECTOR_WIDTH\":16,\"TILE_VECTORS\":2,"
                                          "\"PANEL_BY_ROW\":0,\"B_IS_PACKED\":1,"
                                          "\"GROUPS_PER_UNIT\":4}")),
                      &plan);
    cr_assert_str_eq(plan.variant, "mxu_register");
    cr_assert(plan.record == NULL && plan.choice.values[TP_MXU_PANEL_BY_ROW] == 1);
    cr_assert(plan.declined_count > 0 &&
              strstr(plan.declined[0], "mxu_register: PANEL_BY_ROW 0: A does not run along m"));
    plan_with_overlay(FILE_OF(RECORD(KEY, "{\"variant\":\"mxu_grouped\",\"TILE_M\":4}")), &plan);
    cr_assert(strstr(plan.declined[0], "there are no groups of channels") != NULL);
}

extern const tp_embedded_file tp_embedded_tuning[];

Test(records, shipped_files_are_good_and_named_after_their_class)
{
    size_t count = 0;
    for (const tp_embedded_file *shipped = tp_embedded_tuning; shipped->name; shipped++, count++) {
        tp_problems problems = {0};
        tp_record_file file;
        char name[TP_DEVICE_CLASS_BYTES + 8];
        cr_assert(tp_record_file_parse(shipped->text, shipped->length_bytes, shipped->name, arena,
                                       &problems, &file) == TPUCL_OK);
        cr_assert(problems.count == 0, "%s: %s", shipped->name, problems.text);
        snprintf(name, sizeof name, "%s.json", file.device_class);
        cr_assert_str_eq(name, shipped->name);
        cr_assert(strstr(file.device_class, file.width_class) != NULL);
        tp_record_file_deinit(&file);
    }
    cr_assert(count >= 3);
}

Test(records, fast_math_asks_no_records)
{
    tp_mxu_plan plan;
    problem.is_fast_math = true;
    plan_with_overlay(FILE_OF(RECORD(KEY, DIRECT)), &plan);
    cr_assert(plan.record == NULL && strcmp(plan.variant, "mxu_direct") != 0);
}
