#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tpucl wrote, read by those it is for.

check_records.py records PATTERN COMPRESSION IMAGES LABELS   TensorFlow reads records of these IDX files
check_records.py folder FILE FOLDER                          TensorFlow reads records of a folder of images
check_records.py write FOLDER                                TensorFlow writes records for tpucl to read
check_records.py events FOLDER                               TensorBoard reads what write_events.c wrote
check_records.py server FOLDER                               and serves it, with both of its loaders
"""
import glob
import gzip
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request


def idx(path):
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    rank = data[3]
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(rank)]
    return dims, data[4 + 4 * rank:]


def check_records(pattern, compression, images, labels):
    import tensorflow as tf
    dims, pixels = idx(images)
    classes = idx(labels)[1]
    size = dims[1] * dims[2]
    spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/format": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64), "image/height": tf.io.FixedLenFeature([], tf.int64)}
    files = sorted(glob.glob(pattern))
    count = 0
    for record in tf.data.TFRecordDataset(files, compression_type=compression.upper() if compression != "none" else None):
        count += 1
        if compression != "none" and count > 500:
            continue # it is there; what is in it was compared uncompressed
        at = count - 1
        example = tf.io.parse_single_example(record, spec)
        image = tf.io.decode_png(example["image/encoded"]).numpy()
        assert image.shape == (dims[1], dims[2], 1), image.shape
        assert image.tobytes() == pixels[at * size:(at + 1) * size], f"image {at}"
        assert int(example["image/class/label"]) == classes[at] + 1, f"label {at}"
        assert example["image/format"] == b"PNG" and int(example["image/height"]) == dims[1]
    assert count == dims[0], (count, dims[0])
    print(f"TensorFlow reads {count} records of {len(files)} files, images and labels equal")


def check_folder(file, folder):
    import tensorflow as tf
    paths = sorted(str(p) for p in pathlib.Path(folder).glob("*/*"))
    classes = sorted({pathlib.Path(p).parent.name for p in paths})
    for path, record in zip(paths, tf.data.TFRecordDataset(file), strict=True):
        example = tf.train.Example.FromString(record.numpy())
        assert example.features.feature["image"].bytes_list.value[0] == open(path, "rb").read(), path
        assert example.features.feature["label"].int64_list.value[0] == classes.index(pathlib.Path(path).parent.name)
    print(f"TensorFlow reads {len(paths)} files of {len(classes)} classes, equal")


def write(folder):
    import tensorflow as tf
    for kind in ("none", "gzip", "zlib"):
        with tf.io.TFRecordWriter(f"{folder}/{kind}.tfrecord", None if kind == "none" else kind.upper()) as writer:
            for i in range(1000):
                features = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=[i / 2] * (i % 7))),
                            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[-i]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def check_events(folder):
    from tensorboard.backend.event_processing import plugin_event_accumulator as accumulator # TensorBoard's own
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util
    events = accumulator.EventAccumulator(folder, size_guidance={accumulator.TENSORS: 0})
    events.Reload()
    tags = set(events.Tags()["tensors"])
    assert tags >= {"loss", "batch", "weights", "note"}, tags
    plugins = {tag: events.SummaryMetadata(tag).plugin_data.plugin_name for tag in tags}
    assert (plugins["loss"], plugins["batch"], plugins["weights"], plugins["note"]) == ("scalars", "images", "histograms",
                                                                                       "text"), plugins
    steps = [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in events.Tensors("loss")]
    # Steps 5 to 9 of the file that was killed are forgotten.
    assert steps == [(s, s / 4 + (100 if s >= 5 else 0)) for s in range(10)], steps
    image = tensor_util.make_ndarray(events.Tensors("batch")[0].tensor_proto)
    assert list(image[:2]) == [b"6", b"4"] and len(image) == 4 and image[2][:4] == b"\x89PNG", image
    histogram = tensor_util.make_ndarray(events.Tensors("weights")[0].tensor_proto)
    assert histogram.shape == (30, 3) and histogram[:, 2].sum() == 100, histogram
    assert tensor_util.make_ndarray(events.Tensors("note")[0].tensor_proto).item() == b"**bold**"
    start = plugin_data_pb2.HParamsPluginData.FromString(
        events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content).session_start_info
    assert start.hparams["optimizer"].string_value == "Adam" and start.hparams["learning_rate"].number_value == 0.001
    experiment = plugin_data_pb2.HParamsPluginData.FromString(
        events.SummaryMetadata("_hparams_/experiment").plugin_data.content).experiment
    assert [h.name for h in experiment.hparam_infos] == ["optimizer", "learning_rate"], experiment
    assert [m.name.tag for m in experiment.metric_infos] == ["loss"], experiment
    end = plugin_data_pb2.HParamsPluginData.FromString(
        events.SummaryMetadata("_hparams_/session_end_info").plugin_data.content).session_end_info
    assert end.status == 1 and end.end_time_secs == 2000, end
    print("TensorBoard reads scalars, images, histograms, text, hyperparameters and the restart")


def ask(port, plugin, tag):
    query = urllib.parse.urlencode({"run": "run", "tag": tag, "sample": 0})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/plugin/{plugin}/{plugin}?{query}", timeout=10) as answer:
        return json.load(answer)


def wait_for_scalars(port):
    """The ten steps, as soon as the server is up and has read them all."""
    for _ in range(120):
        try:
            scalars = ask(port, "scalars", "loss")
            if len(scalars) == 10:
                return scalars
        except OSError: # not up yet, or the run is not known yet
            pass
        time.sleep(0.5)
    raise AssertionError("TensorBoard shows no ten scalars within a minute")


def check_server(folder):
    for is_fast in ("true", "false"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--port", str(port),
                                   "--host", "127.0.0.1", "--load_fast", is_fast],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            scalars = wait_for_scalars(port)
            assert [s[1:] for s in scalars] == [[s, s / 4 + (100 if s >= 5 else 0)] for s in range(10)], scalars
            assert len(ask(port, "images", "batch")) == 10
            histogram = ask(port, "histograms", "weights")[-1]
            assert histogram[1] == 9 and sum(bucket[2] for bucket in histogram[2]) == 100, histogram
            assert ask(port, "text", "note")[0]["text"] == "<p><strong>bold</strong></p>"
        finally:
            server.terminate()
            server.wait()
    print("TensorBoard serves them, with its fast and with its slow loader")


{"records": check_records, "folder": check_folder, "write": write, "events": check_events, "server": check_server}[sys.argv[1]](*sys.argv[2:])
