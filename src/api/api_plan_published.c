/* SPDX-License-Identifier: Apache-2.0
 * Projections of what was published, and single arrays: what a plan rests on.
 */
#include <math.h>
#include <stdio.h>
#include "api/plan_internal.h"
#include "core/alloc.h"
#include "plan/project.h"
#include "plan/published.h"

TP_ARRAY_DEFINE(published_rows, tpucl_published_row)

struct tpucl_published_report {
    published_rows rows;
    tpucl_published_summary summary;
};

/* ---- training rows ---- */

/* The step of a row, kept for the next one, which often has the same. */
typedef struct step {
    const tp_published_row *row;
    int32_t cores;
    tp_work *work;
} step;

static tpucl_status open_step(const tp_published_row *row, const tp_topology *topology,
                              tp_session **out_session)
{
    char name[64], texts[3][96];
    const char *overrides[3] = {texts[0], texts[1], texts[2]};
    snprintf(name, sizeof name, "%s.json", row->model);
    const char *text = tp_published_file(name);
    if (!text) return TP_FAIL(TPUCL_INTERNAL, "there is no file '%s'", name);
    /* machines that are files of their own have one core, as 'cpu' has */
    snprintf(texts[0], sizeof texts[0], "topology=\"%s\"",
             strchr(row->topology, '/') ? "cpu" : topology->name);
    snprintf(texts[1], sizeof texts[1], "precision=\"%s\"",
             row->is_bf16 ? "mixed_bfloat16" : "float32");
    snprintf(texts[2], sizeof texts[2], "per_core_batch=%lld", (long long)row->per_core_batch);
    tp_session_options settings = {.plan_only = true};
    TP_TRY(tp_config_parse(text, strlen(text), name, overrides, 3, &settings.config));
    const tpucl_status status = tp_api_stand_in(settings.config, &settings.source);
    if (status != TPUCL_OK) {
        tp_config_destroy(settings.config);
        return status;
    }
    return tp_session_create(&settings, out_session);
}

static tpucl_status make_step(const tp_published_row *row, const tp_topology *topology, step *s)
{
    tp_session *session = NULL;
    tp_session_plan plan = {0};
    const bool is_same = s->row && !strcmp(s->row->model, row->model) &&
                         s->row->per_core_batch == row->per_core_batch &&
                         s->row->is_bf16 == row->is_bf16 && s->cores == topology->cores;
    if (is_same) return TPUCL_OK;
    tp_work_destroy(s->work);
    *s = (step){.row = row, .cores = topology->cores};
    TP_TRY(open_step(row, topology, &session));
    tpucl_status status = tp_session_plan_batch(session, row->per_core_batch, false, &plan);
    if (status == TPUCL_OK && !plan.program)
        status = TP_FAIL(TPUCL_INTERNAL, "'%s' does not compile", row->model);
    if (status == TPUCL_OK)
        status = tp_work_create(tp_session_train_graph(session), plan.program, row->per_core_batch,
                                &s->work);
    tp_session_plan_deinit(&plan);
    tp_session_destroy(session);
    return status;
}

static tpucl_status load_machine(const char *name, tp_topology **out_topology)
{
    tp_json_document *document = NULL;
    if (!strchr(name, '/')) return tp_topology_load(name, out_topology);
    const char *text = tp_published_file(name);
    if (!text) return TP_FAIL(TPUCL_INTERNAL, "there is no file '%s'", name);
    TP_TRY(tp_json_parse(text, strlen(text), name, &document));
    const tpucl_status status = tp_topology_from_json(tp_json_root(document), out_topology);
    tp_json_destroy(document);
    return status;
}

/* "machines/xeon-8180.json" is shown as "xeon-8180". */
static const char *shown_name(const tp_published_row *row)
{
    if (strstr(row->topology, "8180")) return "2 x Xeon 8180";
    if (strstr(row->topology, "c5")) return "c5.18xlarge";
    return strstr(row->topology, "n1") ? "n1-standard-16" : row->topology;
}

static tpucl_status add_training(const tp_published_row *row, step *s,
                                 tpucl_published_report *report)
{
    tp_topology *topology = NULL;
    tp_projection *projection = NULL;
    TP_TRY(load_machine(row->topology, &topology));
    tpucl_status status = make_step(row, topology, s);
    tp_project_options options = {.machines = row->machines,
                                  .feeds_over_network = row->feeds_over_network};
    if (status == TPUCL_OK) {
        options.machine = tp_machine_class_of(topology, s->work);
        status = tp_project(s->work, topology, &options, &projection);
    }
    if (status == TPUCL_OK) {
        const double found = projection->examples_per_second;
        status = published_rows_push(
            &report->rows,
            (tpucl_published_row){.model = row->model,
                                  .topology = shown_name(row),
                                  .machine_class = tp_machine_class_name(options.machine),
                                  .unit = "examples/s",
                                  .source = row->source,
                                  .machines = row->machines,
                                  .over_network = row->feeds_over_network,
                                  .global_batch =
                                      row->per_core_batch * topology->cores * row->machines,
                                  .published = row->examples_per_second,
                                  .projected = found,
                                  .low = found / TP_PROJECT_BAND,
                                  .high = found * TP_PROJECT_BAND});
    }
    tp_projection_destroy(projection);
    tp_topology_destroy(topology);
    return status;
}

/* ---- the paper's rows ---- */

static tpucl_status add_paper(const tp_paper_row *row, tpucl_published_report *report)
{
    const double found = tp_paper_project(row);
    return published_rows_push(
        &report->rows,
        (tpucl_published_row){.model = row->app,
                              .topology = row->machine,
                              .machine_class = row->efficiency > 0
                                                   ? row->machine
                                                   : tp_machine_class_name(TP_MACHINE_CPU),
                              .unit = row->ops_per_example > 0 ? "examples/s" : "op/s",
                              .source = row->source,
                              .machines = 1,
                              .published = row->published,
                              .projected = found,
                              .low = found / TP_PROJECT_BAND,
                              .high = found * TP_PROJECT_BAND});
}

static void summarise(tpucl_published_report *report)
{
    tpucl_published_summary *sum = &report->summary;
    double logs = 0;
    for (size_t i = 0; i < report->rows.count; i++) {
        tpucl_published_row *row = &report->rows.items[i];
        row->factor = fmax(row->published / row->projected, row->projected / row->published);
        logs += log(row->factor);
        sum->worst_factor = fmax(sum->worst_factor, row->factor);
        sum->in_band += row->published >= row->low && row->published <= row->high;
        sum->rows++;
    }
    sum->mean_factor = sum->rows ? exp(logs / sum->rows) : 1;
}

static tpucl_status add_all(tpucl_published_report *report, step *s)
{
    const tp_published_row *row;
    const tp_paper_row *paper;
    for (int32_t i = 0; (row = tp_published_row_at(i))->model; i++)
        TP_TRY(add_training(row, s, report));
    for (int32_t i = 0; (paper = tp_paper_row_at(i))->app; i++)
        TP_TRY(add_paper(paper, report));
    summarise(report);
    return TPUCL_OK;
}

tpucl_status tpucl_published(tpucl_published_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    step s = {NULL};
    tpucl_published_report *report = TP_NEW(tpucl_published_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = add_all(report, &s);
    tp_work_destroy(s.work);
    if (status != TPUCL_OK) {
        tpucl_published_report_destroy(report);
        return status;
    }
    *out_report = report;
    return TPUCL_OK;
}

void tpucl_published_report_destroy(tpucl_published_report *report)
{
    if (!report) return;
    published_rows_deinit(&report->rows);
    tp_free(report);
}

tpucl_published_summary tpucl_published_report_summary(const tpucl_published_report *report)
{
    return report ? report->summary : (tpucl_published_summary){0};
}

tpucl_published_row tpucl_published_report_row(const tpucl_published_report *report, int32_t index)
{
    if (!report || index < 0 || (size_t)index >= report->rows.count)
        return (tpucl_published_row){.model = NULL};
    return report->rows.items[index];
}

tpucl_status tpucl_published_report_json(const tpucl_published_report *report, char **out_text)
{
    TP_API_NEED(report);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "version", tpucl_version_string());
    tp_json_put_string(&writer, "kind", "projected");
    tp_json_put_double(&writer, "mean_factor", report->summary.mean_factor);
    tp_json_put_double(&writer, "worst_factor", report->summary.worst_factor);
    tp_json_put_int(&writer, "in_band", report->summary.in_band);
    tp_json_key(&writer, "rows");
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < report->rows.count; i++) {
        const tpucl_published_row *row = &report->rows.items[i];
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "model", row->model);
        tp_json_put_string(&writer, "topology", row->topology);
        tp_json_put_string(&writer, "class", row->machine_class);
        tp_json_put_int(&writer, "machines", row->machines);
        tp_json_put_bool(&writer, "over_network", row->over_network);
        tp_json_put_int(&writer, "global_batch", row->global_batch);
        tp_json_put_string(&writer, "unit", row->unit);
        tp_json_put_double(&writer, "published", row->published);
        tp_json_put_double(&writer, "projected", row->projected);
        tp_json_put_double(&writer, "low", row->low);
        tp_json_put_double(&writer, "high", row->high);
        tp_json_put_double(&writer, "factor", row->factor);
        tp_json_put_string(&writer, "source", row->source);
        tp_json_end_object(&writer);
    }
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

/* ---- one array ---- */

tpucl_status tpucl_pad_array(const char *type, tpucl_padded_array *out_array)
{
    TP_API_NEED(type);
    TP_API_NEED(out_array);
    char name[16], shape_text[TP_SHAPE_TEXT_MAX], tiles[160];
    const size_t length = strcspn(type, "[");
    tp_dtype dtype;
    tp_shape shape;
    if (length >= sizeof name || !type[length])
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "expected a dtype and a shape like f32[256,512,128,2], found '%.80s'", type);
    snprintf(name, sizeof name, "%.*s", (int)length, type);
    TP_TRY(tp_dtype_parse(name, &dtype));
    TP_TRY(tp_shape_parse(type + length, &shape));
    const tp_padded_array padded = tp_pad_array(dtype, &shape);
    *out_array = (tpucl_padded_array){.bytes = padded.bytes,
                                      .row_major_bytes = padded.row_major,
                                      .best_bytes = padded.best,
                                      .row_major_padding = padded.row_padding,
                                      .best_padding = padded.best_padding};
    if (padded.row_padding <= 2) return TPUCL_OK;
    tp_shape_format(&shape, shape_text, sizeof shape_text);
    tp_describe_tiles(dtype, &shape, shape.rank - 2, shape.rank - 1, tiles, sizeof tiles);
    snprintf(out_array->warning, sizeof out_array->warning, "%s%s takes %.1f times its bytes: %s",
             tp_dtype_name(dtype), shape_text, padded.row_padding, tiles);
    return TPUCL_OK;
}
