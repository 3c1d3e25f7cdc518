"""`python -m streaming.cli`: the same as `rebalance-monitor`, by the interpreter of one's choice."""

from __future__ import annotations

from streaming.cli import main

main(prog_name="rebalance-monitor")
