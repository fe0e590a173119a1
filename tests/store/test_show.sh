#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/show-store on a small training. It starts the server itself.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
mkdir data && cd data && make_data 192 64 && cd ..
make_config run.json 'config["epochs"] = 5'
"$TPUCL_SOURCE/scripts/show-store" --data data run.json -- --steps 30
