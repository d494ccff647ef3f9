"""Connections to a broker: time limits, for by default kombu waits for ever, and the certificates that they take."""

import ssl
from urllib.parse import urlsplit


def time_limits(seconds: float) -> dict[str, object]:
    """Return the transport options with which neither Redis nor RabbitMQ keeps a thread waiting for longer."""
    redis = {"socket_timeout": seconds, "socket_connect_timeout": seconds, "socket_keepalive": True}
    return {**redis, "read_timeout": seconds, "write_timeout": seconds}


def tls_options(url: str) -> dict[str, object]:
    """Return the options of TLS with which a broker needs a trusted certificate of its own name.

    They are empty for an address without TLS, and for one that decides it by `ssl_cert_reqs`. By default kombu takes
    any certificate of a rediss:// broker, and a certificate of any host from an amqps:// broker.
    """
    parts = urlsplit(url)
    if parts.scheme == "amqps":
        return {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": parts.hostname}
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in parts.query:
        return {"ssl_cert_reqs": ssl.CERT_REQUIRED}
    return {}
