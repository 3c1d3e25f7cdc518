"""Run the real monitor and kill it with SIGKILL at one exact point: between the commits of two tables of one batch.

Run it as `python -m tests.end_to_end.dying_monitor TABLE COUNT run ...`. The process kills itself directly after its
COUNT-th append to TABLE, before it writes the next table of the batch.
"""

from __future__ import annotations

import os
import signal
import sys

import pyarrow as pa

from streaming.cli import main
from streaming.delta.on_disk import DeltaTables
from streaming.delta.tables import Table


def die_after(table_name: str, count: int) -> None:
    """Make this process kill itself after its COUNT-th append to the table."""
    append_batch = DeltaTables.append_batch
    appended = 0

    def append_and_die(tables: DeltaTables, table: Table, rows: pa.Table, batch_id: int) -> bool:
        nonlocal appended
        done = append_batch(tables, table, rows, batch_id)
        appended += table.name == table_name
        if appended == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    DeltaTables.append_batch = append_and_die  # type: ignore[method-assign]


if __name__ == "__main__":
    die_after(sys.argv[1], int(sys.argv[2]))
    main(sys.argv[3:], prog_name="rebalance-monitor")
