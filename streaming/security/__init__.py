"""Convert the settings `kafka.security` to settings of the two Kafka clients that the monitor uses.

- `python_client.py`: arguments of kafka-python, and explanations of its errors.
- `java_client.py`: options of Spark's Kafka source, without secrets, and the content of the secrets file.
- `secrets_file.py`: the secrets file, which exists while the monitor runs.
- `oauth.py`: requests tokens with client credentials, for kafka-python (KIP-768).

The monitor needs the permission READ on `__consumer_offsets`. The monitor also needs DESCRIBE on all topics, all groups
and the cluster. With `source.kind = "admin-api"`, the three DESCRIBE permissions are sufficient. The package may import
only `config`.
"""
