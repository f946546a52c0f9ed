"""A server that speaks the wire formats of both providers, for measurements and for faults over real HTTP.

python bench/judge_server.py [--port 0] [--delay 0.2] [--log FILE]

It answers as a judge would: marks that follow from the question's bytes, the right answer to the control question, one
quote from the message. It is as strict as the documents say: thinking counts against the longest answer, a prompt is
read from the cache only once an answer over it has ended, and parameters that it ``refuses`` are an error. A message
that holds ``fault=NAME`` gets that fault instead (see FAULTS); ``NAME*N`` the first N
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
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from undersong.judges.llm.prompts import shipped_prompts
from undersong.models import NEGATIVE_TRAITS, TRAITS

CONTROL = re.compile(r"which is word number (\d+) of this list: ([a-z, ]+)\?")
FAULT = re.compile(r"fault=(?P<name>[a-z0-9_]+)(?:\*(?P<times>\d+))?")
TOKEN = re.compile(r"[A-Za-z]{1,5}|\d{1,3}|\s+|[^\sA-Za-z\d]")  # pieces of about the size that tokenizers have
MESSAGE = re.compile(
    r"# Message to read\nBEGIN DATA (?P<nonce>[0-9a-f]+)\n\[\w+: \"(?:[^\"\\]|\\.)*\"\] (?P<text>.*)\n"
)
LINE = re.compile(
    r"^\d+ (?P<speaker>S\d+) \"(?:[^\"\\]|\\.)*\"[^:\n]*?(?: \d\d:\d\d)?[^:\n]*: (?P<text>\"(?:[^\"\\]|\\.)*\")",
    re.MULTILINE,
)
SHAPE = re.compile(r"shape=(?P<name>[a-z_]+)")
SHOWN = re.compile(MESSAGE.pattern.replace("Message to read", r"Message \d"))
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests",
           500: "Internal Server Error", 529: "Overloaded"}  # fmt: skip
GIANT = 10_000_000
ALWAYS_MARKED = shipped_prompts().limits.always_marked


class Answer(NamedTuple):
    """What goes back: ``cut`` bytes of the body are sent before the connection breaks off; ``drip`` seconds a byte.

    ``late`` seconds pass before its first byte. ``tokens`` are what is charged for it, in and out.
    """

    status: int
    body: bytes
    headers: dict[str, str] = {}
    cut: int | None = None
    drip: float = 0.0
    late: float = 0.0
    tokens: tuple[int, int] = (0, 0)


class Request(NamedTuple):
    """What came: ``user`` is the question's text, ``hash`` of the whole body; ``target`` as it was asked for.

    ``cached``: the prompt is in the cache. ``thinking`` tokens go before the answer; ``opinion`` as in JudgeServer.
    """

    path: str
    headers: dict[str, str]
    raw: bytes
    system: str
    user: str
    text: str
    target: str = ""
    cached: bool = False
    thinking: int = 0
    opinion: str = ""

    @property
    def limit(self) -> int:
        """The longest answer in tokens that was asked for."""
        body = json.loads(self.raw)
        return int(body.get("max_completion_tokens") or body["max_tokens"])

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


def read_request(path: str, headers: dict[str, str], raw: bytes) -> Request:
    """A request taken apart; ``text`` is the message to read, decoded."""
    body = json.loads(raw) if raw else {}
    listed = body.get("messages") or [{"content": ""}]
    user = str(listed[-1]["content"])
    system = str(listed[0]["content"] if len(listed) > 1 else (body.get("system") or [{"text": ""}])[0]["text"])
    match = MESSAGE.search(user)
    return Request(path, headers, raw, system, user, json.loads(match["text"]) if match else " ".join(shown(user)))


def sequence(request: Request, control: str) -> dict[str, Any]:
    """What a judge would say of a sequence: the shape that its speaker's messages name, a message for each stage."""
    speaker = re.findall(r"the messages of speaker (S\d+) as a sequence", request.user)[-1]
    lines = list(LINE.finditer(request.user))
    own = [(n, json.loads(line["text"])) for n, line in enumerate(lines, 1) if line["speaker"] == speaker]
    named = SHAPE.search(" ".join(text for _, text in own))
    if named is None:
        return {"control": control, "shapes": []}
    described = request.system.split(f"\n- {named['name']}:", 1)[1].split("\n- ", 1)[0]
    stages = re.findall(r'- stage "([^"]+)"', described)
    evidence = [
        {"stage": stage, "message": number, "quote": text[:40]}
        for stage, (number, text) in zip(stages, own, strict=False)
    ]
    one = {"shape": named["name"], "evidence": evidence, "innocent": "A bad week.", "certainty": 3}
    return {"control": control, "shapes": [one]}


def shown(user: str) -> list[str]:
    """The texts of the messages that a question about a mechanism or a sequence shows."""
    return [json.loads(found["text"]) for form in (SHOWN, LINE) for found in form.finditer(user)]


@lru_cache(16)
def tokens(text: str) -> int:
    """Pieces of a text; the system part is the same each time."""
    return len(TOKEN.findall(text))


def reading(request: Request) -> dict[str, Any]:
    """What a judge would say; the same question gets the same marks."""
    asked = CONTROL.search(request.user)
    assert asked is not None, request.user[-300:]
    control = asked[2].split(", ")[int(asked[1]) - 1]
    if " as a sequence, " in request.user:
        return {"control": control, "shapes": []} if request.opinion else sequence(request, control)
    if "\nMechanism: " in request.user:
        quotes = [{"message": n, "quote": text.split(",")[0]} for n, text in enumerate(shown(request.user), 1)]
        return {"control": control, "answer": "no" if request.opinion else "yes", "quotes": quotes, "confidence": 3}
    digest = hashlib.sha256(f"{request.opinion}{request.text}".encode("utf-8", "surrogatepass")).digest()
    quote = " ".join(request.text.split(" ")[:4])[:100]
    traits = {trait: _mark(digest[place], trait not in ALWAYS_MARKED) for place, trait in enumerate(TRAITS)}
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


def _mark(byte: int, nullable: bool) -> int | None:
    """0 to 4, and null as often as each of them where that is offered."""
    return None if nullable and byte >= 5 * 42 else byte % 5


def answered(request: Request, text: str | None = None, **how: Any) -> Answer:
    """An answer, a judge's where no other text is given, and what is charged for it."""
    text = json.dumps(reading(request)) if text is None else text
    text, output, stop = _within_limit(request, text, how.pop("stop", ""))
    taken = tokens(request.system) + tokens(request.user)
    body = enveloped(request, text, taken, output, stop=stop, refusal=how.pop("refusal", None))
    return Answer(200, body, tokens=(taken, output), **how)


def _within_limit(request: Request, text: str, stop: str) -> tuple[str, int, str]:
    """(text, tokens out, why it ends) of an answer that may be cut off: thinking counts against the longest answer."""
    pieces = TOKEN.findall(text)
    room = max(0, request.limit - request.thinking)
    if len(pieces) <= room:
        return text, request.thinking + len(pieces), stop
    return "".join(pieces[:room]), request.limit, "length"


def enveloped(
    request: Request, text: str, taken: int, output: int, *, stop: str = "", refusal: str | None = None
) -> bytes:
    """The answer's text in the envelope of the provider that was spoken to."""
    prompt = tokens(request.system)
    cached, written = (prompt, 0) if request.cached else (0, prompt)
    if request.chat:
        message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
        usage = {"prompt_tokens": taken, "completion_tokens": output, "total_tokens": taken + output,
                 "prompt_tokens_details": {"cached_tokens": cached}}  # fmt: skip
        choice = {"index": 0, "message": message, "finish_reason": stop or "stop"}
        return json.dumps({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice],
                           "usage": usage}).encode()  # fmt: skip
    usage = {"input_tokens": taken - prompt, "output_tokens": output, "cache_read_input_tokens": cached,
             "cache_creation_input_tokens": written}  # fmt: skip
    content = [{"type": "text", "text": refusal or text}]
    stops = {"": "end_turn", "length": "max_tokens"}
    return json.dumps({"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": content,
                       "stop_reason": "refusal" if refusal else stops[stop], "stop_sequence": None,
                       "usage": usage}).encode()  # fmt: skip


def error_body(message: str, kind: str = "some_error", code: Any = None) -> bytes:
    """An error in the form of both providers."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, "code": code}}).encode()


def refused(parameter: str) -> Answer:
    """A parameter that is not taken, in the words of one provider."""
    other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}.get(parameter)
    use = f" Use '{other}' instead." if other else ""
    message = f"Unsupported parameter: '{parameter}' is not supported with this model.{use}"
    return Answer(400, error_body(message, "invalid_request_error", "unsupported_parameter"))


def _has(body: dict[str, Any], place: str) -> bool:
    """Whether a body holds a parameter such as ``output_config.effort``."""
    outer, _, inner = place.partition(".")
    return outer in body and (not inner or inner in body[outer])


def _error(status: int, message: str = "", kind: str = "some_error", **headers: str) -> Callable[[Request], Answer]:
    body = error_body(message or f"error {status}", kind)
    return lambda _: Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def _said(change: Callable[[dict[str, Any]], object]) -> Callable[[Request], Answer]:
    def behave(request: Request) -> Answer:
        answer = reading(request)
        change(answer)
        return answered(request, json.dumps(answer))

    return behave


def _text(text: str, **how: Any) -> Callable[[Request], Answer]:
    return lambda request: answered(request, text, **how)


def _judges(**how: Any) -> Callable[[Request], Answer]:
    """A judge's answer that comes in an odd way."""
    return lambda request: answered(request, **how)


def _around(before: str, after: str) -> Callable[[Request], Answer]:
    return lambda request: answered(request, before + json.dumps(reading(request)) + after)


def _thinks(tokens_out: int) -> Callable[[Request], Answer]:
    return lambda request: answered(request._replace(thinking=tokens_out))


def _without(request: Request, name: str) -> Answer:
    """An answer whose envelope lacks something."""
    answer = answered(request)
    body = json.loads(answer.body)
    del body[name]
    return answer._replace(body=json.dumps(body).encode())


def _marks_as_fractions(request: Request) -> Answer:
    answer = reading(request)
    answer["traits"] = {trait: None if mark is None else float(mark) for trait, mark in answer["traits"].items()}
    return answered(request, json.dumps(answer))


def _too_long(window: int) -> Callable[[Request], Answer]:
    """The error of a server whose window is too small for question and answer together, as vLLM words it."""

    def behave(request: Request) -> Answer:
        taken = tokens(request.system) + tokens(request.user)
        if taken + request.limit <= window:
            return answered(request)
        parts = f"({taken} in the messages, {request.limit} in the completion)"
        wanted = f"However, you requested {taken + request.limit} tokens {parts}."
        message = f"This model's maximum context length is {window} tokens. {wanted}"
        return Answer(400, error_body(message, "BadRequestError"))

    return behave


def _capped(most: int) -> Callable[[Request], Answer]:
    """The error of a model that gives no answer of this length."""

    def behave(request: Request) -> Answer:
        if request.limit <= most:
            return answered(request)
        what = f"max_tokens: {request.limit} > {most}, which is the maximum allowed number of output tokens for m-3-5"
        return Answer(400, error_body(what, "invalid_request_error"))

    return behave


SPENT = "You exceeded your current quota, please check your plan and billing details."
FAULTS: dict[str, Callable[[Request], Answer]] = {
    "429_after": _error(429, retry_after="0.05"),
    "429": _error(429),
    "500": _error(500),
    "529": _error(529),
    "504": lambda request: Answer(504, error_body("gateway"), tokens=answered(request).tokens),
    "moved": lambda request: Answer(307, b"", {"location": request.target}),
    "401": _error(401),
    "402": _error(402),
    "404": _error(404, "The model `m` does not exist"),
    "400": _error(400),
    "422": lambda _: Answer(422, b'{"detail": [{"msg": "Input should be a valid string", "loc": ["body", "x"]}]}'),
    "quota": _error(429, SPENT, "insufficient_quota"),
    "credit": _error(400, "Your credit balance is too low to access the API.", "invalid_request_error"),
    "filter": _error(400, "The response was filtered by the content management policy.", "content_filter"),
    "flagged": _error(403, "Your input was flagged by moderation."),
    "effort": _error(400, "Unsupported value: 'reasoning_effort' does not support 'low' with this model."),
    "window": _too_long(24_000),
    "narrow": _too_long(4_000),
    "capped": _capped(8_192),
    "cut": _judges(cut=40),
    "cut_late": _judges(cut=200, late=0.1),
    "drip": _judges(drip=0.05),
    "silent": _judges(late=30.0),
    "slow": _judges(late=0.3),
    "truncated": lambda request: answered(request, json.dumps(reading(request))[:90], stop="length"),
    "thinks": _thinks(1_800),
    "thinks_much": _thinks(20_000),
    "thinks_on": _thinks(1_000_000),
    "runs_on": _text("and so on " * 20_000),
    "broken_envelope": lambda request: answered(request)._replace(body=b'{"choices": 3, "content": 4'),
    "half_envelope": lambda request: answered(request)._replace(body=answered(request).body[:120]),
    "no_body": lambda request: Answer(200, b"", tokens=answered(request).tokens),
    "no_choices": lambda _: Answer(200, b'{"choices": [], "content": []}'),
    "error_200": lambda _: Answer(200, error_body("Provider returned error")),
    "error_200_status": lambda _: Answer(200, error_body("Rate limited upstream", code=429)),
    "error_choice": lambda _: Answer(
        200, b'{"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "upstream"}}], "error": {}}'
    ),
    "html": lambda _: Answer(200, b"<html>a login page</html>", {"content-type": "text/html"}),
    "no_usage": lambda request: _without(request, "usage"),
    "prose": _text("I would say this message is fine."),
    "fenced": _around("Here it is:\n```json\n", "\n```\nDoes that help?"),
    "around": _around("My reading of it: ", " That is all."),
    "fractions": _marks_as_fractions,
    "schema": _said(lambda answer: answer.pop("traits")),
    "range": _said(lambda answer: answer["traits"].update(virtue=9)),
    "refusal": _text("", refusal="I cannot help with that."),
    "empty": _text(""),
    "quote": _said(lambda answer: answer["indicators"][0].update(quote="words that nobody wrote")),
    "unknown": _said(lambda answer: answer["indicators"][0].update(id="MAN-NOSUCH")),
    "control": _said(lambda answer: answer.update(control="steered")),
    "no": _said(lambda answer: answer.update(answer="no", quotes=[])),
    "giant": lambda request: answered(request)._replace(body=b'{"x": "' + b"x" * GIANT),
    "other_model": lambda request: answered(request)._replace(
        body=answered(request).body.replace(b'"model": "m"', b'"model": "m-small"')
    ),
    "limit": _judges(
        headers={"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50ms",
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
