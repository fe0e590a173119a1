/* SPDX-License-Identifier: Apache-2.0
 * Opens the records, or the folder of images, that a configuration names; what becomes of images on their
 * way. */
#include "core/file.h"
#include "data/record_shards.h"
#include "data/source_augment.h"
#include "data/source_images.h"
#include "data/source_records.h"
#include "io/store.h"
#include "train/session_internal.h"

/* A single label is "label" whatever its name, a single input without a name "image", as with files. */
static tpucl_status read_features(const tp_session *session, const tp_config_files *from,
                                  bool is_label, tp_record_source_options *options)
{
    for (size_t i = 0; i < from->count; i++) {
        if (options->field_count == TP_SOURCE_MAX_FIELDS)
            return TP_FAIL(TPUCL_INVALID_CONFIG, "data.features names more than %d features",
                           TP_SOURCE_MAX_FIELDS);
        tp_record_field *field = &options->fields[options->field_count++];
        TP_TRY(tp_record_field_parse(from->paths[i], session->arena, field));
        field->name = is_label && from->count == 1 ? "label"
                      : from->names[i]             ? from->names[i]
                                                   : "image";
    }
    return TPUCL_OK;
}

static tpucl_status choose_fields(const tp_session *session, tp_record_source_options *options)
{
    const tp_config *config = session->config;
    const tp_record_preset *preset = NULL;
    if (*config->data.preset) {
        TP_TRY(tp_record_preset_find(config->data.preset, &preset));
        tp_record_source_use_preset(preset, options);
        return TPUCL_OK;
    }
    TP_TRY(read_features(session, &config->data.features.inputs, false, options));
    TP_TRY(read_features(session, &config->data.features.labels, true, options));
    options->label_count = (int32_t)config->data.features.labels.count;
    return TPUCL_OK;
}

static tp_image_options image_options(const tp_config *config)
{
    const tp_config_ints *size = &config->data.image.size;
    return (tp_image_options){.height = size->count ? (int32_t)size->items[0] : 0,
                              .width = size->count ? (int32_t)size->items[1] : 0,
                              .channels = (int32_t)config->data.image.channels,
                              .resize = (tp_resize_mode)config->data.image.resize, /* same order */
                              .antialias = config->data.image.antialias,
                              .least_area = config->data.image.least_area,
                              .seed = (uint64_t)config->seed,
                              .per_core_batch = config->per_core_batch,
                              .is_upright = config->data.image.upright};
}

/* The model is built for the images to train on. */
static void take_size(const tp_source *train, tp_record_source_options *options)
{
    for (int32_t i = 0; i < options->field_count; i++) {
        const tp_shape *shape = &train->fields[i].shape;
        if (options->fields[i].kind != TP_RECORD_IMAGE) continue;
        options->image.height = (int32_t)shape->dims[0];
        options->image.width = (int32_t)shape->dims[1];
        options->image.channels = (int32_t)shape->dims[2];
    }
}

tpucl_status tp_session_open_records(const tp_session *session, bool is_test,
                                     tp_source **out_source)
{
    const tp_config *config = session->config;
    const tp_config_files *named = is_test ? &config->data.test.inputs : &config->data.train.inputs;
    tp_record_source_options options = {
        .index = {.policy =
                      config->data.on_damage == TP_DAMAGE_SKIP ? TP_RECORD_SKIP : TP_RECORD_STOP,
                  .cycle_length = config->data.cycle_length,
                  .block_length = config->data.block_length,
                  .resident_bytes = (uint64_t)config->data.resident_bytes},
        .image = image_options(config),
        .cache_bytes = (uint64_t)config->data.cache_bytes};
    const char *path = tp_store_join(session->arena, config->data.folder, named->paths[0]);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_record_paths_expand(&path, 1, session->arena, &options.paths, &options.path_count));
    TP_TRY(choose_fields(session, &options));
    if (is_test) take_size(session->train_source, &options);
    return tp_source_open_records(&options, out_source);
}

tpucl_status tp_session_open_images(const tp_session *session, bool is_test, tp_source **out_source)
{
    const tp_config *config = session->config;
    const tp_config_files *named = is_test ? &config->data.test.inputs : &config->data.train.inputs;
    tp_image_source_options options = {.image = image_options(config),
                                       .skips = config->data.on_damage == TP_DAMAGE_SKIP};
    options.folder = tp_file_join(session->arena, config->data.folder, named->paths[0]);
    if (!options.folder) return TPUCL_OUT_OF_MEMORY;
    if (is_test) {
        const tp_shape *shape = &session->train_source->fields[0].shape;
        options.image.height = (int32_t)shape->dims[0];
        options.image.width = (int32_t)shape->dims[1];
        options.image.channels = (int32_t)shape->dims[2];
    }
    TP_TRY(tp_source_open_images(&options, out_source));
    return is_test ? tp_source_check_same_classes(session->train_source, *out_source) : TPUCL_OK;
}

/* ---- augmentation ---- */

tp_augment tp_session_augment(const tp_config *config)
{
    const tp_config_ints *crop = &config->data.augment.crop;
    return (tp_augment){.height = crop->count ? (int32_t)crop->items[0] : 0,
                        .width = crop->count ? (int32_t)crop->items[1] : 0,
                        .pad = (int32_t)config->data.augment.pad,
                        .flips_x = (config->data.augment.flip & 1) != 0,
                        .flips_y = (config->data.augment.flip & 2) != 0,
                        .contrast = config->data.augment.contrast,
                        .brightness = config->data.augment.brightness,
                        .saturation = config->data.augment.saturation,
                        .noise = config->data.augment.noise};
}

bool tp_session_augments_on_device(const tp_session *session)
{
    return session->config->data.augment.on == TP_CONFIG_AUGMENT_DEVICE;
}

tpucl_status tp_session_augment_source(const tp_session *session, tp_source **inout_source)
{
    const tp_config *config = session->config;
    const bool is_random = config->data.augment.on == TP_CONFIG_AUGMENT_HOST;
    if (tp_session_augments_on_device(session) || (!is_random && !config->data.augment.crop.count))
        return TPUCL_OK;
    const tp_source_augment_options options = {.augment = tp_session_augment(config),
                                               .is_random = is_random,
                                               .seed = (uint64_t)config->seed,
                                               .per_core_batch = config->per_core_batch};
    return tp_source_augment(*inout_source, &options, inout_source);
}
