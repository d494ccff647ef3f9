"""The carrier over AWS AgentCore: each call is an InvokeAgentRuntime, signed by the credentials of the environment.

It needs boto3, which is in the extra `aws`.
"""

import uuid
from contextlib import suppress
from functools import cached_property
from threading import Timer
from typing import Any

from tasks_app.relays.remotes import most_bytes
from tasks_app.zones.carriers import PATIENCE, SECONDS, NoAnswer, call_in_thread

PIECE = 65_536
"""Bytes that are read at once."""


class AgentCore:
    """Invokes a runtime by its ARN."""

    patience = PATIENCE

    def __init__(self, arn: str) -> None:
        self.arn = arn

    @cached_property
    def client(self) -> Any:
        """The client of AWS, for the region of the runtime. It repeats nothing by itself."""
        import boto3
        from botocore.config import Config

        options = Config(connect_timeout=5, read_timeout=SECONDS, retries={"total_max_attempts": 1})
        return boto3.client("bedrock-agentcore", region_name=self.arn.split(":")[3], config=options)

    async def carry(self, body: bytes, owner: str = "") -> bytes:
        return await call_in_thread(self._invoke, body, owner)

    def _invoke(self, body: bytes) -> bytes:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self.client.invoke_agent_runtime(
                agentRuntimeArn=self.arn,
                runtimeSessionId=uuid.uuid4().hex + uuid.uuid4().hex[:4],
                contentType="application/json",
                accept="application/json",
                payload=body,
            )
            return self._read(answer["response"])
        except ClientError as error:
            # The message of AWS may have parts of the call.
            raise NoAnswer(f"AWS: {error.response.get('Error', {}).get('Code', 'an error')}") from None
        except BotoCoreError as error:
            raise NoAnswer(f"AWS: {type(error).__name__}") from None

    def _read(self, stream: Any) -> bytes:
        """Return the whole answer. Raises NoAnswer for one that is too large, and errors of botocore.

        Its own time limit is for each read of the socket, so an answer that comes byte by byte would run into none.
        """
        timer = Timer(SECONDS, _give_up, (stream,))
        timer.start()
        content, most = bytearray(), most_bytes()
        try:
            while piece := stream.read(PIECE):
                content += piece
                if len(content) > most:
                    raise NoAnswer(
                        f"the answer of {self.arn} has more than {most} bytes, which is twice A2A_TASK_CHARACTERS and "
                        "A2A_TASK_FILE_BYTES: raise them, or have its agent answer less"
                    )
        finally:
            timer.cancel()
            stream.close()
        return bytes(content)


def _give_up(stream: Any) -> None:
    """Have the next read of a socket fail. Its thread is in the one before, which has a time limit."""
    with suppress(Exception):  # The answer has come in the same moment.
        stream.set_socket_timeout(0.001)
