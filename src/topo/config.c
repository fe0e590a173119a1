/* SPDX-License-Identifier: Apache-2.0
 * Run configurations: defaults, file, overrides, and what the topology decides. */
#include "topo/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/hash.h"
#include "core/str.h"
#include "topo/config_read.h"

enum { MAX_FILE_BYTES = 16 << 20 };

void tp_config_destroy(tp_config *config)
{
    if (!config) return;
    if (config->store) {
        tp_json_destroy(config->store->model_document);
        tp_arena_destroy(config->store->arena);
        tp_free(config->store);
    }
    tp_free(config);
}

bool tp_config_given(const tp_config *config, const char *path)
{
    int index = tp_config_find_key(path);
    return index >= 0 && config->store->given[index];
}

/* Defaults are JSON in the table, so that they go through the same reader as everything else. */
static tpucl_status read_defaults(tp_config *config, const char *prefix, tp_problems *problems)
{
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        if (!key->fallback || strncmp(key->path, prefix, strlen(prefix)) != 0) continue;
        tp_json_document *document;
        TP_TRY(tp_json_parse(key->fallback, strlen(key->fallback), key->path, &document));
        tpucl_status status = tp_config_read_value(config, key, tp_json_root(document), problems);
        tp_json_destroy(document);
        if (status != TPUCL_OK) return status;
        config->store->given[key - tp_config_keys] = false;
    }
    return TPUCL_OK;
}

/* An object that says which loss or optimizer it is comes in the place of the file's, whose other keys may belong
 * to that one alone; without a name it changes keys of it. */
static tpucl_status forget_group(tp_config *config, const char *path, const tp_json *value,
                                 tp_problems *problems)
{
    char prefix[160];
    const bool is_object = value->kind == TP_JSON_OBJECT;
    snprintf(prefix, sizeof prefix, "%s.", path);
    const int name = is_object ? tp_config_find_name_key(prefix) : -1;
    if (name < 0 || !tp_json_member(value, tp_config_keys[name].path + strlen(prefix)))
        return TPUCL_OK;
    return read_defaults(config, prefix, problems);
}

/* Keeps the document when the model lives in it. */
static void keep_or_destroy(tp_config *config, tp_json_document *document)
{
    bool holds_model = config->model && config->model->document == document;
    tp_json_document *unused = holds_model ? config->store->model_document : document;
    if (holds_model) config->store->model_document = document;
    tp_json_destroy(unused);
}

/* What is no JSON is the text itself, but only text: a path of other bytes would be written down as another
 * path, and that one be used. */
static tpucl_status parse_text(const char *value, const char *name, tp_problems *problems,
                               tp_json_document **out_document)
{
    char *quoted;
    for (size_t at = 0, left = strlen(value), length; left; at += length, left -= length) {
        length = tp_str_utf8_length(value + at, left);
        if (length) continue;
        tp_problems_add(problems, "expected valid UTF-8, found byte 0x%02x at %s:1:%zu",
                        (unsigned char)value[at], name, at + 1);
        return TPUCL_OK;
    }
    tp_json_writer writer = {.compact = true};
    tp_json_write_string(&writer, value);
    TP_TRY(tp_json_writer_finish(&writer, &quoted));
    tpucl_status status = tp_json_parse(quoted, strlen(quoted), name, out_document);
    tp_free(quoted);
    return status;
}

static tpucl_status read_override(tp_config *config, const char *override, tp_problems *problems)
{
    const char *equals = strchr(override, '=');
    if (!equals || equals == override) {
        tp_problems_add(problems, "expected an override of the form key=value, found '%.100s'",
                        override);
        return TPUCL_OK;
    }
    char path[128], name[160];
    snprintf(path, sizeof path, "%.*s", (int)(equals - override), override);
    snprintf(name, sizeof name, "--set %s", path);
    const char *value = equals + 1;
    tp_json_document *document = NULL;
    tpucl_status status = tp_json_parse(value, strlen(value), name, &document);
    if (status == TPUCL_INVALID_CONFIG) status = parse_text(value, name, problems, &document);
    if (status != TPUCL_OK || !document) return status;
    status = forget_group(config, path, tp_json_root(document), problems);
    if (status == TPUCL_OK)
        status = tp_config_read_path(config, path, tp_json_root(document), problems);
    keep_or_destroy(config, document);
    return status;
}

static void check_required(const tp_config *config, tp_problems *problems)
{
    for (size_t i = 0; tp_config_keys[i].path; i++) {
        if (!tp_config_keys[i].fallback && !config->store->given[i])
            tp_problems_add(problems, "key '%s' is missing in '%.160s': %s", tp_config_keys[i].path,
                            config->file, tp_config_keys[i].meaning);
    }
}

static void refuse_if(bool wrong, const char *key, const char *belongs_to, const char *chosen,
                      tp_problems *problems)
{
    if (wrong) tp_problems_add(problems, "'%s' belongs to %s, but %s", key, belongs_to, chosen);
}

/* "SGD, RMSprop": the choices that have the key, in `out`. */
static void list_owners(const tp_config_choice *choice, const char *part, char *out, size_t size)
{
    size_t length = 0, unused;
    out[0] = '\0';
    for (size_t i = 0; choice->names[i] && length < size; i++)
        if (tp_choice_find(choice->keys[i], part, &unused))
            length += (size_t)snprintf(out + length, size - length, "%s%s", length ? ", " : "",
                                       choice->names[i]);
}

/* Whether the field has a value that says something. */
static bool is_set(const tp_config *config, const tp_config_key *key)
{
    const void *field = (const char *)config + key->offset;
    return key->type == TP_CONFIG_BOOL ? *(const bool *)field
                                       : config->store->given[key - tp_config_keys];
}

/* What was chosen under the choice's name key; -1: nothing yet. */
static int32_t chosen(const tp_config *config, const tp_config_choice *choice)
{
    const int index = tp_config_find_name_key(choice->prefix);
    const tp_config_key *key = &tp_config_keys[index];
    if (!key->fallback && !config->store->given[index]) return -1;
    return *(const int32_t *)(const void *)((const char *)config + key->offset);
}

/* A key that depends on what was chosen by name takes the default of that choice, or is refused when the
 * choice has no such key: it would be believed to do something. */
static tpucl_status settle_choices(tp_config *config, tp_problems *problems)
{
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        const char *part;
        const tp_config_choice *choice = tp_config_find_choice(key->path, &part);
        const int32_t index = choice ? chosen(config, choice) : -1;
        if (index < 0) continue;
        size_t length;
        const char *value = tp_choice_find(choice->keys[index], part, &length);
        if (value && !config->store->given[key - tp_config_keys]) {
            tp_json_document *document;
            TP_TRY(tp_json_parse(value, length, key->path, &document));
            tpucl_status status =
                tp_config_read_value(config, key, tp_json_root(document), problems);
            tp_json_destroy(document);
            TP_TRY(status);
        } else if (!value && is_set(config, key)) {
            char owners[256];
            list_owners(choice, part, owners, sizeof owners);
            tp_problems_add(problems, "'%s' belongs to %s, but '%sname' is '%s'", key->path, owners,
                            choice->prefix, choice->names[index]);
        }
    }
    return TPUCL_OK;
}

static bool has(double value)
{
    return value > 0; /* not NaN */
}

static void check_schedule(const tp_config *config, tp_problems *problems)
{
    const bool warms_up = config->optimizer.schedule.warmup_steps > 0;
    if (warms_up != !isnan(config->optimizer.schedule.warmup_target))
        tp_problems_add(problems, "'optimizer.schedule.warmup_steps' and "
                                  "'optimizer.schedule.warmup_target' go together, found one");
    switch ((tp_config_schedule)config->optimizer.schedule.name) {
    case TP_SCHEDULE_EXPONENTIAL:
    case TP_SCHEDULE_INVERSE_TIME:
        if (!has(config->optimizer.schedule.decay_rate))
            tp_problems_add(problems, "'optimizer.schedule.decay_rate' is missing, expected a "
                                      "number above 0");
        break;
    case TP_SCHEDULE_COSINE_RESTARTS:
        if (!config->optimizer.schedule.first_decay_steps)
            tp_problems_add(problems, "'optimizer.schedule.first_decay_steps' is missing");
        break;
    case TP_SCHEDULE_PIECEWISE:
        if (config->optimizer.schedule.boundaries.count < 1 ||
            config->optimizer.schedule.values.count !=
                config->optimizer.schedule.boundaries.count + 1)
            tp_problems_add(problems,
                            "'optimizer.schedule.values' has %zu numbers and "
                            "'optimizer.schedule.boundaries' %zu: expected boundaries, and one "
                            "value more",
                            config->optimizer.schedule.values.count,
                            config->optimizer.schedule.boundaries.count);
        break;
    default:
        break;
    }
}

/* Values that mean nothing together with others are refused. Those at their defaults pass, so that a
 * configuration that was written out can be read again. */
static void check_together(const tp_config *config, tp_problems *problems)
{
    if (has(config->optimizer.clipnorm) + has(config->optimizer.clipvalue) +
            has(config->optimizer.global_clipnorm) >
        1)
        tp_problems_add(problems, "of 'optimizer.clipnorm', 'optimizer.clipvalue' and "
                                  "'optimizer.global_clipnorm' at most one may be given");
    if (config->optimizer.ema_overwrite_frequency && !config->optimizer.use_ema)
        tp_problems_add(problems, "'optimizer.ema_overwrite_frequency' needs 'optimizer.use_ema'");
    check_schedule(config, problems);
    if (config->loss.name == TP_LOSS_EXPRESSION && !*config->loss.expression)
        tp_problems_add(problems, "the loss 'expression' needs 'loss.expression'");
    if (!isnan(config->loss.ignore_class) &&
        config->loss.ignore_class != (double)(int64_t)config->loss.ignore_class)
        tp_problems_add(problems, "'loss.ignore_class' is %g, expected a whole number",
                        config->loss.ignore_class);
}

static void check_record_keys(const tp_config *config, tp_problems *problems)
{
    const bool records = config->data.dataset == TP_DATASET_RECORDS;
    const bool has_features = config->data.features.inputs.count > 0;
    const char *other = "'data.dataset' is another";
    refuse_if(!records && *config->data.preset, "data.preset", "the data set 'records'", other,
              problems);
    refuse_if(!records && (has_features || config->data.features.labels.count), "data.features",
              "the data set 'records'", other, problems);
    if (config->data.image.size.count != 0 && config->data.image.size.count != 2)
        tp_problems_add(problems, "'data.image.size' has %zu numbers, expected height and width",
                        config->data.image.size.count);
    if (config->data.augment.crop.count != 0 && config->data.augment.crop.count != 2)
        tp_problems_add(problems, "'data.augment.crop' has %zu numbers, expected height and width",
                        config->data.augment.crop.count);
    const bool images = config->data.dataset == TP_DATASET_IMAGES;
    if ((records || images) && (config->data.train.labels.count || config->data.test.labels.count))
        tp_problems_add(problems, "records and folders of images hold their labels: "
                                  "'data.train.labels' and 'data.test.labels' are for other data "
                                  "sets");
    if (!records) return;
    if (*config->data.preset ? has_features : !has_features)
        tp_problems_add(problems, "records are decoded by 'data.preset' or by "
                                  "'data.features.inputs': expected one of them");
}

static void check_files(const tp_config *config, tp_problems *problems)
{
    static const char *const keys[] = {"data.train.inputs", "data.train.labels", "data.test.inputs",
                                       "data.test.labels"};
    const tp_config_files *const values[] = {&config->data.train.inputs, &config->data.train.labels,
                                             &config->data.test.inputs, &config->data.test.labels};
    const bool files = config->data.dataset != TP_DATASET_FASHION_MNIST;
    /* data whose labels are not files of their own */
    const bool records =
        config->data.dataset == TP_DATASET_RECORDS || config->data.dataset == TP_DATASET_IMAGES;
    for (int i = 0; i < 4; i++) {
        if (files && !values[i]->count && i < (records ? 1 : 2))
            tp_problems_add(problems, "'%s' is missing: this 'data.dataset' is read from files",
                            keys[i]);
        refuse_if(!files && values[i]->count, keys[i], "the data sets that are read from files",
                  "'data.dataset' is 'fashion-mnist'", problems);
        refuse_if(config->data.dataset != TP_DATASET_NPY && values[i]->count && values[i]->names[0],
                  keys[i], "the data set 'npy', when it names files", "'data.dataset' is another",
                  problems);
    }
    const bool train_weighs = *config->data.train.weights, test_weighs = *config->data.test.weights;
    refuse_if(config->data.dataset != TP_DATASET_NPY && (train_weighs || test_weighs),
              "data.train.weights", "the data set 'npy'", "'data.dataset' is another", problems);
    if (files && (values[2]->count ? train_weighs != test_weighs : test_weighs))
        tp_problems_add(problems,
                        "'data.train.weights' and 'data.test.weights' go together, found one");
    if (files && !records && !values[2]->count != !values[3]->count)
        tp_problems_add(problems,
                        "'data.test.inputs' and 'data.test.labels' go together, found one");
    check_record_keys(config, problems);
}

static tpucl_status read_all(tp_config *config, tp_json_document *document,
                             const char *const *overrides, size_t override_count)
{
    tp_problems problems = {0};
    const tp_json *root = tp_json_root(document);
    tpucl_status status = read_defaults(config, "", &problems);
    if (status == TPUCL_OK &&
        tp_problems_add_failed(&problems, tp_json_expect(root, TP_JSON_OBJECT)))
        status = tp_config_read_object(config, "", root, &problems);
    keep_or_destroy(config, document);
    for (size_t i = 0; i < override_count && status == TPUCL_OK; i++)
        status = read_override(config, overrides[i], &problems);
    if (status != TPUCL_OK) return status;
    check_required(config, &problems);
    TP_TRY(settle_choices(config, &problems));
    check_together(config, &problems);
    check_files(config, &problems);
    char what[200];
    snprintf(what, sizeof what, "run configuration '%.160s'", config->file);
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, what);
}

/* Consumes the document. */
static tpucl_status create(tp_json_document *document, const char *const *overrides,
                           size_t override_count, tp_config **out_config)
{
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    tp_config *config = TP_NEW(tp_config);
    if (!config) goto failed;
    config->store = TP_NEW(struct tp_config_store);
    if (!config->store) goto failed;
    status = tp_arena_create(4096, &config->store->arena);
    if (status != TPUCL_OK) goto failed;
    config->file = tp_arena_strdup(config->store->arena, tp_json_name(document));
    if (!config->file) {
        status = TPUCL_OUT_OF_MEMORY;
        goto failed;
    }
    status = read_all(config, document, overrides, override_count);
    if (status == TPUCL_OK)
        *out_config = config;
    else
        tp_config_destroy(config);
    return status;
failed:
    tp_json_destroy(document);
    tp_config_destroy(config);
    return status;
}

tpucl_status tp_config_read_file(const char *path, const char *const *overrides,
                                 size_t override_count, tp_config **out_config)
{
    tp_json_document *document;
    *out_config = NULL;
    TP_TRY(tp_json_read_file(path, MAX_FILE_BYTES, &document));
    return create(document, overrides, override_count, out_config);
}

tpucl_status tp_config_parse(const char *text, size_t length, const char *name,
                             const char *const *overrides, size_t override_count,
                             tp_config **out_config)
{
    tp_json_document *document;
    *out_config = NULL;
    TP_TRY(tp_json_parse(text, length, name, &document));
    return create(document, overrides, override_count, out_config);
}

/* ---- what the topology decides ---- */

tpucl_status tp_config_resolve_batch(const tp_config *config, int32_t cores,
                                     int64_t default_per_core, int64_t *out_per_core,
                                     int64_t *out_global)
{
    int64_t per_core = config->per_core_batch, global = config->global_batch;
    if (!per_core && !global) per_core = default_per_core;
    if (global && global % cores != 0) {
        int64_t below = global / cores * cores, above = below + cores;
        if (below)
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "expected 'global_batch' to be a multiple of the %d cores, found %lld; "
                           "the nearest are %lld and %lld",
                           cores, (long long)global, (long long)below, (long long)above);
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "expected 'global_batch' to be a multiple of the %d cores, found %lld; the "
                       "smallest is %lld",
                       cores, (long long)global, (long long)above);
    }
    if (global && per_core && per_core * cores != global)
        return TP_FAIL(
            TPUCL_INVALID_CONFIG,
            "expected 'global_batch' = 'per_core_batch' * cores, found %lld and %lld * %d "
            "= %lld; set 'global_batch' to %lld or 'per_core_batch' to %lld, or leave one "
            "out",
            (long long)global, (long long)per_core, cores, (long long)(per_core * cores),
            (long long)(per_core * cores), (long long)(global / cores));
    *out_per_core = per_core ? per_core : global / cores;
    *out_global = *out_per_core * cores;
    return TPUCL_OK;
}

static void check_groups(const tp_config *config, int32_t cores, tp_problems *problems)
{
    const tp_config_ints *ids = &config->cross_shard.groups;
    if (!ids->count) return;
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->items[i] >= cores) {
            tp_problems_add(problems,
                            "'cross_shard.groups' names core %lld, but the topology has "
                            "cores 0 to %d",
                            (long long)ids->items[i], cores - 1);
            return;
        }
    }
    if (ids->count != (size_t)cores)
        tp_problems_add(problems,
                        "expected 'cross_shard.groups' to hold every core, found %zu of %d",
                        ids->count, cores);
}

/* A wave is an aligned subtree of the cross-core reduction, or everything. */
static void check_wave(const tp_config *config, int32_t cores, tp_problems *problems)
{
    int64_t wave = config->wave_cores;
    bool is_power = wave > 0 && (wave & (wave - 1)) == 0;
    if (wave == 0 || wave == cores || (is_power && wave < cores)) return;
    tp_problems_add(problems,
                    "expected 'wave_cores' to be 0, a power of two below %d, or %d, found "
                    "%lld",
                    cores, cores, (long long)wave);
}

/* Written out, "not given" and "none" would be the same empty list. */
static void resolve_metrics(tp_config *config)
{
    static const tp_config_metric items[] = {
        {.label = "accuracy", .name = TP_CONFIG_METRIC_ACCURACY, .path = "metrics[0]"}};
    bool has_classes = tp_config_choice_has("loss.class_weight", config->loss.name);
    for (size_t i = 0; i < config->losses.count; i++)
        has_classes =
            has_classes || tp_config_choice_has("loss.class_weight", config->losses.items[i].name);
    if (!tp_config_given(config, "metrics") && has_classes)
        config->metrics = (tp_config_metrics){items, 1, false};
}

/* Weights are no narrower than what a layer computes with. */
static void resolve_precision(tp_config *config, const tp_topology *topology, tp_problems *problems)
{
    if (config->precision.policy < 0)
        config->precision.policy = (int32_t)topology->numeric.precision;
    const bool is_pure = config->precision.policy == TP_PRECISION_BFLOAT16;
    if (config->precision.weights < 0)
        config->precision.weights = is_pure ? TP_CONFIG_BFLOAT16 : TP_CONFIG_FLOAT32;
    if (config->precision.policy == TP_PRECISION_FLOAT32 &&
        config->precision.weights == TP_CONFIG_BFLOAT16)
        tp_problems_add(problems,
                        "'precision.weights' is bfloat16 with the policy float32; expected "
                        "the policy bfloat16 or mixed_bfloat16 with it");
}

tpucl_status tp_config_resolve(tp_config *config, const tp_topology *topology)
{
    tp_problems problems = {0};
    resolve_metrics(config);
    resolve_precision(config, topology, &problems);
    if (config->matmul_precision < 0)
        config->matmul_precision = (int32_t)topology->numeric.matmul_precision;
    if (config->math < 0) config->math = (int32_t)topology->numeric.math;
    int64_t per_core = 0, global = 0;
    if (config->batch >= 0 && (config->per_core_batch || config->global_batch))
        tp_problems_add(&problems, "'batch' is \"auto\", but '%s' is given, too: leave one out",
                        config->per_core_batch ? "per_core_batch" : "global_batch");
    const int64_t parts = topology->cores * config->accumulate;
    if (parts > TP_TOPOLOGY_MAX_CORES)
        tp_problems_add(&problems,
                        "expected 'accumulate' times the cores to be at most %d, found %lld * %d",
                        TP_TOPOLOGY_MAX_CORES, (long long)config->accumulate, topology->cores);
    if (config->accumulate > 1 && config->cross_shard.groups.count)
        tp_problems_add(&problems, "'accumulate' and 'cross_shard.groups' cannot be together");
    tp_problems_add_failed(&problems, tp_config_resolve_batch(config, (int32_t)parts,
                                                              topology->numeric.per_core_batch,
                                                              &per_core, &global));
    check_groups(config, topology->cores, &problems);
    check_wave(config, topology->cores, &problems);
    char what[256];
    snprintf(what, sizeof what, "run configuration '%.100s' on topology '%.60s'", config->file,
             topology->name);
    TP_TRY(tp_problems_result(&problems, TPUCL_INVALID_CONFIG, what));
    config->per_core_batch = per_core;
    config->global_batch = global;
    return TPUCL_OK;
}

/* ---- text ---- */

/* Ends and begins objects so that the writer stands where `path` belongs; returns its last part. */
static const char *move_to(tp_json_writer *writer, const char *from, const char *path)
{
    size_t common = 0, length = 0;
    for (; from[length] && from[length] == path[length]; length++) {
        if (from[length] == '.') common = length + 1;
    }
    for (const char *p = from + common; (p = strchr(p, '.')) != NULL; p++)
        tp_json_end_object(writer);
    const char *part = path + common;
    for (const char *dot; (dot = strchr(part, '.')) != NULL; part = dot + 1) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)(dot - part), part);
        tp_json_key(writer, key);
        tp_json_begin_object(writer);
    }
    return part;
}

static tpucl_status write_json(const tp_config *config, bool compact, bool results_only,
                               char **out_text)
{
    tp_json_writer writer = {.compact = compact};
    const char *previous = "";
    tp_json_begin_object(&writer);
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        if (results_only && key->keeps_result) continue;
        tp_json_key(&writer, move_to(&writer, previous, key->path));
        tp_config_write_value(config, key, &writer);
        previous = key->path;
    }
    move_to(&writer, previous, "");
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

tpucl_status tp_config_to_json(const tp_config *config, char **out_text)
{
    return write_json(config, false, false, out_text);
}

tpucl_status tp_config_sha256(const tp_config *config, char out_hex[65])
{
    char *text;
    TP_TRY(write_json(config, true, true, &text));
    tp_sha256_hex(text, strlen(text), out_hex);
    tp_free(text);
    return TPUCL_OK;
}
