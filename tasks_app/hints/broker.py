"""Time limits of connections to a broker: by default kombu waits for ever."""


def time_limits(seconds: float) -> dict[str, object]:
    """Return the transport options with which neither Redis nor RabbitMQ keeps a thread waiting for longer."""
    redis = {"socket_timeout": seconds, "socket_connect_timeout": seconds, "socket_keepalive": True}
    return {**redis, "read_timeout": seconds, "write_timeout": seconds}
