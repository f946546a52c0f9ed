"""A server that speaks the wire formats of both providers, for measurements and for faults over real HTTP.

python bench/judge_server.py [--port 0] [--delay 0.2] [--log FILE]

It answers as a judge would: marks that follow from the question's bytes, the right answer to the control question, one
quote from the message. It is as strict as the documents say: thinking counts against the longest answer, a prompt is
read from the cache only once an answer over it has ended, and parameters that it ``refuses`` are an error. A message
that holds ``fault=NAME`` gets that fault instead (see fault_answers.py); ``NAME*N`` the first N
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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fault_answers import FAULTS
from judge_answers import Answer, Request, answered, read_request, refused

FAULT = re.compile(r"fault=(?P<name>[a-z0-9_]+)(?:\*(?P<times>\d+))?")
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests",
           500: "Internal Server Error", 529: "Overloaded"}  # fmt: skip


class JudgeServer:
    """One server; ``seen`` are the requests, ``delivered`` counts answers that were sent whole, by question.

    ``received`` is all that came, batches and files included: the head and the body, byte by byte.

    An answer leaves ``delay`` seconds after its question came: what it takes to make it is part of them. ``thinking``
    tokens go before every answer; ``refuses`` are parameters that are an error, by their place in the body. ``charged``
    are the tokens in and out of all that was made, whether it arrived or not. Marks also follow from ``opinion``; a
    server with one says no to flagged places, sees no shape, and has no faults.
    """

    def __init__(
        self,
        delay: float = 0.0,
        log: Path | None = None,
        *,
        keep: bool = True,
        thinking: int = 0,
        refuses: Sequence[str] = (),
        opinion: str = "",
    ) -> None:
        self.opinion = opinion
        self.delay, self.keep, self.thinking, self.refuses = delay, keep, thinking, tuple(refuses)
        self.charged = (0, 0)
        self._cached: set[str] = set()
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
        answer = self._made(request)
        late = max(answer.late, came + self.delay - asyncio.get_running_loop().time())
        if late > 0:
            await asyncio.sleep(late)
        keeps = await self._send(writer, answer, request)
        self._cached.add(request.system)
        return keeps

    def _made(self, request: Request) -> Answer:
        """The answer to a question, charged for."""
        request = request._replace(cached=request.system in self._cached, thinking=self.thinking, opinion=self.opinion)
        if self.keep:
            self.seen.append(request)
        answer = self._behave(request)
        if answer.status == 200 or request.target:  # a question of a batch that ends in an error is not charged for
            self.charged = self.charged[0] + answer.tokens[0], self.charged[1] + answer.tokens[1]
        return answer

    def _behave(self, request: Request) -> Answer:
        body = json.loads(request.raw)
        for name in self.refuses:
            if _has(body, name):
                return refused(name)
        match = FAULT.search(request.text)
        if match is None or self.opinion:
            return answered(request)
        key = f"{match[0]}{hashlib.sha256(request.text.encode()).hexdigest()}"
        self._faults[key] += 1
        if match["times"] and self._faults[key] > int(match["times"]):
            return answered(request)
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
        if "fault=expired" in request.text:
            return {"custom_id": item["custom_id"], "result": {"type": "expired"}}
        answer = self._made(request)
        message = json.loads(answer.body)
        if answer.status != 200:
            return {"custom_id": item["custom_id"], "result": {"type": "errored", "error": message}}
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
            if "fault=expired" in request.text:
                lines.append({"custom_id": item["custom_id"], "response": None, "error": {"code": "batch_expired"}})
                continue
            answer = self._made(request)
            response = {"status_code": answer.status, "body": json.loads(answer.body)}
            lines.append({"custom_id": item["custom_id"], "response": response})
        return "\n".join(map(json.dumps, lines)).encode()


def _has(body: dict[str, Any], place: str) -> bool:
    """Whether a body holds a parameter such as ``output_config.effort``."""
    outer, _, inner = place.partition(".")
    return outer in body and (not inner or inner in body[outer])


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
