"""Context windows: asked from servers in the form of each, compared with the question, and a cut prompt is an error."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import Served, question
from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.judge_check import is_object, thinking_tokens
from undersong.judges.llm.transport import Completion
from undersong.judges.protocol import JudgeAbortedError, open_judge

REMEDIES = {"llamacpp": "-c ", "vllm": "--max-model-len", "lmstudio": "context length", "ollama": "OLLAMA_"}
LOADED = {"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}
TOLD: dict[str, dict[str, Any]] = {
    "llamacpp": {"/props": {"default_generation_settings": {"n_ctx": 4096}}},
    "vllm": {"/v1/models": {"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 4096}]}},
    "lmstudio": {"/api/v0/models": {"data": [LOADED]}},
    "ollama": {"/api/ps": {"models": []}, "/api/show": {"parameters": "stop x\nnum_ctx     4096"}},
}


class LocalServer(ThreadingHTTPServer):
    """A server that says its window, and answers a question with so many tokens of input and no usable answer."""

    def __init__(self, says: dict[str, Any], counts: int = 100_000) -> None:
        self.says, self.counts, self.asked = says, counts, list[str]()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def spec(self, kind: str) -> str:
        return f"{kind}:m@http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        assert isinstance(self.server, LocalServer)
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.asked.append(self.path)
        said = self.server.says.get(self.path)
        if self.path.endswith("/chat/completions"):
            usage = {"prompt_tokens": self.server.counts, "completion_tokens": 1}
            said = {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "usage": usage}
        body = json.dumps(said or {"error": "no such page"}).encode()
        self.send_response(200 if said else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@pytest.fixture
def local(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    server = LocalServer(*request.param)
    yield server
    server.shutdown()
    server.thread.join()
    server.server_close()


def fails(spec: str) -> JudgeError:
    with pytest.raises(JudgeAbortedError) as error:
        open_judge(spec, RunLimits(attempts=1)).evaluate([question("You owe me.")])
    return error.value


@pytest.mark.parametrize(("local", "kind"), [((TOLD[kind],), kind) for kind in TOLD], indirect=["local"])
def test_a_prompt_that_cannot_fit_is_not_sent(local: LocalServer, kind: str) -> None:
    text = str(fails(local.spec(kind)))
    assert "the context window has 4,096" in text
    assert REMEDIES[kind] in text
    assert not any(path.endswith("/chat/completions") for path in local.asked)


@pytest.mark.parametrize("local", [({}, 4096)], indirect=True)
@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_a_server_that_counts_fewer_tokens_than_the_instructions_have_cut_the_prompt(
    local: LocalServer, kind: str
) -> None:
    assert "the server cut the prompt: it counts 4,096 tokens" in str(fails(local.spec(kind)))


@pytest.mark.parametrize("local", [({},)], indirect=True)
def test_a_server_that_does_not_say_its_window_is_asked_all_the_same(local: LocalServer) -> None:
    (evaluation,) = open_judge(local.spec("llamacpp"), RunLimits(attempts=1)).evaluate([question("You owe me.")])
    assert evaluation.state == "failed"  # the answer is empty
    assert local.asked.count("/props") == 1


def test_the_real_llama_cpp_says_its_window(tmp_path: Path) -> None:
    tiny = pytest.importorskip("tests.judges.tiny_llm")
    tiny.write_model(tmp_path / "tiny.gguf")
    server = tiny.serve(tmp_path / "tiny.gguf", parallel=8)  # its tokens are bytes, and each slot has an eighth
    text = str(fails(f"llamacpp:tiny@{server.listening_address}/v1"))
    del server
    assert f"the context window has {tiny.CONTEXT // 8:,}" in text


class CodeWords(BaseHTTPRequestHandler):
    """Answers the code words of the prompt as far as its window reaches, from the end as servers cut."""

    def do_POST(self) -> None:
        assert isinstance(self.server, CodeWordServer)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = "".join(message["content"] for message in body["messages"])[-self.server.characters :]
        known = {name: re.search(rf"The {name} code word is (\w+)\.", text) for name in ("first", "last")}
        answer = json.dumps({name: match[1] if match else "amber" for name, match in known.items()})
        usage = {"prompt_tokens": 20_000, "completion_tokens": 9}
        reply = {
            "model": "qwen-9",
            "choices": [{"message": {"content": answer}, "finish_reason": "stop"}],
            "usage": usage,
        }
        raw = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


class CodeWordServer(ThreadingHTTPServer):
    characters = 1_000_000


@pytest.mark.parametrize(("characters", "code", "words"), [(1_000_000, 0, "both"), (8_000, 4, "the last alone")])
def test_a_check_finds_out_whether_the_whole_prompt_was_read(
    undersong: Undersong, characters: int, code: int, words: str
) -> None:
    server = CodeWordServer(("127.0.0.1", 0), CodeWords)
    server.characters = characters
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        spec = f"openai:m@http://127.0.0.1:{server.server_address[1]}/v1"
        ran = undersong("judge", "check", spec, "--price-in", "1", "--price-out", "2")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert ran.code == code, ran.err
    assert f"code words known: {words}" in ran.out
    assert "answered by qwen-9" in ran.out
    assert "price of this question: 0.020018 USD" in ran.out
    assert "thinking: none" in ran.out
    assert "form of the answer: as asked" in ran.out
    assert ran.err.startswith(f"will ask {spec} 1 questions, for 0.0")


@pytest.mark.parametrize(
    ("text", "tokens", "thought", "structured"),
    [
        ('{"first": "amber"}', 12, 0, True),
        ('{"first": "amber"}', 900, 883, True),
        ('Here it is: {"first": "amber"}', 12, 0, False),
        ('{"first": "amber"', 12, 0, False),
        ("[1]", 4, 0, False),
    ],
)
def test_a_check_tells_thinking_and_form_by_the_answer(text: str, tokens: int, thought: int, structured: bool) -> None:
    assert thinking_tokens(Completion(text, "end", output=tokens)) == thought
    assert thinking_tokens(Completion(text, "end", output=tokens, counted=False)) is None
    assert is_object(text) is structured


def test_a_check_within_no_budget_asks_nothing(undersong: Undersong, served: Served) -> None:
    prices = ("--price-in", "1", "--price-out", "2")
    ran = undersong("judge", "check", served.spec(), *prices, "--budget", "0.000001")
    assert ran.code == 4
    assert "the budget of $0.00 is used up" in ran.out
    assert served.server.seen == []
