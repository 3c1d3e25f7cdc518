"""`python -m streaming.cli`: the command line without an installed script."""

from streaming.cli import main

main(prog_name="rebalance-monitor")
