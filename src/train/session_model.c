/* SPDX-License-Identifier: Apache-2.0
 * The model of a configuration on the data that there are: inputs by name, losses of its outputs, labels that
 * fit them. */
#include <math.h>
#include <string.h>
#include "core/str.h"
#include "data/source_augment.h"
#include "train/session_internal.h"

/* ---- inputs ---- */

static tp_precision product_precision(const tp_config *config)
{
    if (config->precision.policy == TP_PRECISION_FLOAT32) return TP_PRECISION_F32;
    switch ((tp_matmul_precision)config->matmul_precision) {
    case TP_MATMUL_HIGH:
        return TP_PRECISION_HIGH;
    case TP_MATMUL_HIGHEST:
        return TP_PRECISION_HIGHEST;
    case TP_MATMUL_DEFAULT:
    default:
        return TP_PRECISION_DEFAULT;
    }
}

/* bfloat16 is mixed_bfloat16 with bf16 weights. */
static tp_model_policy policy_of(const tp_config *config)
{
    if (config->precision.policy == TP_PRECISION_FLOAT32) return TP_POLICY_FLOAT32;
    return config->precision.weights == TP_CONFIG_BFLOAT16 ? TP_POLICY_BFLOAT16
                                                           : TP_POLICY_MIXED_BFLOAT16;
}

/* The shape of one example as the model sees it: input_shape is a reshape of what the files hold. */
static tpucl_status input_shape(const tp_session *session, const tp_field *field, tp_shape *out)
{
    const tp_config_ints *wanted = &session->config->input_shape;
    *out = field->shape;
    if (!wanted->count) return TPUCL_OK;
    TP_TRY(tp_shape_init(out, (int)wanted->count, wanted->items));
    if (tp_shape_elems(out) == tp_shape_elems(&field->shape)) return TPUCL_OK;
    char given[TP_SHAPE_TEXT_MAX], found[TP_SHAPE_TEXT_MAX];
    tp_shape_format(out, given, sizeof given);
    tp_shape_format(&field->shape, found, sizeof found);
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "input_shape %s has %lld elements, the data's examples are %s with %lld", given,
                   (long long)tp_shape_elems(out), found, (long long)tp_shape_elems(&field->shape));
}

/* The image that is fed whole; the layers see a window of it. */
static tpucl_status augment_input(const tp_session *session, tp_model_input *inputs)
{
    const tp_augment augment = tp_session_augment(session->config);
    int32_t field = 0;
    if (session->config->input_shape.count)
        return TP_FAIL(
            TPUCL_INVALID_CONFIG,
            "'input_shape' and augmentation on the device exclude each other: the layers "
            "see images");
    TP_TRY(tp_source_find_image(session->train_source, &augment, &field));
    tp_model_input *input = &inputs[field];
    input->is_augmented = true;
    input->augment = augment;
    input->fed = input->shape;
    if (!augment.height) {
        input->augment.height = (int32_t)input->shape.dims[0];
        input->augment.width = (int32_t)input->shape.dims[1];
    }
    input->shape.dims[0] = input->augment.height;
    input->shape.dims[1] = input->augment.width;
    return TPUCL_OK;
}

/* Everything that the data hold besides labels. */
static tpucl_status find_inputs(const tp_session *session, tp_model_input *out_inputs,
                                int32_t *out_count)
{
    const tp_config *config = session->config;
    const tp_source *source = session->train_source;
    const int32_t count = source->field_count - source->label_count;
    if (count > 1 && config->input_shape.count)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "'input_shape' is for data with one input, these have %d", count);
    for (int32_t i = 0; i < count; i++) {
        const tp_field *field = &source->fields[i];
        out_inputs[i] = (tp_model_input){.dtype = field->dtype,
                                         .scale = config->data.scale,
                                         .offset = config->data.offset,
                                         .name = field->name};
        TP_TRY(input_shape(session, field, &out_inputs[i].shape));
    }
    if (tp_session_augments_on_device(session)) TP_TRY(augment_input(session, out_inputs));
    *out_count = count;
    return TPUCL_OK;
}

/* ---- losses ---- */

static tp_loss_options loss_options_of(const tp_config *config)
{
    tp_loss_options options = tp_loss_defaults((tp_model_loss)config->loss.name);
#define NUMBER(field, low, high, open, meaning) options.field = config->loss.field;
#define FLAG(field, meaning) options.field = config->loss.field;
    TP_LOSS_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
    options.class_weight = config->loss.class_weight.items;
    options.class_count = (int64_t)config->loss.class_weight.count;
    if (*config->loss.expression) options.expression = config->loss.expression;
    if (*config->loss.mask) options.mask = config->loss.mask;
    options.path = "loss";
    return options;
}

/* False: memory is out. */
static bool output_options_of(tp_arena *arena, const tp_config_output_loss *loss,
                              tp_loss_options *out_options)
{
    tp_loss_options options = tp_loss_defaults((tp_model_loss)loss->name);
#define NUMBER(field, low, high, open, meaning)                                                    \
    if (!isnan(loss->field)) options.field = loss->field;
#define FLAG(field, meaning) options.field = loss->field;
    TP_LOSS_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
    if (*loss->expression) options.expression = loss->expression;
    if (*loss->mask) options.mask = loss->mask;
    options.path = tp_arena_printf(arena, "losses.%s", loss->output);
    *out_options = options;
    return options.path != NULL;
}

/* The entry of "losses" for an output; NULL: it has the configuration's "loss". */
static const tp_config_output_loss *find_loss(const tp_config *config, const char *output)
{
    for (size_t i = 0; i < config->losses.count; i++)
        if (strcmp(config->losses.items[i].output, output) == 0) return &config->losses.items[i];
    return NULL;
}

static void check_loss_names(const tp_session *session, tp_problems *problems)
{
    const char *names[TP_SESSION_MAX_OUTPUTS];
    const int32_t count = tp_model_output_count(session->model);
    for (int32_t i = 0; i < count; i++)
        names[i] = tp_model_output_name(session->model, i);
    for (size_t i = 0; i < session->config->losses.count; i++) {
        const char *output = session->config->losses.items[i].output;
        bool is_known = false;
        for (int32_t j = 0; j < count; j++)
            is_known = is_known || strcmp(names[j], output) == 0;
        if (is_known) continue;
        const char *nearest = tp_str_nearest(output, names, (size_t)count);
        tp_problems_add(problems, "'losses' names '%s', which is no output of the model%s%s%s",
                        output, nearest ? ", did you mean '" : "", nearest ? nearest : "",
                        nearest ? "'?" : "");
    }
}

/* The data's array with the labels of an output: that of the output's name, if there are several. */
static int32_t label_field(const tp_session *session, const char *name)
{
    const tp_source *source = session->train_source;
    const int32_t found = tp_source_find_field(source, name);
    const bool is_one = tp_model_output_count(session->model) == 1;
    return found < 0 && is_one ? source->field_count - source->label_count : found;
}

/* What is to become of each output. */
static tpucl_status build_targets(tp_session *session)
{
    const tp_config *config = session->config;
    const int32_t count = tp_model_output_count(session->model);
    tp_problems problems = {0};
    if (count > TP_SESSION_MAX_OUTPUTS)
        return TP_FAIL(TPUCL_UNSUPPORTED, "the model has %d outputs, expected at most %d", count,
                       TP_SESSION_MAX_OUTPUTS);
    check_loss_names(session, &problems);
    tp_model_target *targets = TP_ARENA_NEW_ARRAY(session->arena, tp_model_target, (size_t)count);
    tp_loss_options *options = TP_ARENA_NEW_ARRAY(session->arena, tp_loss_options, (size_t)count);
    if (!targets || !options) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        const char *name = tp_model_output_name(session->model, i);
        const tp_config_output_loss *own = find_loss(config, name);
        options[i] = session->loss_options;
        if (own && !output_options_of(session->arena, own, &options[i])) return TPUCL_OUT_OF_MEMORY;
        targets[i] =
            (tp_model_target){.label = count == 1 ? "label" : name,
                              .loss = own ? (tp_model_loss)own->name : session->loss,
                              .from_logits = own ? own->from_logits : config->loss.from_logits,
                              .options = &options[i],
                              .weight = own ? own->weight : 1};
        const int32_t field = label_field(session, targets[i].label);
        if (field < 0) {
            tp_problems_add(&problems, "the data have no labels for the output '%s'", name);
            continue;
        }
        targets[i].label_dtype = session->train_source->fields[field].dtype;
        targets[i].label_shape = session->train_source->fields[field].shape;
    }
    session->targets = targets;
    session->score = (tp_model_score){.targets = targets,
                                      .has_sample_weight = *config->data.train.weights != '\0'};
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "the losses");
}

tpucl_status tp_session_build_model(tp_session *session)
{
    const tp_config *config = session->config;
    tp_model_input inputs[TP_SOURCE_MAX_FIELDS];
    int32_t count = 0;
    TP_TRY(find_inputs(session, inputs, &count));
    const tp_model_options options = {.policy = policy_of(config),
                                      .precision = product_precision(config)};
    session->loss = (tp_model_loss)config->loss.name; /* both follow the table of the config */
    session->loss_options = loss_options_of(config);
    TP_TRY(tp_model_create_many(config->model, inputs, count, &options, &session->model));
    TP_TRY(build_targets(session));
    return tp_metrics_choose(session);
}

/* ---- labels ---- */

/* A number that is no class would train towards nothing, silently. */
static tpucl_status check_classes(tp_source *source, int32_t field, const char *part,
                                  int64_t classes, double ignored)
{
    if (!source->arrays[field]) { /* as they are read */
        source->ops->expect_classes(source, field, classes, ignored);
        return TPUCL_OK;
    }
    const int32_t *labels = source->arrays[field];
    const int64_t elems =
        (int64_t)(source->fields[field].bytes / sizeof *labels); /* of an example */
    for (int64_t i = 0; i < source->example_count * elems; i++)
        if ((labels[i] < 0 || labels[i] >= classes) && (double)labels[i] != ignored)
            return TP_FAIL(
                TPUCL_INVALID_CONFIG,
                "example %lld of the %s part has the label %d; the model's result has the "
                "classes 0 to %lld",
                (long long)(i / elems), part, labels[i], (long long)classes - 1);
    return TPUCL_OK;
}

/* The label's dtype in the files is the one that the loss wants, or the configuration is wrong. */
static tpucl_status check_label(const tp_session *session, int32_t output, const tp_field *label)
{
    tp_dtype dtype;
    tp_shape shape;
    TP_TRY(tp_model_target_label(session->model, output, &session->targets[output], 1, &dtype,
                                 &shape));
    uint64_t bytes = (uint64_t)tp_shape_bytes(&shape, dtype);
    if (label->dtype == dtype && label->bytes == bytes) return TPUCL_OK;
    char found[TP_SHAPE_TEXT_MAX], wanted[TP_SHAPE_TEXT_MAX];
    const bool is_named = tp_model_output_count(session->model) > 1;
    tp_shape_format(&label->shape, found, sizeof found);
    tp_shape_format(&shape, wanted, sizeof wanted);
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "labels%s%s are %s%s per example; this loss and model want %s%s for a batch of "
                   "one",
                   is_named ? " of " : "", is_named ? label->name : "", tp_dtype_name(label->dtype),
                   found, tp_dtype_name(dtype), wanted);
}

tpucl_status tp_session_check_labels(const tp_session *session)
{
    tp_source *train = session->train_source, *test = session->test_source;
    for (int32_t i = 0; i < tp_model_output_count(session->model); i++) {
        const tp_model_target *target = &session->targets[i];
        const int32_t field = label_field(session, target->label);
        const tp_shape *output = tp_model_output_shape(session->model, i);
        TP_TRY(check_label(session, i, &train->fields[field]));
        /* with a mask of its own, only the cores know which labels count */
        if (!tp_loss_is_sparse(target->loss) || target->options->mask) continue;
        const int64_t classes = output->dims[output->rank - 1];
        const double ignored = target->options->ignore_class;
        TP_TRY(check_classes(train, field, "training", classes, ignored));
        if (test) TP_TRY(check_classes(test, field, "test", classes, ignored));
    }
    return TPUCL_OK;
}
