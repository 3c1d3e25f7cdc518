"""Defines the table of incidents. A row contains all evidence of one incident."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import SAMPLED, TIME, Table, boolean, column, int32, text, texts, time

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
    "the start, a change or the end of one incident. `sampled_time` is the time of the first sample that showed the"
    " start, the change or the end. At the first sample of each UTC date, the monitor writes the row of every open"
    " incident again. So an open incident always has a recent row. The last row of an incident describes the whole"
    " incident. The rules are in `streaming/evaluation/incidents/__init__.py`",
    pa.schema(
        [
            *SAMPLED,
            text(
                "incident_id",
                "id of the incident. The id stays the same, even after a restart of the monitor or a rebuild of its"
                " checkpoint",
            ),
            boolean(
                "active",
                "true if the incident is open. false if the incident has ended or was merged into a different incident",
            ),
            boolean(
                "is_repeated",
                "true if the incident is open and unchanged, and its previous row has an earlier UTC date. false if the"
                " incident started, changed or ended",
            ),
            time("since_time", "time when the first evidence of the incident started"),
            time(
                "quiet_since_time",
                "time of the first sample in which no evidence is active. If no evidence starts within ten minutes"
                " after this time, the incident ends. Null while any evidence is active",
            ),
            time(
                "end_time",
                "end time of the incident: the last value of `quiet_since_time`. If the incident was merged, the value"
                " is the time of the merge. Null while the incident is open",
            ),
            text(
                "merged_into",
                "id of the older incident into which this incident was merged. Null if the incident was not merged",
            ),
            text(
                "cause",
                "cause of the incident. The value is `coordinator_gone`, `coordinator`, `client_host`,"
                " `no_coordinator`, `no_members`, `open_transaction`, `records_lost`, `rewound`, `unknown`, the name of"
                " a condition, or the name of a cause of lag. The rules are in"
                " `streaming/evaluation/incidents/incident_cause.py`",
            ),
            text("runbook_section", "section of the runbook for this cause"),
            texts(
                "story",
                "sentences that describe the incident: the problem, its start time, the affected groups, the effect,"
                " and the remedy",
            ),
            column(
                "links",
                pa.list_(pa.struct([("kind", pa.string()), ("value", pa.string())])),
                "brokers, hosts and topics that several groups of the incident use. The field `kind` is"
                " `coordinator`, `client_host` or `topic`. The field `value` is the broker id, the host or the name of"
                " the topic",
            ),
            texts("groups", "sorted ids of all affected groups"),
            int32("group_count", "number of affected groups"),
            column(
                "evidence",
                _EVIDENCE,
                "evidence of the incident: conditions, causes of lag, lost records, high lag, and missing group"
                " coordinators. The oldest evidence comes first. The array has at most 500 entries. The field `source`"
                " is `condition`, `lag_cause`, `loss`, `lag` or `coordinator`. The field `text` describes the evidence"
                " in a sentence. The field `until_time` is null while the evidence is active. The field `coordinator`"
                " is the broker id of the group's coordinator at the start of the evidence. The field"
                " `is_coordinator_gone` is true if the coordinator led no `__consumer_offsets` partition when the"
                " evidence started. The fields `client_hosts` and `topics` contain the hosts and topics that the"
                " evidence concerns",
            ),
        ]
    ),
)
