#!/usr/bin/env bash
# Finds Prometheus, promtool, Alertmanager and amtool for the tests of our rules and dashboards, or fetches Debian's
# packages, and prints the four paths, one a line.
#
# Fetched packages are only unpacked, into the cache folder that also holds the jars: installing them would start two
# servers on this machine, now and at each boot. It needs apt-get, and no root where apt's lists are there. To have newer
# ones fetched, remove the folder.
set -euo pipefail

PACKAGES="prometheus prometheus-alertmanager"
CACHE=${REBALANCE_MONITOR_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/kafka-rebalance-monitor}
UNPACKED=$CACHE/prometheus

fail() {
    echo "prometheus: $1" >&2
    exit 1
}

first_of() {
    local candidate
    for candidate in "$@"; do
        command -v "$candidate" && return
    done
    return 1
}

# All four or nothing: a promtool of another version than the server would check other rules than it runs.
all_in() {
    PATH=$1 first_of prometheus && PATH=$1 first_of promtool \
        && PATH=$1 first_of prometheus-alertmanager alertmanager && PATH=$1 first_of amtool
}

download() {
    # shellcheck disable=SC2086 # the list is meant to be split
    (cd "$1" && apt-get download -q $PACKAGES) >&2
}

update_lists() {
    local as_root=""
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return
        as_root="sudo -n"
    fi
    $as_root apt-get update -q >&2
}

fetch() {
    local folder package
    command -v apt-get >/dev/null \
        || fail "no prometheus with alertmanager here, and no apt-get to fetch them: install both"
    mkdir -p "$CACHE"
    folder=$(mktemp -d "$CACHE/prometheus-XXXXXX")
    # shellcheck disable=SC2064 # the folder is a local variable, gone when the trap runs
    trap "rm -rf '$folder'" EXIT
    download "$folder" || { update_lists && download "$folder"; } \
        || fail "apt could not download $PACKAGES: see its words above; or apt install them"
    for package in "$folder"/*.deb; do
        dpkg-deb -x "$package" "$folder/unpacked"
    done
    # Under its last name only when it is whole; another process may have been quicker.
    mv -T "$folder/unpacked" "$UNPACKED" 2>/dev/null || [ -d "$UNPACKED" ]
}

all_in "$PATH" 2>/dev/null >"/dev/null" || all_in "$UNPACKED/usr/bin" >/dev/null || fetch
all_in "$PATH" >/dev/null && all_in "$PATH" && exit
all_in "$UNPACKED/usr/bin" || fail "Debian's packages were fetched and hold no such programs: see $UNPACKED"
