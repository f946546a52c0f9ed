"""The price list: who costs what, families of dated ids, and prices that follow from others."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.conftest import Undersong
from tests.judges.dialogue import Served
from undersong.datafiles.yaml_loader import RULES
from undersong.judges.llm.pricing import (
    ModelFacts,
    dates_of,
    load_prices,
    model_facts,
    old_price_words,
    price_of,
)


def test_every_price_says_when_and_where_it_was_read() -> None:
    for price in load_prices().judges:
        assert price.as_of is not None
        assert len(price.source) > 12


@pytest.mark.parametrize(
    ("dated", "family"),
    [
        ("anthropic:claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5"),
        ("anthropic:claude-haiku-4-5-20251001+low", "anthropic:claude-haiku-4-5"),
        ("openai:gpt-6-luna-2026-09-22", "openai:gpt-6-luna"),
    ],
)
def test_a_dated_id_costs_what_its_family_costs(dated: str, family: str) -> None:
    assert price_of(dated).cost(1000, 100, cached=500) == price_of(family).cost(1000, 100, cached=500)
    assert model_facts(dated) == model_facts(family) != ModelFacts()


def test_a_date_is_eight_digits_and_no_other_ending() -> None:
    assert price_of("anthropic:claude-sonnet-4-5-2025").input is None
    assert model_facts("anthropic:claude-sonnet-4-5-2025") == ModelFacts()


def test_prices_of_cached_and_written_input_follow_from_the_input_price() -> None:
    given = price_of("anthropic:some-model", 4.0, 20.0)
    assert (given.cached, given.written, given.derived) == (pytest.approx(0.4), 5.0, ("cached", "written"))
    listed = price_of("openai:gpt-6-sol")
    assert (listed.cached, listed.written, listed.derived) == (0.2, 2.5, ())


def test_a_given_input_price_keeps_the_listed_share_of_cached_input() -> None:
    given = price_of("anthropic:claude-opus-5-5", 8.0)
    assert (given.input, given.cached, given.written, given.output) == (8.0, 0.4, 10.0, 20.0)


def test_a_server_by_address_has_no_discount_that_nobody_stated() -> None:
    given = price_of("openai:gpt-6-sol@http://127.0.0.1:9/v1", 2.0, 10.0)
    assert (given.cached, given.written, given.derived) == (None, None, ())
    assert price_of("openai:gpt-6-sol@http://127.0.0.1:9/v1").input is None


def test_a_long_prompt_costs_more_from_the_token_after_the_limit() -> None:
    haiku = price_of("anthropic:claude-haiku-5-5")
    assert haiku.cost(100_000, 1000) == pytest.approx(0.0105)
    assert haiku.cost(100_001, 1000) == pytest.approx(0.0525, rel=1e-4)


def test_room_for_thinking_is_known_where_a_model_thinks_by_default() -> None:
    assert (model_facts("anthropic:claude-opus-5-5").thinking or 0) >= 16_000
    assert (model_facts("openai:gpt-6-luna+low@https://proxy/v1").thinking or 0) >= 16_000
    assert model_facts("anthropic:claude-haiku-4-5").thinking == 0
    assert model_facts("openai:qwen@http://127.0.0.1:9/v1") == ModelFacts(None, None)


OWN = """
as_of: 2026-01-02
judges:
  - {name: "anthropic:claude-opus-5-5", input: 3.0, output: 15.0, source: our contract}
  - {name: "openrouter:qwen/qwen-9", input: 0.2, output: 0.6, source: openrouter.ai, context: 40000}
"""


@pytest.fixture
def own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the user's own list."""
    monkeypatch.setenv("UNDERSONG_PRICES", str(tmp_path / "mine" / "prices.yaml"))
    return tmp_path / "mine" / "prices.yaml"


@pytest.mark.parametrize("as_json", [False, True])
def test_an_own_list_goes_before_the_shipped_one(undersong: Undersong, own_list: Path, as_json: bool) -> None:
    content = msgspec.json.encode(yaml.safe_load(OWN)).decode() if as_json else OWN
    Path("list.yaml").write_text(content)
    updated = undersong("prices", "--update", "list.yaml")
    assert updated.code == 0, updated.err
    digest = hashlib.sha256(own_list.read_bytes()).hexdigest()
    assert f"list of 2026-01-02, sha256 {digest}" in updated.out
    assert price_of("anthropic:claude-opus-5-5").cost(1_000_000, 0) == 3.0
    assert price_of("anthropic:claude-opus-5").input == 5.0
    assert model_facts("openrouter:qwen/qwen-9").context == 40_000
    listed = json.loads(undersong("prices", "--json").out)
    assert [file["as_of"] for file in listed["files"]] == [load_shipped_date(), "2026-01-02"]


def load_shipped_date() -> str:
    return str(yaml.safe_load((RULES / "prices.yaml").read_text())["as_of"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("as_of: 2026-01-02\njudges:\n  - {name: a, inptu: 3.0}\n", "unknown key 'inptu'"),
        ("as_of: 2026-01-02\njudges: []\n", "lists no price"),
        ("as_of: 2026-01-02\njudges:\n  - {name: a, input: -1, output: 1, source: x}\n", "the price of a is negative"),
        ("judges: []\n", "as_of"),
    ],
)
def test_a_list_that_is_none_is_refused_and_leaves_the_older_one(
    undersong: Undersong, own_list: Path, content: str, expected: str
) -> None:
    own_list.parent.mkdir()
    own_list.write_text(OWN)
    Path("list.yaml").write_text(content)
    refused = undersong("prices", "--update", "list.yaml")
    assert refused.code == 2
    assert "list.yaml" in refused.err
    assert expected in refused.err
    assert own_list.read_text() == OWN


def test_a_variable_that_names_no_file_is_an_error(undersong: Undersong, own_list: Path) -> None:
    ran = undersong("plan", "samples", "--judge", "anthropic:claude-opus-5")
    assert ran.code == 2
    assert f"{own_list}: no such list of prices" in ran.err


def test_a_plan_and_a_summary_say_that_a_price_is_old(
    undersong: Undersong, served: Served, own_list: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_list.parent.mkdir()
    own_list.write_text(OWN.replace("2026-01-02", "2020-01-02").replace("openrouter:qwen/qwen-9", "openai:old"))
    plan = undersong("plan", "samples", "--judge", "openai:old").out
    assert "(2020-01-02) and may have changed" in plan
    assert "may have changed" not in undersong("plan", "samples", "--judge", "openai:old", "--price-in", "1").out
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{served.port}/v1")
    Path("talk.jsonl").write_text('{"id": "m", "conversation": "c", "author": "kira", "text": "You owe me."}\n')
    ran = undersong("audit", "talk.jsonl", "--judge", "openai:old", "--all", "--no-chance")
    assert ran.code == 0, ran.err
    assert "judge      The price of openai:old is" in ran.out
    address = f"Questions went to http://127.0.0.1:{served.port}/v1, which OPENAI_BASE_URL names in the environment."
    assert f"judge      {address}" in ran.out
    report = Path("undersong-report/details.md").read_text()
    digest = hashlib.sha256(own_list.read_bytes()).hexdigest()
    assert f"then the own list of 2020-01-02 ({digest[:12]}…)" in report
    assert "OPENAI" in report
    assert undersong("verify", "undersong-report", "talk.jsonl").code == 0


def test_a_price_is_old_after_ninety_days() -> None:
    dates = dates_of([price_of("anthropic:claude-opus-5-5"), price_of("offline"), price_of("openai:m", 1.0, 2.0)])
    ((name, read_on),) = dates.items()
    assert name == "anthropic:claude-opus-5-5"
    assert list(old_price_words(dates, read_on + timedelta(days=90))) == []
    assert len(list(old_price_words(dates, read_on + timedelta(days=91)))) == 1
