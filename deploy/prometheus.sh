#!/usr/bin/env bash
# Finds Prometheus, promtool, Alertmanager and amtool for the tests of our rules and dashboards, or installs Debian's,
# and prints the four paths, one a line. Installing needs apt-get and root, or sudo without a password. Debian's packages
# start servers, now and at each boot; what was installed here is stopped and disabled at once.
set -euo pipefail

# shellcheck source=deploy/apt.sh
. "${BASH_SOURCE[0]%/*}/apt.sh"

all_of_them() {
    first_of prometheus && first_of promtool && first_of prometheus-alertmanager alertmanager && first_of amtool
}

install() {
    local package missing=()
    may_install "prometheus with alertmanager" prometheus prometheus-alertmanager
    for package in prometheus prometheus-alertmanager; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
    done
    {
        as_root apt-get update -q
        # Prometheus recommends an exporter of this machine's own numbers: one more server.
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
    } >&2 || fail "apt could not install ${missing[*]}: see its words above"
    for package in "${missing[@]}"; do
        as_root invoke-rc.d --quiet "$package" stop >&2 || true # a container has no services to stop
        as_root update-rc.d "$package" disable >&2 || true
    done
}

all_of_them >/dev/null || install
all_of_them || fail "prometheus and prometheus-alertmanager were installed, and not all of their programs are on PATH"
