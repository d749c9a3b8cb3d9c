# For steps that test a census under systemd: sourced after lib.sh.
# shellcheck shell=bash

PARTS=(gateway launcher orchestrator web)
# The lab's program, and files that the steps pass on across a boot.
LAB_PROGRAM=$PAYLOAD/pieces/quadlet/fedicensus-lab
KEPT=$HOME/kept
VOLUMES=$HOME/.local/share/containers/storage/volumes

# census COMMAND…: runs a command as an operator does
census() {
    podman exec --interactive fedicensus-orchestrator /fedicensus "$@"
}

# status FILTER: a value of its status
status() {
    # 3: a part does not answer.
    { census status --json </dev/null || (($? == 3)); } | jq -e -r "$1"
}

# part_is_healthy PART: it runs, and its own health check passes
part_is_healthy() {
    [[ $(systemctl --user is-active "fedicensus-$1.service") == active ]] && podman healthcheck run "fedicensus-$1"
}

# all_healthy SECONDS: a finding for each part; if one is unhealthy, shows its log and ends the step
all_healthy() {
    local part
    for part in "${PARTS[@]}"; do
        within "$1" "$part is healthy" part_is_healthy "$part"
        if ! part_is_healthy "$part" >/dev/null 2>&1; then
            journalctl --user --no-pager --boot --output cat --unit "fedicensus-$part" | grep -v ' container \| image ' | tail -n 20
            return 1
        fi
    done
}

# ended: checks that ended in a container with a verdict since the daemon started
ended() {
    status '[.daemon.ended | to_entries[] | select(.key != "fault") | .value] | add // 0'
}

# more_ended THAN
more_ended() {
    (($(ended) > $1))
}

# checks_go_on SECONDS TEXT: a live host is checked again
checks_go_on() {
    local alive
    alive=$(status '.daemon.ended.alive // 0')
    within "$1" "$2" more_alive "$alive"
}

# checks_work SECONDS TEXT: a check requested by name goes the whole way, without waiting for a
# host's turn
checks_work() {
    within "$1" "$2" one_found_alive
}

one_found_alive() {
    census check "$(living_one)" </dev/null | grep 'verdict: alive' >/dev/null
}

more_alive() {
    (($(status '.daemon.ended.alive // 0') > $1))
}

# A persona with a file that states who may opt it out.
OWNER=says-so-itself.lab.test

# choose: writes the table of the chosen personas to $KEPT/table.json, and the names to import to
# $KEPT/names
#
# Leaves out the persona whose peers list names all others: a sample imports its names itself.
# Always includes one of each kind of expectation, and $OWNER. The seed selects the others randomly,
# together with those that only another persona names.
choose() {
    local number seed
    mkdir -p "$KEPT"
    IFS=: read -r number seed <"$PAYLOAD/pieces/quadlet/sample"
    "$LAB_PROGRAM" expect --json >"$WORK/table.json"
    jq -r '.personas[] | select(.via == "seed") | [(.expectation.verdict | if type == "string" then . else (keys[0] + " " + (.dead.reasons[0]? // "")) end), .host] | @tsv' \
        "$WORK/table.json" >"$WORK/kinds"
    if [[ $number == all ]]; then
        cp "$WORK/table.json" "$KEPT/table.json"
        cut -f2 "$WORK/kinds" >"$KEPT/names"
        echo seed.lab.test >>"$KEPT/names"
        return
    fi
    # The flood would bring two hundred names that don't exist.
    awk -F'\t' -v seed="$seed" 'BEGIN { srand(seed) } $2 != "flood.lab.test" { print rand() "\t" $0 }' "$WORK/kinds" | sort -n | cut -f2- >"$WORK/drawn"
    awk -F'\t' -v number="$number" 'NR == FNR { if (!seen[$1]++) { first[$2]; print $2 } next }
        !($2 in first) && more++ < number - length(first) { print $2 }' "$WORK/drawn" "$WORK/drawn" >"$KEPT/names"
    grep -qxF "$OWNER" "$KEPT/names" || echo "$OWNER" >>"$KEPT/names"
    jq --rawfile names "$KEPT/names" '($names | split("\n")) as $shown | .added += [.personas[].host] |
        .personas |= map(select((.host as $host | $shown | index($host)) or .via == "nobody" or ((.via | type) == "object" and (.via.host as $via | $shown | index($via)))))' \
        "$WORK/table.json" >"$KEPT/table.json"
}

# days_in_one: the number of the census's days in one of the machine's
#
# Live hosts are checked again on each of these days while the others wait. So a day must be longer
# than one check of all of them, and short enough that a step does not wait long for a host's turn.
# Five minutes for a sample, an hour for all.
days_in_one() {
    if grep -qx all "$PAYLOAD/pieces/quadlet/sample"; then echo 30; else echo 350; fi
}

# living_one: a persona of the sample that is always alive, and shows no file
living_one() {
    jq -r '.personas[] | select(.expectation.verdict == "alive" and .expectation.listed and (.expectation.changes | not)) | .host' "$KEPT/table.json" |
        grep -xFf "$KEPT/names" | awk -v owner="$OWNER" '$1 != "seed.lab.test" && $1 != owner && !said++'
}

# compare: compares the census's results with the lab's expectations of the chosen personas; writes
# the report to $WORK/report
compare() {
    jq -r '.personas[].host' "$KEPT/table.json" >"$WORK/hosts"
    census explain --json - <"$WORK/hosts" >"$WORK/found.json" || return 2
    census dump </dev/null >/dev/null || return 2
    curl -fsS --max-time 60 -o "$WORK/nodes.json" http://127.0.0.1:8080/nodes.json || return 2
    "$LAB_PROGRAM" report --expect "$KEPT/table.json" --found "$WORK/found.json" --nodes "$WORK/nodes.json" \
        --requests "$VOLUMES/fedicensus_lab/_data/requests.ndjson" >"$WORK/report"
}

# all_as_expected SECONDS TEXT: a finding, and the report as $RESULTS/STEP-personas.txt
#
# A comparison takes half a minute on an emulated processor. During the first checks of hosts, the
# checks need that time more. Some hosts are never checked: their name servers fail, or no list
# names them.
all_as_expected() {
    local begin=$SECONDS good=no left='' before
    while ((SECONDS - begin < $1)); do
        before=$left
        left=$(status .hosts.discovered || true)
        if [[ $left != "$before" && $left != 0 ]]; then
            sleep 20
            continue
        fi
        if compare 2>"$WORK/error"; then
            good=yes
            break
        fi
        say "$SECONDS s: $(status '"\(.hosts_total) known, \(.hosts.discovered) not yet checked, ended: \(.daemon.ended)"' || true); $(tail -n 1 "$WORK/report" 2>/dev/null)"
        sleep 15
    done
    cp "$WORK/report" "$RESULTS/$STEP-personas.txt" 2>/dev/null || true
    if [[ $good == yes ]]; then
        ok "$2: $(tail -n 1 "$WORK/report") (after $((SECONDS - begin)) s)"
    else
        failed "$2, not within $1 s: $(tail -n 1 "$WORK/report" 2>/dev/null) $(tail -n 2 "$WORK/error")"
        grep '^differs' "$WORK/report" | head -n 20 || true
    fi
}

# remember: saves the state for the comparison after a later boot
remember() {
    cat /proc/sys/kernel/random/boot_id >"$KEPT/boot"
    status .hosts_total >"$KEPT/hosts_total"
    curl -fsS --max-time 60 -o "$KEPT/nodes.json" http://127.0.0.1:8080/nodes.json
}

# ours WHAT…: names of containers, networks or volumes with our label
ours() {
    podman "$@" --filter label=org.fedicensus
}
