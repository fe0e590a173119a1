#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/records with TensorFlow: gen_records.py [FOLDER]

examples.{none,gzip,zlib}.tfrecord: three Examples; the third leaves out what has defaults.
sequences.tfrecord: two SequenceExamples.
"""
import pathlib
import sys

import tensorflow as tf

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "records")


def of_bytes(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def of_floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def of_ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(i):
    features = {"image": of_bytes(b"\x89PNG" + bytes([i, 0, 255])), "label": of_ints(i - 1),
                "box": of_floats(*(i + k / 4 for k in range(4))), "words": of_bytes(*[b"w%d" % k for k in range(i)])}
    if i < 2:
        features["weight"] = of_floats(0.5 + i)
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def sequence(i):
    context = tf.train.Features(feature={"length": of_ints(i + 2)})
    lists = {"tokens": tf.train.FeatureList(feature=[of_ints(k, -k) for k in range(i + 2)]),
             "names": tf.train.FeatureList(feature=[of_bytes(*[b"x"] * k) for k in range(i + 1)])}
    return tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists)
                                    ).SerializeToString(deterministic=True)


for kind in ("none", "gzip", "zlib"):
    name = str(folder / f"examples.{kind}.tfrecord")
    with tf.io.TFRecordWriter(name, None if kind == "none" else kind.upper()) as writer:
        for i in range(3):
            writer.write(example(i))
with tf.io.TFRecordWriter(str(folder / "sequences.tfrecord")) as writer:
    for i in range(2):
        writer.write(sequence(i))
