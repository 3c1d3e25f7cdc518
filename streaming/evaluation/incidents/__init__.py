"""Combine all evidence of one problem into one incident. The numbered rules apply to the whole package.

Evidence (`evidence.py`):

1. Evidence is one fact about one group: an active condition, the cause of its lag, lost unread records, a lag above
   `max_lag_seconds`, or a missing coordinator. The coordinator of a group with members is missing if the group's
   partition of `__consumer_offsets` has had no leader for LEADERLESS_MS. Evidence is identified by its source, its name
   and its group. So evidence that ends and starts again while its incident is open counts as the same evidence. The
   name of evidence about a cause of lag is the kind of the cause. But the reasons `no_members` and `open_transaction`
   are names of their own, because they need advice that differs from the advice for other causes of the same kind.
2. Some facts are not evidence. `rolling_restart` is a normal deployment. `subscription_mismatch` is harmless and can
   last for months. A cause of lag with the kind `unknown`, and the status REWIND (name `rewound`), are evidence only
   while the lag is above the limit `max_lag_seconds`. For example, producers of Flink keep a transaction open until the
   next checkpoint, and operators reset offsets on purpose. A single rebalance is not evidence, because rebalances are
   normal. A group with `ignore_alerts` has no evidence.
3. If it is unknown whether evidence is active, the evidence neither starts nor ends. Evidence of a group is unknown if
   an open transaction blocks the group. Evidence about lag is also unknown if the lag of an existing partition is
   unknown. While the cluster is not ready, the query does not read the commits. So all evidence except `no_coordinator`
   is unknown. The evidence `no_coordinator` ends only if a sample shows the new leader. Evidence that starts only
   above the limit `max_lag_seconds` ends if the lag is at most LAG_END_RATIO times the limit. So the evidence stays
   active while the lag varies around the limit.
4. The text, the coordinator, the hosts and the topics of evidence do not change after its start. Usually, the
   coordinator is the leader of the group's partition of `__consumer_offsets`. A former leader is *gone* if it leads no
   partition of `__consumer_offsets` any more. A gone leader still counts as the coordinator while the partition has no
   leader. A gone leader also counts as the coordinator for START_WINDOW_MS after the loss of the partition. After a
   restart, the monitor does not know former leaders.

Evidence with the same cause (`same_cause.py`). Rules 6 to 8 link only evidence of the same *run*. In a run, each piece
of evidence starts at most START_WINDOW_MS after the previous piece. So an old problem of a group is not linked to a new
problem of the group's coordinator.

5. Same group. If two facts about one group are active at the same time, they belong together. If a fact starts before
   the group's incident has ended (rule 10), the fact belongs to this incident.
6. Same coordinator. The evidence must be a problem that a coordinator can cause (COORDINATOR_EVIDENCE). At least
   MIN_COORDINATOR_GROUPS groups of the coordinator must have such evidence. These groups must be at least half of the
   coordinator's groups with members. If all groups of the cluster have the same coordinator, this coordinator must be
   gone (rule 4). Without this requirement, different problems in a test cluster with a single broker would become one
   incident. Exception: the evidence `no_coordinator` always links groups of the same coordinator.
7. Same client host. At least two groups must have evidence that names the host. The groups with evidence must be at
   least half of the groups with members on the host. There are three exceptions. Evidence that names more than
   MAX_LINK_NAMES hosts does not link groups. Loopback addresses never link groups. If all groups of the cluster have
   members on the host, the host does not link groups.
8. Same topic. Facts about several groups are linked if the facts have the same name and a common topic. Exception:
   evidence that names more than MAX_LINK_NAMES topics does not link groups.

Life of an incident (`tracker.py`):

9. Evidence that belongs to no open incident opens a new incident. Evidence that is linked to evidence of an open
   incident joins this incident. Evidence never leaves its incident. So all active evidence is in exactly one open
   incident.
10. An incident ends when all its evidence has been inactive for QUIET_MS. Its end time is the time at which the last
    evidence became inactive.
11. If evidence links several open incidents, the incidents merge. The incident with the earliest start remains open,
    and gets the evidence of the other incidents. If several incidents have the earliest start, the incident with the
    smallest id remains open. Each other incident ends, and its `merged_into` contains the id of the incident that
    remains open.
12. The id of an incident is a hash of the cluster, its first evidence, and the start of this evidence. When the
    incident opens, its first evidence is the evidence with the earliest start. If several facts have the earliest
    start, the smallest group id decides, then the smallest source, then the smallest name. So the same facts give the
    same id. Id and start of an open incident never change, even if earlier evidence joins (exception: rule 16).
13. An incident stores the ids of all its groups, but lists at most MAX_EVIDENCE facts: the earliest facts. An incident
    with MAX_EVIDENCE facts is *full*. If a group belongs to a full incident, a new fact about the group joins this
    incident (rule 5). But facts that the incident does not list cannot link evidence. If a full incident has a link by
    coordinator or host, all its groups count for rules 6 and 7.
14. An incident stores at most MAX_LINKS links. Links by coordinator are stored first.
15. After a restart, the monitor loads the open incidents from the table. So a restart does not change incidents.
16. No time of an open incident or of its evidence is later than the sample. A wrong clock can cause a later time, for
    example before a restart. Such a time becomes the time of the sample. Otherwise, an incident that became quiet "next
    year" would stay open for a year, and an incident could end before its start.

`incident_cause.py` chooses the cause. `story.py` contains the sentences. The package may import all of `evaluation`.
"""
