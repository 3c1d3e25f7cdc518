#!/usr/bin/env bash
# Makes .venv with everything in it and fetches the jars; `make setup` calls it. Running it again takes a second.
# PYTHON names the interpreter to use; without it the first fitting one of those below is taken.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHONS="python3 python3.13 python3.12 python3.11 python3.10"
WANTED_MB=2800 # .venv is 1.3 GB, and pip unpacks beside it while it installs

fail() {
    echo "setup: $1" >&2
    exit 1
}

fits() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-$PYTHONS}; do
        if fits "$candidate"; then
            # The interpreter under an active environment: ours might be the active one, and about to be made anew.
            "$candidate" -c 'import sys; print(sys._base_executable)'
            return
        fi
    done
    fail "no Python 3.10 to 3.13 among: ${PYTHON:-$PYTHONS}: apt install python3, or name one with PYTHON=..."
}

check_machine() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null \
        || fail "$python can't make environments: apt install python3-venv"
    local free_mb
    free_mb=$(df -Pm . | awk 'NR == 2 { print $4 }')
    [ "$free_mb" -ge "$WANTED_MB" ] \
        || fail "$free_mb MB free in $PWD, $WANTED_MB MB wanted: free some disk"
}

# What .venv was made from; when that is unchanged there is nothing to install.
fingerprint() {
    { cat requirements-dev.lock pyproject.toml; "$python" -c 'import sys; print(sys.version, sys.prefix)'; pwd; } \
        | sha256sum | cut -d ' ' -f 1
}

make_venv() {
    echo "setup: making .venv with $("$python" --version); some minutes the first time"
    "$python" -m venv --clear .venv
    # Python compiles what is imported; pip would compile all of it, which takes longer than to install it.
    .venv/bin/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements-dev.lock \
        || fail "the packages could not be installed: see pip's words above (network? proxy? disk?), then make setup again"
    .venv/bin/python -m pip install --disable-pip-version-check --no-deps -e . \
        || fail "the project could not be installed: see pip's words above, then make setup again"
}

python=$(find_python)
"$python" -m streaming.java >/dev/null # says what is missing in one line
wanted=$(fingerprint)
if [ "$(cat .venv/made-from 2>/dev/null)" != "$wanted" ]; then
    check_machine
    make_venv
    echo "$wanted" >.venv/made-from # last: an interrupted set-up starts over
fi
.venv/bin/rebalance-monitor jars
echo "setup: done"
