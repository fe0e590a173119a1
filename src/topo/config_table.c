/* SPDX-License-Identifier: Apache-2.0
 * The keys. Defaults follow Keras where it has the argument. */
#include "topo/config_table.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

static const char *const curve_names[] = {"ROC", "PR", NULL};
static const char *const average_names[] = {"macro", "micro", "weighted", NULL};
#define NAME(id, symbol, name, keys) name,
#define KEYS(id, symbol, name, keys) keys,
static const char *const loss_names[] = {TP_LOSS_LIST(NAME) NULL};
static const char *const loss_keys[] = {TP_LOSS_LIST(KEYS)};
static const char *const optimizer_names[] = {TP_OPTIMIZER_LIST(NAME) NULL};
static const char *const optimizer_keys[] = {TP_OPTIMIZER_LIST(KEYS)};
static const char *const schedule_names[] = {TP_SCHEDULE_LIST(NAME) NULL};
static const char *const schedule_keys[] = {TP_SCHEDULE_LIST(KEYS)};
static const char *const clip_names[] = {"after_sum", "per_replica", NULL};
static const char *const reduction_names[] = {"mean", "sum", NULL};
static const char *const policy_names[] = {"float32", "mixed_bfloat16", "bfloat16", NULL};
static const char *const dtype_names[] = {"float32", "bfloat16", NULL};
static const char *const rounding_names[] = {"nearest", "stochastic", NULL};
static const char *const matmul_names[] = {"default", "high", "highest", NULL};
static const char *const math_names[] = {"exact", "fast", NULL};
static const char *const batch_names[] = {"auto", NULL};
static const char *const best_names[] = {"auto", "min", "max", NULL};
static const char *const dataset_names[] = {"fashion-mnist", "idx",    "npy",
                                            "records",       "images", NULL};
static const char *const augment_names[] = {"none", "host", "device", NULL};
static const char *const flip_names[] = {"none", "horizontal", "vertical", "both", NULL};
static const char *const damage_names[] = {"stop", "skip", NULL};
static const char *const resize_names[] = {"none", "stretch", "crop", "pad", "random_area", NULL};

#define FIELD(field) .offset = offsetof(tp_config, field)
#define COUNT(low, high) .min = (low), .max = (high)
/* 2^53: every reader of JSON keeps such integers exact. */
#define MAX_EXACT 9007199254740992.0
#define MAX_STEPS 1e12

/* Rows of the keys that config_choices.h lists. */
#define OPTIMIZER_NUMBER(field, low, high, open, text)                                             \
    {"optimizer." #field, TP_CONFIG_DOUBLE,   FIELD(optimizer.field),                              \
     COUNT(low, high),    .fallback = "null", .meaning = text},
#define OPTIMIZER_FLAG(field, text)                                                                \
    {"optimizer." #field, TP_CONFIG_BOOL, FIELD(optimizer.field), .fallback = "false",             \
     .meaning = text},
#define LOSS_NUMBER(field, low, high, open, text)                                                  \
    {"loss." #field,   TP_CONFIG_DOUBLE,   FIELD(loss.field),                                      \
     COUNT(low, high), .fallback = "null", .meaning = text},
#define LOSS_FLAG(field, text)                                                                     \
    {"loss." #field, TP_CONFIG_BOOL, FIELD(loss.field), .fallback = "false", .meaning = text},
#define SCHEDULE_NUMBER(field, low, high, open, text)                                              \
    {"optimizer.schedule." #field,                                                                 \
     TP_CONFIG_DOUBLE,                                                                             \
     FIELD(optimizer.schedule.field),                                                              \
     COUNT(low, high),                                                                             \
     .fallback = "null",                                                                           \
     .meaning = text},
#define SCHEDULE_FLAG(field, text)                                                                 \
    {"optimizer.schedule." #field, TP_CONFIG_BOOL, FIELD(optimizer.schedule.field),                \
     .fallback = "false", .meaning = text},
#define SCHEDULE_COUNT(field, low, high, text)                                                     \
    {"optimizer.schedule." #field,                                                                 \
     TP_CONFIG_INT,                                                                                \
     FIELD(optimizer.schedule.field),                                                              \
     COUNT(low, high),                                                                             \
     .fallback = "null",                                                                           \
     .meaning = text},

const tp_config_key tp_config_keys[] = {
    {"name", TP_CONFIG_STRING, FIELD(name), .fallback = "\"run\"", .keeps_result = true,
     .meaning = "what this run is called in results"},
    {"topology", TP_CONFIG_STRING, FIELD(topology), .fallback = "\"v2-8\"",
     .meaning = "the machine to be: a built-in name or the path of a topology file"},
    {"model", TP_CONFIG_MODEL, FIELD(model),
     .meaning = "the layers, with Keras' class and argument names"},
    {"input_shape", TP_CONFIG_INTS, FIELD(input_shape), COUNT(1, 1e6), .fallback = "null",
     .meaning = "shape of one example without the batch; taken from the data when not given"},
    {"loss.name", TP_CONFIG_CHOICE, FIELD(loss.name), .choices = loss_names,
     .meaning = "what is minimised"},
    {"loss.from_logits", TP_CONFIG_BOOL, FIELD(loss.from_logits), .fallback = "false",
     .meaning = "the model's output has not been through softmax or sigmoid"},
    TP_LOSS_KEYS(LOSS_NUMBER, LOSS_FLAG){
        "loss.class_weight", TP_CONFIG_NUMBERS, FIELD(loss.class_weight), COUNT(0, 1e30),
        .fallback = "null",
        .meaning =
            "what the loss of an element of class 0, 1, ... is multiplied with; all 1 when not "
            "given"},
    {"loss.expression", TP_CONFIG_STRING, FIELD(loss.expression), .fallback = "null",
     .meaning = "the loss 'expression': a formula over y_true, y_pred, sample_weight and mask, of "
                "each example or each of its elements"},
    {"loss.mask", TP_CONFIG_STRING, FIELD(loss.mask), .fallback = "null",
     .meaning = "an expression that says which elements count, in loss and metrics; all when not "
                "given"},
    {"losses", TP_CONFIG_LOSSES, FIELD(losses), .fallback = "{}",
     .meaning =
         "losses of a model's outputs by name, with a `weight` (1) each; others have `loss`"},
    {"metrics", TP_CONFIG_METRICS, FIELD(metrics), .fallback = "[]",
     .meaning = "reported besides the loss: a list for all outputs, or lists by output; not given: "
                "accuracy where the loss has one"},
    {"metric_options.k", TP_CONFIG_INT, FIELD(metric_options.k), COUNT(1, 1e6), .fallback = "5",
     .meaning = "top_k metrics: how many of the largest results may be the label"},
    {"metric_options.threshold", TP_CONFIG_DOUBLE, FIELD(metric_options.threshold), COUNT(0, 1),
     .fallback = "null",
     .meaning = "binary_accuracy, precision, recall: results above it are of class 1, 0.5 when not "
                "given; f1_score: the same, the largest result of each when not given"},
    {"metric_options.num_thresholds", TP_CONFIG_INT, FIELD(metric_options.num_thresholds),
     COUNT(2, 4096), .fallback = "200", .meaning = "auc: points of the curve"},
    {"metric_options.curve", TP_CONFIG_CHOICE, FIELD(metric_options.curve), .choices = curve_names,
     .fallback = "\"ROC\"", .meaning = "auc: of which curve"},
    {"metric_options.average", TP_CONFIG_CHOICE, FIELD(metric_options.average),
     .choices = average_names, .fallback = "\"macro\"",
     .meaning = "f1_score: how the classes' scores become one"},
    {"metric_options.target_class_ids", TP_CONFIG_NUMBERS, FIELD(metric_options.target_class_ids),
     COUNT(0, 1e6), .fallback = "null", .meaning = "io_u: the classes to average over"},
    {"optimizer.name", TP_CONFIG_CHOICE, FIELD(optimizer.name), .choices = optimizer_names,
     .meaning = "how weights follow gradients"},
    TP_OPTIMIZER_KEYS(OPTIMIZER_NUMBER, OPTIMIZER_FLAG){
        "optimizer.exclude_from_weight_decay", TP_CONFIG_STRINGS,
        FIELD(optimizer.exclude_from_weight_decay), .fallback = "[]",
        .meaning = "no decay for variables whose name holds one of these, for instance bias"},
    {"optimizer.clipnorm", TP_CONFIG_DOUBLE, FIELD(optimizer.clipnorm), COUNT(0, 1e30),
     .fallback = "null", .meaning = "longest that the gradient of a variable may be"},
    {"optimizer.clipvalue", TP_CONFIG_DOUBLE, FIELD(optimizer.clipvalue), COUNT(0, 1e30),
     .fallback = "null", .meaning = "largest magnitude of an element of a gradient"},
    {"optimizer.global_clipnorm", TP_CONFIG_DOUBLE, FIELD(optimizer.global_clipnorm),
     COUNT(0, 1e30), .fallback = "null", .meaning = "longest that all gradients together may be"},
    {"optimizer.clip", TP_CONFIG_CHOICE, FIELD(optimizer.clip), .choices = clip_names,
     .fallback = "\"after_sum\"",
     .meaning = "what is clipped: the gradient summed over the cores, or each core's own part, "
                "which with reduction mean is about 1 / cores as large"},
    {"optimizer.use_ema", TP_CONFIG_BOOL, FIELD(optimizer.use_ema), .fallback = "false",
     .meaning = "keep a moving average of the weights, which the run ends with"},
    {"optimizer.ema_momentum", TP_CONFIG_DOUBLE, FIELD(optimizer.ema_momentum), COUNT(0, 1),
     .fallback = "0.99", .meaning = "use_ema: share of the average that a step keeps"},
    {"optimizer.ema_overwrite_frequency", TP_CONFIG_INT, FIELD(optimizer.ema_overwrite_frequency),
     COUNT(1, INT32_MAX), .fallback = "null",
     .meaning = "use_ema: steps after which the weights become the average; at the end only when "
                "not given"},
    {"optimizer.schedule.name", TP_CONFIG_CHOICE, FIELD(optimizer.schedule.name),
     .choices = schedule_names, .fallback = "\"constant\"",
     .meaning = "how the rate changes from learning_rate on; cosine is CosineDecay"},
    TP_SCHEDULE_KEYS(SCHEDULE_NUMBER, SCHEDULE_FLAG, SCHEDULE_COUNT){
        "optimizer.schedule.boundaries", TP_CONFIG_NUMBERS, FIELD(optimizer.schedule.boundaries),
        COUNT(0, 1 << 24), .fallback = "null", .meaning = "last steps of all values but the last"},
    {"optimizer.schedule.values", TP_CONFIG_NUMBERS, FIELD(optimizer.schedule.values),
     COUNT(0, 1e6), .fallback = "null",
     .meaning = "rates between the boundaries, one more than those"},
    {"optimizer.schedule.warmup_steps", TP_CONFIG_INT, FIELD(optimizer.schedule.warmup_steps),
     COUNT(0, 1 << 24), .fallback = "0",
     .meaning = "steps in which the rate moves evenly from learning_rate to warmup_target; the "
                "schedule begins after them, from there"},
    {"optimizer.schedule.warmup_target", TP_CONFIG_DOUBLE, FIELD(optimizer.schedule.warmup_target),
     COUNT(0, 1e6), .fallback = "null", .meaning = "the rate at the end of warm-up"},
    {"cross_shard.reduction", TP_CONFIG_CHOICE, FIELD(cross_shard.reduction),
     .choices = reduction_names, .fallback = "\"mean\"",
     .meaning = "gradients of the cores: their mean, or their sum"},
    {"cross_shard.groups", TP_CONFIG_GROUPS, FIELD(cross_shard.groups),
     COUNT(0, TP_TOPOLOGY_MAX_CORES - 1), .fallback = "null",
     .meaning = "lists of core ids, equally long, that reduce among themselves; all cores when not "
                "given"},
    {"precision.policy", TP_CONFIG_CHOICE, FIELD(precision.policy), .choices = policy_names,
     .fallback = "null",
     .meaning = "of layers without a `dtype` of their own; the topology's when not given"},
    {"precision.weights", TP_CONFIG_CHOICE, FIELD(precision.weights), .choices = dtype_names,
     .fallback = "null",
     .meaning = "trained weights of those layers; bfloat16 with the policy bfloat16, else float32, "
                "when not given"},
    {"precision.first_moment", TP_CONFIG_CHOICE, FIELD(precision.first_moment),
     .choices = dtype_names, .fallback = "\"float32\"",
     .meaning = "the optimizer's averages of gradients and steps (momentum)"},
    {"precision.second_moment", TP_CONFIG_CHOICE, FIELD(precision.second_moment),
     .choices = dtype_names, .fallback = "\"float32\"",
     .meaning = "the optimizer's averages of squares and magnitudes (velocity, accumulator, row, "
                "column)"},
    {"precision.gradients", TP_CONFIG_CHOICE, FIELD(precision.gradients), .choices = dtype_names,
     .fallback = "\"float32\"",
     .meaning =
         "what cores send each other: their parts of a gradient and its sum; partial sums are "
         "float32"},
    {"precision.weights_rounding", TP_CONFIG_CHOICE, FIELD(precision.weights_rounding),
     .choices = rounding_names, .fallback = "\"nearest\"",
     .meaning =
         "how an updated bfloat16 weight is rounded; stochastic: up or down by chance, right "
         "on average"},
    {"matmul_precision", TP_CONFIG_CHOICE, FIELD(matmul_precision), .choices = matmul_names,
     .fallback = "null",
     .meaning = "bf16 passes of a product: 1, 3 or 6; the topology's when not given"},
    {"math", TP_CONFIG_CHOICE, FIELD(math), .choices = math_names, .fallback = "null",
     .meaning = "exact: the same bits on every device; the topology's when not given"},
    {"batch", TP_CONFIG_CHOICE, FIELD(batch), .choices = batch_names, .fallback = "null",
     .meaning = "auto: the largest batch per core that fits HBM and devices and obeys the batch "
                "rules, found by planning, instead of the two below"},
    {"global_batch", TP_CONFIG_INT, FIELD(global_batch), COUNT(1, 1 << 30), .fallback = "null",
     .meaning = "examples of a step, all cores together"},
    {"per_core_batch", TP_CONFIG_INT, FIELD(per_core_batch), COUNT(1, 1 << 20), .fallback = "null",
     .meaning = "examples of a step on each core; the topology's when neither is given"},
    {"accumulate", TP_CONFIG_INT, FIELD(accumulate), COUNT(1, TP_TOPOLOGY_MAX_CORES),
     .fallback = "1",
     .meaning =
         "micro-batches of per_core_batch examples that a core adds up in a step: the memory "
         "of one, the bits of so many times the cores"},
    {"data.dataset", TP_CONFIG_CHOICE, FIELD(data.dataset), .choices = dataset_names,
     .fallback = "\"fashion-mnist\"", .meaning = "what to train on"},
    {"data.folder", TP_CONFIG_STRING, FIELD(data.folder), .fallback = "\"\"", .keeps_result = true,
     .meaning = "where relative names of files begin; empty: where the command was started, for "
                "fashion-mnist `TPUCL_DATA_DIR`, then the system's folder"},
    {"data.train.inputs", TP_CONFIG_FILES, FIELD(data.train.inputs), .fallback = "\"\"",
     .meaning = "idx, npy: file of the training inputs; npy: also files by name of input; records: "
                "a file, a "
                "folder, or a pattern such as `train-*`"},
    {"data.train.labels", TP_CONFIG_FILES, FIELD(data.train.labels), .fallback = "\"\"",
     .meaning = "idx, npy: file of the training labels; npy: also files by name of output"},
    {"data.train.weights", TP_CONFIG_STRING, FIELD(data.train.weights), .fallback = "\"\"",
     .meaning =
         "npy: file of what each training example weighs in losses and metrics, numbers from "
         "0 on; all alike when empty"},
    {"data.test.inputs", TP_CONFIG_FILES, FIELD(data.test.inputs), .fallback = "\"\"",
     .meaning = "file or files of the test inputs, as those to train on; no evaluation without it"},
    {"data.test.labels", TP_CONFIG_FILES, FIELD(data.test.labels), .fallback = "\"\"",
     .meaning = "idx, npy: file or files of the test labels"},
    {"data.test.weights", TP_CONFIG_STRING, FIELD(data.test.weights), .fallback = "\"\"",
     .meaning = "npy: file of what the test examples weigh, with data.train.weights"},
    {"data.preset", TP_CONFIG_STRING, FIELD(data.preset), .fallback = "\"\"",
     .meaning =
         "records: whose names of features they have: tfds, imagenet, cifar, mnist, raw; empty: "
         "`data.features` says"},
    {"data.features.inputs", TP_CONFIG_FILES, FIELD(data.features.inputs), .fallback = "\"\"",
     .meaning =
         "records: what each input is made of, by its name: \"KEY image\", \"KEY bytes[28,28]\", "
         "\"KEY float[10]\", \"KEY int\""},
    {"data.features.labels", TP_CONFIG_FILES, FIELD(data.features.labels), .fallback = "\"\"",
     .meaning = "records: likewise each label; \"KEY int -1\" for classes from 1"},
    {"data.on_damage", TP_CONFIG_CHOICE, FIELD(data.on_damage), .choices = damage_names,
     .fallback = "\"stop\"",
     .meaning = "records and images that are damaged: stop, or skip them with a warning"},
    {"data.cycle_length", TP_CONFIG_INT, FIELD(data.cycle_length), COUNT(1, 65536), .fallback = "1",
     .meaning = "records: files that are read in turn, in tf.data's deterministic order, before "
                "shuffling"},
    {"data.block_length", TP_CONFIG_INT, FIELD(data.block_length), COUNT(1, MAX_EXACT),
     .fallback = "1", .meaning = "records: how many each of these gives at a time"},
    {"data.image.size", TP_CONFIG_INTS, FIELD(data.image.size), COUNT(1, 65536), .fallback = "null",
     .meaning = "height and width that images are brought to; null: those of the first image"},
    {"data.image.channels", TP_CONFIG_INT, FIELD(data.image.channels), COUNT(0, 4), .fallback = "0",
     .meaning = "1 is grey, 3 colour, 0 what the first image is"},
    {"data.image.resize", TP_CONFIG_CHOICE, FIELD(data.image.resize), .choices = resize_names,
     .fallback = "\"stretch\"",
     .meaning = "how images get their size: stretch; crop the middle or pad with black, "
                "keeping the sides' ratio; random_area: in training a part drawn by chance, "
                "stretched, else crop; none: others are refused"},
    {"data.image.antialias", TP_CONFIG_BOOL, FIELD(data.image.antialias), .fallback = "false",
     .meaning = "images that shrink are made of all of their pixels, as in tf.image.resize"},
    {"data.image.least_area", TP_CONFIG_DOUBLE, FIELD(data.image.least_area), COUNT(0, 1),
     .fallback = "0.08",
     .meaning = "random_area takes this share of the image's area to all of it, of 3:4 to 4:3"},
    {"data.image.upright", TP_CONFIG_BOOL, FIELD(data.image.upright), .fallback = "false",
     .meaning = "JPEG images are turned as their EXIF data say"},
    {"data.resident_bytes", TP_CONFIG_INT, FIELD(data.resident_bytes), COUNT(0, MAX_EXACT),
     .fallback = "4294967296", .keeps_result = true,
     .meaning = "records: most bytes of compressed or remote files, which are kept in memory"},
    {"data.cache_bytes", TP_CONFIG_INT, FIELD(data.cache_bytes), COUNT(0, MAX_EXACT),
     .fallback = "0", .keeps_result = true,
     .meaning = "records: most bytes of decoded examples to keep for the next epochs"},
    {"data.augment.on", TP_CONFIG_CHOICE, FIELD(data.augment.on), .choices = augment_names,
     .fallback = "\"none\"",
     .meaning = "where images are changed by chance in training: on host threads, or on the "
                "device, with the "
                "same bits; none: not at all, the middle of the image is cropped"},
    {"data.augment.crop", TP_CONFIG_INTS, FIELD(data.augment.crop), COUNT(1, 65536),
     .fallback = "null",
     .meaning =
         "height and width of a window of the image, its middle in evaluation; null: all of it"},
    {"data.augment.pad", TP_CONFIG_INT, FIELD(data.augment.pad), COUNT(0, 65536), .fallback = "0",
     .meaning = "rows and columns of zeros on each side of the image, for the window to lie in"},
    {"data.augment.flip", TP_CONFIG_CHOICE, FIELD(data.augment.flip), .choices = flip_names,
     .fallback = "\"none\"", .meaning = "mirror half of the images"},
    {"data.augment.contrast", TP_CONFIG_DOUBLE, FIELD(data.augment.contrast), COUNT(0, 1),
     .fallback = "0", .meaning = "c: distances from the image's mean times 1 - c to 1 + c"},
    {"data.augment.brightness", TP_CONFIG_DOUBLE, FIELD(data.augment.brightness), COUNT(0, 1),
     .fallback = "0", .meaning = "b: -b to b times 255 is added"},
    {"data.augment.saturation", TP_CONFIG_DOUBLE, FIELD(data.augment.saturation), COUNT(0, 1),
     .fallback = "0",
     .meaning = "s: distances from grey times 1 - s to 1 + s; images of 3 channels"},
    {"data.augment.noise", TP_CONFIG_DOUBLE, FIELD(data.augment.noise), COUNT(0, 1),
     .fallback = "0", .meaning = "standard deviation of what is added to each value, of 255"},
    {"data.scale", TP_CONFIG_DOUBLE, FIELD(data.scale), COUNT(-1e6, 1e6), .fallback = "0",
     .meaning = "inputs are multiplied by it; 0: 1/255 for bytes, 1 for floats"},
    {"data.offset", TP_CONFIG_DOUBLE, FIELD(data.offset), COUNT(-1e6, 1e6), .fallback = "0",
     .meaning = "added to the scaled inputs"},
    {"data.input_dtype", TP_CONFIG_CHOICE, FIELD(data.input_dtype), .choices = dtype_names,
     .fallback = "\"float32\"",
     .meaning =
         "bfloat16: inputs that are floats are rounded to it when they are read, before scale "
         "and offset, and fed in half the bytes"},
    {"data.shuffle", TP_CONFIG_BOOL, FIELD(data.shuffle), .fallback = "true",
     .meaning = "a new order in every epoch, from the seed"},
    {"data.repeat", TP_CONFIG_BOOL, FIELD(data.repeat), .fallback = "true",
     .meaning = "begin again when the data ends before the steps do"},
    {"data.drop_remainder", TP_CONFIG_BOOL, FIELD(data.drop_remainder), .fallback = "false",
     .meaning =
         "leave out an epoch's last examples when they fill no batch, instead of padding and "
         "masking them; training only"},
    {"data.shuffle_buffer", TP_CONFIG_INT, FIELD(data.shuffle_buffer), COUNT(0, MAX_EXACT),
     .fallback = "0", .meaning = "examples to shuffle among; 0: all of them"},
    {"data.prefetch", TP_CONFIG_INT, FIELD(data.prefetch), COUNT(0, 1024), .fallback = "0",
     .keeps_result = true,
     .meaning = "batches made ahead; 0: from 2 on as many as it takes, at most 16"},
    {"data.parallelism", TP_CONFIG_INT, FIELD(data.parallelism), COUNT(0, 256), .fallback = "0",
     .keeps_result = true,
     .meaning =
         "records: threads that read and decode; 0: as many as it takes, at most one for each "
         "processor"},
    {"data.enforce_link", TP_CONFIG_BOOL, FIELD(data.enforce_link), .fallback = "false",
     .keeps_result = true,
     .meaning =
         "batches arrive no faster than through the topology's `user_link`, to see what that does"},
    {"data.validation_split", TP_CONFIG_DOUBLE, FIELD(data.validation_split), COUNT(0, 0.9),
     .fallback = "0",
     .meaning = "share of the training data, its end, that is evaluated instead of the test data"},
    {"epochs", TP_CONFIG_INT, FIELD(epochs), COUNT(1, 1e6), .fallback = "1",
     .meaning = "times through the training data"},
    {"steps", TP_CONFIG_INT, FIELD(steps), COUNT(0, MAX_STEPS), .fallback = "0",
     .meaning = "steps in all, whatever `epochs` says; 0: by `epochs`"},
    {"steps_per_loop", TP_CONFIG_INT, FIELD(steps_per_loop), COUNT(1, MAX_STEPS), .fallback = "16",
     .keeps_result = true,
     .meaning = "steps that the devices do before the host looks at them again"},
    {"seed", TP_CONFIG_INT, FIELD(seed), COUNT(0, MAX_EXACT), .fallback = "0",
     .meaning = "of initial weights, dropout and order of the data"},
    {"output_dir", TP_CONFIG_STRING, FIELD(output_dir), .fallback = "\"\"", .keeps_result = true,
     .meaning = "folder or address in a bucket for weights and results; empty: nothing is written"},
    {"checkpoint.folder", TP_CONFIG_STRING, FIELD(checkpoint.folder), .fallback = "\"\"",
     .keeps_result = true,
     .meaning = "folder for checkpoints; empty: checkpoints in output_dir, none without one"},
    {"checkpoint.every", TP_CONFIG_INT, FIELD(checkpoint.every), COUNT(0, MAX_STEPS),
     .fallback = "0", .keeps_result = true,
     .meaning = "steps between two checkpoints; 0: one at the end of each epoch"},
    {"checkpoint.keep", TP_CONFIG_INT, FIELD(checkpoint.keep), COUNT(1, 1e6), .fallback = "2",
     .keeps_result = true, .meaning = "how many of the newest checkpoints stay"},
    {"checkpoint.best", TP_CONFIG_STRING, FIELD(checkpoint.best), .fallback = "\"\"",
     .keeps_result = true,
     .meaning = "loss, accuracy or a metric, of the test part where there is one: the checkpoint "
                "of the epoch with the best one stays, too"},
    {"checkpoint.best_mode", TP_CONFIG_CHOICE, FIELD(checkpoint.best_mode), .choices = best_names,
     .fallback = "\"auto\"", .keeps_result = true,
     .meaning = "what is best; auto: the lowest loss or error, the highest of anything else"},
    {"log_every", TP_CONFIG_INT, FIELD(log_every), COUNT(1, MAX_STEPS), .fallback = "100",
     .keeps_result = true,
     .meaning = "steps between lines with the loss in the log (-v) and in the event files"},
    {"log_dir", TP_CONFIG_STRING, FIELD(log_dir), .fallback = "\"\"", .keeps_result = true,
     .meaning = "folder of event files for TensorBoard; empty: logs in output_dir, none without "
                "one"},
    {"wave_cores", TP_CONFIG_INT, FIELD(wave_cores), COUNT(0, TP_TOPOLOGY_MAX_CORES),
     .fallback = "0", .keeps_result = true,
     .meaning = "cores that a device runs at once; 0: as many as its memory allows"},
    {.path = NULL},
};

const tp_config_choice tp_config_choices[] = {
    {"optimizer.schedule.", schedule_names, schedule_keys}, /* before the group that it is in */
    {"optimizer.", optimizer_names, optimizer_keys},
    {"loss.", loss_names, loss_keys},
    {.prefix = NULL},
};

const tp_config_choice *tp_config_find_choice(const char *path, const char **out_part)
{
    for (const tp_config_choice *choice = tp_config_choices; choice->prefix; choice++) {
        const size_t length = strlen(choice->prefix);
        if (strncmp(path, choice->prefix, length) != 0) continue;
        for (size_t i = 0; choice->names[i]; i++) {
            size_t unused;
            if (!tp_choice_find(choice->keys[i], path + length, &unused)) continue;
            *out_part = path + length;
            return choice;
        }
        return NULL;
    }
    return NULL;
}

bool tp_config_choice_has(const char *path, int32_t chosen)
{
    const char *part;
    size_t unused;
    const tp_config_choice *choice = tp_config_find_choice(path, &part);
    return choice && tp_choice_find(choice->keys[chosen], part, &unused);
}

size_t tp_config_key_count(void)
{
    return sizeof tp_config_keys / sizeof tp_config_keys[0] - 1;
}

_Static_assert(sizeof tp_config_keys / sizeof tp_config_keys[0] <= TP_CONFIG_MAX_KEYS,
               "raise TP_CONFIG_MAX_KEYS");

int tp_config_find_key(const char *path)
{
    for (int i = 0; tp_config_keys[i].path; i++) {
        if (strcmp(tp_config_keys[i].path, path) == 0) return i;
    }
    return -1;
}

int tp_config_find_name_key(const char *prefix)
{
    char path[64];
    static const char *const last[] = {"name", "policy"};
    for (size_t i = 0; prefix[0] && i < sizeof last / sizeof *last; i++) {
        const int length = snprintf(path, sizeof path, "%s%s", prefix, last[i]);
        const int found = length < (int)sizeof path ? tp_config_find_key(path) : -1;
        if (found >= 0) return found;
    }
    return -1;
}
