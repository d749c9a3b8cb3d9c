# For steps in which the launcher refuses to work: `. "$PAYLOAD/pieces/STEP/launcher.sh"` after
# lib.sh.
# shellcheck shell=bash

profile=$WORK/seccomp.json
"$PAYLOAD/pieces/$STEP/fedicensus" seccomp-profile >"$profile"
mkdir -p "$WORK/run/launcher" "$WORK/run/egress"

# launcher [VARIABLE=VALUE…]: starts one, and prints the line that states whether checks can
# start
launcher() {
    local log=$WORK/log begin=$SECONDS pid
    env "FEDICENSUS_ENGINE_SOCKET=$ENGINE_SOCKET" "FEDICENSUS_RUN_DIR=$WORK/run" \
        "FEDICENSUS_SECCOMP_PATH=$profile" FEDICENSUS_INSTANCE=refusals "$@" "$PAYLOAD/pieces/$STEP/fedicensus" launcher >"$log" 2>&1 &
    pid=$!
    # An engine that has just been restarted may answer late once.
    until grep -E 'no check can start|the engine enforces the required limits' "$log" | grep -qv EngineDown || ((SECONDS - begin > 60)); do
        sleep 1
    done
    kill "$pid"
    wait "$pid" || true
    grep -hE 'no check can start|the engine enforces the required limits' "$log" | tail -n 1 || cat "$log"
}

# works TEXT [VARIABLE=VALUE…]: checks can start
works() {
    local text=$1 said
    shift
    said=$(launcher "$@")
    if [[ $said == *"the engine enforces the required limits"* ]]; then
        ok "$text"
    else
        failed "$text: $said"
    fi
}

# refuses TEXT WORDS [VARIABLE=VALUE…]: no check can start, and the message contains these
# words
refuses() {
    local text=$1 words=$2 said
    shift 2
    said=$(launcher "$@")
    if [[ $said == *"no check can start"* && $said == *"$words"* ]]; then
        ok "$text"
        say "$said"
    else
        failed "$text: $said"
    fi
}
