"""The price list: who costs what, families of dated ids, and prices that follow from others."""

from __future__ import annotations

import pytest

from undersong.judges.llm.pricing import ModelFacts, load_prices, model_facts, price_of


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
