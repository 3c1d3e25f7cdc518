"""What `spark-submit` is given: it takes a file that ends in .py, not a console script."""

from streaming.cli import main

if __name__ == "__main__":
    main(prog_name="rebalance-monitor")
