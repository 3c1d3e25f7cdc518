# shellcheck shell=bash
# For the scripts beside it, which find programs that tests need, or have Debian's apt install them.

fail() {
    local script=${0##*/}
    echo "${script%.sh}: $1" >&2
    exit 1
}

# The path of the first of these programs that is there.
first_of() {
    local candidate
    for candidate in "$@"; do
        command -v "$candidate" && return
    done
    return 1
}

# Ends the script where nothing can be installed: WHAT is missing, and the PACKAGES that have it. Holds a lock until the
# end: of two scripts at once the second would find apt's own lock taken, and fail.
may_install() {
    local what=$1
    shift
    command -v apt-get >/dev/null || fail "no $what here, and no apt-get to install them: install both"
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || fail "no $what here: apt install $*"
    fi
    exec 9>"${TMPDIR:-/tmp}/rebalance-monitor-apt-$UID.lock"
    flock 9
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
