# For steps that run the stories of tests/scenarios: sourced after lib.sh. They run on Docker as
# well.
# shellcheck shell=bash

# The files from payload/suite.
piece=$PAYLOAD/pieces/suite
# No story may be skipped. Two stories at once would each take as long as both.
export FEDICENSUS_E2E=required RUST_TEST_THREADS=1
export FEDICENSUS_TEST_STANDIN=$piece/standin FEDICENSUS_TEST_VICTIM=$piece/victim FEDICENSUS_TEST_PATIENCE=5
mkdir -p "$RESULTS/tables"
ln -sfn "$RESULTS/tables" "$piece/target/tables"

# told SECONDS PROGRAM ARGUMENT…: runs stories of a test program, with one finding each
told() {
    local seconds=$1 program=$2 log=$WORK/stories
    shift 2
    timeout "$seconds" "$piece/target/debug/deps/$program" "$@" >"$log" 2>&1 || true
    sed -n 's/^test \(.*\) \.\.\. ok$/ok \1/p; s/^test \(.*\) \.\.\. FAILED$/FAILED \1/p' "$log"
    cat "$log" >>"$RESULTS/$STEP-stories.txt"
    # A name that matches no test is a failure too.
    if ! grep -q '^test result: ok' "$log" || ! grep -q '^test .* \.\.\. ok$' "$log"; then
        failed "$program $*"
        tail -n 60 "$log"
    fi
}

export FEDICENSUS_LAB_ENGINE=$ENGINE_SOCKET FEDICENSUS_TEST_ENGINE=$ENGINE_SOCKET
stays=$HOME/.config/systemd/user/podman.service.d/stories-stays.conf

# Podman exits when idle. On an emulated machine, its start may take longer than a launcher waits.
stay() {
    mkdir -p "${stays%/*}"
    printf '[Service]\nExecStart=\nExecStart=/usr/bin/podman system service --time=0\n' >"$stays"
    restarted
}

may_go() {
    rm "$stays"
    restarted
}

restarted() {
    systemctl --user daemon-reload
    systemctl --user stop podman.service
}
