#!/usr/bin/env bash
# Prints the paths of Chromium (or Chrome) and its driver, one per line, for the tests of the pages. Installs Debian's
# packages if they are missing. The installation needs apt-get and root, or sudo without a password.
set -euo pipefail

BROWSERS="chromium chromium-browser google-chrome google-chrome-stable"
DRIVERS="chromedriver chromium.chromedriver ${CHROMEWEBDRIVER:-/usr/lib/chromium-browser}/chromedriver /usr/lib/chromium/chromedriver"

# shellcheck source=deploy/apt.sh
. "${BASH_SOURCE[0]%/*}/apt.sh"

install() {
    check_can_install "chromium with chromedriver" chromium chromium-driver
    {
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            chromium chromium-driver fonts-dejavu-core
    } >&2 || fail "apt could not install chromium and chromium-driver: read its output above"
}

# shellcheck disable=SC2086 # the lists must be split into words
if ! { first_of $BROWSERS && first_of $DRIVERS; } >/dev/null; then
    install
fi
# shellcheck disable=SC2086
first_of $BROWSERS || fail "chromium was installed, but it is not on PATH"
# shellcheck disable=SC2086
first_of $DRIVERS || fail "chromedriver was installed, but it is not on PATH"
