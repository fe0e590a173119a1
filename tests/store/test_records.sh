#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl records from and to a bucket; runs beside tests/servers/with_rgw.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
make_data 60 20
bucket=s3://tpucl-test/records
run records make train-images --labels train-labels -o local/train --shards 3
expect_code 0

# To a bucket, and back: the same bytes.
run records convert local -o "$bucket/deep/er/train" --shards 3
expect_code 0
run records convert "$bucket/deep/er" -o back/train --shards 3
expect_code 0
for i in 0 1 2; do
    checks=$((checks + 1))
    cmp "local/train-0000$i-of-00003" "back/train-0000$i-of-00003" || fail "file $i comes back with other bytes"
done

# The same work again finds all files there; other work under the same names is refused.
run records convert local -o "$bucket/deep/er/train" --shards 3
expect_code 0
expect_in out '3 files were there already'
run records convert local -o "$bucket/deep/er/train" --shards 2
expect_code 2
expect_in err 'is there already' --force
run records convert local -o "$bucket/deep/er/train" --shards 2 --compression gzip --force
expect_code 0
run records count "$bucket/deep/er" --json out.json
expect_code 0
expect_json out.json 'r["records"] == 60 and len(r["files"]) == 2'

# A file, a pattern that stops at '/', a folder; none of them.
run records verify "$bucket/deep/er/train-00001-of-00002" --json out.json
expect_code 0
expect_json out.json 'r["records"] == 30'
run records verify "$bucket/deep/er/train-0000?-of-*" --json out.json
expect_code 0
expect_json out.json 'r["records"] == 60'
run records inspect "$bucket/deep/er/"
expect_code 0
expect_in out image label
run records verify "$bucket/*/train-*"
expect_code 2
expect_in err 'no object matches' "$bucket/*/train-*"
run records verify "$bucket/none"
expect_code 2
expect_in err "$bucket/none" 'has no files of records'
run records verify "$bucket/none/train-00000-of-00001" ftp://a/b
expect_code 2

# Made of arrays that lie in the bucket themselves.
for name in train-images train-labels; do
    curl -sf --aws-sigv4 "aws:amz:$AWS_REGION:s3" -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
        -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -T $name "$AWS_ENDPOINT_URL/tpucl-test/arrays/$name" || fail "put $name"
done
run records make s3://tpucl-test/arrays/train-images --labels s3://tpucl-test/arrays/train-labels \
    -o "$bucket/made/train" --shards 3
expect_code 0
run records convert "$bucket/made" -o made/train --shards 3
expect_code 0
checks=$((checks + 1))
cmp local/train-00002-of-00003 made/train-00002-of-00003 || fail 'arrays of a bucket make other records'
run records make s3://tpucl-test/arrays/none --labels s3://tpucl-test/arrays/train-labels -o made/no
expect_code 2
expect_in err 's3://tpucl-test/arrays/none' 'does not exist'
finish
