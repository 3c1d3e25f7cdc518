#!/usr/bin/env bash
# Installs the monitor and all it needs into one folder: build.sh PREFIX, or build.sh PREFIX demo to add what the demo's
# groups need to a folder made before. The image's builder runs it; run it yourself for a machine without containers.
#
#   PREFIX/venv     the program and its packages, each by a hash of requirements.lock
#   PREFIX/cache    Spark's and Delta's jars, each by a checksum of streaming/jars/jars.lock
#   PREFIX/jars     leads to these jars, for a class path that stays the same from version to version
#
# PYTHON names the interpreter. After this nothing is downloaded any more. venv is bound to PREFIX: do not move it.
set -euo pipefail

prefix=$(realpath -m "${1:?build.sh PREFIX [demo]}")
cd "$(dirname "$0")/../.."

into_venv() {
    "${PYTHON:-python3}" -m pip --python "$prefix/venv/bin/python" --disable-pip-version-check --no-input "$@"
}

install_packages() {
    "${PYTHON:-python3}" -m venv --without-pip "$prefix/venv"
    into_venv install --require-hashes -r requirements.lock -r deploy/image/build.lock
}

# From a copy: setuptools leaves build/ in the folder it builds from, and takes what an older build left there.
install_program() {
    local source
    source=$(mktemp -d)
    cp -r pyproject.toml README.md LICENSE assignors streaming "$source"
    into_venv install --no-deps --no-build-isolation "$source"
    rm -r "$source"
    into_venv uninstall --yes setuptools
}

bring_jars() {
    REBALANCE_MONITOR_CACHE_DIR="$prefix/cache" "$prefix/venv/bin/python" -I -c \
        'from streaming.jars import resolve; print("jars:", len(resolve("spark", verify=True)))'
    ln -sfn "$(cd "$prefix" && echo cache/jars/spark-*)" "$prefix/jars"
}

case "${2:-}" in
    "")
        install_packages
        install_program
        bring_jars
        ;;
    demo) into_venv install --no-deps --require-hashes -c requirements-dev.lock confluent-kafka ;;
    *)
        echo "build.sh: $2 is neither nothing nor demo" >&2
        exit 2
        ;;
esac
