"""The six shapes of the first design as Cypher, to run in any client: one file each, named as our literal rule."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def recipes() -> dict[str, str]:
    """Rule id → a query with the parameter ``judge``.

    Each record has agent, start_eval_id, end_eval_id, eval_count, message_ids and confidence.
    """
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.cypher"))}
