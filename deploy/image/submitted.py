"""Entry point for `spark-submit`, which requires a .py file and cannot start a console script."""

from streaming.cli import main

if __name__ == "__main__":
    main(prog_name="rebalance-monitor")
