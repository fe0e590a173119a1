/* SPDX-License-Identifier: Apache-2.0
 * Verdicts: looked up, found, kept. */
#include "verify/verdicts.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <tpucl/version.h>
#include "core/alloc.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/json_write.h"
#include "core/log.h"
#include "device/program_build.h"
#include "graph/opdef.h"
#include "graph/print.h"
#include "kernel/source.h"
#include "tune/neighbour.h"
#include "verify/check.h"
#include "verify/graph_cases.h"
#include "verify/prepare.h"

enum { FORMAT = 1, MAX_FILE_BYTES = 1 << 20, KEY_BYTES = 96 };

typedef struct verdict {
    char key[KEY_BYTES];           /* "mxu_register dot default" */
    bool is_allowed, is_temporary; /* temporary: not kept */
    char text[640];                /* "mxu_register dot default: case 'ragged' ...", for messages */
} verdict;
TP_ARRAY_DEFINE(verdict_array, verdict)

struct tp_verdicts {
    tp_device *device;
    tp_verdicts_progress progress;
    void *user;
    verdict_array all;
    char *path;
    uint64_t spent_ns;
};

static const char *kind_name(tp_mxu_kind kind)
{
    switch (kind) {
    case TP_MXU_CONV:
        return "convolution";
    case TP_MXU_CONV_INPUT_GRAD:
        return "convolution_input_grad";
    case TP_MXU_CONV_FILTER_GRAD:
        return "convolution_filter_grad";
    case TP_MXU_DOT:
    default:
        return "dot";
    }
}

/* Sources as they are used: TPUCL_KERNEL_DIR may stand in for what is embedded. */
static tpucl_status hash_everything(const tp_device *device, char out_hex[TP_SHA256_HEX_BYTES])
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status = TPUCL_OK;
    tp_sha256 hash;
    char format[16];
    snprintf(format, sizeof format, "verdicts %d", FORMAT);
    tp_sha256_init(&hash);
    tp_sha256_update_text(&hash, format);
    tp_sha256_update_text(&hash, tpucl_version_string());
    tp_sha256_update_text(&hash, tp_device_identity(device));
    tp_sha256_update_text(&hash, tp_device_build_options(device));
    for (const tp_embedded_file *file = tp_kernel_source_files(); file->name; file++) {
        const char *text = NULL;
        status = tp_kernel_source_find(file->name, arena, &text);
        if (status != TPUCL_OK) break;
        tp_sha256_update_text(&hash, file->name);
        tp_sha256_update_text(&hash, text);
    }
    tp_arena_destroy(arena);
    size_t count =
        0; /* what a verdict was reached on: rows of a table of constants, without padding that varies */
    const tp_mxu_case *cases = tp_mxu_cases(&count);
    for (size_t i = 0; i < count; i++) {
        const size_t begin = offsetof(tp_mxu_case, kind);
        tp_sha256_update_text(&hash, cases[i].name);
        tp_sha256_update(&hash, (const char *)&cases[i] + begin, sizeof cases[i] - begin);
    }
    tp_sha256_finish_hex(&hash, out_hex);
    return status;
}

static verdict *find(tp_verdicts *verdicts, const char *key)
{
    for (size_t i = 0; i < verdicts->all.count; i++)
        if (strcmp(verdicts->all.items[i].key, key) == 0) return &verdicts->all.items[i];
    return NULL;
}

static tpucl_status read_members(tp_verdicts *verdicts, const tp_json *root)
{
    const tp_json *all = NULL;
    TP_TRY(tp_json_require(root, "verdicts", TP_JSON_OBJECT, &all));
    for (size_t i = 0; i < all->count; i++) {
        verdict entry = {0};
        const char *text = "";
        TP_TRY(tp_json_get_bool(&all->items[i], "allowed", &entry.is_allowed));
        TP_TRY(tp_json_get_string(&all->items[i], "reason", &text));
        snprintf(entry.key, sizeof entry.key, "%s", all->items[i].key);
        snprintf(entry.text, sizeof entry.text, "%s", text);
        TP_TRY(verdict_array_push(&verdicts->all, entry));
    }
    return TPUCL_OK;
}

/* A file that is not there or not right only means that everything is asked again. */
static void read_file(tp_verdicts *verdicts)
{
    tp_json_document *document = NULL;
    if (tp_json_read_file(verdicts->path, MAX_FILE_BYTES, &document) == TPUCL_OK &&
        read_members(verdicts, tp_json_root(document)) != TPUCL_OK)
        verdicts->all.count = 0;
    tp_json_destroy(document);
}

static tpucl_status write_file(const tp_verdicts *verdicts)
{
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_int(&writer, "format", FORMAT);
    tp_json_put_string(&writer, "device", tp_device_identity(verdicts->device));
    tp_json_key(&writer, "verdicts");
    tp_json_begin_object(&writer);
    for (size_t i = 0; i < verdicts->all.count; i++) {
        const verdict *entry = &verdicts->all.items[i];
        if (entry->is_temporary) continue;
        tp_json_key(&writer, entry->key);
        tp_json_begin_object(&writer);
        tp_json_put_bool(&writer, "allowed", entry->is_allowed);
        tp_json_put_string(&writer, "reason", entry->text);
        tp_json_end_object(&writer);
    }
    tp_json_end_object(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_save(&writer, verdicts->path);
}

tpucl_status tp_verdicts_open(tp_device *device, const char *folder, tp_verdicts_progress progress,
                              void *user, tp_verdicts **out_verdicts)
{
    const uint64_t begin_ns = tp_clock_now_ns();
    tp_verdicts *verdicts = TP_NEW(tp_verdicts);
    if (!verdicts) return TPUCL_OUT_OF_MEMORY;
    *verdicts = (tp_verdicts){.device = device, .progress = progress, .user = user};
    if (folder) {
        char key[TP_SHA256_HEX_BYTES];
        tpucl_status status = hash_everything(device, key);
        if (status != TPUCL_OK) {
            tp_verdicts_close(verdicts);
            return status;
        }
        size_t room = strlen(folder) + sizeof key + 32;
        verdicts->path = tp_alloc(room);
        if (!verdicts->path) {
            tp_verdicts_close(verdicts);
            return TPUCL_OUT_OF_MEMORY;
        }
        snprintf(verdicts->path, room, "%s/verdicts", folder);
        if (tp_file_make_folders(verdicts->path) == TPUCL_OK) {
            snprintf(verdicts->path, room, "%s/verdicts/%s.json", folder, key);
            read_file(verdicts);
        } else { /* a cache that cannot be written is no error: it only stays cold */
            tp_free(verdicts->path);
            verdicts->path = NULL;
        }
    }
    tp_error_clear();
    verdicts->spent_ns = tp_clock_now_ns() - begin_ns;
    *out_verdicts = verdicts;
    return TPUCL_OK;
}

double tp_verdicts_seconds(const tp_verdicts *verdicts)
{
    return 1e-9 * (double)verdicts->spent_ns;
}

void tp_verdicts_close(tp_verdicts *verdicts)
{
    if (!verdicts) return;
    verdict_array_deinit(&verdicts->all);
    tp_free(verdicts->path);
    tp_free(verdicts);
}

/* ---- progress ---- */

typedef struct announced {
    const tp_verdicts *verdicts;
    const char *variant, *problem_class;
} announced;

static void announce(const announced *a, uint32_t done, uint32_t total)
{
    const tp_verdicts *verdicts = a->verdicts;
    if (verdicts->progress)
        verdicts->progress(verdicts->user, a->variant, a->problem_class, done, total);
}

static void on_built(const tp_build_progress *progress, void *user)
{
    announce(user, progress->done, progress->total);
}

/* ---- products ---- */

static bool is_of_class(const tp_mxu_case *row, const tp_mxu_problem *problem)
{
    return row->kind == problem->kind && row->precision == problem->precision && !row->is_long;
}

/* Plans as tp_mxu_check does. */
static void add_case(tp_prepare *prepare, const tp_device_caps *caps, const char *variant,
                     const tp_mxu_case *row)
{
    const tp_mxu_allow allow = {.forced = variant};
    tp_arena *arena = NULL;
    tp_mxu_problem problem;
    tp_mxu_plan plan;
    if (tp_arena_create(0, &arena) == TPUCL_OK &&
        tp_mxu_case_problem(row, arena, &problem) == TPUCL_OK &&
        tp_mxu_plan_create(&problem, caps, &allow, 3, arena, &plan) == TPUCL_OK)
        tp_prepare_add_launches(prepare, plan.launches, plan.launch_count);
    tp_error_clear();
    tp_arena_destroy(arena);
}

static void prepare_class(const tp_verdicts *verdicts, const char *variant,
                          const tp_mxu_problem *problem)
{
    announced what = {verdicts, variant, kind_name(problem->kind)};
    size_t count = 0;
    const tp_mxu_case *cases = tp_mxu_cases(&count);
    announce(&what, 0, 0);
    tp_prepare *prepare = tp_prepare_begin(verdicts->device);
    for (size_t i = 0; i < count; i++)
        if (is_of_class(&cases[i], problem))
            add_case(prepare, tp_device_get_caps(verdicts->device), variant, &cases[i]);
    tp_prepare_end(prepare, on_built, &what);
}

/* Runs the class's cases until one fails. A variant that took none of them is not proven. */
static tpucl_status judge(tp_verdicts *verdicts, const char *variant, const tp_mxu_problem *problem,
                          verdict *out)
{
    size_t count = 0, passed = 0;
    const tp_mxu_case *cases = tp_mxu_cases(&count);
    for (size_t i = 0; i < count; i++) {
        if (!is_of_class(&cases[i], problem)) continue;
        tp_check_outcome outcome;
        TP_TRY(tp_check_mxu_case(verdicts->device, variant, &cases[i], &outcome));
        passed += outcome.status == TP_CHECK_PASSED;
        if (outcome.status != TP_CHECK_FAILED) continue;
        out->is_temporary = outcome.is_temporary;
        snprintf(out->text, sizeof out->text, "%s: case '%s': %s", out->key, cases[i].name,
                 outcome.reason);
        return TPUCL_OK;
    }
    out->is_allowed = passed > 0;
    if (!passed)
        snprintf(out->text, sizeof out->text, "%s: no case of this class was run", out->key);
    return TPUCL_OK;
}

static void keep(tp_verdicts *verdicts, const verdict *entry)
{
    if (verdict_array_push(&verdicts->all, *entry) == TPUCL_OK && !entry->is_temporary &&
        verdicts->path && write_file(verdicts) != TPUCL_OK)
        TP_LOG_INFO("verify", "verdicts are not kept: %s", tpucl_last_error()->message);
    tp_error_clear();
}

static tpucl_status judge_choice(tp_verdicts *verdicts, const tp_mxu_problem *problem,
                                 const tp_mxu_choice *choice, verdict *out)
{
    char text[256], knobs[TP_MXU_CHOICE_BYTES];
    const tpucl_status status =
        tp_mxu_check_neighbours(verdicts->device, problem, choice, &out->is_allowed, text);
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status != TPUCL_OK) { /* it does not build or run here */
        out->is_allowed = false;
        out->is_temporary = status == TPUCL_OUT_OF_DEVICE_MEMORY;
        snprintf(text, sizeof text, "%.200s", tpucl_last_error()->message);
        tp_error_clear();
    }
    if (!out->is_allowed)
        snprintf(out->text, sizeof out->text, "%s: %s", tp_mxu_choice_print(choice, knobs), text);
    return TPUCL_OK;
}

/* The key of a choice's verdict. */
static tpucl_status choice_key(const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                               char out_key[KEY_BYTES])
{
    char text[TP_NEIGHBOUR_KEY_BYTES], hex[TP_SHA256_HEX_BYTES];
    TP_TRY(tp_mxu_neighbour_key(problem, choice, text));
    tp_sha256_hex(text, strlen(text), hex);
    snprintf(out_key, KEY_BYTES, "choice %.32s", hex);
    return TPUCL_OK;
}

tpucl_status tp_verdicts_prove_choice(tp_verdicts *verdicts, const tp_mxu_problem *problem,
                                      const tp_mxu_choice *choice, bool *out_is_right,
                                      char out_text[256])
{
    verdict entry = {0};
    TP_TRY(choice_key(problem, choice, entry.key));
    const verdict *known = find(verdicts, entry.key);
    if (!known) {
        announce(&(announced){verdicts, choice->variant, kind_name(problem->kind)}, 0, 0);
        TP_TRY(judge_choice(verdicts, problem, choice, &entry));
        keep(verdicts, &entry);
        known = &entry;
    }
    *out_is_right = known->is_allowed;
    snprintf(out_text, 256, "%.255s", known->text);
    return TPUCL_OK;
}

/* Settings of a tuning record: other launches than those of the class's verdict. */
static bool is_choice_allowed(tp_verdicts *verdicts, const tp_mxu_problem *problem,
                              const tp_mxu_choice *choice)
{
    char text[256];
    bool is_right = false;
    if (tp_verdicts_prove_choice(verdicts, problem, choice, &is_right, text) != TPUCL_OK)
        return false; /* no memory: the plan will say so itself */
    if (!is_right)
        TP_LOG_WARNING("verify", "a tuning record is not followed on '%s': %s",
                       tp_device_label(verdicts->device), text);
    return is_right;
}

static void class_key(const char *variant, const tp_mxu_problem *problem, char out_key[KEY_BYTES])
{
    snprintf(out_key, KEY_BYTES, "%s %s %s", variant, kind_name(problem->kind),
             tp_precision_name(problem->precision));
}

static bool is_class_allowed(tp_verdicts *verdicts, const char *variant,
                             const tp_mxu_problem *problem)
{
    verdict entry = {0};
    class_key(variant, problem, entry.key);
    const verdict *known = find(verdicts, entry.key);
    if (known) return known->is_allowed;
    const uint64_t begin_ns = tp_clock_now_ns();
    prepare_class(verdicts, variant, problem);
    const tpucl_status status = judge(verdicts, variant, problem, &entry);
    verdicts->spent_ns += tp_clock_now_ns() - begin_ns;
    if (status != TPUCL_OK) return false; /* no memory: the plan will say so itself */
    if (!entry.is_allowed)
        TP_LOG_WARNING("verify", "%s is not used on '%s': %s", variant,
                       tp_device_label(verdicts->device), entry.text);
    keep(verdicts, &entry);
    return entry.is_allowed;
}

static bool is_allowed(void *user, const char *variant, const tp_mxu_problem *problem,
                       const tp_mxu_choice *choice)
{
    return is_class_allowed(user, variant, problem) &&
           (!choice || is_choice_allowed(user, problem, choice));
}

tpucl_status tp_verdicts_look_up(tp_verdicts *verdicts, const char *variant,
                                 const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                                 tp_verdict_known *out_known)
{
    char key[KEY_BYTES];
    if (choice)
        TP_TRY(choice_key(problem, choice, key));
    else
        class_key(variant, problem, key);
    const verdict *known = find(verdicts, key);
    *out_known = !known              ? TP_VERDICT_UNKNOWN
                 : known->is_allowed ? TP_VERDICT_ALLOWED
                                     : TP_VERDICT_REFUSED;
    return TPUCL_OK;
}

/* What a verdict is about. Attention has kernels of its own, which take long to build. */
typedef enum subject { GENERATED, MEMORY, ATTENTION } subject;

static bool is_about(const tp_node *node, subject about)
{
    const bool is_attention = tp_node_is(node, "attention") || tp_node_is(node, "attention_grad");
    if (about == ATTENTION) return is_attention;
    return node->def->op_class == TP_OP_MEMORY && !is_attention && !node->def->external;
}

static bool has_ops(const tp_graph *graph, subject about)
{
    for (tp_node_id id = 0; id < graph->node_count; id++)
        if (is_about(tp_graph_node(graph, id), about)) return true;
    return false;
}

/* Of the generator the quick cases, else those that have such ops and train nothing. */
static bool is_wanted(const tp_graph_case *candidate, const tp_graph *graph, subject about)
{
    if (about == GENERATED) return candidate->is_quick;
    return has_ops(graph, about) && graph->update_count == 0;
}

static void prepare_cases(const tp_verdicts *verdicts, subject about, const char *key)
{
    announced what = {verdicts, key, "kernels"};
    size_t count = 0;
    const tp_graph_case *cases = tp_graph_cases(&count);
    announce(&what, 0, 0);
    tp_prepare *prepare = tp_prepare_begin(verdicts->device);
    for (size_t i = 0; i < count; i++) {
        tp_graph *graph = NULL;
        if (cases[i].build(&graph) == TPUCL_OK && is_wanted(&cases[i], graph, about))
            tp_prepare_add_graph(prepare, graph);
        tp_graph_destroy(graph);
    }
    tp_error_clear();
    tp_prepare_end(prepare, on_built, &what);
}

static tpucl_status judge_cases(tp_verdicts *verdicts, subject about, verdict *out)
{
    size_t count = 0;
    const tp_graph_case *cases = tp_graph_cases(&count);
    out->is_allowed = true;
    for (size_t i = 0; i < count && out->is_allowed; i++) {
        tp_graph *graph = NULL;
        tp_check_outcome outcome;
        const tp_check_graph_options options = {.cores = cases[i].cores,
                                                .wave_cores = cases[i].wave_cores,
                                                .steps = cases[i].steps,
                                                .seed = 17 + i,
                                                .with_specials = cases[i].with_specials};
        TP_TRY(cases[i].build(&graph));
        tpucl_status status = TPUCL_OK;
        outcome.status = TP_CHECK_PASSED;
        if (is_wanted(&cases[i], graph, about))
            status = tp_check_graph(verdicts->device, graph, &options, &outcome);
        tp_graph_destroy(graph);
        TP_TRY(status);
        if (outcome.status == TP_CHECK_PASSED) continue;
        out->is_allowed = false;
        out->is_temporary = outcome.is_temporary;
        snprintf(out->text, sizeof out->text, "%s kernels: case '%s': %s", out->key, cases[i].name,
                 outcome.reason);
    }
    return TPUCL_OK;
}

static tpucl_status need(tp_verdicts *verdicts, const char *key, subject about)
{
    verdict entry = {0};
    snprintf(entry.key, sizeof entry.key, "%s", key);
    const verdict *known = find(verdicts, entry.key);
    if (!known) {
        prepare_cases(verdicts, about, entry.key);
        TP_TRY(judge_cases(verdicts, about, &entry));
        keep(verdicts, &entry);
        known = &entry;
    }
    if (known->is_allowed) return TPUCL_OK;
    return TP_FAIL(
        TPUCL_NOT_EXACT,
        "device '%s' does not reproduce the reference and is not used: %s. 'tpucl verify' "
        "shows all checks; another driver or device may be right, and \"math\": \"fast\" "
        "runs without the promise",
        tp_device_label(verdicts->device), known->text);
}

/* ---- ops from outside ---- */

/* The node alone, its operands as inputs. */
static tpucl_status isolate(const tp_graph *from, tp_node_id id, tp_graph **out_graph)
{
    const tp_node *node = tp_graph_node(from, id);
    tp_node_id inputs[TP_MAX_INPUTS];
    tp_graph *graph = NULL;
    TP_TRY(tp_graph_create(from->ops, &graph));
    for (int32_t i = 0; i < node->input_count; i++) {
        const tp_node *input = tp_graph_node(from, node->inputs[i]);
        char name[16];
        snprintf(name, sizeof name, "x%d", (int)i);
        inputs[i] = tp_graph_add_input(graph, name, input->dtype, input->shape);
    }
    tp_graph_add_output(graph, "y",
                        tp_graph_add(graph, node->def->name, inputs, node->input_count, node->attrs,
                                     node->attr_count));
    const tpucl_status status = tp_graph_check(graph);
    if (status != TPUCL_OK)
        tp_graph_destroy(graph);
    else
        *out_graph = graph;
    return status;
}

/* "op NAME HASH": of what the node is, the kernel, and how it is launched. */
static tpucl_status external_key(const tp_graph *alone, char out_key[KEY_BYTES])
{
    const tp_node *node = tp_graph_node(alone, alone->outputs[0].node);
    const tp_external_op *external = node->def->external;
    tp_external_launch launch;
    tp_str_builder text = {0};
    char hex[TP_SHA256_HEX_BYTES], *bytes = NULL;
    tp_sha256 hash;
    memset(&launch, 0, sizeof launch);
    TP_TRY(external->launch(alone, node, &launch));
    tp_graph_print(alone, &text);
    tp_str_builder_printf(&text, "%zu %zu %zu, %zu %zu %zu %s", launch.global[0], launch.global[1],
                          launch.global[2], launch.local[0], launch.local[1], launch.local[2],
                          launch.options);
    for (int32_t i = 0; i < launch.scalar_count; i++)
        tp_str_builder_printf(&text, " %u %a", launch.scalars[i].u32,
                              (double)launch.scalars[i].f32);
    TP_TRY(tp_str_builder_finish(&text, &bytes, NULL));
    tp_sha256_init(&hash);
    tp_sha256_update_text(&hash, bytes);
    tp_sha256_update_text(&hash, external->source);
    tp_sha256_update_text(&hash, external->entry);
    tp_sha256_finish_hex(&hash, hex);
    tp_free(bytes);
    snprintf(out_key, KEY_BYTES, "op %.64s %.16s", node->def->name, hex);
    return TPUCL_OK;
}

/* Ordinary operands and odd ones; more cores than are in a wave. */
static tpucl_status judge_external(tp_verdicts *verdicts, const tp_graph *alone, verdict *out)
{
    out->is_allowed = true;
    for (int i = 0; i < 2 && out->is_allowed; i++) {
        tp_check_outcome outcome;
        const tp_check_graph_options options = {
            .cores = 3, .wave_cores = 2, .steps = 1, .seed = 29, .with_specials = i == 1};
        TP_TRY(tp_check_graph(verdicts->device, alone, &options, &outcome));
        if (outcome.status == TP_CHECK_PASSED) continue;
        out->is_allowed = false;
        out->is_temporary = outcome.is_temporary;
        snprintf(out->text, sizeof out->text, "%s", outcome.reason);
    }
    return TPUCL_OK;
}

static tpucl_status need_external(tp_verdicts *verdicts, const tp_graph *graph, tp_node_id id)
{
    const char *name = tp_graph_node(graph, id)->def->name;
    verdict entry = {0};
    tp_graph *alone = NULL;
    tpucl_status status;
    TP_TRY(isolate(graph, id, &alone));
    TP_TRY_GOTO(status, external_key(alone, entry.key), done);
    const verdict *known = find(verdicts, entry.key);
    if (!known) {
        announce(&(announced){verdicts, name, "kernels"}, 0, 0);
        TP_TRY_GOTO(status, judge_external(verdicts, alone, &entry), done);
        keep(verdicts, &entry);
        known = &entry;
    }
    if (!known->is_allowed)
        status = TP_FAIL(TPUCL_NOT_EXACT,
                         "the kernel of op '%s' does not give the bits of its evaluation on device "
                         "'%s' and is not run: %s",
                         name, tp_device_label(verdicts->device), known->text);
done:
    tp_graph_destroy(alone);
    return status;
}

static tpucl_status need_all(tp_verdicts *verdicts, const tp_graph *graph)
{
    TP_TRY(need(verdicts, "generated", GENERATED));
    if (has_ops(graph, MEMORY)) TP_TRY(need(verdicts, "memory", MEMORY));
    if (has_ops(graph, ATTENTION)) TP_TRY(need(verdicts, "attention", ATTENTION));
    for (tp_node_id id = 0; id < graph->node_count; id++)
        if (tp_graph_node(graph, id)->def->external) TP_TRY(need_external(verdicts, graph, id));
    return TPUCL_OK;
}

tpucl_status tp_verdicts_need_exact(tp_verdicts *verdicts, const tp_graph *graph)
{
    const uint64_t begin_ns = tp_clock_now_ns();
    const tpucl_status status = need_all(verdicts, graph);
    verdicts->spent_ns += tp_clock_now_ns() - begin_ns;
    return status;
}

tp_mxu_allow tp_verdicts_allow(tp_verdicts *verdicts)
{
    return (tp_mxu_allow){.is_allowed = is_allowed, .user = verdicts};
}
