#!/usr/bin/env bash
# Installs the monitor and its dependencies into one folder: build.sh PREFIX. The Dockerfile runs this script. On a
# machine without containers, run it yourself.
#
#   PREFIX/venv     the program and its packages, verified by the hashes in requirements.lock
#   PREFIX/cache    the jars of Spark and Delta, verified by the checksums in streaming/jars/jars.lock, and the class
#                   archive of Spark
#   PREFIX/jars     a link to the folder of these jars, so that the class path is the same for every version
#
# Set PYTHON to choose the interpreter. The installed monitor downloads nothing. Do not move PREFIX, because venv
# contains its path.
set -euo pipefail

prefix=$(realpath -m "${1:?build.sh PREFIX}")
cd "$(dirname "$0")/../.."

into_venv() {
    "${PYTHON:-python3}" -m pip --python "$prefix/venv/bin/python" --disable-pip-version-check --no-input "$@"
}

# pyspark has no wheel. So pip builds it, with the setuptools of build.lock.
install_packages() {
    "${PYTHON:-python3}" -m venv --without-pip "$prefix/venv"
    into_venv install --require-hashes -r deploy/image/build.lock
    into_venv install --require-hashes --no-build-isolation -r requirements.lock
    into_venv uninstall --yes setuptools
}

install_program() {
    local wheels
    wheels=$(mktemp -d)
    deploy/image/wheel.sh "$wheels"
    into_venv install --no-deps "$wheels"/*.whl
    rm -r "$wheels"
}

install_jars() {
    REBALANCE_MONITOR_CACHE_DIR="$prefix/cache" "$prefix/venv/bin/python" -I -c \
        'from streaming.jars import resolve; print("jars:", len(resolve("spark")))'
    ln -sfn "$(cd "$prefix" && echo cache/jars/spark-*)" "$prefix/jars"
}

# Without a class archive, the monitor starts as well, but it needs more processor time. To create the archive, the build
# runs a broker. The result does not contain the broker.
create_class_archive() {
    REBALANCE_MONITOR_CACHE_DIR="$prefix/cache" "$prefix/venv/bin/python" -I -m streaming.class_archive_training || true
    rm -rf "$prefix"/cache/jars/broker* "$prefix"/cache/class-archives/*/broker-*
}

install_packages
install_program
install_jars
create_class_archive
