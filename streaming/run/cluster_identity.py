"""Refuse a Kafka cluster that is not the cluster of the checkpoint.

Otherwise, the tables would contain rows of both clusters under one name. The setting `kafka.bootstrap_servers` is not
proof of the cluster, because an address can later lead to a broker of a different cluster. So the checkpoint stores
Kafka's id of the cluster.

1. The first start stores the id. Each later start compares the cluster's id with the stored id. If the ids differ, the
   run ends. If the checkpoint is on a local disk, the ids are compared before the monitor waits for
   `__consumer_offsets` (`run.watch`), because the monitor could wait forever if a different cluster has no such topic.
2. Each sample and each poll compares the ids again. If the ids differ, nothing is sent or appended, and the run ends.
3. An unknown id is not compared, because some brokers return no id.
4. If the file with the id is damaged, the monitor logs one warning and stores the present id.
5. The id belongs to the checkpoint. So a new checkpoint, for example after a rebuild, accepts every cluster.
"""

from __future__ import annotations

import logging

from streaming.sampling.connection import Connection
from streaming.spark.checkpoint import CLUSTER_ID, read_cluster_id, write_cluster_id
from streaming.spark.files import Files

_log = logging.getLogger(__name__)


def keep_cluster_id(connection: Connection, files: Files, cluster: str) -> None:
    """Store the cluster's id if no id is stored. Otherwise, compare both. Raises DifferentClusterError or OSError."""
    stored, cluster_id = read_cluster_id(files), connection.cluster_id
    connection.expect_cluster(stored or cluster_id)
    if stored is None and CLUSTER_ID in files.names(""):
        _log.warning(
            "%s: the file %s of the checkpoint is damaged. So the monitor assumes that the brokers still belong to the"
            " same Kafka cluster",
            cluster,
            CLUSTER_ID,
        )
    if stored is None and cluster_id is not None:
        write_cluster_id(files, cluster_id)
