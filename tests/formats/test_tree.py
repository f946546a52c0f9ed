"""Reply trees: what the reader saw, and what was abandoned."""

from __future__ import annotations

from undersong.formats.tree import branches

REGENERATED = {"a": None, "b": "a", "c": "b", "d": "a", "e": "d"}


def test_the_path_to_the_current_node_has_no_branch() -> None:
    assert branches(REGENERATED, "e") == {"a": None, "b": "b", "c": "b", "d": None, "e": None}
    assert branches(REGENERATED, "c") == {"a": None, "b": None, "c": None, "d": "d", "e": "d"}


def test_without_a_current_node_the_last_leaf_is_taken() -> None:
    assert branches(REGENERATED, None) == branches(REGENERATED, "missing") == branches(REGENERATED, "e")


def test_a_branch_that_forks_again_is_two_branches() -> None:
    parents = {"a": None, "b": "a", "c": "b", "d": "b", "e": "a"}
    assert branches(parents, "e") == {"a": None, "b": "b", "c": "b", "d": "d", "e": None}


def test_circles_and_lost_parents_do_not_hang() -> None:
    assert branches({"a": "b", "b": "a", "c": "gone", "d": "d"}, "a") == {"c": "c"}
    assert branches({}, None) == {}


def test_a_chain_of_100_000_is_no_deep_recursion() -> None:
    chain = {str(number): str(number - 1) if number else None for number in range(100_000)}
    assert set(branches(chain, "99999").values()) == {None}
