"""The Parquet export: three files with a versioned schema, and the recipes of docs/store.md run over them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet as pq
import pytest

from tests.conftest import Undersong
from undersong import to_frame
from undersong.errors import UsageError
from undersong.models import Case, Review
from undersong.rows.arrow import VERSION, schemas
from undersong.stores.csv_tables import export_csv
from undersong.stores.neo4j import recipes
from undersong.stores.parquet import export
from undersong.stores.protocol import Store
from undersong.stores.reviewing import keeps

from .deeds import NOON, make_finding, row, scans, talk

DOCUMENT = (Path(__file__).parent.parent.parent / "docs" / "store.md").read_text(encoding="utf-8")


def recipe(language: str) -> str:
    """The block of a language in docs/store.md."""
    (block,) = re.findall(f"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(block)


@pytest.fixture
def folder(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    conversation = talk("hello\x00", "you \u202e")
    store.put_conversation(conversation, *scans(conversation))
    scores = {"compassion": 0.5, "manipulation": 0.25}
    store.append(
        [
            row("m0", 0, target="bo", traits=scores | {"virtue": None}),
            row("m1", 60 * 24 * 40, target="bo", traits=scores | {"manipulation": 0.75}),
            row("m3", 60, target="bo", traits=scores, conversation="foreign", scale="rank"),
            row("m2", None, agent="al", state="refused", reason="would not", conversation="c2"),
        ],
        [make_finding("f", "c1")],
    )
    review = Review(kind="finding", id="f", evidence="e", verdict="rejected", reasons=("joke or fiction",), at=NOON,
                    note="=1+1", rows=(("c1", "m0", "h"),))  # fmt: skip
    more = {}
    if keeps(store, "reviews"):
        store.add_review(review)
        more = {"leads": 0, "claims": 0, "reviews": 1}
    assert export(store, tmp_path / "out") == {"findings": 1, "evaluations": 4, "messages": 2} | more
    assert export_csv(store, tmp_path / "csv") == {"findings": 1} | more
    monkeypatch.chdir(tmp_path / "out")
    return tmp_path / "out"


def test_a_review_is_a_row_of_parquet_and_csv_with_the_places_that_it_was_about(folder: Path) -> None:
    if not (folder / "reviews.parquet").exists():
        pytest.skip("this store keeps no reviews")
    (row,) = pq.read_table(folder / "reviews.parquet").to_pylist()
    assert (row["verdict"], row["reasons"], row["at"], row["note"]) == ("rejected", ["joke or fiction"], NOON, "=1+1")
    assert (row["conversations"], row["message_ids"], row["propensity"]) == (["c1"], ["m0"], None)
    with (folder.parent / "csv" / "reviews.csv").open(encoding="utf-8-sig", newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["note"], line["message_ids"], line["propensity"]) == ("'=1+1", '["m0"]', "")


def test_the_files_hold_what_the_store_holds_under_a_version(folder: Path) -> None:
    for name, schema in schemas():
        written = pq.read_schema(folder / f"{name}.parquet")
        assert written.equals(schema)
        assert written.metadata[b"undersong.version"] == VERSION.encode()
    first, _, refused, ranked = pq.read_table(folder / "evaluations.parquet").to_pylist()
    assert (first["time"], first["manipulation"], first["virtue"], first["state"]) == (NOON, 0.25, None, "scored")
    assert (ranked["message_id"], ranked["scale"]) == ("m3", "rank")
    assert (refused["time"], refused["manipulation"], refused["reason"]) == (None, None, "would not")
    assert [each["text"] for each in pq.read_table(folder / "messages.parquet").to_pylist()] == [
        "hello\x00",
        "you \u202e",
    ]
    tables = {"evaluations", "findings", "messages"}
    assert {each.stem for each in folder.iterdir()} - {"claims", "leads", "reviews"} == tables


@pytest.mark.usefixtures("folder")
def test_the_duckdb_recipe_runs() -> None:
    assert duckdb.sql(recipe("sql")).fetchall() == [("kira", "bo", 2, 0.5)]


@pytest.mark.usefixtures("folder")
def test_the_polars_recipe_runs() -> None:
    names: dict[str, polars.DataFrame] = {}
    exec(recipe("python"), names)
    columns = names["months"].select("agent", "messages", "manipulation").rows()
    assert columns == [("kira", 1, 0.25), ("kira", 1, 0.75)]


def test_a_case_gives_its_findings_as_a_frame() -> None:
    case = Case(version="0", parameters={}, findings=(make_finding("f", "c1"), make_finding("g", "c1")))
    assert isinstance(to_frame(case), polars.DataFrame)
    assert to_frame(case)["finding_id"].to_list() == ["f", "g"]
    assert isinstance(to_frame(case, "pandas"), pandas.DataFrame)
    assert to_frame(case, "polars", "leads").height == 0
    assert list(to_frame(case, "pandas", "claims").columns)[:2] == ["conversation", "message_id"]
    with pytest.raises(UsageError, match="known are findings, leads, claims"):
        to_frame(case, "polars", "messages")  # type: ignore[arg-type]
    assert isinstance(to_frame(case, "pyarrow"), pyarrow.Table)
    with pytest.raises(UsageError, match="unknown library 'excel'"):
        to_frame(case, "excel")  # type: ignore[arg-type]


def test_the_export_runs_from_the_command_line(undersong: Undersong) -> None:
    undersong("audit", "samples", "--draws", "9")
    ran = undersong("store", "export", "out", "--format", "parquet")
    assert (ran.code, "evaluations.parquet: 25 rows" in ran.out) == (0, True)


def test_the_document_names_every_recipe_of_the_graph() -> None:
    assert all(f"`{name}`" in DOCUMENT for name in recipes())
