# Finds the container engine and the compose tool, for the scripts beside and above this file, which source it.
#
# Sets ENGINE (docker or podman) and the array COMPOSE, both settable from outside: ENGINE=podman COMPOSE_TOOL="podman-compose".
# Leaves by `fail` with one line of what is missing and what to do.
# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used by those who source it

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

say() {
    printf '%s\n' "$*" >&2
}

# need COMMAND DEBIAN-PACKAGE
need() {
    command -v "$1" >/dev/null || fail "$1 is missing: install it (Debian: apt-get install $2)"
}

find_engine() {
    if [[ -z ${ENGINE:-} ]]; then
        if command -v docker >/dev/null; then
            ENGINE=docker
        elif command -v podman >/dev/null; then
            ENGINE=podman
        else
            fail "no container engine: install Docker (Debian: apt-get install docker.io) or Podman (apt-get install podman)"
        fi
    fi
    local answer
    answer=$("$ENGINE" version --format '{{.Server.Version}}' 2>&1) ||
        fail "$ENGINE does not answer (${answer##*$'\n'}): is it running, and may this user use it?"
    ENGINE_VERSION=$answer
}

find_compose() {
    if [[ -n ${COMPOSE_TOOL:-} ]]; then
        read -ra COMPOSE <<<"$COMPOSE_TOOL"
    elif [[ $ENGINE == docker ]] && docker compose version >/dev/null 2>&1; then
        COMPOSE=(docker compose)
    elif [[ $ENGINE == podman ]] && command -v podman-compose >/dev/null; then
        COMPOSE=(podman-compose)
    elif command -v docker-compose >/dev/null; then
        COMPOSE=(docker-compose)
    elif command -v podman-compose >/dev/null && command -v podman >/dev/null; then
        ENGINE=podman
        COMPOSE=(podman-compose)
    else
        fail "no compose tool: install one (Debian: apt-get install docker-compose, or podman-compose)"
    fi
    # BuildKit where its plugin is there; the Containerfiles build with either.
    if [[ -z ${DOCKER_BUILDKIT:-} ]] && ! docker buildx version >/dev/null 2>&1; then
        export DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0
    fi
}

# Where the engine's API socket is, for the launcher: compose.yaml mounts ENGINE_SOCKET.
find_socket() {
    if [[ -z ${ENGINE_SOCKET:-} && ${DOCKER_HOST:-} == unix://* ]]; then
        ENGINE_SOCKET=${DOCKER_HOST#unix://}
    elif [[ -z ${ENGINE_SOCKET:-} && $ENGINE == podman ]]; then
        ENGINE_SOCKET=$(podman info --format '{{.Host.RemoteSocket.Path}}')
        ENGINE_SOCKET=${ENGINE_SOCKET#unix://}
    fi
    export ENGINE_SOCKET=${ENGINE_SOCKET:-/var/run/docker.sock}
    [[ -S $ENGINE_SOCKET ]] ||
        fail "no engine socket at $ENGINE_SOCKET: set ENGINE_SOCKET (rootless Podman: systemctl --user enable --now podman.socket)"
}

# find_profile DEPLOY-FOLDER: for Podman, which takes the seccomp profile of checks from a file on its machine; here that is ours.
find_profile() {
    if [[ $ENGINE == podman && -z ${FEDICENSUS_SECCOMP_PATH:-} ]]; then
        FEDICENSUS_SECCOMP_PATH=$(cd "$1/../crates/launcher/src" && pwd)/seccomp.json
        export FEDICENSUS_SECCOMP_PATH
    fi
}

# find_base_images DEPLOY-FOLDER: the public base images where they are here or a registry answers, else our own, made when they aren't
# there yet. Exports FEDICENSUS_BASE_RUST and FEDICENSUS_BASE_NGINX in the second case.
find_base_images() {
    local folder=$1 public
    if [[ -n ${FEDICENSUS_BASE_RUST:-} && -n ${FEDICENSUS_BASE_NGINX:-} ]]; then
        return
    fi
    if [[ ! -e $folder/base-images/build/base.env ]]; then
        public=$(sed -n 's/^ARG BASE_RUST=//p' "$folder/../Containerfile.checker")
        if "$ENGINE" image inspect "$public" >/dev/null 2>&1 || timeout 20 "$ENGINE" manifest inspect "$public" >/dev/null 2>&1; then
            say "base images: the public ones"
            return
        fi
        say "base images: no registry answers, so they are made here"
    fi
    ENGINE=$ENGINE "$folder/base-images/make"
    set -a
    # shellcheck source=/dev/null
    . "$folder/base-images/build/base.env"
    set +a
}
