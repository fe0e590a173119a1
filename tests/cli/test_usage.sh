#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help, version, wrong usage.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"

commands=(devices verify check plan train eval profile bench tune import export inspect records help version)

run help
expect_code 0
expect_empty err
expect_in out 'usage: tpucl COMMAND' 'Exit codes' "${commands[@]}"
listed=$(sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' out)
[[ $(wc -w <<<"$listed") == "${#commands[@]}" ]] || fail "commands listed: $listed"

for option in --help -h; do
    run "$option"
    expect_code 0
    expect_in out 'usage: tpucl COMMAND'
done

for command in $listed; do
    run "$command" --help
    expect_code 0
    expect_empty err
    expect_in out "usage: tpucl $command" 'Options' '--json' '--help' 'Examples'
    cp out help-option
    run help "$command"
    cmp -s out help-option || fail 'help and --help differ'
    # every option that help shows is accepted with a value or without: never 'unknown option'
    while read -r option; do
        run "$command" "$option=" --help
        expect_not_in err 'unknown option'
    done < <(sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p' help-option)
    run help --man "$command"
    expect_in out '.SH NAME' '.SH OPTIONS' '.SH EXIT STATUS' '.SH EXAMPLES'
    groff -man -ww -z out 2>groff-warnings || fail 'groff refused the man page'
    expect_empty groff-warnings
done

run
expect_code 2
expect_empty out
expect_in err 'usage: tpucl COMMAND'

run devises
expect_code 2
expect_in err "unknown command 'devises'" "did you mean 'devices'?"

run devices --devise 0
expect_code 2
expect_empty out
expect_in err "unknown option '--devise'" "did you mean '--device'?"

run devices -x
expect_code 2
expect_in err "unknown option '-x'"

run devices --device
expect_code 2
expect_in err "'--device' needs a value: --device SELECTOR"

run devices --verbose=2
expect_code 2
expect_in err "'--verbose' takes no value, found '2'"

run devices here
expect_code 2
expect_in err "unexpected argument 'here'"

run help nonsense
expect_code 2
expect_in err "'nonsense'"

run help config
expect_code 0
expect_in out 'optimizer.learning_rate' 'epochs'

run help environment
expect_code 0
expect_in out 'TPUCL_CACHE_DIR'

run version
expect_code 0
expect_in out 'tpucl 0.' 'numeric contract 1'
run version --json -
expect_json out 'r["contract"] == 1 and r["version"][0] == "0"'
run version --json v.json
expect_json v.json 'sorted(r) == ["contract", "version"]'
run version --json nowhere/v.json
expect_code 2
expect_in err 'nowhere/v.json'
expect_absent 'nowhere*'

current='tpucl version >/dev/full'
"$TPUCL" version >/dev/full 2>err
code=$?
expect_code 1
expect_in err 'standard output could not be written'

run version --json /dev/full
expect_code 1
expect_in err '/dev/full' 'No space left on device'
[[ -c /dev/full ]] || fail '/dev/full was replaced'

current='TPUCL_LOG=loud'
TPUCL_LOG=loud "$TPUCL" version >out 2>err
code=$?
expect_code 2
expect_in err 'TPUCL_LOG' "'loud'"

run help --bash
bash -n out || fail 'bash completion does not parse'
# shellcheck disable=SC1091
. ./out
COMP_WORDS=(tpucl dev) COMP_CWORD=1
_tpucl
[[ ${COMPREPLY[*]} == devices ]] || fail "completion of 'dev': ${COMPREPLY[*]}"
COMP_WORDS=(tpucl devices --js) COMP_CWORD=2
_tpucl
[[ ${COMPREPLY[*]} == --json ]] || fail "completion of '--js': ${COMPREPLY[*]}"

run help --zsh
expect_in out '#compdef tpucl' "'--device=["

finish
