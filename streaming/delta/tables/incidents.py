"""Defines the table of incidents: everything that belongs to one problem, in one row."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import SAMPLED, TIME, Table, column

_EVIDENCE = pa.list_(
    pa.struct(
        [
            ("source", pa.string()),
            ("name", pa.string()),
            ("group_id", pa.string()),
            ("text", pa.string()),
            ("since_time", TIME),
            ("until_time", TIME),
            ("coordinator", pa.int32()),
            ("is_coordinator_gone", pa.bool_()),
            ("client_hosts", pa.list_(pa.string())),
            ("topics", pa.list_(pa.string())),
        ]
    )
)

INCIDENTS = Table(
    "incidents",
    "one incident at one sample at which the incident started, changed or ended. If an open incident has no such row on"
    " a UTC date, its row is repeated at the first sample of this date. So the deletion of old rows keeps a row of each"
    " open incident. The last row of an incident describes the whole incident."
    " The rules are in streaming/evaluation/incidents/__init__.py",
    pa.schema(
        [
            *SAMPLED,
            column(
                "incident_id",
                pa.string(),
                "id of the incident. It never changes, not even after a restart or a rebuild of the monitor",
            ),
            column(
                "active", pa.bool_(), "true: the incident is open; false: it ended or was merged into another incident"
            ),
            column(
                "is_repeated",
                pa.bool_(),
                "true: the row repeats the last row of an incident that was already open on an earlier UTC date",
            ),
            column("since_time", TIME, "time at which the first evidence of the incident started"),
            column(
                "quiet_since_time",
                TIME,
                "time since which none of the evidence is active. If no evidence becomes active again, the incident"
                " ends ten minutes after this time. Null while evidence is active",
            ),
            column(
                "end_time",
                TIME,
                "time at which the last evidence ended. Null while the incident is open. For a merged incident, time"
                " of the merge",
            ),
            column(
                "merged_into",
                pa.string(),
                "id of the older incident into which this incident was merged. Null if the incident was not merged",
            ),
            column(
                "cause",
                pa.string(),
                "cause of the incident: coordinator_gone, coordinator, client_host, the name of a condition or of a"
                " cause of lag, records_lost or unknown. The rules are in"
                " streaming/evaluation/incidents/incident_cause.py",
            ),
            column("runbook_section", pa.string(), "section of the runbook for this cause"),
            column(
                "story",
                pa.list_(pa.string()),
                "the incident in sentences: what happened, since when, who is affected, how bad it is, what to do",
            ),
            column(
                "links",
                pa.list_(pa.struct([("kind", pa.string()), ("value", pa.string())])),
                "what several groups of the incident have in common. kind: coordinator, client_host or topic. value:"
                " the broker id, the host or the topic",
            ),
            column("groups", pa.list_(pa.string()), "ids of all affected groups, sorted"),
            column(
                "group_count",
                pa.int32(),
                "number of affected groups",
            ),
            column(
                "evidence",
                _EVIDENCE,
                "conditions, causes of lag, lost records, high lag and missing coordinators of the groups, the oldest"
                " first, at most 500 entries. source: condition, lag_cause, loss, lag or coordinator. text: the"
                " evidence in a sentence. until_time:"
                " null while the evidence is active. coordinator: the group's coordinator at the start of the"
                " evidence; is_coordinator_gone: true if this broker led no partition of __consumer_offsets any more at"
                " that time. client_hosts, topics: hosts and"
                " topics that the evidence names",
            ),
        ]
    ),
)
