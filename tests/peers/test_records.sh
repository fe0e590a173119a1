#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records that tpucl makes are read by TensorFlow, TensorFlow's by tpucl, event files by TensorBoard. What is not
# installed is left out:
#   TPUCL_PEERS_PYTHON=/path/to/python ctest --test-dir build/dev -L peers -R records --verbose
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
python=${TPUCL_PEERS_PYTHON:-python3}
data=/usr/share/datasets/fashion-mnist
has() { "$python" -c "import $1" 2>/dev/null; }
check() {
    current="check_records.py $*"
    "$python" "$TPUCL_SOURCE/tests/peers/check_records.py" "$@" >out 2>err
    code=$?
    expect_code 0
    cat out
}
has tensorflow || has tensorboard || {
    echo 'neither TensorFlow nor TensorBoard'
    exit 77
}

if has tensorflow; then
    images=$data/t10k-images-idx3-ubyte.gz labels=$data/t10k-labels-idx1-ubyte.gz
    for kind in none gzip zlib; do
        run records make $images --labels $labels -o $kind/test --shards 3 --preset imagenet --compression $kind
        expect_code 0
        check records "$kind/test-*-of-00003" $kind $images $labels
    done
    mkdir -p photos/grey photos/colour theirs
    python3 - <<'PY'
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for name, kind, width in (("grey", 0, 1), ("colour", 2, 3)):
    for i in range(4):
        rows = b"".join(b"\0" + bytes([40 * i] * 5 * width) for _ in range(4))
        open(f"photos/{name}/{i}.png", "wb").write(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 4, 8, kind, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
    run records make photos -o folder/photos
    expect_code 0
    check folder folder/photos-00000-of-00001 photos
    check write theirs
    run records verify theirs --json -
    expect_code 0
    expect_json out '[f["records"] for f in r["files"]] == [1000] * 3 and r["faults"] == 0'
    expect_json out '{f["compression"] for f in r["files"]} == {"none", "gzip", "zlib"}'
    run records inspect theirs --json -
    expect_json out 'r["features"][0]["max_count"] == 6 and r["features"][1]["kind"] == "int64"'
else
    echo 'no TensorFlow: its side is left out'
fi

if has tensorboard; then
    current=write_events
    "$WRITE_EVENTS" logs/run >out 2>err
    code=$?
    expect_code 0
    check events logs/run
    check server logs
else
    echo 'no TensorBoard: its side is left out'
fi
finish
