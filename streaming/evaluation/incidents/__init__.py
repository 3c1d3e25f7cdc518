"""Form incidents: everything that belongs to one problem is one incident. These are all rules.

Evidence (`evidence.py`):

1. Evidence is one of these facts about one group: an active condition, a cause of its lag, records that retention
   deleted before the group read them, a lag above the limit `max_lag_seconds` of the group, or a group with members and
   without a coordinator. A group has no coordinator if its partition of `__consumer_offsets` has had no leader for
   LEADERLESS_MS. Evidence is identified by its source, its name and the group. If evidence ends and starts again while
   its incident is open, it is the same evidence.
2. Some facts are not evidence. `rolling_restart` is a normal deployment, and `subscription_mismatch` harms nobody and
   can last for months. If the cause of a group's lag is `unknown`, it is evidence only while the lag is above the limit
   `max_lag_seconds`. A single rebalance is no evidence, because a group needs rebalances. A group with `ignore_alerts`
   has no evidence.
3. If it is unknown whether evidence is active, the evidence neither starts nor ends. This is the case if an open
   transaction blocks the group, or if the lag of one of its partitions is unknown. Partitions that were deleted do not
   count. While the cluster is not ready, this is also the case for all evidence except a missing coordinator, because
   the query does not read the commits then. A missing coordinator ends only if a sample shows the new leader. A lag
   above the limit ends only if the lag in seconds is known to be at most LAG_END_RATIO of the limit. So a lag that
   varies around the limit is one fact that does not change.
4. Evidence keeps the values that it had at its start: its text, the coordinator of the group, and the hosts and topics
   that it names. The coordinator is the leader of the group's partition of `__consumer_offsets`, with one exception:
   the partition lost its leader in the last START_WINDOW_MS or has no leader now, and the former leader leads no
   partition of `__consumer_offsets` any more. Then the coordinator is the former leader, and it is *gone*. After a
   restart, the monitor does not know former leaders.

Which evidence belongs together (`links.py`). Rules 6 to 8 link only evidence of the same *run*. All evidence of a run
has the same broker, host or topic. If it is sorted by start, each start is at most START_WINDOW_MS after the start
before it. So a group with an old problem does not join a new problem of its broker.

5. Same group. If two facts about one group are active at the same time, they belong together. If a fact starts before
   the incident of the group has ended (rule 10), it belongs to this incident.
6. Same coordinator. At least MIN_COORDINATOR_GROUPS groups have evidence that a coordinator can explain
   (COORDINATOR_EVIDENCE), and they are at least half of the groups that have members and this coordinator. Exception:
   if all groups of the cluster have the same coordinator, the coordinator links groups only if it is gone. Otherwise,
   different problems in a test cluster with a single broker would become one incident. A missing coordinator is proof.
   So if the groups are not enough, the coordinator links only the groups that have this evidence.
7. Same client host. At least two groups have evidence that names the host, and they are at least half of the groups
   with members on the host. Exceptions: evidence that names more than MAX_LINK_NAMES hosts does not count, because it
   is about the group, not about a host. Loopback addresses never link groups. A host on which all groups have members
   does not link groups.
8. Same topic. Evidence of several groups has the same name, and names the same topic. Exception: evidence that names
   more than MAX_LINK_NAMES topics does not count.

Life of an incident (`tracker.py`):

9. Evidence that belongs to no open incident opens a new incident. Evidence that is linked to evidence of an open
   incident joins this incident. Evidence never leaves its incident. So each active evidence is in exactly one open
   incident.
10. An incident ends when none of its evidence has been active for QUIET_MS. Its end is the time at which its last
    active evidence ended.
11. If evidence links several open incidents, they merge. The oldest incident survives: the one with the earliest start.
    If several have this start, the one with the smallest id survives. Each other incident ends, and its `merged_into`
    contains the id of the oldest incident. The oldest incident then contains the evidence of all merged incidents.
12. The id is a hash of the cluster and of the first evidence at the time when the incident opened: its source, name,
    group and start. The first evidence has the earliest start. If several have this start, the smallest group id
    decides, then the source, then the name. So the same facts give the same id. Id and start of an open incident never
    change, even if earlier evidence joins.
13. An incident lists at most MAX_EVIDENCE facts: the earliest. It stores the ids of all its groups. The start values of
    a fact that is not listed are unknown at later samples. So a fact about a group of a full incident joins this
    incident by rule 5, and it links nothing until it is listed. If a link (rule 6 or 7) holds together a full incident,
    all groups of the incident count as affected groups of the link.
14. An incident stores at most MAX_LINKS links. If there are more, the links by coordinator are stored first.
15. Open incidents are restored from the table before the first sample. So a restart changes no row.

The cause is chosen by `incident_cause.py`. `story.py` contains the sentences.
"""
