#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records and folders of images as the data of a training: the same result as the arrays that they were made of, whatever the threads; damage,
# going on in the middle, the link, and configurations that are refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
make_data 200 64
make_config arrays.json 'config["epochs"] = 2'
for part in train test; do
    run records make $part-images --labels $part-labels -o data/$part --shards 3 --preset imagenet
    expect_code 0
done
records='config["data"] = {"dataset": "records", "preset": "imagenet", "folder": "data",
    "train": {"inputs": "train-*"}, "test": {"inputs": "test-*"}}; config["epochs"] = 2'
make_config records.json "$records"

run train arrays.json --json arrays-result.json
expect_code 0
for threads in 0 1 3; do
    run train records.json --set data.parallelism=$threads --json threads-$threads.json
    expect_code 0
    [[ $(digest threads-$threads.json) == "$(digest arrays-result.json)" ]] ||
        fail 'records give another result than the arrays they were made of'
    expect_json threads-$threads.json "r['input']['auto'] and r['input']['left_out'] == 0"
    expect_json threads-$threads.json "r['input']['waited'] <= r['input']['seconds']"
    expect_json threads-$threads.json "r['epochs'][1]['eval'] is not None"
done
expect_json threads-3.json "r['input']['threads'] == 3"
for set in data.cache_bytes=1000000 data.prefetch=1 'data.features={"inputs":{"image":"image/encoded image"},"labels":{"label":"image/class/label int -1"}}'; do
    preset=()
    [[ $set != data.features* ]] || preset=(--set 'data.preset=""')
    run train records.json --set "$set" "${preset[@]}" --json again.json
    expect_code 0
    [[ $(digest again.json) == "$(digest arrays-result.json)" ]] || fail "another result with $set"
done

# a windowed shuffle over files in turn, stopped and gone on with
window=(--set data.shuffle_buffer=50 --set data.cycle_length=3 --set data.block_length=2)
run train records.json "${window[@]}" --output-dir whole
expect_code 0
run train records.json "${window[@]}" --output-dir part --set checkpoint.every=3 --steps 3
expect_code 0
run train records.json "${window[@]}" --output-dir part --resume
expect_code 0
[[ $(digest part/result.json) == "$(digest whole/result.json)" ]] || fail 'going on gives another result'
[[ $(digest whole/result.json) != "$(digest arrays-result.json)" ]] || fail 'the window shuffled nothing'

# images in another size, cropped and padded
for resize in stretch crop pad random_area; do
    run train records.json --set 'data.image={"size":[20,12],"resize":"'$resize'"}' --json resized.json \
        --set data.cache_bytes=1000000
    expect_code 0
    digest resized.json
done >digests
[[ $(sort -u digests | wc -l) == 4 ]] || fail 'ways of resizing do not differ'
run train records.json --set 'data.image={"size":[20,12],"resize":"random_area"}' --json resized.json \
    --set data.parallelism=3
expect_code 0
[[ $(digest resized.json) == "$(tail -1 digests)" ]] || fail 'what is drawn depends on threads or the cache'
run train records.json --set 'data.image={"size":[20,12],"resize":"none"}'
expect_code 2
expect_in err 'data/train-0000' 'data.image.resize'

# a folder of images, and records that were made of it
python3 - <<'PY'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for part in ("train", "test"):
    pixels, labels = open(part + "-images", "rb").read()[16:], open(part + "-labels", "rb").read()[8:]
    for label in range(10):
        os.makedirs(f"photos/{part}/class-{label}")
    for i, label in enumerate(labels):
        rows = b"".join(b"\0" + pixels[784 * i + 28 * y:784 * i + 28 * y + 28] for y in range(28))
        open(f"photos/{part}/class-{label}/{i:03d}.png", "wb").write(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
run records make photos/train -o made/train --shards 2
expect_code 0
made='config["data"] = {"dataset": "records", "preset": "tfds", "train": {"inputs": "made"}, "validation_split": 0.2}'
make_config made.json "$made"
make_config images.json 'config["data"] = {"dataset": "images", "folder": "photos", "train": {"inputs": "train"}, "validation_split": 0.2}'
for config in made images; do
    run train $config.json --json $config-result.json
    expect_code 0
done
[[ $(digest made-result.json) == "$(digest images-result.json)" ]] || fail 'records of a folder are not the folder'
run train images.json --set data.test.inputs=test --set data.validation_split=0 --json images-result.json
expect_code 0
expect_json images-result.json 'r["epochs"][1]["eval"]["loss"] > 0'
printf 'no image' >photos/train/class-3/a.png
run train images.json
expect_code 1
expect_in err 'photos/train/class-3/a.png' 'neither a PNG nor a JPEG'
run train images.json --set data.on_damage=skip --json skipped.json
expect_code 0
expect_json skipped.json 'r["input"]["left_out"] == 2'
mv photos/test/class-3 photos/test/klass-3
run train images.json --set data.test.inputs=test --set data.validation_split=0
expect_code 2
expect_in err "'class-3'" "'class-4'" 'the same folders'

# augmentation on the host and on the device gives the same bits, from arrays and from records; windows of one size are
# the same model, and without randomness it is another training
for config in arrays records; do
    for on in none host device; do
        run train $config.json --json augmented.json --set \
            'data.augment={"on":"'$on'","crop":[24,22],"pad":2,"flip":"both","contrast":0.4,"brightness":0.2,"noise":0.05}'
        expect_code 0
        echo "$on $(digest augmented.json)"
    done
done | sort -u >digests
[[ $(wc -l <digests) == 3 ]] || fail 'augmentation depends on where the data come from'
[[ $(cut -d' ' -f2 digests | sort -u | wc -l) == 2 ]] || fail 'host and device do not augment alike'
run train records.json --set 'data.augment={"on":"device","crop":[29,28]}'
expect_code 2
expect_in err 'no window of 28 x 29'
run train records.json --set 'data.augment={"on":"host","crop":[29]}'
expect_code 2
expect_in err 'height and width'

# through a link of 500 MB/s nothing that small waits long; the result is the same
run train records.json --set data.enforce_link=true --json linked.json
expect_code 0
[[ $(digest linked.json) == "$(digest arrays-result.json)" ]] || fail 'the link changes the result'
expect_json linked.json "r['input']['waited_link'] <= r['input']['waited']"

# what cannot be meant
refused() {
    local message=$1
    shift
    run train records.json "$@"
    expect_code 2
    expect_in err "$message"
}
refused "'data.preset' or by 'data.features.inputs'" --set 'data.preset=""'
refused "did you mean 'imagenet'" --set data.preset=imagenets
refused 'classes 0 to 9' --set data.preset=cifar
refused 'hold their labels' --set data.train.labels=x
refused 'height and width' --set data.image.size=[3]
refused 'no whole batch' --set data.drop_remainder=true --set global_batch=512 --set per_core_batch=64
run train records.json --set 'data.train.inputs="nothing-*"'
expect_in err 'no file matches'

# the same files from a web server, which are kept in memory
python3 - >port <<'PY' &
import functools, http.server, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
print(server.server_address[1], flush=True)
server.serve_forever()
PY
server=$!
for _ in $(seq 100); do
    [[ -s port ]] && break
    sleep 0.1
done
run train records.json --set data.train.inputs=train-00000-of-00003 --json local.json
expect_code 0
run train records.json --set "data.folder=http://127.0.0.1:$(cat port)/data" --json remote.json \
    --set data.train.inputs=train-00000-of-00003 --set data.test.inputs=test-00000-of-00003
if grep -qF 'libcurl' err; then
    expect_code 1
else
    expect_code 0
    [[ $(digest remote.json) == "$(digest local.json)" ]] || fail 'another result from a web server'
fi
run train records.json --set "data.train.inputs=http://127.0.0.1:$(cat port)/data/train-00000-of-00003" \
    --set data.resident_bytes=1000
expect_code 1
kill $server

# damage: contents
python3 - <<'PY'
path = "data/train-00001-of-00003"
data = bytearray(open(path, "rb").read())
data[40] ^= 1
open(path, "wb").write(data)
PY
run train records.json
expect_code 1
expect_in err 'data/train-00001-of-00003' 'offset 0' 'checksum'
run train records.json --set data.on_damage=skip --json skipped.json
expect_code 0
expect_in err 'left out'
expect_json skipped.json "r['input']['left_out'] == 2"
# and a file that is cut
truncate -s -5 data/train-00002-of-00003
run train records.json
expect_code 1
expect_in err 'data/train-00002-of-00003' 'cut'

finish
