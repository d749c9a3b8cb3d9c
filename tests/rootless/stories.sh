# For steps that tell the stories of tests/scenarios: sourced after lib.sh. They run on Docker as well.
# shellcheck shell=bash

# What payload/suite gathered.
piece=$PAYLOAD/pieces/suite
# Nothing here may be skipped. Two stories at once would each take as long as both.
export FEDICENSUS_E2E=required RUST_TEST_THREADS=1
export FEDICENSUS_TEST_STANDIN=$piece/standin FEDICENSUS_TEST_VICTIM=$piece/victim FEDICENSUS_TEST_PATIENCE=5
mkdir -p "$RESULTS/tables"
ln -sfn "$RESULTS/tables" "$piece/target/tables"

# told SECONDS PROGRAM ARGUMENT…: each story of a program of tests as one finding
told() {
    local seconds=$1 program=$2 log=$WORK/stories
    shift 2
    timeout "$seconds" "$piece/target/debug/deps/$program" "$@" >"$log" 2>&1 || true
    sed -n 's/^test \(.*\) \.\.\. ok$/ok \1/p; s/^test \(.*\) \.\.\. FAILED$/FAILED \1/p' "$log"
    cat "$log" >>"$RESULTS/$STEP-stories.txt"
    # A name that nothing has is no success either.
    if ! grep -q '^test result: ok' "$log" || ! grep -q '^test .* \.\.\. ok$' "$log"; then
        failed "$program $*"
        tail -n 60 "$log"
    fi
}
