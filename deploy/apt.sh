# shellcheck shell=bash
# Functions for the scripts in this folder. They find programs that the tests need, or install them with apt.

fail() {
    local script=${0##*/}
    echo "${script%.sh}: $1" >&2
    exit 1
}

# Prints the path of the first of these programs that exists.
first_of() {
    local candidate
    for candidate in "$@"; do
        command -v "$candidate" && return
    done
    return 1
}

# check_can_install WHAT PACKAGES...: ends the script with an error if it cannot install the PACKAGES for WHAT. Locks a
# file until the script ends. Without this lock, the second of two scripts would fail at apt's own lock.
check_can_install() {
    local what=$1
    shift
    command -v apt-get >/dev/null || fail "$what not found, and there is no apt-get to install it: install $*"
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || fail "$what not found: apt install $*"
    fi
    exec 9>"${TMPDIR:-/tmp}/rebalance-monitor-apt-$UID.lock"
    flock 9
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
