#!/usr/bin/env bash
# Builds the wheel: wheel.sh FOLDER. `make wheel` and the build of the image run this script.
#
# The same sources give the same bytes, with every Python, every umask and at any time. So the wheel in the image is the
# wheel of the release. The build uses only the setuptools of build.lock, verified by its hash. Set PYTHON to choose the
# interpreter.
set -euo pipefail
umask 022

into=$(realpath -m "${1:?wheel.sh FOLDER}")
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run_pip() {
    "$work/venv/bin/python" -m pip --disable-pip-version-check --no-input --quiet "$@"
}

# Builds from a copy, because setuptools writes a folder build/ next to the sources and reuses an older one. A wheel
# contains the modes and the times of files, so all files get the same modes and the first date that zip supports.
mkdir "$work/source"
cp -r pyproject.toml README.md LICENSE assignors streaming "$work/source"
chmod -R u=rwX,go=rX "$work/source"
export SOURCE_DATE_EPOCH=315532800

"${PYTHON:-python3}" -m venv "$work/venv"
run_pip install --require-hashes -r deploy/image/build.lock
run_pip wheel --no-deps --no-build-isolation --no-cache-dir --wheel-dir "$into" "$work/source"
