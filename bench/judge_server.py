"""A server that speaks the wire formats of both providers, for measurements and for faults over real HTTP.

python bench/judge_server.py [--port 0] [--delay 0.2] [--log FILE]

It answers as a judge would: marks that follow from the question's bytes, the right answer to the control question, one
quote from the message. A message that holds ``fault=NAME`` gets that fault instead (see FAULTS); ``NAME*N`` the first N
times. Every answer that was handed to the network whole is written to the log, with the hash of its question.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from undersong.models import NEGATIVE_TRAITS, TRAITS

CONTROL = re.compile(r"which is word number (\d+) of this list: ([a-z, ]+)\?")
FAULT = re.compile(r"fault=(?P<name>[a-z0-9_]+)(?:\*(?P<times>\d+))?")
TOKEN = re.compile(r"[A-Za-z]{1,5}|\d{1,3}|\s+|[^\sA-Za-z\d]")  # pieces of about the size that tokenizers have
MESSAGE = re.compile(
    r"# Message to read\nBEGIN DATA (?P<nonce>[0-9a-f]+)\n\[\w+: \"(?:[^\"\\]|\\.)*\"\] (?P<text>.*)\n"
)
SHOWN = re.compile(MESSAGE.pattern.replace("Message to read", r"Message \d"))
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests",
           500: "Internal Server Error", 529: "Overloaded"}  # fmt: skip
GIANT = 10_000_000


class Answer(NamedTuple):
    """What goes back: ``cut`` bytes of the body are sent before the connection breaks off; ``drip`` seconds a byte."""

    status: int
    body: bytes
    headers: dict[str, str] = {}
    cut: int | None = None
    drip: float = 0.0


class Request(NamedTuple):
    """What came: ``user`` is the question's text, ``hash`` of the whole body; ``target`` as it was asked for."""

    path: str
    headers: dict[str, str]
    raw: bytes
    system: str
    user: str
    text: str
    target: str = ""

    @property
    def hash(self) -> str:
        """SHA-256 of the body."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def chat(self) -> bool:
        """Whether it speaks chat completions."""
        return self.path.endswith("/chat/completions")


class JudgeServer:
    """One server; ``seen`` are the requests, ``delivered`` counts answers that were sent whole, by question.

    ``received`` is all that came, batches and files included: the head and the body, byte by byte.

    An answer leaves ``delay`` seconds after its question came: what it takes to make it is part of them.
    """

    def __init__(self, delay: float = 0.0, log: Path | None = None, *, keep: bool = True) -> None:
        self.delay, self.keep = delay, keep
        self.seen: list[Request] = []
        self.received: list[tuple[bytes, bytes]] = []
        self.delivered: Counter[str] = Counter()
        self.batches: dict[str, list[Any]] = {}
        self.files: dict[str, bytes] = {}
        self.ready = True
        self.port = 0
        self._faults: Counter[str] = Counter()
        self._log = log.open("a") if log else None
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> int:
        """Listen on the loopback address; the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=1 << 20)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Stop listening."""
        assert self._server is not None
        self._server.close()
        if self._log:
            self._log.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while (head := await reader.readuntil(b"\r\n\r\n")) is not None:
                first, *lines = head.decode("latin-1").rstrip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                raw = await reader.readexactly(int(headers.get("content-length", "0")))
                if self.keep:
                    self.received.append((head, raw))
                came = asyncio.get_running_loop().time()
                method, path, _ = first.split(" ", 2)
                if not await self._answer(method, path.partition("?")[0], headers, raw, writer, came):
                    break
        writer.close()

    async def _answer(
        self, method: str, path: str, headers: dict[str, str], raw: bytes, writer: asyncio.StreamWriter, came: float
    ) -> bool:
        if "/batches" in path or "/files" in path:
            return await self._send(writer, self._batch(method, path, raw), None)
        request = read_request(path, headers, raw)._replace(target=path)
        if self.keep:
            self.seen.append(request)
        answer = self._behave(request)
        if self.delay:
            await asyncio.sleep(came + self.delay - asyncio.get_running_loop().time())
        return await self._send(writer, answer, request)

    def _behave(self, request: Request) -> Answer:
        match = FAULT.search(request.text)
        if match is None:
            return Answer(200, enveloped(request, json.dumps(reading(request))))
        key = f"{match[0]}{hashlib.sha256(request.text.encode()).hexdigest()}"
        self._faults[key] += 1
        if match["times"] and self._faults[key] > int(match["times"]):
            return Answer(200, enveloped(request, json.dumps(reading(request))))
        return FAULTS[match["name"]](request)

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer, request: Request | None) -> bool:
        """Whether the connection is kept."""
        headers = {"content-type": "application/json", "content-length": str(len(answer.body)), **answer.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, '')}\r\n{lines}\r\n".encode())
        body = answer.body if answer.cut is None else answer.body[: answer.cut]
        if answer.drip:
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(answer.drip)
        else:
            writer.write(body)
        await writer.drain()
        if answer.cut is not None:
            writer.close()
            return False
        if request is not None and answer.status == 200:
            key = hashlib.sha256(request.user.encode()).hexdigest()
            self.delivered[key] += 1
            if self._log:
                self._log.write(f"{key}\n")
                self._log.flush()
        return True

    def _batch(self, method: str, path: str, raw: bytes) -> Answer:
        return (self._openai_batch if path.startswith("/v1/files") or self.files else self._anthropic_batch)(
            method, path, raw
        )

    def _anthropic_batch(self, method: str, path: str, raw: bytes) -> Answer:
        if method == "POST":
            name = f"batch_{len(self.batches)}"
            self.batches[name] = json.loads(raw)["requests"]
        else:
            name = path.removesuffix("/results").rpartition("/")[2]
        if path.endswith("/results"):
            lines = (json.dumps(self._result(each)) for each in reversed(self.batches[name]))
            return Answer(200, "\n".join(lines).encode(), {"content-type": "application/x-jsonl"})
        moment = "2026-01-01T00:00:00Z"
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
        body = {"id": name, "type": "message_batch", "processing_status": "ended" if self.ready else "in_progress",
                "created_at": moment, "expires_at": moment, "request_counts": counts, "ended_at": moment,
                "archived_at": None, "cancel_initiated_at": None,
                "results_url": f"http://127.0.0.1:{self.port}/v1/messages/batches/{name}/results"}  # fmt: skip
        return Answer(200, json.dumps(body).encode())

    def _result(self, item: Any) -> dict[str, Any]:
        raw = json.dumps(item["params"]).encode()
        request = read_request("/v1/messages", {}, raw)
        if self.keep:
            self.seen.append(request)
        if "fault=expired" in request.text:
            return {"custom_id": item["custom_id"], "result": {"type": "expired"}}
        message = json.loads(self._behave(request).body)
        return {"custom_id": item["custom_id"], "result": {"type": "succeeded", "message": message}}

    def _openai_batch(self, method: str, path: str, raw: bytes) -> Answer:
        if path == "/v1/files":
            name = f"file-{len(self.files)}"
            self.files[name] = raw
            return Answer(200, json.dumps({"id": name, "object": "file"}).encode())
        if path.endswith("/content"):
            return Answer(200, self._openai_results(self.files[path.split("/")[3]]))
        if method == "POST":
            name = f"batch_{len(self.batches)}"
            self.batches[name] = [json.loads(raw)["input_file_id"]]
        else:
            name = path.rpartition("/")[2]
        body = {"id": name, "object": "batch", "status": "completed" if self.ready else "in_progress",
                "output_file_id": self.batches[name][0], "error_file_id": None}  # fmt: skip
        return Answer(200, json.dumps(body).encode())

    def _openai_results(self, uploaded: bytes) -> bytes:
        lines = []
        for line in uploaded.splitlines():
            if not line.startswith(b'{"custom_id"'):
                continue
            item = json.loads(line)
            request = read_request("/v1/chat/completions", {}, json.dumps(item["body"]).encode())
            if self.keep:
                self.seen.append(request)
            if "fault=expired" in request.text:
                lines.append({"custom_id": item["custom_id"], "response": None, "error": {"code": "batch_expired"}})
                continue
            body = json.loads(self._behave(request).body)
            lines.append({"custom_id": item["custom_id"], "response": {"status_code": 200, "body": body}})
        return "\n".join(map(json.dumps, lines)).encode()


def read_request(path: str, headers: dict[str, str], raw: bytes) -> Request:
    """A request taken apart; ``text`` is the message to read, decoded."""
    body = json.loads(raw) if raw else {}
    listed = body.get("messages") or [{"content": ""}]
    user = str(listed[-1]["content"])
    system = str(listed[0]["content"] if len(listed) > 1 else (body.get("system") or [{"text": ""}])[0]["text"])
    match = MESSAGE.search(user)
    return Request(path, headers, raw, system, user, json.loads(match["text"]) if match else " ".join(shown(user)))


def shown(user: str) -> list[str]:
    """The texts of the messages that a question about a mechanism shows."""
    return [json.loads(found["text"]) for found in SHOWN.finditer(user)]


@lru_cache(16)
def tokens(text: str) -> int:
    """Pieces of a text; the system part is the same each time."""
    return len(TOKEN.findall(text))


def reading(request: Request) -> dict[str, Any]:
    """What a judge would say; the same question gets the same marks."""
    asked = CONTROL.search(request.user)
    assert asked is not None, request.user[-300:]
    control = asked[2].split(", ")[int(asked[1]) - 1]
    if "\nMechanism: " in request.user:
        quotes = [{"message": n, "quote": text.split(",")[0]} for n, text in enumerate(shown(request.user), 1)]
        return {"control": control, "answer": "yes", "quotes": quotes, "confidence": 3}
    digest = hashlib.sha256(request.text.encode("utf-8", "surrogatepass")).digest()
    quote = " ".join(request.text.split(" ")[:4])[:100]
    traits = {trait: digest[place] % 5 for place, trait in enumerate(TRAITS)}
    marked = [trait for trait in TRAITS if trait in NEGATIVE_TRAITS and traits[trait]]
    return {
        "control": control,
        "indicators": [{"quote": quote, "id": "MAN-URGENCY", "confidence": 1 + digest[20] % 4}],
        "mechanisms": [],
        "acts": [{"quote": quote, "act": "request"}] if digest[21] % 2 else [],
        "reasons": [{"trait": trait, "reason": f"The words of the message carry {trait}."} for trait in marked],
        "traits": traits,
        "stance": {"position": ("holds", "concedes", "neutral")[digest[22] % 3], "claim": ""},
    }


def enveloped(request: Request, text: str, *, stop: str = "", refusal: str | None = None) -> bytes:
    """The answer's text in the envelope of the provider that was spoken to, with tokens counted."""
    taken, output_tokens = tokens(request.system) + tokens(request.user), len(TOKEN.findall(text))
    if request.chat:
        message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
        usage = {"prompt_tokens": taken, "completion_tokens": output_tokens, "total_tokens": taken + output_tokens,
                 "prompt_tokens_details": {"cached_tokens": taken // 2}}  # fmt: skip
        choice = {"index": 0, "message": message, "finish_reason": stop or "stop"}
        return json.dumps({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice],
                           "usage": usage}).encode()  # fmt: skip
    usage = {"input_tokens": taken - taken // 2, "output_tokens": output_tokens, "cache_read_input_tokens": taken // 2,
             "cache_creation_input_tokens": 0}  # fmt: skip
    content = [{"type": "text", "text": refusal or text}]
    stops = {"": "end_turn", "length": "max_tokens"}
    return json.dumps({"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": content,
                       "stop_reason": "refusal" if refusal else stops[stop], "stop_sequence": None,
                       "usage": usage}).encode()  # fmt: skip


def _error(status: int, **headers: str) -> Callable[[Request], Answer]:
    body = json.dumps({"type": "error", "error": {"type": "some_error", "message": f"error {status}"}}).encode()
    return lambda _: Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def _said(change: Callable[[dict[str, Any]], object]) -> Callable[[Request], Answer]:
    def behave(request: Request) -> Answer:
        answer = reading(request)
        change(answer)
        return Answer(200, enveloped(request, json.dumps(answer)))

    return behave


def _text(text: str, **how: Any) -> Callable[[Request], Answer]:
    return lambda request: Answer(200, enveloped(request, text, **how))


def _whole(request: Request) -> bytes:
    return enveloped(request, json.dumps(reading(request)))


FAULTS: dict[str, Callable[[Request], Answer]] = {
    "429_after": _error(429, retry_after="0.05"),
    "429": _error(429),
    "500": _error(500),
    "529": _error(529),
    "moved": lambda request: Answer(307, b"", {"location": request.target}),
    "401": _error(401),
    "400": _error(400),
    "cut": lambda request: Answer(200, _whole(request), cut=40),
    "drip": lambda request: Answer(200, _whole(request), drip=0.05),
    "truncated": lambda request: Answer(200, enveloped(request, json.dumps(reading(request))[:90], stop="length")),
    "broken_envelope": lambda _: Answer(200, b'{"choices": 3, "content": 4'),
    "prose": _text("I would say this message is fine."),
    "schema": _said(lambda answer: answer.pop("traits")),
    "range": _said(lambda answer: answer["traits"].update(virtue=9)),
    "refusal": _text("", refusal="I cannot help with that."),
    "empty": _text(""),
    "quote": _said(lambda answer: answer["indicators"][0].update(quote="words that nobody wrote")),
    "unknown": _said(lambda answer: answer["indicators"][0].update(id="MAN-NOSUCH")),
    "control": _said(lambda answer: answer.update(control="steered")),
    "no": _said(lambda answer: answer.update(answer="no", quotes=[])),
    "giant": _text("x" * GIANT),
    "limit": lambda request: Answer(
        200,
        _whole(request),
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50ms",
         "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "0.05"},
    ),
}  # fmt: skip


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    server = JudgeServer(options.delay, options.log, keep=False)
    print(await server.start(options.port), flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it closes its end


if __name__ == "__main__":
    asyncio.run(main())
