"""Translate the settings `kafka.security` into the settings of both Kafka clients that the monitor uses.

python_client.py   arguments of kafka-python, and explanations of its errors
java_client.py     options of Spark's Kafka source, which contain no secret, and the content of the secrets file
secrets_file.py    the secrets file, which exists while the monitor runs
oauth.py           tokens for kafka-python, requested as Kafka's Java client requests them (KIP-768)

Minimum permissions: READ on `__consumer_offsets`, and DESCRIBE on all topics, all groups and the cluster. With
`source.kind = "admin-api"`, the three DESCRIBE permissions are sufficient.
"""
