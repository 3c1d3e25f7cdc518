"""`python -m streaming.cli` is `rebalance-monitor`, run by the Python interpreter that you choose."""

from __future__ import annotations

from streaming.cli import main

main(prog_name="rebalance-monitor")
