"""A RabbitMQ of a test's own, where one is installed, to be killed and started again."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from kombu import Connection

from tests.faults.nodes import Launched
from tests.support import servers
from tests.support.orphans import end_with_tests

SCRIPTS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
"""The script of Debian's package that works as any user, else the one in the path."""
START_SECONDS = 120.0


def missing() -> str:
    """Return what of RabbitMQ is not installed; empty if it can be started."""
    lacking = [name for name, found in (("rabbitmq-server", _script()), ("epmd", shutil.which("epmd"))) if not found]
    return f"{', '.join(lacking)} is not installed" if lacking else ""


def _script() -> str | None:
    return next(filter(None, map(shutil.which, SCRIPTS)), None)


class RabbitMQ(Launched):
    """A broker whose durable queues and messages survive its end."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "plugins").write_text("[].")
        port, others, names = (servers.free_port() for _ in range(3))
        self.url = f"amqp://guest:guest@127.0.0.1:{port}//"
        values = {
            "NODENAME": "taskdesk@localhost",
            "NODE_IP_ADDRESS": "127.0.0.1",
            "NODE_PORT": port,
            "DIST_PORT": others,
            "MNESIA_BASE": folder / "mnesia",
            "LOG_BASE": folder / "log",
            "PID_FILE": folder / "pid",
            "ENABLED_PLUGINS_FILE": folder / "plugins",
            "CONFIG_FILE": folder / "none",
            "CONF_ENV_FILE": os.devnull,
        }
        path = os.environ["PATH"]
        self.environment = {f"RABBITMQ_{name}": str(value) for name, value in values.items()}
        self.environment |= {"PATH": path, "HOME": str(folder), "ERL_EPMD_PORT": str(names)}
        self.environment["RUNNING_UNDER_SYSTEMD"] = "1"  # the script then becomes the broker
        self.names = self._launch("epmd", "-address", "127.0.0.1")  # otherwise the broker leaves one behind

    def start(self) -> None:
        """Start it, again if need be, and return when it answers."""
        script = _script()
        assert script, missing()
        self.process = self._launch(script)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "RabbitMQ ended at once"
            try:
                with Connection(self.url, connect_timeout=2) as connection:
                    connection.connect()
                    return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"RabbitMQ did not answer within {START_SECONDS:g} s")

    def close(self) -> None:
        """End all its processes."""
        self.kill()
        self.names.kill()
        self.names.wait(10)

    def _launch(self, *command: str) -> "subprocess.Popen[bytes]":
        silent = subprocess.DEVNULL
        process = subprocess.Popen(
            command, env=self.environment, stdin=silent, stdout=silent, stderr=silent, cwd="/", start_new_session=True
        )
        return end_with_tests(process)
