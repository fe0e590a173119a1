#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is decoded of JPEG files is to the last bit what libjpeg-turbo's own tool decodes: the corpus of the fuzz target
# and Debian's corner cases. Needs djpeg (libjpeg-turbo-progs); without libjxl-testdata the corpus alone.
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
