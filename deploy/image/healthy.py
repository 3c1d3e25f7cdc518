"""HEALTHCHECK of the image.

The exit code is 0 if the monitor answers the request for `/-/healthy` with success.

The check does not know whether the port uses TLS. So the check tries HTTP first, and then HTTPS. The check does not
verify the certificate, because the certificate is not issued for the loopback address. This is safe, because the
request contains no password.
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
except (OSError, HTTPException):  # a port with TLS closes the connection, or responds with TLS
    answer = urllib.request.urlopen(f"https://{address}", timeout=3, context=any_certificate)
answer.close()
