# The one list of the tools that the scripts and CI need in addition to an engine, and of their
# Debian packages. Sourced after deploy/engine.sh, for `fail`, `say` and `have`.
# shellcheck shell=bash

# One line each: group, command or file, package. `lab` is for lab/up and deploy/build, `bases` for
# base images without a registry, `test` for the tests and CI, `full` for `cargo xtask ci --full`,
# `machine` for its virtual machine with rootless Podman.
PACKAGES='
lab      curl                                              curl
bases    mmdebstrap                                        mmdebstrap
bases    /usr/share/keyrings/debian-archive-keyring.gpg    debian-archive-keyring
bases    /etc/ssl/certs/ca-certificates.crt                ca-certificates
test     cc                                                gcc
test     /usr/include/stdio.h                              libc6-dev
test     jq                                                jq
test     sqlite3                                           sqlite3
test     python3                                           python3
test     shellcheck                                        shellcheck
test     codespell                                         codespell
test     nft                                               nftables
test     ip                                                iproute2
test     minisign                                          minisign
test     node                                              nodejs
test     nginx                                             nginx-light
test     fail2ban-regex                                    fail2ban
full     g++                                               g++
full     pip3                                              python3-pip
full     promtool                                          prometheus
full     chromium                                          chromium
full     firefox-esr                                       firefox-esr
machine  qemu-system-x86_64                                qemu-system-x86
'

# is_there COMMAND-OR-FILE: daemons are outside an ordinary user's path
is_there() {
    if [[ $1 == /* ]]; then
        [[ -e $1 ]]
    else
        PATH=$PATH:/usr/sbin:/sbin have "$1"
    fi
}

# missing_packages GROUP…: sets MISSING to the missing packages of these groups
missing_packages() {
    local group thing package
    MISSING=()
    while read -r group thing package; do
        if [[ " $* " == *" $group "* ]] && ! is_there "$thing"; then
            MISSING+=("$package")
        fi
    done <<<"$PACKAGES"
    [[ " $* " == *" lab "* ]] || return 0
    have docker || have podman || MISSING+=(docker.io)
    # Any compose tool that fits the engine suffices.
    if ! have docker-compose && ! have podman-compose && ! docker compose version >/dev/null 2>&1; then
        if have podman && ! have docker; then MISSING+=(podman-compose); else MISSING+=(docker-compose); fi
    fi
}

# install_missing MAY-INSTALL: prints and installs MISSING from Debian's packages if the user has
# the rights and MAY-INSTALL is `yes`. Otherwise fails with one command that installs all. Never
# installs an engine: that is a service and the operator's choice.
install_missing() {
    local as_root=() units=() command unit
    ((${#MISSING[@]})) || return 0
    command="apt-get install --no-install-recommends ${MISSING[*]}"
    if ((EUID != 0)); then
        command="sudo $command"
        as_root=(sudo -n)
    fi
    have apt-get || fail "missing: ${MISSING[*]} (Debian's names); install what this system calls them"
    [[ $1 == yes && " ${MISSING[*]} " != *" docker.io "* ]] || fail "missing: ${MISSING[*]}; install them: $command"
    ((EUID == 0)) || sudo -n true 2>/dev/null || fail "missing: ${MISSING[*]}; install them: $command"
    say "installing from Debian's packages: ${MISSING[*]}"
    # Only the programs are needed: their services must not start, now or at boot.
    for unit in prometheus nginx fail2ban; do
        if [[ " ${MISSING[*]} " == *" $unit"* && -d /run/systemd/system ]]; then
            units+=("$unit.service")
        fi
    done
    ((${#units[@]} == 0)) || "${as_root[@]}" systemctl --quiet mask --runtime "${units[@]}"
    "${as_root[@]}" apt-get -q update >&2
    "${as_root[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "${MISSING[@]}" >&2
    if ((${#units[@]})); then
        "${as_root[@]}" systemctl --quiet unmask --runtime "${units[@]}"
        "${as_root[@]}" systemctl --quiet disable "${units[@]}" 2>/dev/null
    fi
}

# ready_for_images MAY-INSTALL BUILD DEPLOY-FOLDER: installs or requests everything needed to run
# the images, and with BUILD `yes` to build them
ready_for_images() {
    local groups=(lab)
    # Without an engine, it is unknown whether a registry answers.
    if [[ $2 == yes ]] && { ! { have docker || have podman; } || { find_engine && ! has_base_images "$3"; }; }; then
        groups+=(bases)
    fi
    missing_packages "${groups[@]}"
    install_missing "$1"
}

# debian_mirror: prints where this machine gets Debian's packages, or Debian's own mirrors
debian_mirror() {
    local codename own=
    if [[ -r /etc/os-release ]] && have apt-get; then
        codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
        # shellcheck disable=SC2016 # apt's own placeholders
        own=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
            awk -v suite="$codename" '$2 == suite && $3 == "Debian" && !seen { print $1; seen = 1 }')
    fi
    echo "${own:-http://deb.debian.org/debian}"
}
