#!/usr/bin/env bash
# Creates .venv with all packages, downloads the jars and creates class archives. `make setup` runs it. A second run
# takes some seconds.
# Set PYTHON to choose the interpreter. By default, the script uses the first supported interpreter of the list below.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHONS="python3 python3.13 python3.12 python3.11 python3.10"
NEEDED_MB=2800 # .venv needs 1.3 GB, and pip needs temporary space

fail() {
    echo "setup: $1" >&2
    exit 1
}

is_supported() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-$PYTHONS}; do
        if is_supported "$candidate"; then
            # The base interpreter, because the active environment may be .venv, which this script recreates.
            "$candidate" -c 'import sys; print(sys._base_executable)'
            return
        fi
    done
    fail "no Python 3.10 to 3.13 found among ${PYTHON:-$PYTHONS}: apt install python3, or set PYTHON=..."
}

check_machine() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null \
        || fail "$python cannot create virtual environments: apt install python3-venv"
    local free_mb
    free_mb=$(df -Pm . | awk 'NR == 2 { print $4 }')
    [ "$free_mb" -ge "$NEEDED_MB" ] \
        || fail "$free_mb MB free in $PWD, but $NEEDED_MB MB needed: free disk space"
}

# Prints a hash of the inputs of .venv. If it has not changed, there is nothing to install.
fingerprint() {
    { cat requirements-dev.lock pyproject.toml; "$python" -c 'import sys; print(sys.version, sys.prefix)'; pwd; } \
        | sha256sum | cut -d ' ' -f 1
}

make_venv() {
    echo "setup: creating .venv with $("$python" --version); the first time takes some minutes"
    "$python" -m venv --clear .venv
    # pip compiles with one process. compileall uses all cores.
    .venv/bin/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements-dev.lock \
        || fail "the packages could not be installed: read pip's output (network? proxy? disk?), then retry make setup"
    .venv/bin/python -m pip install --disable-pip-version-check --no-deps -e . \
        || fail "the project could not be installed: read pip's output above, then retry make setup"
    # If PYTHONDONTWRITEBYTECODE is set, each process would compile all its modules again, which takes 1.4 s. Some
    # packages contain files of other Python versions, which cannot be compiled.
    echo "setup: compiling the modules"
    .venv/bin/python -m compileall -qq -j 0 .venv/lib || true
}

python=$(find_python)
"$python" -m streaming.java >/dev/null # prints one line if Java is missing
inputs=$(fingerprint)
if [ "$(cat .venv/made-from 2>/dev/null)" != "$inputs" ]; then
    check_machine
    make_venv
    echo "$inputs" >.venv/made-from # written last, so that an interrupted setup starts again
fi
.venv/bin/python -m compileall -qq assignors streaming
.venv/bin/rebalance-monitor jars
echo "setup: done"
