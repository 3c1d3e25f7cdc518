"""Types of settings that are addresses: the addresses of brokers, and the address on which the monitor listens."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator

from streaming.config.secret_settings import ADDRESS

_LONGEST_HOST_NAME = 253
_LABEL = re.compile(r"[\w-]{1,63}", re.ASCII)


def _check_servers(servers: str) -> str:
    for number, server in enumerate(servers.split(","), 1):
        address = re.fullmatch(r"\[?[\w.%:-]+\]?:([0-9]{1,5})", server.strip(), re.ASCII)
        if address is None or not 0 < int(address[1]) < 65_536:
            raise ValueError(f"address {number} is not host:port: write no scheme, no user and no password")
    return servers


def _check_host(host: str) -> str:
    labels = host.removesuffix(".").split(".")
    if len(host) > _LONGEST_HOST_NAME or not (_is_ip_address(host) or all(map(_LABEL.fullmatch, labels))):
        raise ValueError("must be an IP address or a host name, without a scheme and without a port")
    return host


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


BootstrapServers = Annotated[str, AfterValidator(_check_servers), ADDRESS]
Host = Annotated[str, AfterValidator(_check_host), ADDRESS]
