"""`python -m streaming.cli` runs `rebalance-monitor` with this Python interpreter."""

from __future__ import annotations

from streaming.cli import main

main(prog_name="rebalance-monitor")
