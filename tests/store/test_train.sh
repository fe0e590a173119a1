#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trainings with a bucket: records, images and .npy files as data, which checkpoints stay, stores that are not there.
# Runs beside tests/servers/with_rgw.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
make_data 96 32
bucket=s3://tpucl-test/train
s3() { # s3 CURL-OPTION... KEY
    curl -sf --aws-sigv4 "aws:amz:$AWS_REGION:s3" -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
        -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' "${@:1:$#-1}" "$AWS_ENDPOINT_URL/tpucl-test${*: -1}"
}

# The same images as a folder of PNG files, as records and as .npy, here and in the bucket.
python3 - <<'PY'
import os, struct, zlib
images, labels = (open(f"train-{name}", "rb").read() for name in ("images", "labels"))
images, labels = images[16:], labels[8:]
def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
for i, label in enumerate(labels):
    os.makedirs(f"photos/class-{label}", exist_ok=True)
    rows = b"".join(b"\0" + images[784 * i + 28 * y:][:28] for y in range(28))
    open(f"photos/class-{label}/{i:03d}.png", "wb").write(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for name, shape, bytes_ in (("images", "(96, 28, 28)", images), ("labels", "(96,)", labels)):
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    open(name + ".npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + bytes_)
PY
echo 'not a class' >photos/README
for file in photos/*/* photos/README *.npy; do s3 -T "$file" "/train/$file" || fail "put $file"; done
run records make photos -o records/train --shards 2
expect_code 0
run records make "$bucket/photos" -o "$bucket/records/train" --shards 2
expect_code 0
make_config photos.json 'config["data"] = {"dataset": "images", "train": {"inputs": "photos"}, "validation_split": 0.25}'
make_config records.json 'config["data"] = {"dataset": "records", "preset": "tfds", "train": {"inputs": "records"}, "validation_split": 0.25}'
make_config npy.json 'config["data"] = {"dataset": "npy", "train": {"inputs": "images.npy", "labels": "labels.npy"}, "validation_split": 0.25}'
for kind in photos records npy; do
    run train $kind.json --json local.json
    expect_code 0
    run train $kind.json --set data.folder="$bucket" --json remote.json
    expect_code 0
    checks=$((checks + 1))
    [[ -s remote.json && $(digest remote.json) == "$(digest local.json)" ]] || fail "$kind of the bucket give other bits"
done

# The newest two and the best one stay; a new run refuses them, and replaces them when told to.
steps() { s3 '/?list-type=2&prefix=train%2Frun%2Fcheckpoints%2F' | grep -o 'step-[0-9]*/manifest.json' | sort -u; }
run train npy.json --set data.folder="$bucket" --output-dir "$bucket/run" --set checkpoint.every=1 --set checkpoint.best=loss
expect_code 0
checks=$((checks + 1))
[[ $(steps | wc -l) == [23] && $(steps | tail -1) == step-000000000006/* ]] || fail "checkpoints: $(steps)"
run eval npy.json --set data.folder="$bucket" --params "$bucket/run/checkpoints/step-000000000006/params.safetensors" --json eval.json
expect_code 0
run train npy.json --output-dir "$bucket/run"
expect_code 2
expect_in err "'$bucket/run/checkpoints' holds checkpoints" --resume --overwrite
run train npy.json --output-dir "$bucket/run" --overwrite --steps 1
expect_code 0
checks=$((checks + 1))
[[ $(steps) == step-000000000001/manifest.json ]] || fail "checkpoints: $(steps)"

# A damaged one is passed over.
run train npy.json --output-dir "$bucket/run" --resume --steps 2
expect_code 0
printf '{"format": 1' >broken
s3 -T broken /train/run/checkpoints/step-000000000002/manifest.json || fail 'put'
run train npy.json --output-dir "$bucket/run" --resume
expect_code 0
expect_in err "goes on from '$bucket/run/checkpoints/step-000000000001'" "$bucket/run/checkpoints/step-000000000002/manifest.json"

# Logs that cannot be written do not end a training; results and checkpoints that cannot be are known at once.
run train npy.json --set log_dir=s3://tpucl-no-such-bucket/logs --output-dir here
expect_code 0
expect_in err 'no more is written for TensorBoard' NoSuchBucket
run train npy.json --output-dir s3://tpucl-no-such-bucket/run
expect_code 2
expect_in err NoSuchBucket s3://tpucl-no-such-bucket/run/
run train npy.json --set checkpoint.folder=s3://tpucl-no-such-bucket/c
expect_code 2
expect_in err NoSuchBucket
expect_empty out
run train npy.json --output-dir http://127.0.0.1:1/run
expect_code 1
expect_in err 'http:// addresses can only be read, not written'
finish
