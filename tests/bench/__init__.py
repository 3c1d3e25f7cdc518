"""The monitor measured as its users run it: a real broker, a process of its own, figures beside their bars.

offset_commits.py   OffsetCommit requests and answers as bytes: what fills the log fast
fill.py             a `__consumer_offsets` of groups x partitions x rounds
process.py          a cold process, with the memory and processor time it and its children take
batches.py          when Spark's batches began and ended and how far they read, from the checkpoint
scrape.py           `/metrics` as Prometheus asks for it
plain_read.py       Spark's Kafka source alone, for comparison: a program of its own
catch_up.py         part one: how fast a full log is read, how soon metrics are complete, how much memory it takes
rebalances.py       part two: how soon a rebalance is seen
encoder.py          Kafka's wire format written from the layouts: records that nobody else would write for us
crowd.py            ten thousand groups at work: which records they make, and what must be shown of them; pure
steady_load.py      those records written at a steady pace: a program of its own
under_load.py       a process beside that load: what it, the load and the broker take
onlooker.py         what /metrics and the tables tell of the crowd, and whether all of it is right
judgement.py        part four: whether ten thousand groups keep a trigger of 10 s
protocol.py         the decoder alone, record by record: a program of its own
figures.py          figures, bars, the table and the JSON
"""
