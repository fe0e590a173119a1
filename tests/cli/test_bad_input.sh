#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Wrong configurations, broken data, missing devices, places that cannot be written: each a clear sentence
# and its exit code, and nothing half-written.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 64 32

# refused CODE "CHANGE OF THE CONFIGURATION" TEXT...: one problem at a time
refused() {
    local wanted=$1 change=$2
    shift 2
    make_config bad.json "$change"
    run train bad.json --json bad-result.json --output-dir bad-out
    current="$current with $change"
    expect_code "$wanted"
    expect_empty out
    expect_in err "$@"
    expect_absent 'bad-result.json*' 'bad-out*'
}

refused 2 'config["epohcs"] = 3' "'epohcs'" "'epochs'" 'bad.json'
refused 2 'config["optimizer"]["learning_rates"] = 3' 'optimizer.learning_rate' 'did you mean'
refused 2 'config["epochs"] = "three"' 'epochs' "'three'" 'bad.json:'
refused 2 'config["epochs"] = 0' 'epochs' '0'
refused 2 'config["epochs"] = 1.5' 'epochs'
refused 2 'config["optimizer"]["learning_rate"] = -1' 'learning_rate' '-1'
refused 2 'config["optimizer"]["name"] = "Adma"' "'Adma'" 'Adam'
refused 2 'config["model"]["layers"][1]["unit"] = 3' "'unit'" "'units'"
refused 2 'config["model"]["layers"][1]["units"] = 0' 'units'
refused 2 'config["model"]["layers"][1]["type"] = "Dence"' "'Dence'" "'Dense'"
refused 2 'del config["loss"]' 'loss'
refused 2 'config["topology"] = "v2-9"' "'v2-9'" 'v2-8'
refused 2 'config["topology"] = "no/such.json"' 'no/such.json'
refused 2 'del config["per_core_batch"]; config["global_batch"] = 30' '30' '8' '32'
refused 2 'config["global_batch"] = 40' '40' '32'
refused 2 'config["wave_cores"] = -1' 'wave_cores'
refused 2 'config["data"]["train"]["inputs"] = "missing.idx"' 'missing.idx'

# several problems at once
make_config bad.json 'config["epohcs"] = 3; config["seed"] = "x"; config["optimizer"]["beta_1"] = 7'
run train bad.json
expect_code 2
expect_in err "'epohcs'" 'seed' 'beta_1' '3 problems'

# JSON that is none
printf '{"name": "a",\n "epochs": 3,\n "epochs": 4}' >twice.json
run train twice.json
expect_code 2
expect_in err 'twice.json:3:' "'epochs'"
printf '{"name": "a",\n "epochs": }' >broken.json
run train broken.json
expect_code 2
expect_in err 'broken.json:2:'
run train missing.json
expect_code 2
expect_in err "'missing.json'"
mkdir folder
run train folder
[[ $code == 1 || $code == 2 ]] || fail 'a folder as configuration'
expect_in err 'folder'
make_config run.json
run train run.json --set epochs
expect_code 2
expect_in err 'epochs'
run train run.json --set epohcs=3
expect_code 2
expect_in err "'epohcs'" "'epochs'"
run train run.json --set epochs=many
expect_code 2
expect_in err 'epochs' "'many'"

# bytes that are no text: nothing is written under a name that nobody gave
mkdir names
for option in --output-dir=names/$'a\xff' '--set output_dir=names/'$'\xc3'; do
    # shellcheck disable=SC2086
    run train run.json --steps 1 $option
    expect_code 2
    expect_in err 'UTF-8' 'output_dir' 'found byte 0x'
    expect_absent 'names/*' '"*'
done

# broken data files
head -c 1000 train-images >cut-images
refused 1 'config["data"]["train"]["inputs"] = "cut-images"' 'cut-images'
{ printf '\0\0\x0d\x03'; tail -c +5 train-images; } >magic-images
refused 1 'config["data"]["train"]["inputs"] = "magic-images"' 'magic-images'
head -c 40 train-labels >short-labels
refused 1 'config["data"]["train"]["labels"] = "short-labels"' 'short-labels'
gzip -c train-images | head -c 2000 >cut-images.gz
refused 1 'config["data"]["train"]["inputs"] = "cut-images.gz"' 'cut-images.gz'

# without the checksum behind them, compressed bytes may be anything
gzip -c train-images | head -c -8 >unchecked-images.gz
refused 1 'config["data"]["train"]["inputs"] = "unchecked-images.gz"' 'unchecked-images.gz' 'cut'
gzip -c train-labels | head -c -3 >unchecked-labels.gz
refused 1 'config["data"]["train"]["labels"] = "unchecked-labels.gz"' 'unchecked-labels.gz' 'cut'
printf '\0\0\010\003\377\377\377\377\377\377\377\377\377\377\377\377' >vast-images
refused 1 'config["data"]["train"]["inputs"] = "vast-images"' 'vast-images' '4294967295'

# labels that are no class of the model: the last one, the first one, those of the test part
{ head -c 71 train-labels && printf '\012'; } >eleventh-labels
refused 2 'config["data"]["train"]["labels"] = "eleventh-labels"' 'example 63 of the training part has the label 10' 'classes 0 to 9'
refused 2 'config["data"]["train"]["labels"] = "eleventh-labels"; config["data"]["validation_split"] = 0.5' \
    'example 63 of the training part has the label 10'
{ head -c 8 test-labels && printf '\377' && tail -c +10 test-labels; } >wild-labels
refused 2 'config["data"]["test"]["labels"] = "wild-labels"' 'example 0 of the test part has the label 255'

# npy FILE "HEADER" BYTES: as many zeros as elements
npy() {
    python3 - "$@" <<'PY'
import sys
header = sys.argv[2].encode().decode("unicode_escape").encode("latin1")
open(sys.argv[1], "wb").write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(int(sys.argv[3])))
PY
}
# refused_npy CODE INPUTS LABELS TEXT...
refused_npy() {
    local wanted=$1 inputs=$2 labels=$3
    shift 3
    refused "$wanted" "config['data'] = {'dataset': 'npy', 'train': {'inputs': '$inputs', 'labels': '$labels'}}" "$@"
}
npy x.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)}" 48
npy y.npy "{'descr': '<i4', 'fortran_order': False, 'shape': (4,)}" 16
npy twice.npy "{'descr': '|u1', 'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)}" 48
refused_npy 1 twice.npy y.npy 'twice.npy' 'once'
npy zero.npy "{'descr': '<f4\\0', 'fortran_order': False, 'shape': (4, 3)}" 48
refused_npy 1 zero.npy y.npy 'zero.npy' 'offset'
npy vast.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}" 48
refused_npy 1 vast.npy y.npy 'vast.npy' 'elements'
npy minus.npy "{'descr': '|i1', 'fortran_order': False, 'shape': (4,)}" 3
printf '\377' >>minus.npy
refused_npy 2 x.npy minus.npy 'example 3 of the training part has the label -1'
truncate -s 64G sparse.npy && refused_npy 1 sparse.npy y.npy 'sparse.npy' "no .npy file"
refused_npy 1 /dev/zero y.npy '/dev/zero' "no .npy file"
run eval run.json --params sparse.npy
expect_code 1
expect_in err 'sparse.npy' '68719476736'
rm sparse.npy

# topologies that cannot be
cat >huge.json <<'J'
{"name": "huge", "hosts": 1, "chips": 5000, "cores_per_chip": 2}
J
run train run.json --topology ./huge.json
expect_code 2
expect_in err 'huge.json'

# labels that are no classes of the model
make_config classes.json 'config["model"]["layers"][-1]["units"] = 9'
run train classes.json --json r.json
expect_code 2
expect_in err 'has the label 9' 'classes 0 to 8'
expect_absent r.json

# devices
run train run.json --device nosuch --json r.json
expect_code 3
expect_in err "'nosuch'"
run train run.json --split 200
[[ $code == 1 || $code == 2 ]] || fail 'more sub-devices than cores'
expect_in err '200'
OCL_ICD_VENDORS=/nonexistent run train run.json --json r.json --output-dir o
expect_code 3
expect_in err 'OpenCL'
expect_absent r.json o

# places that cannot be written
run train run.json --json nowhere/r.json
expect_code 2
expect_in err 'nowhere/r.json'
echo x >plain
run train run.json --output-dir plain
[[ $code == 1 || $code == 2 ]] || fail 'an output folder that is a file'
expect_in err 'plain'
run train run.json --output-dir /proc/nowhere
[[ $code == 1 || $code == 2 ]] || fail 'an output folder that cannot be made'
expect_in err '/proc/nowhere'
run train run.json --json ''
expect_code 2
expect_empty out
for name in params.safetensors config.json result.json; do
    mkdir -p "occupied/$name"
    run train run.json --output-dir occupied
    expect_code 1
    expect_empty out
    expect_in err "occupied/$name"
    rmdir "occupied/$name"
done

# a result does not replace what it was made from
ln -s run.json link.json
cp run.json before.json
for file in run.json ./run.json link.json; do
    run train run.json --json "$file"
    expect_code 2
    expect_in err "$file" 'CONFIG'
done
cmp run.json before.json || fail 'the configuration was replaced'
run train run.json --steps 1 --output-dir good
cp good/params.safetensors params
run eval run.json --params params --json params
expect_code 2
cmp params good/params.safetensors || fail 'the parameters were replaced'
python3 - <<'PY'
import json, struct
data = open("params", "rb").read()
header = data[8:8 + struct.unpack("<Q", data[:8])[0]]
open("other", "wb").write(data.replace(header, header.replace(b'"dense/bias"', b'"dense/bits"')))
PY
run eval run.json --params other
expect_code 2
expect_in err 'other' "'dense/bias'" "'dense/bits'"
make_config narrow.json 'config["model"]["layers"][2]["use_bias"] = False'
run eval narrow.json --params params
expect_code 2
expect_in err "'params'" "'dense_1/bias' is no variable of the model"

# a limit on the size of files is a full disk
current='tpucl version with a limit on files'
message=$(ulimit -f 0 && "$TPUCL" version --json limited.json 2>&1)
code=$?
expect_code 1
[[ $message == *"'limited.json'"*'File too large'* ]] || fail "it said '$message'"
expect_absent 'limited.json*'

run train run.json --json /dev/full --steps 1
expect_code 1
expect_in err '/dev/full' 'No space left on device'

# a place for kernels that cannot be written is said once, and nothing else changes
make_config run.json
TPUCL_CACHE_DIR=$work/plain/cache run train run.json --steps 1
expect_code 0
[[ $(grep -c 'compiled kernels are not kept' err) == 1 ]] || fail 'said once for each kernel'
expect_in err 'TPUCL_CACHE_DIR'

# standard streams that are closed: their numbers are not given to files, or what is printed would end in there
for closed in '>&-' '2>&-' '<&-'; do
    current="tpucl train $closed"
    rm -f fifo
    mkfifo fifo
    (eval "exec \"\$TPUCL\" train fifo --steps 1 >/dev/null 2>&1 $closed") &
    pid=$!
    exec 9>fifo
    checks=$((checks + 1))
    for stream in 0 1 2; do
        [[ $(readlink /proc/$pid/fd/$stream) != */fifo ]] || fail "stream $stream is the configuration"
    done
    cat run.json >&9
    exec 9>&-
    wait $pid
done

# a disk that fills up while parameters are written: a file size limit is the portable small disk (the
# driver's own files are smaller than that, the parameters larger)
make_config large.json 'config["model"]["layers"][1]["units"] = 1024'
run train large.json --steps 1 --output-dir full
expect_code 0
before=$(digest full/result.json)
(
    trap '' XFSZ
    ulimit -f 2048
    "$TPUCL" train large.json --steps 2 --output-dir full --overwrite >out 2>err
)
code=$?
current='tpucl train with a full disk'
expect_code 1
expect_in err 'full/checkpoints/step-000000000002/params.safetensors'
expect_absent 'full/*.part'
[[ $(digest full/result.json) == "$before" ]] || fail 'the old result is gone'
run eval large.json --params full/params.safetensors --json -
expect_code 0
[[ $(digest out) == "$before" ]] || fail 'the old parameters are gone'

finish
