#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl records: make, inspect, verify, count, convert; going on after an interruption; what is damaged or wrong.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# payloads FILE...: the bytes of all records, one hash a line (an independent reader, plain or gzip).
payloads() {
    python3 - "$@" <<'PY'
import gzip, hashlib, struct, sys
for name in sys.argv[1:]:
    data = open(name, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    at = 0
    while at < len(data):
        length = struct.unpack("<Q", data[at:at + 8])[0]
        print(hashlib.sha256(data[at + 12:at + 12 + length]).hexdigest())
        at += length + 16
PY
}

make_data 100 10
run records make train-images --labels train-labels -o data/train --shards 3 --preset imagenet --json made.json
expect_code 0
expect_in out '100 records in 3 files'
expect_json made.json 'r["records"] == 100 and r["files"] == 3 and r["found"] == 0 and r["bytes"] > 0'
[[ -e data/train-00000-of-00003 && -e data/train-00002-of-00003 ]] || fail 'names of files'

run records count data --json -
expect_code 0
expect_json out 'r["records"] == 100 and [f["records"] for f in r["files"]] == [33, 33, 34] and r["faults"] == 0'
run records inspect data --limit 10
expect_code 0
expect_in out 'image/class/label' 'image/encoded' 'image/colorspace' 'grayscale' '\x89PNG'
run records inspect 'data/train-0000?-of-00003' --json -
expect_json out '{f["key"]: f["kind"] for f in r["features"]}["image/height"] == "int64"'
expect_json out 'r["parsed"] == 100 and r["not_examples"] == 0'
run records verify data
expect_code 0
expect_in out '100 records' '0 faults'

# What protoc reads: the first label is one more than in the file.
if command -v protoc >/dev/null; then
    python3 - <<'PY'
import struct
data = open("data/train-00000-of-00003", "rb").read()
length = struct.unpack("<Q", data[:8])[0]
open("first", "wb").write(data[12:12 + length])
open("label", "w").write(str(open("train-labels", "rb").read()[8] + 1))
PY
    protoc --decode=Example -I"$TPUCL_SOURCE/tests/proto" "$TPUCL_SOURCE/tests/proto/example.proto" <first >text
    expect_in text 'key: "image/encoded"' 'value: "PNG"' "value: $(cat label)" 'value: 28'
    expect_not_in text '  1: '
fi

# The same command finds its files; one that is missing is made again, to the same bytes.
payloads data/train-0* >before
sha256sum data/train-0* >sums
rm data/train-00001-of-00003
run records make train-images --labels train-labels -o data/train --shards 3 --preset imagenet
expect_code 0
expect_in out '2 files were there already'
sha256sum -c --quiet sums || fail 'other bytes'

# Other work does not mix with it.
run records make train-images --labels train-labels -o data/train --shards 3 --preset cifar
expect_code 2
expect_in err 'was made of other things' '--force' 'train-00000-of-00003'
run records make train-images --labels train-labels -o data/train --shards 2 --preset cifar --force
expect_code 0
expect_absent 'data/*-of-00003'
run records make train-images --labels train-labels -o data/train --shards 3 --preset imagenet --force
expect_code 0
expect_absent 'data/*-of-00002'

# Shuffled: the same records in another order, always the same one.
run records make train-images --labels train-labels -o mixed/train --preset imagenet --shuffle 7
expect_code 0
payloads mixed/train-0* >mixed-list
cmp -s before mixed-list && fail 'the order did not change'
cmp -s <(sort before) <(sort mixed-list) || fail 'shuffling changed the records'

# Other files, another compression, and back.
run records convert data -o packed/train --shards 5 --compression gzip
expect_code 0
run records verify packed --json -
expect_json out 'r["records"] == 100 and {f["compression"] for f in r["files"]} == {"gzip"}'
payloads packed/train-0* | cmp -s - before || fail 'converting changed records'
run records convert 'packed/*-of-*' -o again/train --shards 3 --compression none
cmp -s again/train-00001-of-00003 data/train-00001-of-00003 || fail 'converting back gives other bytes'
run records convert data -o data/train --shards 1 --force
expect_code 2
expect_in err 'is read, and'

# Damage: named with file and offset, counted, left out when told.
cp -r data bad
printf 'x' | dd of=bad/train-00001-of-00003 bs=1 seek=100 conv=notrunc status=none
run records verify bad
expect_code 1
expect_in err 'train-00001-of-00003' 'at offset 0' 'checksum'
expect_in out '99 records' '1 fault'
run records count bad
expect_code 0
run records convert bad -o good/train
expect_code 1
expect_in err 'train-00001-of-00003' 'at offset 0'
expect_absent 'good/train-0*'
run records convert bad -o good/train --skip-faults
expect_code 0
expect_in out '99 records'
head -c 5000 data/train-00000-of-00003 >short
run records verify short
expect_code 1
expect_in err 'the file was cut'
run records verify train-images
expect_code 1
expect_in err 'no TFRecord file'

# A folder of images: classes in byte order, files as they are.
python3 - <<'PY'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(value):
    head = struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes([value] * 9) for _ in range(2)))) + chunk(b"IEND", b""))
for number, name in enumerate(("dog", "cat")):
    os.makedirs("photos/" + name)
    for i in range(3):
        open(f"photos/{name}/{i}.PNG", "wb").write(png(10 * number + i))
open("photos/cat/notes.txt", "w").write("no image")
open("photos/README", "w").write("no class")
PY
run records make photos -o set/train --preset imagenet
expect_code 0
expect_in out '6 records' '2 classes'
diff set/train.labels.txt <(printf '1:cat\n2:dog\n') || fail 'names of classes'
run records inspect set/train-00000-of-00001
expect_in out 'image/class/synset' '"cat"' '"RGB"' 'image/filename'
# brought to a size and encoded again
run records make photos -o sized/train --height 5 --width 4 --resize crop --preset imagenet
expect_code 0
run records inspect sized
expect_in out '"PNG"' 'image/height        int64           6       1  5' 'image/width         int64           6       1  4'
run records make photos -o jpeg/train --jpeg 80 --preset imagenet
if grep -qF 'no TurboJPEG' err; then
    expect_code 1
else
    expect_code 0
    run records inspect jpeg
    expect_in out '"JPEG"' 'image/height        int64           6       1  2'
fi
run records make photos -o other/train --width 4
expect_code 2
expect_in err 'images of 4 x 0'
run records make photos -o other/train --height 4 --width 4 --resize zoom
expect_code 2
expect_in err 'stretch, crop or pad'
run records make train-images --labels train-labels -o other/train --height 4 --width 4
expect_code 2
expect_in err 'for folders of images'
printf 'GIF89a' >photos/dog/9.jpg
run records make photos -o set2/train
expect_code 1
expect_in err 'photos/dog/9.jpg' 'neither a PNG nor a JPEG'
expect_absent 'set2/train-0*'

# Wrong usage.
run records
expect_code 2
run records polish data
expect_code 2
expect_in err "unknown action 'polish'"
run records make train-images --labels train-labels
expect_code 2
expect_in err '--output is missing'
run records make train-images --labels train-labels -o x/y --preset cifer
expect_code 2
expect_in err "did you mean 'cifar'"
run records count nowhere
expect_code 2
expect_in err 'nowhere'
run records count 'nowhere-*'
expect_code 2
expect_in err 'no file matches'
run records count photos
expect_code 2
expect_in err 'has no files of records'
run records convert data -o z/z --compression brotli
expect_in err "compression 'brotli'"
run records make train-images --labels test-labels -o x/y
expect_code 1
expect_in err 'train-images' 'test-labels'
expect_absent 'x/y-*'

finish
