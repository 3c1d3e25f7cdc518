#!/usr/bin/env bash
# Finds a Chromium (or Chrome) and its driver for the tests that look at our pages, or installs Debian's, and prints the
# two paths, one a line. Installing needs apt-get and root, or sudo without a password.
set -euo pipefail

BROWSERS="chromium chromium-browser google-chrome google-chrome-stable"
DRIVERS="chromedriver chromium.chromedriver ${CHROMEWEBDRIVER:-/usr/lib/chromium-browser}/chromedriver /usr/lib/chromium/chromedriver"

# shellcheck source=deploy/apt.sh
. "${BASH_SOURCE[0]%/*}/apt.sh"

install() {
    may_install "chromium with chromedriver" chromium chromium-driver
    {
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            chromium chromium-driver fonts-dejavu-core
    } >&2 || fail "apt could not install chromium and chromium-driver: see its words above"
}

# shellcheck disable=SC2086 # the lists are meant to be split
if ! { first_of $BROWSERS && first_of $DRIVERS; } >/dev/null; then
    install
fi
# shellcheck disable=SC2086
first_of $BROWSERS || fail "chromium was installed and is not on PATH"
# shellcheck disable=SC2086
first_of $DRIVERS || fail "chromedriver was installed and is not on PATH"
