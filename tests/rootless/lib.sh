# Every step below steps/ begins with this: `. "$PAYLOAD/lib.sh"`. Runs in the virtual machine as
# the user `ci`.
#
# PAYLOAD is the folder with this file, the steps and each step's pieces ($PAYLOAD/pieces/NAME).
# Files in RESULTS are copied out of the machine. A line that begins with `ok ` or `FAILED ` counts
# as one finding. A step ends with `finish`; one that stops earlier has failed. The machine is
# emulated and some fifteen times slower than a real one: waits are long, and no rate is ever
# asserted.
# shellcheck shell=bash
set -euo pipefail

STEP=$(basename "$0")
export ENGINE_SOCKET=$XDG_RUNTIME_DIR/podman/podman.sock
# The step's directory for temporary files.
WORK=$(mktemp -d "${TMPDIR:-/tmp}/$STEP.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
trap 'echo "FAILED $STEP: line $LINENO, \`$BASH_COMMAND\`"' ERR

ok() {
    printf 'ok %s\n' "$*"
}

failed() {
    printf 'FAILED %s\n' "$*"
}

say() {
    printf '   %s\n' "$*"
}

# expect TEXT COMMAND…: one finding: the command exits with 0. Otherwise shows its output.
expect() {
    local text=$1
    shift
    if "$@" >"$WORK/expect" 2>&1; then
        ok "$text"
    else
        failed "$text: \`$*\`"
        tail -n 20 "$WORK/expect"
    fi
}

# within SECONDS TEXT COMMAND…: one finding: the command exits with 0 within this time
within() {
    local seconds=$1 text=$2 begin=$SECONDS
    shift 2
    until "$@" >"$WORK/within" 2>&1; do
        if ((SECONDS - begin >= seconds)); then
            failed "$text: not within $seconds s: \`$*\`"
            tail -n 20 "$WORK/within"
            return 0
        fi
        sleep 1
    done
    ok "$text (after $((SECONDS - begin)) s)"
}

# none TEXT COMMAND…: one finding: the command prints nothing
none() {
    local text=$1 found
    shift
    found=$("$@" 2>&1) || true
    if [[ -z $found ]]; then
        ok "$text"
    else
        failed "$text: $found"
    fi
}

finish() {
    printf 'end of %s\n' "$STEP"
}
