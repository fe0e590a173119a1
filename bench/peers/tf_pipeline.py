# SPDX-License-Identifier: Apache-2.0
"""The side of tf.data of bench/peers/pipeline: PATTERN CROP BATCH DECODE. Answers as bench_pipeline does. DECODE is
'default' (its fast DCT), 'accurate' (the DCT that tpucl has), or 'crop' (accurate, and only the window is decoded)."""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

pattern, crop, batch, decode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
method = "" if decode == "default" else "INTEGER_ACCURATE"
SPEC = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}


def window(jpeg):
    if decode != "crop":
        return tf.image.random_crop(tf.io.decode_jpeg(jpeg, channels=3, dct_method=method), [crop, crop, 3])
    shape = tf.io.extract_jpeg_shape(jpeg)
    top = tf.random.uniform([], 0, shape[0] - crop + 1, tf.int32)
    left = tf.random.uniform([], 0, shape[1] - crop + 1, tf.int32)
    return tf.io.decode_and_crop_jpeg(jpeg, tf.stack([top, left, crop, crop]), channels=3, dct_method=method)


def example(record):
    features = tf.io.parse_single_example(record, SPEC)
    image = tf.image.random_flip_left_right(window(features["image/encoded"]))
    return tf.ensure_shape(image, [crop, crop, 3]), tf.cast(features["image/class/label"] - 1, tf.int32)


files = tf.data.Dataset.list_files(pattern, shuffle=False)
data = files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
data = data.shuffle(256).repeat().map(example, num_parallel_calls=tf.data.AUTOTUNE)
batches = iter(data.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE))
for line in sys.stdin:
    wanted, begin, cpu, examples, seconds = float(line), time.monotonic(), time.process_time(), 0, 0.0
    while seconds < wanted:
        examples += int(next(batches)[0].shape[0])
        seconds = time.monotonic() - begin
    print(examples, seconds, time.process_time() - cpu, 0, flush=True)
