/* SPDX-License-Identifier: Apache-2.0
 * Sources: `imagenet`: TensorFlow's models, research/inception/inception/data/build_imagenet_data.py (classes from
 * 1, as the TPU models read them); `cifar`, `mnist`: research/slim/datasets/dataset_utils.py, image_to_tfexample();
 * `tfds`: TensorFlow Datasets' Image and ClassLabel features; `raw`: TensorFlow's old example of converting MNIST. */
#include "data/record_preset.h"

#include <string.h>
#include "io/example.h"

static const tp_record_preset presets[] = {
    {.name = "tfds",
     .about = "TensorFlow Datasets: image, label",
     .keys = {[TP_PART_IMAGE] = "image", [TP_PART_LABEL] = "label"}},
    {.name = "imagenet",
     .about = "ImageNet as TPU models read it: classes from 1",
     .first_label = 1,
     .keys = {[TP_PART_IMAGE] = "image/encoded",
              [TP_PART_LABEL] = "image/class/label",
              [TP_PART_FORMAT] = "image/format",
              [TP_PART_HEIGHT] = "image/height",
              [TP_PART_WIDTH] = "image/width",
              [TP_PART_CHANNELS] = "image/channels",
              [TP_PART_COLORSPACE] = "image/colorspace",
              [TP_PART_FILENAME] = "image/filename",
              [TP_PART_CLASS] = "image/class/synset"}},
    {.name = "cifar",
     .about = "slim's CIFAR-10 and flowers",
     .keys = {[TP_PART_IMAGE] = "image/encoded",
              [TP_PART_LABEL] = "image/class/label",
              [TP_PART_FORMAT] = "image/format",
              [TP_PART_HEIGHT] = "image/height",
              [TP_PART_WIDTH] = "image/width"}},
    {.name = "mnist",
     .about = "slim's MNIST; as cifar",
     .keys = {[TP_PART_IMAGE] = "image/encoded",
              [TP_PART_LABEL] = "image/class/label",
              [TP_PART_FORMAT] = "image/format",
              [TP_PART_HEIGHT] = "image/height",
              [TP_PART_WIDTH] = "image/width"}},
    {.name = "raw",
     .about = "bare samples: image_raw, height, width, depth, label",
     .is_raw = true,
     .keys = {[TP_PART_IMAGE] = "image_raw",
              [TP_PART_LABEL] = "label",
              [TP_PART_HEIGHT] = "height",
              [TP_PART_WIDTH] = "width",
              [TP_PART_CHANNELS] = "depth"}},
};
enum { PRESETS = sizeof presets / sizeof *presets };

const tp_record_preset *tp_record_preset_at(int index)
{
    return index >= 0 && index < PRESETS ? &presets[index] : NULL;
}

tpucl_status tp_record_preset_find(const char *name, const tp_record_preset **out_preset)
{
    const char *names[PRESETS];
    for (int i = 0; i < PRESETS; i++) {
        names[i] = presets[i].name;
        if (strcmp(name, names[i]) == 0) {
            *out_preset = &presets[i];
            return TPUCL_OK;
        }
    }
    const char *nearest = tp_str_nearest(name, names, PRESETS);
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "no preset '%s'%s%s%s; expected tfds, imagenet, cifar, mnist or raw", name,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* ---- reading ---- */

static int64_t int_of(const tp_feature_values *values)
{
    return values->count ? values->ints[0] : 0;
}

tpucl_status tp_record_preset_decode(const tp_record_preset *preset, tp_view record,
                                     tp_arena *arena, tp_record_example *out_example)
{
    static const tp_record_part sizes[] = {TP_PART_HEIGHT, TP_PART_WIDTH, TP_PART_CHANNELS};
    tp_feature_spec specs[5] = {
        {.key = preset->keys[TP_PART_IMAGE], .kind = TP_FEATURE_BYTES, .count = 1},
        {.key = preset->keys[TP_PART_LABEL], .kind = TP_FEATURE_INT64, .count = 1}};
    tp_feature_values values[5];
    int64_t *const out[] = {&out_example->height, &out_example->width, &out_example->channels};
    size_t count = 2;
    *out_example = (tp_record_example){.label = 0};
    for (int i = 0; i < 3; i++)
        if (preset->keys[sizes[i]])
            specs[count++] = (tp_feature_spec){.key = preset->keys[sizes[i]],
                                               .kind = TP_FEATURE_INT64,
                                               .is_optional = true,
                                               .count = 1};
    TP_TRY(tp_example_decode(record, specs, count, arena, values));
    out_example->image = values[0].bytes[0];
    out_example->label = values[1].ints[0] - preset->first_label;
    count = 2;
    for (int i = 0; i < 3; i++)
        if (preset->keys[sizes[i]]) *out[i] = int_of(&values[count++]);
    if (values[1].ints[0] >= preset->first_label) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "feature '%s' is %lld; classes of preset '%s' begin with %lld",
                   preset->keys[TP_PART_LABEL], (long long)values[1].ints[0], preset->name,
                   (long long)preset->first_label);
}
