/* SPDX-License-Identifier: Apache-2.0
 * The figures expected here are written down from the published sources, not from the files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "harness/alloc_loop.h"
#include "topo/topology.h"

static tp_topology *load(const char *name)
{
    tp_topology *topology;
    cr_assert_eq(tp_topology_load(name, &topology), TPUCL_OK, "%s", tpucl_last_error()->message);
    return topology;
}

static tpucl_status parse(const char *text, tp_topology **out_topology)
{
    tp_json_document *document;
    *out_topology = NULL;
    TP_TRY(tp_json_parse(text, strlen(text), "t", &document));
    tpucl_status status = tp_topology_from_json(tp_json_root(document), out_topology);
    tp_json_destroy(document);
    return status;
}

Test(topology, built_in_figures)
{
    const struct {
        const char *name;
        int cores, chips;
        double mxus, peak_bf16, peak_f32, hbm_bytes, hbm_bandwidth;
        tp_precision_policy precision;
        tp_math math;
        int batch;
    } expected[] = {
        {"v2-8", 8, 4, 1, 46e12 / 2, 46e12 / 12, 0x1p33, 700e9 / 2, TP_PRECISION_MIXED_BFLOAT16,
         TP_MATH_EXACT, 128},
        {"v3-8", 8, 4, 2, 123e12 / 2, 123e12 / 12, 0x1p34, 900e9 / 2, TP_PRECISION_MIXED_BFLOAT16,
         TP_MATH_EXACT, 128},
        {"v4-8", 8, 4, 4, 275e12 / 2, 275e12 / 12, 0x1p34, 1200e9 / 2, TP_PRECISION_MIXED_BFLOAT16,
         TP_MATH_EXACT, 128},
        {"v5e-8", 8, 8, 4, 197e12, 197e12 / 6, 16e9, 800e9, TP_PRECISION_MIXED_BFLOAT16,
         TP_MATH_EXACT, 128},
        {"k80", 1, 1, 0, 0, 2.8e12, 12e9, 160e9, TP_PRECISION_FLOAT32, TP_MATH_FAST, 16},
        {"p100", 1, 1, 0, 0, 10.6e12, 16e9, 732e9, TP_PRECISION_FLOAT32, TP_MATH_FAST, 32},
        {"v100", 1, 1, 0, 125e12, 15.7e12, 16e9, 900e9, TP_PRECISION_MIXED_BFLOAT16, TP_MATH_FAST,
         32},
        {"t4", 1, 1, 0, 65e12, 8.1e12, 16e9, 320e9, TP_PRECISION_MIXED_BFLOAT16, TP_MATH_FAST, 32},
        {"a100", 1, 1, 0, 312e12, 19.5e12, 40e9, 1555e9, TP_PRECISION_MIXED_BFLOAT16, TP_MATH_FAST,
         32},
        {"h100", 1, 1, 0, 990e12, 67e12, 80e9, 3350e9, TP_PRECISION_MIXED_BFLOAT16, TP_MATH_FAST,
         32},
        {"h200", 1, 1, 0, 990e12, 67e12, 141e9, 4800e9, TP_PRECISION_MIXED_BFLOAT16, TP_MATH_FAST,
         32},
        {"cpu", 1, 1, 0, 0, 0, 0, 0, TP_PRECISION_FLOAT32, TP_MATH_EXACT, 128},
    };
    const size_t count = sizeof expected / sizeof expected[0];
    for (size_t i = 0; i < count; i++) {
        cr_assert_str_eq(tp_topology_builtin_name(i), expected[i].name);
        tp_topology *t = load(expected[i].name);
        cr_assert_str_eq(t->name, expected[i].name);
        cr_assert(t->cores == expected[i].cores && t->chips == expected[i].chips);
        cr_assert_eq(t->cores, t->chips * t->cores_per_chip);
        cr_assert_eq(tp_topology_figure(t, TP_FIGURE_MXU_COUNT, 0), expected[i].mxus);
        cr_assert_eq(tp_topology_figure(t, TP_FIGURE_PEAK_BF16, 0), expected[i].peak_bf16);
        cr_assert_float_eq(tp_topology_figure(t, TP_FIGURE_PEAK_F32, 0), expected[i].peak_f32,
                           expected[i].peak_f32 * 1e-4); /* four decimals in the file */
        cr_assert_eq(tp_topology_figure(t, TP_FIGURE_HBM_BYTES, 0), expected[i].hbm_bytes);
        cr_assert_eq(tp_topology_figure(t, TP_FIGURE_HBM_BANDWIDTH, 0), expected[i].hbm_bandwidth);
        cr_assert(t->numeric.mxu_chunk == 128 && t->numeric.vpu_lanes == 128);
        cr_assert(t->numeric.precision == expected[i].precision);
        cr_assert(t->numeric.math == expected[i].math);
        cr_assert_eq(t->numeric.per_core_batch, expected[i].batch);
        cr_assert_eq(t->placement_count, 0);
        for (int id = 0; id < TP_FIGURE_COUNT; id++)
            cr_assert(!t->figures[id].known || t->figures[id].source[0], "%s: %s has no source",
                      t->name, tp_figure_key((tp_figure_id)id));
        tp_topology_destroy(t);
    }
    cr_assert_null(tp_topology_builtin_name(count));
}

Test(topology, written_and_read_back)
{
    for (size_t i = 0; tp_topology_builtin_name(i); i++) {
        char *first, *second;
        tp_topology *t = load(tp_topology_builtin_name(i)), *again;
        cr_assert_eq(tp_topology_to_json(t, &first), TPUCL_OK);
        cr_assert_eq(parse(first, &again), TPUCL_OK, "%s", tpucl_last_error()->message);
        cr_assert_eq(tp_topology_to_json(again, &second), TPUCL_OK);
        cr_assert_str_eq(first, second);
        tp_free(first);
        tp_free(second);
        tp_topology_destroy(again);
        tp_topology_destroy(t);
    }
}

Test(topology, by_path_and_by_unknown_name)
{
    tp_topology *t = load(TPUCL_SOURCE_DIR "/configs/topologies/v3-8.json");
    cr_assert_eq(t->cores, 8);
    tp_topology_destroy(t);
    cr_assert_eq(tp_topology_load("v2-9", &t), TPUCL_INVALID_CONFIG);
    cr_assert_null(t);
    cr_assert_str_eq(
        tpucl_last_error()->message,
        "expected a topology (v2-8, v3-8, v4-8, v5e-8, k80, p100, v100, t4, a100, h100, "
        "h200, cpu) or the path of a .json "
        "file, found 'v2-9'; did you mean 'v2-8'?");
    cr_assert_eq(tp_topology_load("nowhere/x.json", &t), TPUCL_NOT_FOUND);
    tp_topology_destroy(NULL);
}

Test(topology, units_are_converted)
{
    tp_topology *t;
    const char *text = "{\"name\":\"x\",\"cores\":3,\"figures\":{"
                       "\"ici_bandwidth\":{\"value\":496,\"unit\":\"Gbit/s\",\"source\":\"s\"},"
                       "\"ici_latency\":{\"value\":0.5,\"unit\":\"us\",\"source\":\"s\"},"
                       "\"hbm_reserved\":{\"value\":0,\"unit\":\"MiB\",\"source\":\"s\"}}}";
    cr_assert_eq(parse(text, &t), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_topology_figure(t, TP_FIGURE_ICI_BANDWIDTH, -1), 62e9);
    cr_assert_eq(tp_topology_figure(t, TP_FIGURE_ICI_LATENCY, -1), 0.5e-6);
    cr_assert_eq(tp_topology_figure(t, TP_FIGURE_HBM_RESERVED, -1), 0);
    cr_assert_eq(tp_topology_figure(t, TP_FIGURE_POWER, -1), -1);
    cr_assert(t->chips == 3 && t->cores_per_chip == 1 && t->hosts == 1);
    tp_topology_destroy(t);
}

Test(topology, placement)
{
    tp_topology *t;
    const char *text = "{\"name\":\"x\",\"cores\":8,\"placement\":["
                       "{\"device\":\"gpu:0\",\"cores\":[6,2],\"split\":2},"
                       "{\"device\":\"cpu\",\"cores\":3},{\"device\":\"gpu:1\"}]}";
    cr_assert_eq(parse(text, &t), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(t->placement_count, 3);
    const int32_t ids[3][3] = {{2, 6}, {0, 1, 3}, {4, 5, 7}};
    const size_t counts[3] = {2, 3, 3};
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(t->placement[i].core_count, counts[i]);
        for (size_t k = 0; k < counts[i]; k++)
            cr_assert_eq(t->placement[i].cores[k], ids[i][k]);
    }
    cr_assert_str_eq(t->placement[0].device, "gpu:0");
    cr_assert(t->placement[0].split == 2 && t->placement[1].split == 1);
    tp_topology_destroy(t);
}

Test(topology, every_problem_is_named)
{
    const struct {
        const char *text, *message;
    } bad[] = {
        {"[]", "expected an object, found an array at t:1:1"},
        {"{\"cores\":1}", "key 'name' (a string) is missing"},
        {"{\"name\":\"x\"}", "key 'cores' (an integer) is missing"},
        {"{\"name\":\"x\",\"cores\":0}", "expected an integer from 1 to 2048, found 0"},
        {"{\"name\":\"x\",\"cores\":-8}", "found -8"},
        {"{\"name\":\"x\",\"cores\":4096}", "found 4096"},
        {"{\"name\":\"x\",\"cores\":8,\"chips\":4}", "found 8 = 4 * 1"},
        {"{\"name\":\"x\",\"cores\":8,\"chips\":4,\"cores_per_chip\":2,\"hosts\":3}",
         "found 4 chips for 3 hosts"},
        {"{\"name\":\"x\",\"cores\":1,\"numeric\":{\"mxu_chunk\":64}}",
         "expected 128, found 64 at t:1:46 (key path 'numeric.mxu_chunk')"},
        {"{\"name\":\"x\",\"cores\":1,\"numeric\":{\"math\":\"fats\"}}", "did you mean 'fast'?"},
        {"{\"name\":\"x\",\"cores\":1,\"numeric\":{\"per_core_batch\":0}}", "found 0"},
        {"{\"name\":\"x\",\"cores\":1,\"numeric\":3}", "expected an object, found 3"},
        {"{\"name\":\"x\",\"cores\":1,\"figures\":{\"hbm_byte\":{}}}", "did you mean 'hbm_bytes'?"},
        {"{\"name\":\"x\",\"cores\":1,\"figures\":{\"power\":{\"value\":1,\"unit\":\"W\"}}}",
         "key 'source' (a string) is missing"},
        {"{\"name\":\"x\",\"cores\":1,\"figures\":{\"power\":{\"value\":-1,\"unit\":\"W\","
         "\"source\":\"\"}}}",
         "expected a number above 0, found -1"},
        {"{\"name\":\"x\",\"cores\":1,\"figures\":{\"power\":{\"value\":1,\"unit\":\"J\","
         "\"source\":\"\"}}}",
         "expected one of the units 'W', 'kW', found the string 'J'"},
        {"{\"name\":\"x\",\"cores\":1,\"figures\":{\"mxu_count\":{\"value\":1.5,\"unit\":\"units\","
         "\"source\":\"\"}}}",
         "expected a whole number"},
        {"{\"name\":\"x\",\"cores\":1,\"figures\":{\"hbm_bytes\":{\"value\":1e308,\"unit\":\"TiB\","
         "\"source\":\"\"}}}",
         "expected a smaller number"},
        {"{\"name\":\"x\",\"cores\":2,\"placement\":[{\"cores\":[0,0]},{}]}",
         "core 0 is placed twice, again at t:1:48"},
        {"{\"name\":\"x\",\"cores\":2,\"placement\":[{\"cores\":[2,1]}]}",
         "expected an integer from 0 to 1, found 2"},
        {"{\"name\":\"x\",\"cores\":2,\"placement\":[{\"cores\":1}]}",
         "expected every core on a device, found 1 of 2 on none"},
        {"{\"name\":\"x\",\"cores\":2,\"placement\":[{\"cores\":2},{\"cores\":1}]}",
         "expected 1 more cores to be free, found 0 of 2"},
        {"{\"name\":\"x\",\"cores\":2,\"placement\":[{\"split\":3}]}", "found 3 for 2 cores"},
        {"{\"name\":\"x\",\"cores\":2,\"placement\":[{\"cores\":\"all\"}]}",
         "expected a number of cores or a list of core ids, found the string 'all'"},
        {"{\"name\":\"x\",\"cores\":1,\"placement\":[{},{}]}", "at most one device for each"},
        {"{\"name\":\"x\",\"cores\":1,\"placement\":[3]}", "expected an object, found 3"},
        {"{\"name\":\"x\",\"core\":1,\"cores\":1}", "unknown key 'core'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tp_topology *t;
        cr_assert_eq(parse(bad[i].text, &t), TPUCL_INVALID_CONFIG, "accepted: %s", bad[i].text);
        cr_assert_null(t);
        cr_assert(strstr(tpucl_last_error()->message, bad[i].message), "%s\n gives: %s\n not: %s",
                  bad[i].text, tpucl_last_error()->message, bad[i].message);
    }
}

Test(topology, all_problems_at_once)
{
    tp_topology *t;
    const char *text = "{\"nam\":\"x\",\"cores\":0,\"numeric\":{\"math\":1},\"placement\":{}}";
    cr_assert_eq(parse(text, &t), TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "topology 't' has 5 problems:"), "%s",
              tpucl_last_error()->message);
}

static tpucl_status load_and_write(void *user)
{
    tp_topology *t;
    char *text = NULL;
    TP_TRY(tp_topology_load(user, &t));
    tpucl_status status = tp_topology_to_json(t, &text);
    tp_free(text);
    tp_topology_destroy(t);
    return status;
}

Test(topology, every_allocation_may_fail)
{
    char path[] = "/tmp/tpucl-topology-XXXXXX.json";
    int file = mkstemps(path, 5);
    const char text[] =
        "{\"name\":\"x\",\"cores\":4,\"placement\":[{\"device\":\"a\",\"cores\":[3]},"
        "{\"device\":\"b\"}],\"figures\":{\"power\":{\"value\":1,\"unit\":\"W\","
        "\"source\":\"s\",\"note\":\"n\"}}}";
    FILE *stream = fdopen(file, "w");
    fputs(text, stream);
    fclose(stream);
    alloc_loop_run(load_and_write, path);
    remove(path);
}
