"""Types of settings for Spark and its JVM. With an invalid value, the JVM would end while it starts."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, SecretStr

from streaming.config.secret_settings import ADDRESS, is_for_launch, without_credentials

_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LOCAL = r"local(\[([1-9]\d*|\*)(\s*,\s*[1-9]\d*)?\])?"
_LOCAL_CLUSTER = r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
_STANDALONE = r"spark://[^\s,/]+:\d+(,[^\s,/]+:\d+)*"
_KUBERNETES = r"k8s://(https?://)?[^\s:/]\S*"
_MASTER = re.compile(f"{_LOCAL}|{_LOCAL_CLUSTER}|{_STANDALONE}|yarn|{_KUBERNETES}", re.ASCII)
"""The formats in Spark's documentation (Submitting Applications, Master URLs), and `local-cluster` for tests."""


def heap_bytes(size: str) -> int:
    """Return the size of a Java heap in bytes. Raises ValueError if the format is wrong.

    A number without a unit is an error, because Java counts it in bytes.

    >>> heap_bytes("1g"), heap_bytes("512M")
    (1073741824, 536870912)
    """
    match = re.fullmatch(r"([1-9]\d*)([kmgt])", size.lower(), re.ASCII)
    if match is None:
        raise ValueError("not a memory size: write a whole number and a unit (k, m, g or t), for example 512m or 2g")
    return int(match[1]) * _UNITS[match[2]]


def _check_heap_size(size: str) -> str:
    heap_bytes(size)
    return size


def _check_master(master: str) -> str:
    if "@" in master or without_credentials(master) != master:
        raise ValueError(
            "the URL must not contain a user name, a password or a query, because other users of the machine can see"
            " the URL on the command line of Spark"
        )
    if not _MASTER.fullmatch(master):
        raise ValueError(
            "not a master URL of Spark: write local, local[N], local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT"
        )
    return master


def _check_conf(conf: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, value in conf.items():
        text = value.get_secret_value()
        if is_for_launch(name) and without_credentials(text) != text:
            raise ValueError(
                f"{name} must not contain a user name, a password or a query, because other users of the machine can"
                " see the value on the command line of Spark: copy the files to this machine, or set"
                " spark.jars.ivySettings to a file with the address of the repository"
            )
        if name in _REPLACED:
            try:
                _REPLACED[name](text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return conf


_REPLACED: Final = {"spark.master": _check_master, "spark.driver.memory": _check_heap_size}
"""The properties of `spark.conf` that replace a setting of the section [spark], with the check of the setting."""
HeapSize = Annotated[str, AfterValidator(_check_heap_size)]
SparkMaster = Annotated[str, AfterValidator(_check_master), ADDRESS]
SparkConf = Annotated[dict[str, SecretStr], AfterValidator(_check_conf)]
