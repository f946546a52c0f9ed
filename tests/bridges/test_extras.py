"""Without an optional package each surface that needs it says so, and names the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from undersong.bridges.extras import require
from undersong.errors import UsageError

WITHOUT = """
import sys
sys.modules[{absent!r}] = None
sys.argv = ["undersong", *{arguments!r}]
from undersong.cli import main
main()
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples and a store of their audit."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "samples").symlink_to(SAMPLES)
    command = [sys.executable, "-m", "undersong", "audit", "samples", "--store", "kept.db", "--out", "report"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return folder


@pytest.mark.parametrize(
    ("absent", "extra", "arguments"),
    [
        ("pyarrow", "parquet", ("audit", "samples", "--format", "parquet")),
        ("pyarrow", "parquet", ("store", "export", "out", "--format", "parquet", "--store", "kept.db")),
        ("pyarrow", "parquet", ("store", "export", "out", "--format", "scout", "--store", "kept.db")),
        ("mcp", "mcp", ("mcp", "--store", "kept.db")),
    ],
)
def test_the_error_names_the_extra(audited: Path, absent: str, extra: str, arguments: tuple[str, ...]) -> None:
    code = WITHOUT.format(absent=absent, arguments=arguments)
    ran = subprocess.run([sys.executable, "-c", code], cwd=audited, capture_output=True, text=True, check=False)
    assert ran.returncode == 2, ran.stderr
    assert f"undersong[{extra}]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_package_that_is_there_and_lacks_another_one_is_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halfway.py").write_text("import nowhere_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        require("halfway", "none", where="here")
    with pytest.raises(UsageError, match=r"pip install 'undersong\[none\]'"):
        require("not_there_either", "none", where="here")
