# Finds the container engine and the compose tool, for the scripts that source this file.
#
# Sets ENGINE, the program (docker or podman), ENGINE_IS, the engine behind it (docker's program may
# use Podman), and the array COMPOSE. The environment may set ENGINE=podman
# COMPOSE_TOOL="podman-compose" ENGINE_SOCKET=/path, and DOCKER_HOST as for docker's own programs.
# Docker is preferred if both respond. Prints the choice. Otherwise calls `fail` with what is
# missing and what to do.
# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used by those who source it

# A hanging daemon must not block the scripts.
ANSWER_SECONDS=30

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

say() {
    printf '%s\n' "$*" >&2
}

have() {
    command -v "$1" >/dev/null
}

# need COMMAND DEBIAN-PACKAGE
need() {
    have "$1" || fail "$1 is missing: install it (Debian: apt-get install $2)"
}

# is_podman PROGRAM: whether it is Podman, under any name
is_podman() {
    [[ $("$1" --version 2>/dev/null) == podman* ]]
}

# ask_engine PROGRAM: sets ENGINE_VERSION and ENGINE_IS if an engine answers, otherwise
# ENGINE_SILENT to the reason
ask_engine() {
    local answer
    if is_podman "$1"; then
        # Podman has no daemon: its answer shows that this user may use it.
        answer=$(timeout "$ANSWER_SECONDS" "$1" info --format '{{.Version.Version}}' 2>&1) && ENGINE_IS=podman
    else
        answer=$(timeout "$ANSWER_SECONDS" "$1" version --format '{{.Server.Version}} {{range .Server.Components}}{{.Name}},{{end}}' 2>&1) && ENGINE_IS=docker
    fi || {
        answer=${answer##*$'\n'}
        ENGINE_SILENT=${answer:-no answer within $ANSWER_SECONDS s}
        return 1
    }
    answer=${answer##*$'\n'}
    if [[ $answer == *Podman* ]]; then
        ENGINE_IS=podman
    fi
    ENGINE_VERSION=${answer%% *}
}

find_engine() {
    local program reasons=
    if [[ -n ${ENGINE:-} ]]; then
        [[ $ENGINE == docker || $ENGINE == podman ]] || fail "ENGINE is '$ENGINE'; it takes docker or podman"
        have "$ENGINE" || fail "ENGINE is $ENGINE, and there is no such program: install it, or unset ENGINE"
        ask_engine "$ENGINE" || fail "$ENGINE does not answer ($ENGINE_SILENT): is it running, and may this user use it?"
        return
    fi
    for program in docker podman; do
        have "$program" || continue
        # Debian's podman-docker also installs Podman under Docker's name.
        [[ $program == podman ]] || ! have podman || ! is_podman docker || continue
        if ask_engine "$program"; then
            [[ -z $reasons ]] || say "not used:$reasons"
            ENGINE=$program
            return
        fi
        reasons+=" $program does not answer ($ENGINE_SILENT);"
        if [[ $program == docker && -n ${DOCKER_HOST:-} ]]; then
            # If DOCKER_HOST is set, no other address is tried.
            fail "docker does not answer at DOCKER_HOST=$DOCKER_HOST ($ENGINE_SILENT): start what should answer there, or unset it"
        fi
    done
    [[ -z $reasons ]] || fail "no container engine answers:$reasons is it running (systemctl start docker), and may this user use it (group docker)?"
    fail "no container engine: install Docker (Debian: apt-get install docker.io) or Podman (apt-get install podman)"
}

# podman_socket: sets PODMAN_SOCKET to the API of this user's Podman, or fails with the command that
# starts it. DOCKER_HOST, which Docker's programs use, must name the same engine.
podman_socket() {
    local user=--user
    PODMAN_SOCKET=$(podman info --format '{{.Host.RemoteSocket.Path}}')
    PODMAN_SOCKET=${PODMAN_SOCKET#unix://}
    if ((EUID == 0)); then
        user=
    fi
    [[ -S $PODMAN_SOCKET ]] ||
        fail "Podman's API is not served at $PODMAN_SOCKET: systemctl ${user:+$user }enable --now podman.socket"
    [[ ${DOCKER_HOST:-unix://$PODMAN_SOCKET} == "unix://$PODMAN_SOCKET" ]] ||
        fail "DOCKER_HOST is $DOCKER_HOST, and this user's Podman answers at unix://$PODMAN_SOCKET: unset it, or install the program docker"
}

# by_api TOOL…: one of Docker's tools, which uses this user's Podman through its API
by_api() {
    COMPOSE=("$@")
    podman_socket
    export DOCKER_HOST=unix://$PODMAN_SOCKET
}

find_compose() {
    if [[ -n ${COMPOSE_TOOL:-} ]]; then
        read -ra COMPOSE <<<"$COMPOSE_TOOL"
        have "${COMPOSE[0]}" || fail "COMPOSE_TOOL is $COMPOSE_TOOL, and there is no such program: install it, or unset COMPOSE_TOOL"
        if [[ $ENGINE == podman && ${COMPOSE[0]} == docker* ]]; then
            by_api "${COMPOSE[@]}"
        fi
    elif [[ $ENGINE == docker ]]; then
        find_docker_compose
    elif have podman-compose; then
        COMPOSE=(podman-compose)
    elif have docker-compose; then
        by_api docker-compose
    elif docker compose version >/dev/null 2>&1; then
        by_api docker compose
    else
        fail "no compose tool for Podman: install one (Debian: apt-get install podman-compose)"
    fi
    if [[ ${COMPOSE[0]} == podman-compose ]]; then
        # podman-compose would run them through a shell, which the images don't have; nothing here
        # waits for them.
        export FEDICENSUS_HEALTHCHECK=${FEDICENSUS_HEALTHCHECK:-NONE}
    fi
    # Without it, a build that changes nothing gives images new ids in Docker's containerd store.
    export BUILDX_NO_DEFAULT_ATTESTATIONS=${BUILDX_NO_DEFAULT_ATTESTATIONS:-1}
    # Uses BuildKit if its plugin is installed; the Containerfiles build with either builder. Podman
    # has its own builder.
    if [[ -z ${DOCKER_BUILDKIT:-} ]] && { [[ $ENGINE_IS == podman ]] || ! docker buildx version >/dev/null 2>&1; }; then
        export DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0
    fi
}

find_docker_compose() {
    if docker compose version >/dev/null 2>&1; then
        COMPOSE=(docker compose)
    elif have docker-compose; then
        COMPOSE=(docker-compose)
    elif have podman-compose && have podman && ask_engine podman; then
        say "not used: docker, which has no compose tool"
        ENGINE=podman
        COMPOSE=(podman-compose)
    else
        fail "no compose tool for Docker: install one (Debian: apt-get install docker-compose)"
    fi
}

# The engine's API socket, for the launcher: compose.yaml mounts ENGINE_SOCKET.
find_socket() {
    if [[ -z ${ENGINE_SOCKET:-} ]]; then
        if [[ $ENGINE == podman ]]; then
            podman_socket
            ENGINE_SOCKET=$PODMAN_SOCKET
        else
            # The one that docker itself uses: DOCKER_HOST, or the context's.
            ENGINE_SOCKET=${DOCKER_HOST:-$(docker context inspect --format '{{.Endpoints.docker.Host}}')}
            [[ $ENGINE_SOCKET == unix://* ]] ||
                fail "the launcher needs the engine's socket, and docker uses $ENGINE_SOCKET: set ENGINE_SOCKET to its path on the engine's machine"
            ENGINE_SOCKET=${ENGINE_SOCKET#unix://}
        fi
        [[ -S $ENGINE_SOCKET ]] || fail "no engine socket at $ENGINE_SOCKET: set ENGINE_SOCKET to its path"
    fi
    export ENGINE_SOCKET
}

# lab_instance: sets INSTANCE to the lab's name, from FEDICENSUS_LAB_NAME, and lets Compose tag the
# lab's images with it, so that no lab replaces the images of a census on the same engine. The
# images are built with the cargo profile `ci`, unless FEDICENSUS_PROFILE names another one.
lab_instance() {
    INSTANCE=fedicensus-${FEDICENSUS_LAB_NAME:-lab}
    [[ $INSTANCE =~ ^fedicensus-[a-z0-9]{1,30}$ ]] || fail "FEDICENSUS_LAB_NAME is '${FEDICENSUS_LAB_NAME:-}'; it takes 1 to 30 small letters and digits"
    export FEDICENSUS_IMAGE_PREFIX=localhost/fedicensus- FEDICENSUS_TAG=$INSTANCE FEDICENSUS_PROFILE=${FEDICENSUS_PROFILE:-ci}
}

# find_profile DEPLOY-FOLDER: for Podman, which reads the seccomp profile of checks from a file;
# here that is ours
find_profile() {
    if [[ $ENGINE_IS == podman && -z ${FEDICENSUS_SECCOMP_PATH:-} ]]; then
        FEDICENSUS_SECCOMP_PATH=$(cd "$1/../crates/launcher/src/container" && pwd)/seccomp.json
        export FEDICENSUS_SECCOMP_PATH
    fi
}

# chosen: prints what was found
chosen() {
    local behind=
    if [[ $ENGINE_IS != "$ENGINE" ]]; then
        behind=" (it is $ENGINE_IS that answers)"
    fi
    say "engine: $ENGINE $ENGINE_VERSION$behind; compose tool: ${COMPOSE[*]}${DOCKER_HOST:+ at $DOCKER_HOST}"
}

# has_base_images DEPLOY-FOLDER: whether base images are configured, present or available; otherwise
# they are made
has_base_images() {
    local public
    if [[ -n ${FEDICENSUS_BASE_RUST:-} && -n ${FEDICENSUS_BASE_NGINX:-} ]]; then
        return
    fi
    [[ ! -e $1/base-images/build/base.env ]] || return 1
    public=$(sed -n 's/^ARG BASE_RUST=//p' "$1/../Containerfile.checker")
    "$ENGINE" image inspect "$public" >/dev/null 2>&1 || timeout 20 "$ENGINE" manifest inspect "$public" >/dev/null 2>&1
}

# find_base_images DEPLOY-FOLDER: uses the public base images if they are present or a registry
# answers. Otherwise uses our own, makes them if they are missing, and exports FEDICENSUS_BASE_RUST
# and FEDICENSUS_BASE_NGINX.
find_base_images() {
    local folder=$1
    if has_base_images "$folder"; then
        return
    fi
    ENGINE=$ENGINE "$folder/base-images/make"
    set -a
    # shellcheck source=/dev/null
    . "$folder/base-images/build/base.env"
    set +a
}
