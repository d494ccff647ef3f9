"""The carrier over AWS AgentCore: each call is an InvokeAgentRuntime, signed by the credentials of the environment.

It needs boto3, which is in the extra `aws`.
"""

import asyncio
import uuid
from functools import cached_property
from typing import Any

from tasks_app.zones.carriers import PATIENCE, SECONDS, NoAnswer


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

    async def carry(self, body: bytes) -> bytes:
        return await asyncio.to_thread(self._invoke, body)

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
            return bytes(answer["response"].read())
        except ClientError as error:
            # The message of AWS may have parts of the call.
            raise NoAnswer(f"AWS: {error.response.get('Error', {}).get('Code', 'an error')}") from None
        except BotoCoreError as error:
            raise NoAnswer(f"AWS: {type(error).__name__}") from None
