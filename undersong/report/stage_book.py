"""What the stages of rules are called and do, in words for the person who decides (``stages.yaml``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from undersong.datafiles import yaml_loader


class StageBook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``readers``: pattern → stage of a rule → the name for readers; ``shows``: stage → what it does."""

    readers: dict[str, dict[str, str]]
    shows: dict[str, str]


@cache
def stage_book() -> StageBook:
    """The words of all stages."""
    return yaml_loader.read(Path(__file__).with_name("stages.yaml"), StageBook)
