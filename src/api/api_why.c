/* SPDX-License-Identifier: Apache-2.0
 * Why a product is computed as it is: records, variants, verdicts. */
#include <stdio.h>
#include "api/tune_internal.h"
#include "core/alloc.h"
#include "core/str.h"
#include "kernel/records.h"
#include "tune/problem_line.h"

typedef struct why {
    tp_arena *arena;
    tp_api_tune_device opened;
    tp_mxu_problem problem;
    char key[TP_MXU_KEY_BYTES], device_class[TP_DEVICE_CLASS_BYTES];
    tp_mxu_records *records;
    tp_mxu_plan plan;                           /* what a run does */
    tp_mxu_plan none;                           /* with everything declined, to hear all reasons */
    const char *accepting[TP_MXU_MAX_VARIANTS]; /* variants that would take it */
    int32_t accepting_count;
} why;

/* ---- "dot_general:1024x1024x1024,layout=NT" as a problem line ---- */

static const struct {
    const char *op, *word, *options;
    int sizes; /* in front of the options, 'x' between them */
} ops[] = {
    {"dot_general", "dot", "", 3},
    {"convolution", "conv", "", 5},
    {"convolution_input_grad", "conv", " op=input_grad", 5},
    {"convolution_filter_grad", "conv", " op=filter_grad", 5},
};

static tpucl_status append_spec(tp_view spec, int sizes, tp_str_builder *line)
{
    tp_view part, size;
    if (!tp_view_next(&spec, ',', &part)) part = (tp_view){"", 0};
    int count = 0;
    while (tp_view_next(&part, 'x', &size)) {
        tp_str_builder_printf(line, " %.*s", TP_VIEW_ARGS(size));
        count++;
    }
    if (count != sizes)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "expected %d sizes with 'x' between them, found %d",
                       sizes, count);
    while (tp_view_next(&spec, ',', &part))
        tp_str_builder_printf(line, " %.*s", TP_VIEW_ARGS(part));
    return TPUCL_OK;
}

static tpucl_status parse_product(const char *product, tp_problem_line *out_line)
{
    const char *colon = strchr(product, ':');
    if (!colon) return tp_problem_line_parse(tp_view_of(product), out_line);
    const tp_view op = {product, (size_t)(colon - product)};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (!tp_view_equal_text(op, ops[i].op)) continue;
        tp_str_builder builder = {0};
        char *text = NULL;
        tp_str_append(&builder, ops[i].word);
        tpucl_status status = append_spec(tp_view_of(colon + 1), ops[i].sizes, &builder);
        tp_str_append(&builder, ops[i].options);
        if (status == TPUCL_OK) status = tp_str_builder_finish(&builder, &text, NULL);
        if (status == TPUCL_OK) status = tp_problem_line_parse(tp_view_of(text), out_line);
        tp_str_builder_deinit(&builder);
        tp_free(text);
        return status;
    }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "op '%.*s' is no product, expected dot_general, convolution, "
                   "convolution_input_grad or convolution_filter_grad",
                   TP_VIEW_ARGS(op));
}

static tpucl_status read_product(const char *product, why *w)
{
    tp_problem_line line;
    tpucl_status status = parse_product(product, &line);
    if (status != TPUCL_OK) {
        tp_error_note("product '%.200s' ('dot_general:1024x1024x1024', "
                      "'convolution:32x56x56x64x64,3x3,stride=2')",
                      product);
        return status == TPUCL_NOT_FOUND ? TPUCL_INVALID_ARGUMENT : status;
    }
    tp_mxu_problem problem;
    tp_problem_line_to_mxu(&line, TP_PRECISION_DEFAULT, &problem);
    w->problem = tp_mxu_simplify(&problem); /* as it is planned, and as records are filed */
    w->problem.label = tp_arena_strdup(w->arena, product);
    if (!w->problem.label) return TPUCL_OUT_OF_MEMORY;
    tp_mxu_key_print(&w->problem, w->key);
    return tp_mxu_plain_epilogue(&w->problem, w->arena);
}

/* ---- planning, without running anything ---- */

static bool note_accepting(void *user, const char *variant, const tp_mxu_problem *problem,
                           const tp_mxu_choice *choice)
{
    why *w = user;
    (void)problem;
    (void)choice;
    if (w->accepting_count < TP_MXU_MAX_VARIANTS) w->accepting[w->accepting_count++] = variant;
    return false;
}

/* What is not known yet counts as right: a run would find out. */
static bool is_not_refused(void *user, const char *variant, const tp_mxu_problem *problem,
                           const tp_mxu_choice *choice)
{
    why *w = user;
    tp_verdict_known known = TP_VERDICT_UNKNOWN;
    return tp_verdicts_look_up(w->opened.verdicts, variant, problem, NULL, &known) == TPUCL_OK &&
           known != TP_VERDICT_REFUSED &&
           (!choice || (tp_verdicts_look_up(w->opened.verdicts, variant, problem, choice, &known) ==
                            TPUCL_OK &&
                        known != TP_VERDICT_REFUSED));
}

static tpucl_status make_plans(why *w)
{
    const tp_device_caps *caps = tp_device_get_caps(w->opened.device);
    const tp_mxu_allow all = {.is_allowed = note_accepting, .user = w};
    const tp_mxu_allow real = {.is_allowed = is_not_refused, .user = w, .records = w->records};
    tpucl_status status = tp_mxu_plan_create(&w->problem, caps, &all, 3, w->arena, &w->none);
    if (status != TPUCL_UNSUPPORTED) return status;
    tp_error_clear();
    return tp_mxu_plan_create(&w->problem, caps, &real, 3, w->arena, &w->plan);
}

static const char *verdict_text(const why *w, const char *variant)
{
    tp_verdict_known known = TP_VERDICT_UNKNOWN;
    if (tp_verdicts_look_up(w->opened.verdicts, variant, &w->problem, NULL, &known) != TPUCL_OK)
        tp_error_clear();
    return known == TP_VERDICT_ALLOWED   ? "verified"
           : known == TP_VERDICT_REFUSED ? "refused"
                                         : "not verified yet";
}

static bool accepts(const why *w, const char *variant)
{
    for (int32_t i = 0; i < w->accepting_count; i++)
        if (strcmp(w->accepting[i], variant) == 0) return true;
    return false;
}

/* The sentence behind "variant: ", or NULL. */
static const char *reason_of(const why *w, const char *variant)
{
    const size_t length = strlen(variant);
    for (int32_t i = 0; i < w->none.declined_count; i++)
        if (strncmp(w->none.declined[i], variant, length) == 0 &&
            w->none.declined[i][length] == ':')
            return w->none.declined[i] + length + 2;
    return NULL;
}

static bool is_used(const why *w, const tp_record_source *source)
{
    return w->plan.record && strcmp(w->plan.record, source->name) == 0;
}

/* ---- as text ---- */

static void append_record(tp_str_builder *out, const tp_mxu_record *record)
{
    char text[TP_MXU_CHOICE_BYTES];
    if (record->has_best)
        tp_str_builder_printf(
            out, "            %s, %.2f times as fast as %s (%d rounds, spread %.0f %%)\n",
            tp_mxu_choice_print(&record->best, text), record->ratio, record->heuristic.variant,
            (int)record->rounds, 100 * record->spread);
    else
        tp_str_append(out, "            nothing was faster than the heuristics\n");
    tp_str_builder_printf(out, "            measured %s on %s, driver %s, tpucl %s\n", record->date,
                          record->device, record->driver, record->tpucl);
}

static void append_source(tp_str_builder *out, const why *w, const tp_record_source *source)
{
    const tp_mxu_record *record = tp_record_file_find(&source->file, w->key);
    tp_str_builder_printf(out, "  %-8s  %s: ", tp_record_tier_name(source->tier), source->name);
    if (!source->is_there)
        tp_str_append(out, source->problems ? "cannot be read\n" : "there is none\n");
    else if (!record)
        tp_str_builder_printf(out, "%zu records, none of this product\n",
                              source->file.records.count);
    else
        tp_str_builder_printf(out, "has a record%s\n", is_used(w, source) ? ", which counts" : "");
    if (source->problems) tp_str_builder_printf(out, "            %s\n", source->problems);
    if (record) append_record(out, record);
}

static void append_variant(tp_str_builder *out, const why *w, const char *variant)
{
    char text[TP_MXU_CHOICE_BYTES];
    tp_str_builder_printf(out, "  %-14s  ", variant);
    if (strcmp(variant, w->plan.variant) == 0)
        tp_str_builder_printf(out, "taken: %s (%s)\n", tp_mxu_choice_print(&w->plan.choice, text),
                              verdict_text(w, variant));
    else if (accepts(w, variant))
        tp_str_builder_printf(out, "would take it (%s)\n", verdict_text(w, variant));
    else
        tp_str_builder_printf(out, "declines: %s\n",
                              reason_of(w, variant) ? reason_of(w, variant) : "unknown");
}

static tpucl_status make_text(const why *w, char **out_text)
{
    tp_str_builder out = {0};
    tp_str_builder_printf(&out, "%s on %s (%s)\nrecords\n", w->key,
                          tp_device_get_caps(w->opened.device)->name, w->device_class);
    const tp_record_source *source;
    if (!tp_mxu_records_source(w->records, 0))
        tp_str_append(&out, "  none are asked: TPUCL_TUNING is 0\n");
    for (int32_t i = 0; (source = tp_mxu_records_source(w->records, i)) != NULL; i++)
        append_source(&out, w, source);
    for (int32_t i = 0; i < w->plan.declined_count; i++)
        if (strncmp(w->plan.declined[i], "record ", 7) == 0)
            tp_str_builder_printf(&out, "  not followed: %s\n", w->plan.declined[i]);
    if (!w->plan.record) tp_str_append(&out, "  heuristics choose\n");
    tp_str_append(&out, "variants, in order\n");
    for (const char *const *name = tp_mxu_variant_names(); *name; name++)
        append_variant(&out, w, *name);
    return tp_str_builder_finish(&out, out_text, NULL);
}

/* ---- as JSON ---- */

static void write_source(tp_json_writer *writer, const why *w, const tp_record_source *source)
{
    const tp_mxu_record *record = tp_record_file_find(&source->file, w->key);
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "tier", tp_record_tier_name(source->tier));
    tp_json_put_string(writer, "file", source->name);
    tp_json_put_bool(writer, "there", source->is_there);
    tp_json_put_int(writer, "records", (int64_t)source->file.records.count);
    tp_json_put_string(writer, "problems", source->problems);
    tp_json_put_bool(writer, "counts", is_used(w, source));
    tp_json_key(writer, "record");
    if (record) {
        tp_json_begin_object(writer);
        tp_mxu_record_write(writer, record);
        tp_json_end_object(writer);
    } else {
        tp_json_write_null(writer);
    }
    tp_json_end_object(writer);
}

static void write_variant(tp_json_writer *writer, const why *w, const char *variant)
{
    const bool is_taken = strcmp(variant, w->plan.variant) == 0;
    const char *state = is_taken ? "taken" : accepts(w, variant) ? "would take it" : "declines";
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "variant", variant);
    tp_json_put_string(writer, "state", state);
    tp_json_put_string(writer, "reason",
                       is_taken || accepts(w, variant) ? NULL : reason_of(w, variant));
    tp_json_put_string(writer, "verdict", verdict_text(w, variant));
    tp_json_end_object(writer);
}

static tpucl_status make_json(const why *w, char **out_json)
{
    char text[TP_MXU_CHOICE_BYTES];
    tp_json_writer writer = {0};
    tpucl_device_info device;
    const tp_record_source *source;
    tp_api_device_info(tp_device_label(w->opened.device), tp_device_get_caps(w->opened.device),
                       true, "", &device);
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "product", w->key);
    tp_json_key(&writer, "device");
    tp_api_write_device(&writer, &device);
    tp_json_put_string(&writer, "device_class", w->device_class);
    tp_json_put_string(&writer, "variant", w->plan.variant);
    tp_json_put_string(&writer, "choice", tp_mxu_choice_print(&w->plan.choice, text));
    tp_json_put_string(&writer, "record", w->plan.record);
    tp_json_key(&writer, "sources");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; (source = tp_mxu_records_source(w->records, i)) != NULL; i++)
        write_source(&writer, w, source);
    tp_json_end_array(&writer);
    tp_json_key(&writer, "variants");
    tp_json_begin_array(&writer);
    for (const char *const *name = tp_mxu_variant_names(); *name; name++)
        write_variant(&writer, w, *name);
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_json);
}

tpucl_status tpucl_why(const char *device, const char *product, char **out_text, char **out_json)
{
    TP_API_NEED(product);
    TP_API_NEED(out_text);
    TP_API_NEED(out_json);
    *out_text = *out_json = NULL;
    why *w = TP_NEW(why);
    if (!w) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_arena_create(0, &w->arena), done);
    TP_TRY_GOTO(status, read_product(product, w), done);
    TP_TRY_GOTO(status, tp_api_tune_open(device, &w->opened), done);
    const tp_device_caps *caps = tp_device_get_caps(w->opened.device);
    tp_device_class_print(caps, w->device_class);
    TP_TRY_GOTO(status, tp_mxu_records_open(caps, &w->records), done);
    TP_TRY_GOTO(status, make_plans(w), done);
    TP_TRY_GOTO(status, make_text(w, out_text), done);
    TP_TRY_GOTO(status, make_json(w, out_json), done);
done:
    if (status != TPUCL_OK) {
        tp_free(*out_text);
        *out_text = NULL;
    }
    tp_mxu_records_close(w->records);
    tp_api_tune_close(&w->opened);
    tp_arena_destroy(w->arena);
    tp_free(w);
    return status;
}
