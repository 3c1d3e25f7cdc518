"""The image's HEALTHCHECK: exit code 0 if the monitor's HTTP port says that it lives.

Whether that port speaks TLS may stand in a file that is not known here, so it is tried both ways. The certificate is
made out to another name than loopback and is not looked at: nothing secret is sent, for this page needs no password.
"""

import os
import ssl
import urllib.request
from http.client import HTTPException

port = os.environ.get("REBALANCE_MONITOR_METRICS__PORT", "9560")
address = f"127.0.0.1:{port}/-/healthy"
any_certificate = ssl.create_default_context()
any_certificate.check_hostname = False
any_certificate.verify_mode = ssl.CERT_NONE
try:
    answer = urllib.request.urlopen(f"http://{address}", timeout=2)
except (OSError, HTTPException):  # a port that speaks TLS hangs up, or answers in TLS
    answer = urllib.request.urlopen(f"https://{address}", timeout=3, context=any_certificate)
answer.close()
