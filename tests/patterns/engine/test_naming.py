"""Texts of several lists have numbers in alphabetical order."""

from __future__ import annotations

import pytest

from undersong.patterns.engine.naming import numbered


def test_texts_of_all_lists_are_numbered_in_order_and_each_list_knows_its_own() -> None:
    agents, tiers = ["kira", "bo", "al"], ["deep", "bo", "ärger", ""]
    names, own = numbered([agents, tiers, agents])
    assert list(names) == ["", "al", "bo", "deep", "kira", "ärger"]
    assert [part.tolist() for part in own] == [[4, 2, 1, -1], [3, 2, 5, 0, -1], [4, 2, 1, -1]]
    assert {text: names[text] for text in names} == {text: place for place, text in enumerate(names)}


def test_a_text_that_stands_twice_in_a_list_has_one_number() -> None:
    names, own = numbered([["b", "a", "b"]])
    assert (list(names), own[0].tolist()) == (["a", "b"], [1, 0, 1, -1])


@pytest.mark.parametrize("unknown", ["", "a ", "zoe"])
def test_a_text_of_no_list_has_no_number(unknown: str) -> None:
    names, _ = numbered([["a", "kira"], []])
    assert unknown not in names
    assert names.get(unknown, -2) == -2


def test_lists_without_texts_number_nothing() -> None:
    names, own = numbered([[], ()])
    assert len(names) == 0
    assert [part.tolist() for part in own] == [[-1], [-1]]
