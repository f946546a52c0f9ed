"""Who could judge on this machine: by keys, by servers that really answer, and what is missing."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

import pytest

from tests.conftest import Undersong
from undersong.judges.llm import at_hand
from undersong.judges.llm.at_hand import (
    for_this_machine,
    judge_command,
    judge_option,
    judges_at_hand,
    load_judges,
    served_models,
)
from undersong.judges.llm.model_spec import parse_model_spec
from undersong.judges.llm.presets import load_presets
from undersong.judges.llm.pricing import price_of


def nobody(url: str) -> list[str]:  # noqa: ARG001 - no server answers
    return []


class Models(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, ModelServer)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


class ModelServer(ThreadingHTTPServer):
    status, body = 200, b""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    opened = ModelServer(("127.0.0.1", 0), Models)
    thread = threading.Thread(target=opened.serve_forever)
    thread.start()
    yield opened
    opened.shutdown()
    thread.join()
    opened.server_close()


def test_every_recommended_model_is_one_of_a_provider_with_a_price_or_without() -> None:
    for entry in load_judges().providers:
        assert entry.provider in load_presets()
        if entry.model:
            assert parse_model_spec(entry.provider, entry.model).model == entry.model
    for entry in load_judges().providers[:2]:
        assert price_of(f"{entry.provider}:{entry.model}").input, "a recommended model of the vendors has a price"


def test_a_key_that_is_set_gives_a_judge_with_its_price() -> None:
    (judge,) = [each for each in judges_at_hand({"OPENAI_API_KEY": "k-secret"}, nobody) if "is set" in each.because]
    assert judge.judge.startswith("openai:")
    assert judge.ready
    assert judge.price.input
    assert "k-secret" not in repr(judge)


def test_what_is_missing_is_named() -> None:
    azure = {"AZURE_OPENAI_API_KEY": "k"}
    (judge,) = [each for each in judges_at_hand(azure, nobody) if each.judge.startswith("azure")]
    assert (judge.ready, judge.missing) == (False, "set AZURE_OPENAI_ENDPOINT")
    assert "azure" not in judge_option(azure, nobody)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_hand, "_installed", lambda package: not package)
    (judge,) = [each for each in judges_at_hand({"OPENAI_API_KEY": "k"}, nobody) if "is set" in each.because]
    assert judge.missing == "pip install 'undersong[llm]'"
    assert set(at_hand.libraries().values()) == {None}
    assert judge_command(["audit", "x"], {}, nobody).startswith("pip install 'undersong[llm]' && ANTHROPIC_API_KEY=")


def test_a_server_that_answers_is_listed_with_its_models(server: ModelServer) -> None:
    server.body = json.dumps({"data": [{"id": "qwen-9"}, {"id": "a\u001b[2Jb"}, {"id": 7}]}).encode()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    assert served_models(url) == ["qwen-9"]
    ollama = load_presets()["ollama"].url
    found_here = judges_at_hand({}, lambda address: served_models(url) if address == ollama else [])
    (judge,) = [each for each in found_here if each.judge.startswith("ollama")]
    assert (judge.judge, judge.ready, judge.free) == ("ollama:qwen-9", True, True)
    command = judge_command(["audit", "my logs/"], {}, lambda address: served_models(url) if address == ollama else [])
    assert shlex.split(command) == ["undersong", "audit", "my logs/", "--judge", "ollama:qwen-9"]


@pytest.mark.parametrize(
    ("status", "body"), [(500, b"{}"), (200, b"<html>"), (200, b'{"data": 1}'), (200, b"[]"), (200, b"")]
)
def test_what_is_no_list_of_models_is_no_judge(server: ModelServer, status: int, body: bytes) -> None:
    server.status, server.body = status, body
    assert served_models(f"http://127.0.0.1:{server.server_address[1]}/v1") == []


def test_no_other_machine_is_asked() -> None:
    assert served_models("http://192.0.2.1/v1") == []
    assert served_models("http://127.0.0.1.example.org/v1") == []


def test_a_command_that_costs_something_has_a_budget() -> None:
    words = shlex.split(judge_command(["audit", "x"], {"ANTHROPIC_API_KEY": "k"}, nobody))
    assert words[3:] == ["--judge", words[4], "--budget", "5"]
    assert words[4].startswith("anthropic:")


def test_the_list_says_what_to_do_where_nothing_is_ready(undersong: Undersong, monkeypatch: pytest.MonkeyPatch) -> None:
    for preset in load_presets().values():
        monkeypatch.delenv(preset.key or "NOT_SET", raising=False)
    monkeypatch.setattr(at_hand, "SECONDS", 0.01)
    ran = undersong("judges")
    assert ran.code == 0
    assert ran.out.startswith("offline: ")
    assert f"anthropic {version('anthropic')}, openai {version('openai')}" in ran.out
    if "No LLM judge is ready" in ran.out:
        assert "ANTHROPIC_API_KEY=YOUR_KEY undersong audit PATH --judge anthropic:" in ran.out
    monkeypatch.setenv("OPENAI_API_KEY", "k-secret")
    ran = undersong("judges")
    assert "OPENAI_API_KEY is set" in ran.out
    assert "undersong judge check openai:" in ran.out
    assert "k-secret" not in ran.out
    lines = [json.loads(line) for line in undersong("judges", "--json").out.splitlines()]
    assert any(line["judge"].startswith("openai:") and line["ready"] for line in lines)


def test_an_error_that_asks_for_an_llm_judge_names_one(undersong: Undersong, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    ran = undersong("audit", "samples", "--read", "sequences")
    assert ran.code == 2
    assert "such as --judge openai:" in ran.err


def test_a_command_is_put_in_terms_of_the_judge_that_is_ready_here() -> None:
    command = "undersong audit 'my logs' --read sequences --judge anthropic:claude-sonnet-5-5"
    assert for_this_machine(command, judges_at_hand({}, nobody)) is None
    assert for_this_machine(command, judges_at_hand({"ANTHROPIC_API_KEY": "k"}, nobody)) is None
    ready = judges_at_hand({"OPENAI_API_KEY": "k"}, nobody)
    assert for_this_machine(command, ready) == (
        f"undersong audit 'my logs' --read sequences --judge {ready[0].judge} --budget 5"
    )
    local = judges_at_hand({}, lambda url: ["qwen 9"] if ":11434" in url else [])
    assert for_this_machine(command, local) == "undersong audit 'my logs' --read sequences --judge 'ollama:qwen 9'"


def test_the_first_screen_offers_the_judge_that_is_ready_here(
    undersong: Undersong, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    ran = undersong("audit", "samples", "--no-store")
    _, _, after = ran.out.partition("with what is ready here:")
    command = " ".join(after.partition("--budget 5")[0].replace("\\\n", " ").split())
    assert "audit samples --read sequences --no-store --judge openai:" in command
    assert len(command) < 200
