"""The agent of the benchmark on the Python SDK. What it does: ../README.md."""

import asyncio
import re
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    Agent,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    update_agent_message_text,
)
from acp.interfaces import Client
from acp.schema import AgentCapabilities, AllowedOutcome, PermissionOption, TextContentBlock, ToolCallUpdate


class BenchAgent(Agent):
    def __init__(self) -> None:
        self._sessions: set[str] = set()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True),
        )

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        session_id = f"s{len(self._sessions) + 1}"
        self._sessions.add(session_id)
        return NewSessionResponse(session_id=session_id)

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> LoadSessionResponse:
        replay = re.fullmatch(r"replay-(\d+)-(\d+)", session_id)
        if replay is None:
            raise RequestError.resource_not_found(session_id)
        await self._send_chunks(session_id, int(replay[1]), int(replay[2]))
        return LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        if session_id not in self._sessions:
            raise RequestError.resource_not_found(session_id)
        text = "".join(block.text for block in prompt if isinstance(block, TextContentBlock))
        # A path may have spaces in it, so only the first word is cut off.
        word, _, rest = text.partition(" ")
        if word == "stream":
            count, size = map(int, rest.split())
            await self._send_chunks(session_id, count, size)
        elif word == "ask":
            await self._ask_permissions(session_id, int(rest))
        elif word == "read":
            await self._read_file(session_id, rest)
        else:
            raise RequestError.invalid_params({"prompt": text})
        return PromptResponse(stop_reason="end_turn")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        # The SDK takes the underscore away.
        if method == "bench/empty":
            return {}
        raise RequestError.method_not_found(f"_{method}")

    async def _say(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id=session_id, update=update_agent_message_text(text))

    async def _send_chunks(self, session_id: str, count: int, size: int) -> None:
        for i in range(count):
            await self._say(session_id, f"{i:08}".ljust(size, "x"))

    async def _ask_permissions(self, session_id: str, count: int) -> None:
        for i in range(count):
            response = await self._client.request_permission(
                session_id=session_id,
                tool_call=ToolCallUpdate(tool_call_id=f"call-{i}", title="work"),
                options=[
                    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
                    PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
                ],
            )
            outcome = response.outcome
            if not isinstance(outcome, AllowedOutcome) or outcome.option_id != "allow":
                raise RequestError.internal_error({"details": "permission was not given"})

    async def _read_file(self, session_id: str, path: str) -> None:
        file = await self._client.read_text_file(session_id=session_id, path=path)
        await self._say(session_id, str(len(file.content.encode())))


if __name__ == "__main__":
    asyncio.run(run_agent(BenchAgent()))
