/* SPDX-License-Identifier: Apache-2.0
 * Files of records. */
#include <tpucl/records.h>
#include "api/handles.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "data/record_make.h"
#include "data/record_scan.h"
#include "data/record_shards.h"

struct tpucl_records_report {
    tp_scan *scan;
    const char **samples; /* [feature_count], in the scan's arena */
    tpucl_records_summary summary;
};

static double seconds_since(uint64_t begin_ns)
{
    return 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
}

/* ---- options ---- */

static tpucl_status parse_compression(const char *name, tp_compression missing,
                                      tp_compression *out_compression)
{
    *out_compression = missing;
    if (!name || tp_compression_parse(name, out_compression)) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "compression '%s'; expected %snone, gzip or zlib", name,
                   missing == TP_COMPRESSION_SNIFF ? "auto, " : "");
}

static tpucl_status convert_reading(const tpucl_records_options *all, tp_record_options *out)
{
    out->is_unchecked = all->unchecked;
    out->max_record_bytes = all->max_record_bytes;
    if (!all->paths || all->path_count < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "no files of records were named");
    return parse_compression(all->compression, TP_COMPRESSION_SNIFF, &out->compression);
}

static tpucl_status parse_resize(const char *name, tp_resize_mode *out_mode)
{
    static const char *const names[] = {"stretch", "crop", "pad"}; /* from TP_RESIZE_STRETCH on */
    for (int i = 0; i < 3; i++)
        if (!name || strcmp(name, names[i]) == 0) {
            *out_mode = (tp_resize_mode)(TP_RESIZE_STRETCH + i);
            return TPUCL_OK;
        }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "resize '%s'; expected stretch, crop or pad", name);
}

static tpucl_status convert_making(const tpucl_records_make_options *all, tp_make_options *out)
{
    *out = (tp_make_options){.inputs = all->inputs,
                             .labels = all->labels,
                             .output = all->output,
                             .shards = all->shards ? all->shards : 1,
                             .png_level = all->png_level,
                             .height = all->height,
                             .width = all->width,
                             .jpeg_quality = all->jpeg_quality,
                             .is_upright = all->upright,
                             .shuffle = all->shuffle,
                             .seed = all->seed,
                             .force = all->force,
                             .progress = all->progress,
                             .user = all->user};
    if (!all->output || !*all->output)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'output' is missing, expected FOLDER/NAME");
    if (all->png_level < 0 || all->png_level > 9)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'png_level' is %d, expected 0 to 9",
                       (int)all->png_level);
    TP_TRY(parse_resize(all->resize, &out->resize));
    TP_TRY(tp_record_preset_find(all->preset ? all->preset : "tfds", &out->preset));
    TP_TRY(parse_compression(all->compression, TP_COMPRESSION_NONE, &out->compression));
    if (out->compression != TP_COMPRESSION_SNIFF) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "compression 'auto'; expected none, gzip or zlib");
}

/* ---- reports ---- */

static void append_values(tp_str_builder *to, const tp_feature_values *values, int64_t total)
{
    for (size_t i = 0; i < values->count; i++) {
        char number[TP_STR_DOUBLE_BYTES];
        if (i) tp_str_append(to, ", ");
        if (values->kind == TP_FEATURE_INT64) {
            tp_str_builder_printf(to, "%lld", (long long)values->ints[i]);
        } else if (values->kind == TP_FEATURE_FLOAT) {
            tp_str_from_double((double)values->floats[i], number);
            tp_str_append(to, number);
        } else {
            tp_str_append_char(to, '"');
            for (size_t k = 0; k < values->bytes[i].length; k++) {
                const unsigned char c = (unsigned char)values->bytes[i].data[k];
                if (c >= 32 && c < 127 && c != '"' && c != '\\')
                    tp_str_append_char(to, (char)c);
                else
                    tp_str_builder_printf(to, "\\x%02x", c);
            }
            tp_str_append_char(to, '"');
        }
    }
    if (total > (int64_t)values->count) tp_str_append(to, ", ...");
}

static tpucl_status make_samples(tpucl_records_report *report)
{
    const tp_scan *scan = report->scan;
    report->samples =
        TP_ARENA_NEW_ARRAY(scan->arena, const char *, (size_t)scan->feature_count + 1);
    if (!report->samples) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < scan->feature_count; i++) {
        tp_str_builder text = {0};
        char *made = NULL;
        append_values(&text, &scan->features[i].sample, scan->features[i].max_count);
        TP_TRY(tp_str_builder_finish(&text, &made, NULL));
        report->samples[i] = tp_arena_strdup(scan->arena, made);
        tp_free(made);
        if (!report->samples[i]) return TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

static void summarise(tpucl_records_report *report)
{
    const tp_scan *scan = report->scan;
    report->summary = (tpucl_records_summary){.files = scan->file_count,
                                              .features = scan->feature_count,
                                              .records = scan->total.records,
                                              .bytes = scan->total.bytes,
                                              .faults = scan->total.faults,
                                              .parsed = scan->parsed,
                                              .not_examples = scan->not_examples};
    for (int32_t i = 0; i < scan->file_count; i++)
        report->summary.file_bytes += scan->files[i].file_bytes;
}

static tpucl_status read_expanded(const tpucl_records_options *all, tpucl_records_report *report)
{
    tp_arena *arena = NULL;
    const char *const *paths = NULL;
    int32_t count = 0;
    tp_scan_options options = {.with_features = all->with_features,
                               .feature_limit = all->feature_limit,
                               .progress = all->progress,
                               .user = all->user};
    TP_TRY(convert_reading(all, &options.records));
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status =
        tp_record_paths_expand(all->paths, all->path_count, arena, &paths, &count);
    if (status == TPUCL_OK) status = tp_scan_records(paths, count, &options, &report->scan);
    tp_arena_destroy(arena);
    return status == TPUCL_OK ? make_samples(report) : status;
}

tpucl_status tpucl_records_read(const tpucl_records_options *options,
                                tpucl_records_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    tpucl_records_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_records_options));
    const uint64_t begin_ns = tp_clock_now_ns();
    tpucl_records_report *report = TP_NEW(tpucl_records_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = read_expanded(&all, report);
    if (status != TPUCL_OK) {
        tpucl_records_report_destroy(report);
        return status;
    }
    summarise(report);
    report->summary.seconds = seconds_since(begin_ns);
    *out_report = report;
    return TPUCL_OK;
}

void tpucl_records_report_destroy(tpucl_records_report *report)
{
    if (!report) return;
    tp_scan_destroy(report->scan);
    tp_free(report);
}

const tpucl_records_summary *tpucl_records_report_summary(const tpucl_records_report *report)
{
    return report ? &report->summary : NULL;
}

tpucl_records_file tpucl_records_report_file(const tpucl_records_report *report, int32_t index)
{
    tpucl_records_file out;
    memset(&out, 0, sizeof out);
    if (!report || index < 0 || index >= report->scan->file_count) return out;
    const tp_scan_file *file = &report->scan->files[index];
    out.path = file->path;
    out.compression = tp_compression_name(file->compression);
    out.file_bytes = file->file_bytes;
    out.records = file->counts.records;
    out.bytes = file->counts.bytes;
    out.faults = file->counts.faults;
    out.fault = file->fault;
    return out;
}

tpucl_records_feature tpucl_records_report_feature(const tpucl_records_report *report,
                                                   int32_t index)
{
    tpucl_records_feature out;
    memset(&out, 0, sizeof out);
    if (!report || index < 0 || index >= report->scan->feature_count) return out;
    const tp_scan_feature *feature = &report->scan->features[index];
    out.key = feature->key;
    out.kind = feature->is_mixed ? "mixed" : tp_feature_kind_name(feature->kind);
    out.records = feature->records;
    out.min_count = feature->min_count;
    out.max_count = feature->max_count;
    out.bytes = feature->bytes;
    out.sample = report->samples[index];
    return out;
}

static void write_file(tp_json_writer *writer, const tpucl_records_file *file)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "path", file->path);
    tp_json_put_string(writer, "compression", file->compression);
    tp_json_put_int(writer, "file_bytes", (int64_t)file->file_bytes);
    tp_json_put_int(writer, "records", (int64_t)file->records);
    tp_json_put_int(writer, "bytes", (int64_t)file->bytes);
    tp_json_put_int(writer, "faults", (int64_t)file->faults);
    tp_json_put_string(writer, "fault", file->fault);
    tp_json_end_object(writer);
}

static void write_feature(tp_json_writer *writer, const tpucl_records_feature *feature)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "key", feature->key);
    tp_json_put_string(writer, "kind", feature->kind);
    tp_json_put_int(writer, "records", feature->records);
    tp_json_put_int(writer, "min_count", feature->min_count);
    tp_json_put_int(writer, "max_count", feature->max_count);
    tp_json_put_int(writer, "bytes", (int64_t)feature->bytes);
    tp_json_put_string(writer, "sample", feature->sample);
    tp_json_end_object(writer);
}

tpucl_status tpucl_records_report_json(const tpucl_records_report *report, char **out_text)
{
    TP_API_NEED(report);
    TP_API_NEED(out_text);
    const tpucl_records_summary *s = &report->summary;
    tpucl_records_file file;
    tpucl_records_feature feature;
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "version", tpucl_version_string());
    tp_json_put_int(&writer, "records", (int64_t)s->records);
    tp_json_put_int(&writer, "bytes", (int64_t)s->bytes);
    tp_json_put_int(&writer, "file_bytes", (int64_t)s->file_bytes);
    tp_json_put_int(&writer, "faults", (int64_t)s->faults);
    tp_json_put_int(&writer, "parsed", s->parsed);
    tp_json_put_int(&writer, "not_examples", s->not_examples);
    tp_json_put_double(&writer, "seconds", s->seconds);
    tp_json_key(&writer, "files");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; (file = tpucl_records_report_file(report, i)).path; i++)
        write_file(&writer, &file);
    tp_json_end_array(&writer);
    tp_json_key(&writer, "features");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; (feature = tpucl_records_report_feature(report, i)).key; i++)
        write_feature(&writer, &feature);
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

/* ---- making ---- */

static void show_made(const tp_make_result *result, uint64_t begin_ns, tpucl_records_made *out)
{
    out->records = result->records;
    out->files = result->files;
    out->found = result->found;
    out->classes = result->classes;
    out->bytes = result->bytes;
    out->seconds = seconds_since(begin_ns);
}

tpucl_status tpucl_records_make(const tpucl_records_make_options *options,
                                tpucl_records_made *out_made)
{
    TP_API_NEED(out_made);
    tpucl_records_make_options all;
    tp_make_options make;
    tp_make_result result;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_records_make_options));
    if (!all.inputs)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'inputs' is missing, expected a file or folder");
    TP_TRY(convert_making(&all, &make));
    const uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(tp_records_make(&make, &result));
    show_made(&result, begin_ns, out_made);
    return TPUCL_OK;
}

tpucl_status tpucl_records_convert(const tpucl_records_options *from, bool skip_faults,
                                   const tpucl_records_make_options *to,
                                   tpucl_records_made *out_made)
{
    TP_API_NEED(out_made);
    tpucl_records_options reading;
    tpucl_records_make_options making;
    tp_record_options records = {.policy = skip_faults ? TP_RECORD_SKIP : TP_RECORD_STOP};
    tp_make_options make;
    tp_make_result result;
    tp_arena *arena = NULL;
    const char *const *paths = NULL;
    int32_t count = 0;
    TP_TRY(TP_API_OPTIONS(from, &reading, tpucl_records_options));
    TP_TRY(TP_API_OPTIONS(to, &making, tpucl_records_make_options));
    TP_TRY(convert_reading(&reading, &records));
    TP_TRY(convert_making(&making, &make));
    const uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status =
        tp_record_paths_expand(reading.paths, reading.path_count, arena, &paths, &count);
    if (status == TPUCL_OK) status = tp_records_convert(paths, count, &records, &make, &result);
    tp_arena_destroy(arena);
    TP_TRY(status);
    show_made(&result, begin_ns, out_made);
    return TPUCL_OK;
}

tpucl_status tpucl_records_made_json(const tpucl_records_made *made, char **out_text)
{
    TP_API_NEED(made);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "version", tpucl_version_string());
    tp_json_put_int(&writer, "records", made->records);
    tp_json_put_int(&writer, "files", made->files);
    tp_json_put_int(&writer, "found", made->found);
    tp_json_put_int(&writer, "classes", made->classes);
    tp_json_put_int(&writer, "bytes", (int64_t)made->bytes);
    tp_json_put_double(&writer, "seconds", made->seconds);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

const char *tpucl_records_preset_name(int32_t index)
{
    const tp_record_preset *preset = tp_record_preset_at(index);
    return preset ? preset->name : NULL;
}

const char *tpucl_records_preset_about(int32_t index)
{
    const tp_record_preset *preset = tp_record_preset_at(index);
    return preset ? preset->about : NULL;
}
