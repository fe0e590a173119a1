#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is decoded of JPEG files is to the last bit what libjpeg-turbo's own tool decodes: the corpus of the fuzz target
# and Debian's corner cases. Needs djpeg (libjpeg-turbo-progs); without libjxl-testdata the corpus alone. With
# TensorFlow in TPUCL_PEERS_PYTHON also its pixels.
#   ctest --test-dir build/dev -L peers -R jpeg --verbose
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
command -v djpeg >/dev/null || {
    echo 'no djpeg'
    exit 77
}
equal=0 refused=0
shopt -s nullglob
for file in "$TPUCL_SOURCE"/tests/fuzz/corpus/jpeg/* /usr/share/libjxl-testdata/jxl/*/*.jpg; do
    current=$file
    djpeg -pnm -outfile theirs "$file" 2>their_err
    their_code=$?
    if "$DECODE_JPEG" "$file" >ours 2>our_err; then
        [[ $their_code == 0 ]] || fail "djpeg refuses it: $(cat their_err)"
        cmp ours theirs || fail 'other pixels than djpeg'
        equal=$((equal + 1))
    else
        [[ -s our_err ]] || fail 'refused without a reason'
        [[ $their_code != 0 ]] || fail "djpeg decodes it, tpucl says: $(cat our_err)"
        refused=$((refused + 1))
    fi
done
((equal >= 8)) || fail "only $equal files were compared"
echo "$equal files equal, $refused refused by both"

# photographs in records: TensorFlow reads the same files, and decodes the same pixels
python=${TPUCL_PEERS_PYTHON:-python3}
flowers=/usr/share/libjxl-testdata/jxl/flower
if "$python" -c 'import tensorflow' 2>/dev/null && [[ -d $flowers ]]; then
    mkdir -p photos/flower pixels
    cp $flowers/*_q85_4*.jpg $flowers/*q85_gray.jpg photos/flower
    for file in photos/flower/*; do "$DECODE_JPEG" "$file" >"pixels/$(basename "$file")"; done
    run records make photos -o records/train --preset imagenet --shards 2
    expect_code 0
    "$python" - >out 2>err <<'PY'
import glob, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/filename": tf.io.FixedLenFeature([], tf.string)}
count = 0
for record in tf.data.TFRecordDataset(sorted(glob.glob("records/train-*-of-00002"))):
    example = tf.io.parse_single_example(record, spec)
    name, encoded = example["image/filename"].numpy().decode(), example["image/encoded"].numpy()
    assert encoded == open("photos/flower/" + name, "rb").read(), name
    ours = open("pixels/" + name, "rb").read().split(b"\n", 3)[3]
    assert tf.io.decode_jpeg(encoded, dct_method="INTEGER_ACCURATE").numpy().tobytes() == ours, name
    count += 1
print("TensorFlow reads and decodes", count, "photographs alike")
PY
    code=$?
    expect_code 0
    cat out
else
    echo 'no TensorFlow or no photographs: its side is left out'
fi
finish
