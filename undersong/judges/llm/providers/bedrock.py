"""Anthropic's models at Amazon Bedrock: the same messages, by the client of Anthropic's SDK for it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.providers.anthropic import AnthropicBackend, parse_completion
from undersong.judges.llm.transport import Response, read_bounded, server_message

__all__ = ["BedrockBackend", "parse_completion"]
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class BedrockBackend(AnthropicBackend):
    """Messages to Bedrock, with a key of Bedrock or signed with the keys of AWS; Bedrock has no such batches."""

    client = "AsyncAnthropicBedrock"

    def __init__(self, spec: ModelSpec, limits: RunLimits) -> None:
        """Raises JudgeError where the library, a key or the region is missing."""
        super().__init__(spec, limits)
        environment = os.environ if limits.environment is None else limits.environment
        self._region = next((environment[name] for name in REGIONS if environment.get(name)), None)
        if self._region is None and spec.url is None:
            raise JudgeError("no region", where=spec.name, remedy="set AWS_REGION in the environment")
        if not self._secret and find_spec("boto3") is None:
            remedy = (
                "set AWS_BEARER_TOKEN_BEDROCK in the environment, or pip install 'anthropic[bedrock]' for keys of AWS"
            )
            raise JudgeError("no key, and no library to sign with", where=spec.name, remedy=remedy)

    async def _post(self, sent: dict[str, Any]) -> Response:
        """See SdkBackend; the SDK moves the model from the body into the path, so it takes the body as a dictionary."""
        with self._errors(server_message):
            stream = await self._client.post(
                self.path,
                cast_to=object,
                body=sent,
                stream=True,
                stream_cls=self._sdk.AsyncStream[object],
            )
            async with stream:
                return Response(await read_bounded(stream.response.aiter_bytes()), stream.response.headers)

    @property
    def _client(self) -> Any:
        if self._open is None:
            self._open = self._sdk.AsyncAnthropicBedrock(
                api_key=self._secret or None,
                aws_region=self._region or "local",
                base_url=self._endpoint.url,
                max_retries=0,
                timeout=self._timeout,
            )
        return self._open
