#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/show-masks: masks in losses and metrics, one core and eight against double precision.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
current=scripts/show-masks
"$TPUCL_SOURCE/scripts/show-masks" >out 2>err
code=$?
expect_code 0
expect_in out 'epoch 5  test iou of shapes' 'the same within the bounds'
cat out
finish
