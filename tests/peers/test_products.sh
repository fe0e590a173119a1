#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/peers/products between tpucl's own sides, without other libraries: that results are compared, that a wrong one
# is found, what is written. No figure is judged here. Needs numpy, in TPUCL_PEERS_PYTHON or python3.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
python=${TPUCL_PEERS_PYTHON:-python3}
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
"$python" -c 'import numpy' 2>import-error || {
    echo "no numpy: $(tail -1 import-error)"
    exit 77
}
cat >few.txt <<'END'
dot 5 7 9 layout=TN times=3
conv 2 6 6 3 4 3x3 stride=2   # uneven padding
conv 2 6 6 3 4 3x3 op=input_grad
conv 2 6 6 3 4 3x3 op=filter_grad
END

current='bench/peers/products'
products() {
    "$python" "$TPUCL_SOURCE/bench/peers/products" few.txt --sides tpucl-bf16 tpucl-f32 --rounds 2 "$@" >out 2>err
    code=$?
}
products --bench-products "$BENCH_PRODUCTS" --json products.json
expect_code 0
expect_in out 'dot 5 7 9 layout=TN' 'few, input_grad: tpucl-bf16 / tpucl-f32, geometric mean'
expect_json products.json 'len(r["files"][0]["problems"]) == 4 and r["files"][0]["problems"][0]["times"] == 3'
expect_json products.json 'all(p["sides"]["tpucl-bf16"]["gflops"] > 0 and not p["wrong"] for p in r["files"][0]["problems"])'

current='bench/peers/products, one element wrong'
products --bench-products "$TPUCL_SOURCE/tests/peers/corrupt_products.py" --only '^dot'
expect_code 1
expect_in out 'WRONG: tpucl-bf16 differs from tpucl-f32'

current='bench/peers/products, a broken line'
echo 'dot 5 7' >few.txt
products --bench-products "$BENCH_PRODUCTS"
expect_code 1
expect_in err 'few.txt:1: K is missing'

finish
