"""Rough score worlds: the same bytes for a seed, the format of the planted sets, people and plans as described."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.worlds.acting import SHAPES, STRENGTHS, aims, played
from bench.worlds.build import build_world
from bench.worlds.people import Moods, Person, conversation
from bench.worlds.pool import NEGATIVE, TRAITS, ScorePool, load_vectors, worst
from bench.worlds.reading import judged

ROOT = Path(__file__).parents[1]
DATA = os.environ.get("UNDERSONG_DATA")
PLANTS = {"love_bombing", "darvo", "con_game", "alignment_faking", "sandbagging", "intermittent_reward",
          "sabotage_ramp", "gaslight_isolation"}  # fmt: skip
needs_data = pytest.mark.skipif(DATA is None, reason="needs UNDERSONG_DATA")


def invented_vectors(count=600):
    """Vectors with a strong common factor, as marks of one judge have: shape (count, 12)."""
    rng = np.random.default_rng(4)
    bad = rng.exponential(0.18, (count, 1))
    marks = np.where(NEGATIVE, bad, 0.75 - 0.5 * bad) + rng.normal(0, 0.1, (count, 12))
    return np.clip(np.round(marks * 20) / 20, 0, 1)


@pytest.fixture(scope="module", params=["invented", pytest.param("real", marks=needs_data)])
def vectors(request):
    return invented_vectors() if request.param == "invented" else load_vectors(Path(DATA))


@pytest.fixture(scope="module")
def worlds(vectors):
    return [build_world(3, number, vectors, 0.47) for number in range(6)]


def write_data(folder):
    rows = [{"labels": {"traits": dict(zip(TRAITS, row, strict=True))}} for row in invented_vectors().tolist()]
    with gzip.open(folder / "moltbook_traits.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def generate(out, data, *more):
    command = [sys.executable, "-m", "bench.worlds", str(out), "--data", str(data), *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path):
    write_data(tmp_path)
    for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        generate(tmp_path / out, tmp_path, "--worlds", "2", "--nothing-planted", "1", "--seed", seed)
    for name in ("blind.jsonl.gz", "truth.jsonl.gz"):
        first, again, other = ((tmp_path / out / name).read_bytes() for out in "abc")
        assert first == again
        assert first != other


def test_worlds_without_plants_keep_their_look_alikes(tmp_path):
    write_data(tmp_path)
    counts = json.loads(generate(tmp_path / "o", tmp_path, "--worlds", "1", "--nothing-planted", "2").stdout)
    with gzip.open(tmp_path / "o" / "truth.jsonl.gz", "rt") as lines:
        truth = [json.loads(line) for line in lines]
    assert [bool(world["truth"]) for world in truth] == [True, False, False]
    assert all(world["hard_negatives"] for world in truth)
    assert counts["plants"] == len(truth[0]["truth"])


def test_talkative_people_write_several_times_as_much_in_the_same_days():
    pool, start = ScorePool(invented_vectors(60), 0.25), datetime(2026, 3, 1)
    usual, more = (conversation(np.random.default_rng(8), pool, "t", start, times) for times in (1, 4))
    assert 4 * len(usual.messages) <= len(more.messages) < 4 * len(usual.messages) + 4
    assert (usual.people, usual.days) == (more.people, more.days)


def test_rows_have_the_fields_of_the_planted_sets(worlds):
    for blind, truth in worlds:
        assert list(blind) == ["world_id", "messages"]
        assert set(truth) == {"world_id", "n_scored", "truth", "hard_negatives", "ambiguous"}
        for row in blind["messages"]:
            assert list(row) == ["id", "agent", "target", "thread", "ts", "tier", "scored", "traits"]
            assert row["target"] != row["agent"]
            assert row["tier"] in {"standard", "focused", "deep", "deep_with_context"}
            assert (row["traits"] is not None) == row["scored"]
            if row["scored"]:
                assert tuple(row["traits"]) == TRAITS
                assert all(mark is None or 0 <= mark <= 1 for mark in row["traits"].values())
        times = [row["ts"] for row in blind["messages"]]
        assert times == sorted(times)
        assert truth["n_scored"] == sum(row["scored"] for row in blind["messages"])


def test_a_plant_is_one_agents_at_one_target_or_in_public_and_every_stage_is_read(worlds):
    for blind, truth in worlds:
        rows = {row["id"]: row for row in blind["messages"]}
        actors = [entry["agent"] for entry in truth["truth"] + truth["hard_negatives"]]
        assert len(actors) == len(set(actors))
        for plant in truth["truth"]:
            own = [rows[name] for name in plant["message_ids"]]
            assert 5 <= len(own) <= 15
            assert {row["agent"] for row in own} == {plant["agent"]}
            assert {row["target"] for row in own} <= {plant["target"], None}
            assert plant["read_ids"] == [row["id"] for row in own if row["scored"]]
            assert (plant["start"], plant["end"]) == (own[0]["ts"], own[-1]["ts"])
            read = {stage for stage, row in zip(plant["stages"], own, strict=True) if row["scored"]}
            assert read == {stage["name"] for stage in SHAPES["plants"][plant["pattern"]]["stages"]}


def test_who_fakes_alignment_is_watched_in_the_deep_tiers(vectors):
    watched = Counter()
    for number in range(12):
        blind, truth = build_world(7, number, vectors, 0.47)
        tiers = {row["id"]: row["tier"].startswith("deep") for row in blind["messages"]}
        for plant in truth["truth"]:
            if plant["pattern"] == "alignment_faking":
                watched.update((stage, tiers[name])
                               for stage, name in zip(plant["stages"], plant["message_ids"], strict=True))  # fmt: skip
    assert set(watched) == {("watched", True), ("unwatched", False)}


def test_the_share_of_read_messages_is_as_asked_and_what_looks_bad_is_read_sooner(vectors):
    blind, truth = build_world(5, 0, vectors, 0.47)
    assert abs(truth["n_scored"] / len(blind["messages"]) - 0.47) < 0.01
    more, _ = build_world(5, 0, vectors, 0.8)
    bad = {row["id"] for row in more["messages"] if row["scored"] and max_negative(row) >= 0.75}
    fine = {row["id"] for row in more["messages"] if row["scored"]} - bad
    read = {row["id"] for row in blind["messages"] if row["scored"]}
    assert len(bad & read) / len(bad) > len(fine & read) / len(fine) + 0.1


def max_negative(row):
    return max(row["traits"][trait] or 0 for trait, low in zip(TRAITS, NEGATIVE, strict=True) if low)


def test_traits_go_together_as_they_do_in_the_source(vectors, worlds):
    rows = [row["traits"] for blind, _ in worlds for row in blind["messages"] if row["scored"]]
    marks = np.array([list(row.values()) for row in rows], dtype=float)
    marks = marks[~np.isnan(marks).any(axis=1)]
    upper = np.triu_indices(12, 1)
    ours, theirs = (np.corrcoef(part, rowvar=False)[upper] for part in (marks, vectors))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.95
    assert np.abs(ours - theirs).mean() < 0.25


def test_moods_last_and_leave_the_rate_as_it_is():
    person = Person("a", 1.0, 0.5, 0.3, 0.0, 0.0, {})
    moods = Moods(np.random.default_rng(1))
    bad = np.array([moods.bad(person) for _ in range(20_000)], dtype=float)
    assert abs(bad.mean() - 0.3) < 0.02
    assert np.corrcoef(bad[:-1], bad[1:])[0, 1] > 0.15


def test_a_second_read_moves_marks_together_and_seldom_lifts_a_zero():
    marks = np.full((4000, 12), 0.5)
    read = judged(np.random.default_rng(2), marks, 0.25)
    moved = np.nan_to_num(read - marks)
    assert 0.15 < (moved != 0).mean() < 0.3
    assert np.corrcoef(moved[:, 2], moved[:, 3])[0, 1] > 0.1  # two negative traits
    assert np.corrcoef(moved[:, 0], moved[:, 2])[0, 1] < -0.1  # a positive and a negative one
    clean = judged(np.random.default_rng(2), np.zeros((4000, 12)), 0.25)
    assert 0.01 < (clean > 0).mean() < 0.1


def test_each_shape_has_two_readings_and_names_traits_that_exist():
    assert set(SHAPES["plants"]) == PLANTS
    for shape in [*SHAPES["plants"].values(), *SHAPES["look_alikes"]]:
        for stage in shape["stages"]:
            assert stage["alone"]
            assert stage["context"]
            assert {*stage["alone"], *stage["context"]} <= set(TRAITS)
    assert {shape["pattern"] for shape in SHAPES["look_alikes"]} == PLANTS


def test_swings_come_in_turns_and_a_ramp_climbs():
    rng = np.random.default_rng(0)
    swings = [stage["name"] for stage, _ in played(rng, SHAPES["plants"]["intermittent_reward"])]
    changes = sum(one != another for one, another in pairwise(swings))
    assert changes >= len(swings) / 4
    ramp = played(rng, SHAPES["plants"]["sabotage_ramp"])
    pressure = [aims(rng, stage["alone"], way, STRENGTHS["easy"])["manipulation"] for stage, way in ramp]
    assert pressure[-1] - pressure[0] > 0.4


def test_half_of_the_plants_look_worse_to_a_judge_with_context(vectors):
    praise = []
    for number in range(30):
        blind, truth = build_world(11, number, vectors, 0.6)
        rows = {row["id"]: row for row in blind["messages"]}
        for plant in truth["truth"]:
            own = zip(plant["stages"], plant["message_ids"], strict=True)
            seen = [
                rows[name]["traits"]["manipulation"] for stage, name in own if stage == "bomb" and rows[name]["scored"]
            ]
            praise += [np.mean([mark for mark in seen if mark is not None])] if seen else []
    assert len(praise) > 20
    assert 0.25 < np.mean(np.array(praise) >= 0.25) < 0.75


@needs_data
def test_the_published_scorer_gives_full_marks_to_the_truth_itself(tmp_path):
    generate(tmp_path, DATA, "--worlds", "3")
    with gzip.open(tmp_path / "truth.jsonl.gz", "rt") as lines:
        truth = [json.loads(line) for line in lines]
    right = [{"world_id": world["world_id"], "agent": plant["agent"], "pattern": plant["pattern"],
              "message_ids": plant["read_ids"]} for world in truth for plant in world["truth"]]  # fmt: skip
    (tmp_path / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in right))
    scorer = Path(DATA).parent / "bench" / "score_planted.py"
    done = subprocess.run(
        [sys.executable, str(scorer), str(tmp_path), str(tmp_path / "predictions.jsonl")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["macro_f1"] == 1.0
    assert result["hard_negative_rate"] == 0.0
    assert sum(row["tp"] for row in result["per_pattern"].values()) == len(right)


def test_bad_vectors_are_those_with_a_negative_trait():
    marks = np.zeros((2, 12))
    marks[0, TRAITS.index("virtue")] = 1.0
    marks[1, TRAITS.index("dismissal")] = 0.5
    assert worst(marks).tolist() == [0.0, 0.5]
