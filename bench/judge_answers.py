"""What the judge server reads in a question and answers to it, in the wire formats of both providers.

Marks follow from the question's bytes; every answer has the right answer to the control question and one quote from the
message. It is as strict as the documents say: thinking counts against the longest answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from undersong.judges.llm.prompts import shipped_prompts
from undersong.models import NEGATIVE_TRAITS, TRAITS

CONTROL = re.compile(r"which is word number (\d+) of this list: ([a-z, ]+)\?")
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
