/* SPDX-License-Identifier: Apache-2.0
 * How training grows: examples per second from 8 to 1024 examples per core, and the time of a step from 2 to
 * 64 layers, on the eight cores of a v2-8. What is looked for are cliffs: a batch that is slower per example
 * than half of it, a layer that costs much more than the ones before. */
#include <stdio.h>
#include <string.h>
#include "bench/bench_internal.h"
#include "core/alloc.h"
#include "core/str.h"
#include "train/session.h"

enum { PIXELS = 28 * 28, CLASSES = 10, CORES = 8, WIDTH = 256, LAYERS_BATCH = 64 };

/* From one case to the next: less than this share of the examples per second, or more than its inverse of the
 * time for a further layer, is called a cliff. */
static const double cliff = 0.8;

typedef struct growth {
    tp_bench *bench;
    uint8_t *images;
    int32_t *labels;
    int64_t examples;
    int32_t done, total; /* cases, for the progress */
} growth;

typedef struct one_case {
    tp_session *session;
    int64_t steps; /* of a run */
    double step_seconds, spread;
} one_case;

/* ---- a session ---- */

static tpucl_status make_examples(growth *g, int64_t count)
{
    g->examples = count;
    g->images = TP_NEW_ARRAY(uint8_t, (size_t)count * PIXELS);
    g->labels = TP_NEW_ARRAY(int32_t, (size_t)count);
    if (!g->images || !g->labels) return TPUCL_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        g->labels[i] = (int32_t)(i % CLASSES);
        for (int64_t k = 0; k < PIXELS; k++)
            g->images[i * PIXELS + k] = (uint8_t)(i * 7919 + k * 31);
    }
    return TPUCL_OK;
}

static tpucl_status make_source(const growth *g, tp_source **out_source)
{
    const int64_t sides[] = {28, 28, 1};
    tp_field fields[] = {{.name = "image", .dtype = TP_U8, .bytes = PIXELS},
                         {.name = "label", .dtype = TP_S32, .bytes = sizeof(int32_t)}};
    const void *arrays[] = {g->images, g->labels};
    TP_TRY(tp_shape_init(&fields[0].shape, 3, sides));
    TP_TRY(tp_shape_init(&fields[1].shape, 0, NULL));
    TP_TRY(tp_source_from_arrays(fields, arrays, 2, g->examples, out_source));
    (*out_source)->label_count = 1;
    return TPUCL_OK;
}

static tpucl_status write_config(const char *layers, int64_t per_core_batch, char **out_text)
{
    tp_str_builder text = {0};
    tp_str_builder_printf(
        &text,
        "{\"name\":\"growth\",\"topology\":\"v2-8\",\"model\":{\"name\":\"growth\",\"layers\":[%s,"
        "{\"type\":\"Dense\",\"units\":%d}]},"
        "\"loss\":{\"name\":\"sparse_categorical_crossentropy\",\"from_logits\":true},"
        "\"optimizer\":{\"name\":\"Adam\"},\"precision\":\"mixed_bfloat16\","
        "\"per_core_batch\":%lld,\"data\":{\"scale\":0.00392157}}",
        layers, CLASSES, (long long)per_core_batch);
    return tp_str_builder_finish(&text, out_text, NULL);
}

static void on_build(const tp_build_progress *progress, void *user)
{
    const growth *g = user;
    tp_bench_progress(g->bench, progress->label, g->done, g->total);
}

static tpucl_status open_case(growth *g, const char *layers, int64_t per_core_batch,
                              one_case *out_case)
{
    tp_session_options options = {
        .selector = g->bench->options->selector, .build_progress = on_build, .build_user = g};
    char *text = NULL;
    *out_case = (one_case){.steps = 1};
    TP_TRY(write_config(layers, per_core_batch, &text));
    tpucl_status status = tp_config_parse(text, strlen(text), "growth", NULL, 0, &options.config);
    tp_free(text);
    TP_TRY(status);
    status = make_source(g, &options.source);
    if (status != TPUCL_OK) {
        tp_config_destroy(options.config);
        return status;
    }
    return tp_session_create(&options, &out_case->session);
}

/* ---- measuring ---- */

static tpucl_status run_case(void *user)
{
    one_case *c = user;
    double seconds;
    return tp_session_run_steps(c->session, c->steps, &seconds);
}

static tpucl_status measure_case(growth *g, one_case *c)
{
    const double wanted = g->bench->options->quick ? 0.02 : 0.2;
    double seconds;
    tp_bench_side side = {.run = run_case, .user = c};
    TP_TRY(tp_session_run_steps(c->session, 1, &seconds)); /* warms */
    TP_TRY(tp_session_run_steps(c->session, 1, &seconds));
    if (seconds < wanted) c->steps = (int64_t)(wanted / seconds) + 1;
    if (c->steps > 1000) c->steps = 1000;
    TP_TRY(tp_bench_measure(&side, 1, 0));
    c->step_seconds = side.seconds / (double)c->steps;
    c->spread = side.spread;
    return TPUCL_OK;
}

static tpucl_status time_case(growth *g, const char *name, const char *layers,
                              int64_t per_core_batch, one_case *out_case)
{
    tp_bench_progress(g->bench, name, g->done, g->total);
    tpucl_status status = open_case(g, layers, per_core_batch, out_case);
    if (status == TPUCL_OK) status = measure_case(g, out_case);
    tp_session_destroy(out_case->session);
    g->done++;
    return status;
}

/* ---- batches ---- */

typedef struct batch_model {
    const char *name, *layers;
} batch_model;

static const batch_model batch_models[] = {
    {"mlp 784-512-256-10",
     "{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":512,\"activation\":\"relu\"},"
     "{\"type\":\"Dense\",\"units\":256,\"activation\":\"relu\"}"},
    {"convnet 32-64",
     "{\"type\":\"Conv2D\",\"filters\":32,\"kernel_size\":3,\"padding\":\"same\","
     "\"activation\":\"relu\"},{\"type\":\"MaxPooling2D\"},"
     "{\"type\":\"Conv2D\",\"filters\":64,\"kernel_size\":3,\"padding\":\"same\","
     "\"activation\":\"relu\"},{\"type\":\"MaxPooling2D\"},{\"type\":\"Flatten\"}"},
};
enum { MODELS = sizeof batch_models / sizeof *batch_models, LEAST_BATCH = 8, MOST_BATCH = 1024 };

static int64_t most_batch(const growth *g)
{
    return g->bench->options->quick ? 2 * LEAST_BATCH : MOST_BATCH;
}

static tpucl_status grow_batches(growth *g, const batch_model *model)
{
    double before = 0, worst = 1;
    for (int64_t batch = LEAST_BATCH; batch <= most_batch(g); batch *= 2) {
        char name[96];
        one_case c;
        snprintf(name, sizeof name, "%s, batch %lld per core", model->name, (long long)batch);
        TP_TRY(time_case(g, name, model->layers, batch, &c));
        const double rate = (double)(batch * CORES) / c.step_seconds;
        const tp_bench_row row = {.name = name,
                                  .side = "tpucl, 8 cores",
                                  .seconds = c.step_seconds,
                                  .spread = c.spread,
                                  .value = rate,
                                  .unit = "examples/s"};
        TP_TRY(tp_bench_add_row(g->bench, &row));
        if (before > 0 && rate / before < worst) worst = rate / before;
        before = rate;
    }
    if (worst >= cliff) return TPUCL_OK;
    char note[160];
    snprintf(note, sizeof note,
             "%s: a batch twice as large does only %.2f times as many examples per second",
             model->name, worst);
    return tp_bench_add_note(g->bench, note);
}

/* ---- layers ---- */

enum { LEAST_LAYERS = 2, MOST_LAYERS = 64 };

static tpucl_status write_layers(int32_t count, char **out_text)
{
    tp_str_builder text = {0};
    tp_str_append(&text, "{\"type\":\"Flatten\"}");
    for (int32_t i = 1; i < count; i++)
        tp_str_builder_printf(&text, ",{\"type\":\"Dense\",\"units\":%d,\"activation\":\"relu\"}",
                              WIDTH);
    return tp_str_builder_finish(&text, out_text, NULL);
}

static int32_t most_layers(const growth *g)
{
    return g->bench->options->quick ? 2 * LEAST_LAYERS : MOST_LAYERS;
}

static tpucl_status grow_layers(growth *g)
{
    double before = 0, per_layer = 0, worst = 1;
    for (int32_t count = LEAST_LAYERS; count <= most_layers(g); count *= 2) {
        char name[96], *layers = NULL;
        one_case c;
        snprintf(name, sizeof name, "mlp of %d layers of %d, batch %d per core", count, WIDTH,
                 LAYERS_BATCH);
        TP_TRY(write_layers(count, &layers));
        const tpucl_status status = time_case(g, name, layers, LAYERS_BATCH, &c);
        tp_free(layers);
        TP_TRY(status);
        const tp_bench_row row = {.name = name,
                                  .side = "tpucl, 8 cores",
                                  .seconds = c.step_seconds,
                                  .spread = c.spread,
                                  .value = 1e3 * c.step_seconds / count,
                                  .unit = "ms/layer"};
        TP_TRY(tp_bench_add_row(g->bench, &row));
        /* what each of the further layers took, against the further ones of the case before */
        const double further = before > 0 ? (c.step_seconds - before) / (count / 2) : 0;
        if (per_layer > 0 && further > 0 && per_layer / further < worst)
            worst = per_layer / further;
        per_layer = further;
        before = c.step_seconds;
    }
    if (worst >= cliff) return TPUCL_OK;
    char note[160];
    snprintf(note, sizeof note, "layers: a further one costs up to %.2f times those before it",
             1 / worst);
    return tp_bench_add_note(g->bench, note);
}

tpucl_status tp_bench_growth(tp_bench *bench)
{
    growth g = {.bench = bench};
    for (int64_t batch = LEAST_BATCH; batch <= most_batch(&g); batch *= 2)
        g.total += MODELS;
    for (int32_t count = LEAST_LAYERS; count <= most_layers(&g); count *= 2)
        g.total++;
    tpucl_status status = make_examples(&g, most_batch(&g) * CORES + LAYERS_BATCH * CORES);
    for (size_t i = 0; i < MODELS && status == TPUCL_OK; i++)
        status = grow_batches(&g, &batch_models[i]);
    if (status == TPUCL_OK) status = grow_layers(&g);
    tp_bench_progress(bench, "growth", g.total, g.total);
    tp_free(g.images);
    tp_free(g.labels);
    return status;
}
