#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is only for terminals: colour, the progress line. Run in a pseudo-terminal.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"

# run_tty ARGUMENTS...: like run, but standard output and error are one terminal, kept in out
run_tty() {
    current="tpucl $* (terminal)"
    python3 - "$TPUCL" "$@" >shown <<'PY'
import os, pty, sys
chunks = []
def keep(fd):
    data = os.read(fd, 65536)
    chunks.append(data)
    return data
status = pty.spawn(sys.argv[1:], keep, lambda fd: b"")
open("out", "wb").write(b"".join(chunks))
open("code", "w").write(str(os.waitstatus_to_exitcode(status)))
PY
    code=$(cat code)
    : >err
}

export TERM=xterm
run_tty devices
expect_code 0
expect_in out $'\033[1m' 'selector'
NO_COLOR=1 run_tty devices
expect_not_in out $'\033'
TERM=dumb run_tty devices
expect_not_in out $'\033'
run_tty help
expect_in out $'\033[1m'

make_data 200 80
make_config run.json
run_tty train run.json
expect_code 0
expect_in out $'\r' '[====' '100%' 'examples/s' 'left' $'\r\033[K'
run_tty train missing.json
expect_code 2
expect_in out $'\033[31mtpucl train:' 'missing.json'

finish
