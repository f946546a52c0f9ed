"""The notebook of the documents, run again by a real kernel: it shows what it showed.

`python tests/test_notebook.py` writes its outputs again, where what it shows has changed on purpose.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "notebook.ipynb"
SHOWN = ("text/html", "text/plain")


def executed() -> Any:
    """The notebook as it is after all of its cells ran in the folder of the repository."""
    notebook = nbformat.read(FILE, as_version=4)
    folder = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=folder, record_timing=False).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                output["data"] = {"text/html": output["data"]["text/html"]}  # a case as text is as long as a report
    notebook.metadata.pop("language_info", None)
    nbformat.validate(notebook)
    return notebook


def shown(notebook: Any) -> list[list[str]]:
    """What each cell shows: its HTML, else its text."""
    return [[output.get("text") or next(output["data"][kind] for kind in SHOWN if kind in output["data"])
             for output in cell.get("outputs", ())] for cell in notebook.cells]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_shows_again_what_it_shows_in_the_documents() -> None:
    stored = nbformat.read(FILE, as_version=4)
    assert [cell.cell_type for cell in stored.cells].count("code") > 5
    again = executed()
    assert shown(again) == shown(stored), "what it shows has changed: see the head of this file"
    text = str(shown(again))
    for words in ("Findings: 1", "Love bombing", "no accusation", "all tests pass", "Not looked"):
        assert words in text, words
    assert "<script" not in text


if __name__ == "__main__":
    nbformat.write(executed(), FILE)
