"""`kafka.security` in the words of the two Kafka clients that we use, from the same settings.

python_client.py   kafka-python's arguments; what its refusals mean
java_client.py     options of Spark's Kafka source, none of which is a secret, and the file that holds the secrets
secrets_file.py    that file, for as long as the monitor runs
oauth.py           tokens for kafka-python, as Kafka's own Java client gets them (KIP-768)

The least rights that do: READ on `__consumer_offsets`, and DESCRIBE on all topics, all groups and the cluster. With
`source.kind = "admin-api"` nothing is read, and the three DESCRIBE do.
"""
