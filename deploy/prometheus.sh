#!/usr/bin/env bash
# Prints the paths of Prometheus, promtool, Alertmanager and amtool, one per line, for the tests of rules and
# dashboards. Installs Debian's packages if they are missing. The installation needs apt-get and root, or sudo without a
# password. Debian's packages start servers now and at each boot. This script stops and disables the servers that it
# installed.
set -euo pipefail

# shellcheck source=deploy/apt.sh
. "${BASH_SOURCE[0]%/*}/apt.sh"

find_all() {
    first_of prometheus && first_of promtool && first_of prometheus-alertmanager alertmanager && first_of amtool
}

install() {
    local package missing=()
    check_can_install "prometheus with alertmanager" prometheus prometheus-alertmanager
    for package in prometheus prometheus-alertmanager; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
    done
    {
        as_root apt-get update -q
        # Without --no-install-recommends, apt also installs the node exporter, which is a further server.
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
    } >&2 || fail "apt could not install ${missing[*]}: read its output above"
    for package in "${missing[@]}"; do
        as_root invoke-rc.d --quiet "$package" stop >&2 || true # a container has no services
        as_root update-rc.d "$package" disable >&2 || true
    done
}

find_all >/dev/null || install
find_all || fail "prometheus and prometheus-alertmanager were installed, but not all of their programs are on PATH"
