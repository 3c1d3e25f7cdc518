"""The image's HEALTHCHECK: exit code 0 if the monitor's HTTP port says that it lives."""

import os
import urllib.request

port = os.environ.get("REBALANCE_MONITOR_METRICS__PORT", "9560")
with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/healthy", timeout=5):
    pass
