"""Presets of providers, on the bytes of their requests: address, query, key and parameters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import Served, question
from undersong.errors import JudgeError, UsageError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.presets import endpoint_of, load_presets, without_secrets
from undersong.judges.llm.pricing import load_prices
from undersong.judges.protocol import PAID, open_judge


class Recorder(ThreadingHTTPServer):
    """A server that records what came and answers with an error that nobody repeats."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str], dict[str, object]]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, Recorder)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.path, headers, json.loads(raw)))
        body = b'{"error": {"message": "not today"}}'
        self.send_response(422)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    server = Recorder()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(spec: str, **environment: str) -> None:
    (evaluation,) = open_judge(spec, RunLimits(environment=environment, attempts=1)).evaluate([question("You owe me.")])
    assert evaluation.state == "failed"


def test_every_preset_can_be_named_and_has_an_entry_in_the_price_list() -> None:
    assert load_presets().keys() == PAID.keys() - {"replay", "tiers"}
    assert load_presets().keys() <= {price.name for price in load_prices().judges}


def test_azure_sends_its_key_in_its_own_header_to_its_own_address(recorder: Recorder) -> None:
    ask("azure:my-deployment", AZURE_OPENAI_ENDPOINT=recorder.address, AZURE_OPENAI_API_KEY="azure-secret")
    ((path, headers, body),) = recorder.seen
    assert path == "/openai/v1/chat/completions"
    assert headers["api-key"] == "azure-secret"
    assert "authorization" not in headers
    assert body["model"] == "my-deployment"
    assert "max_completion_tokens" in body
    assert "temperature" not in body


@pytest.mark.parametrize("provider", ["azure", "openai"])
def test_an_api_version_in_the_address_goes_with_every_request(recorder: Recorder, provider: str) -> None:
    address = f"{recorder.address}/openai/deployments/d?api-version=2024-10-21"
    ask(f"{provider}:d@{address}", AZURE_OPENAI_API_KEY="azure-secret", UNDERSONG_JUDGE_KEY="own-secret")
    ((path, headers, _),) = recorder.seen
    assert path == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    key = {"azure": ("api-key", "azure-secret"), "openai": ("authorization", "Bearer own-secret")}[provider]
    assert headers[key[0]] == key[1]


def test_basic_authentication_comes_from_the_environment(recorder: Recorder) -> None:
    ask(f"ollama:qwen@{recorder.address}/v1", UNDERSONG_JUDGE_KEY="Basic dXNlcjpwdw==")
    assert {headers["authorization"] for _, headers, _ in recorder.seen} == {"Basic dXNlcjpwdw=="}
    body = recorder.seen[-1][-1]
    assert "temperature" in body


def test_a_providers_key_is_sent_to_no_other_address(recorder: Recorder) -> None:
    ask(f"gemini:gemini-flash@{recorder.address}/v1", GEMINI_API_KEY="gemini-secret")
    ((_, headers, _),) = recorder.seen
    assert "gemini-secret" not in json.dumps(headers)
    google = endpoint_of("gemini", None, {"GEMINI_API_KEY": "gemini-secret"})
    assert (google.url, google.secret) == ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini-secret")


def test_bedrock_names_the_model_in_the_path_and_sends_its_key(recorder: Recorder) -> None:
    ask(f"bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0@{recorder.address}", UNDERSONG_JUDGE_KEY="bedrock-secret")
    ((path, headers, body),) = recorder.seen
    assert path == "/model/us.anthropic.claude-haiku-4-5-20251001-v1:0/invoke"
    assert headers["authorization"] == "Bearer bedrock-secret"
    assert "model" not in body
    assert body["anthropic_version"]


@pytest.mark.parametrize(
    ("spec", "environment", "remedy"),
    [
        ("gemini:m", {}, "set GEMINI_API_KEY in the environment"),
        ("azure:m", {"AZURE_OPENAI_API_KEY": "k"}, "set AZURE_OPENAI_ENDPOINT in the environment, or write @URL"),
        ("bedrock:m", {"AWS_BEARER_TOKEN_BEDROCK": "k"}, "set AWS_REGION in the environment"),
        ("bedrock:m", {"AWS_REGION": "eu-west-1"}, "set AWS_BEARER_TOKEN_BEDROCK in the environment, or pip install"),
    ],
)
def test_what_is_missing_is_named(spec: str, environment: dict[str, str], remedy: str) -> None:
    with pytest.raises(JudgeError) as error:
        open_judge(spec, RunLimits(environment=environment))
    assert remedy in str(error.value)


def test_a_preset_without_batches_says_so() -> None:
    with pytest.raises(UsageError, match="has no batches; leave out --batch"):
        open_judge("ollama:qwen", RunLimits(batch=True))


def test_a_preset_says_how_many_at_a_time_and_how_long(served: Served) -> None:
    judge = open_judge("ollama:qwen", RunLimits())
    assert (judge.limits.concurrency, judge.models["deep"]._timeout) == (1, 900)  # type: ignore[attr-defined]
    chosen = open_judge("ollama:qwen", RunLimits(concurrency=3, timeout=5))
    assert (chosen.limits.concurrency, chosen.models["deep"]._timeout) == (3, 5)  # type: ignore[attr-defined]
    local = open_judge(f"llamacpp:m@http://127.0.0.1:{served.port}/v1", RunLimits(budget=1.0))
    (evaluation,) = local.evaluate([question("You owe me.")])  # a server of one's own costs nothing, so a budget holds
    assert evaluation.state == "scored"
    assert evaluation.cost == 0


@pytest.mark.parametrize(
    "address",
    [
        "http://kira:hunter2@127.0.0.1:9/v1",
        "http://127.0.0.1:9/v1?key=hunter2",
        "http://127.0.0.1:9/v1?api_key=hunter2",
    ],
)
def test_an_address_with_a_password_or_a_key_is_refused_and_never_written(undersong: Undersong, address: str) -> None:
    Path("talk.jsonl").write_text('{"id": "m", "conversation": "c", "author": "kira", "text": "You owe me."}\n')
    for verb in (("audit", "talk.jsonl", "--all"), ("plan", "talk.jsonl"), ("evaluate", "talk.jsonl")):
        ran = undersong(*verb, "--judge", f"openai:m@{address}")
        assert ran.code == 2
        assert "set UNDERSONG_JUDGE_KEY in the environment" in ran.err
        assert "hunter2" not in ran.out + ran.err
    written = [path.read_bytes() for path in Path().rglob("*") if path.is_file()]
    assert not any(b"hunter2" in content for content in written)


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert without_secrets("https://kira:pw@host:8/v1?sig=x") == "https://host:8/v1"
