"""How far a judge agrees with labels, trait by trait, as a table: what `undersong judge validate` kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MEASURES = {
    "spearman": "rank correlation",
    "auc": "AUC",
    "kappa": "weighted kappa",
    "alpha": "Krippendorff's alpha",
}


class AgreementTable(NamedTuple):
    """The head and the rows of the table: a trait, and each figure with its 95 % interval over authors."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def agreement(parameters: Mapping[str, Any]) -> AgreementTable | None:
    """The table from the parameters of a report; None for a judge that nobody compared with labels."""
    calibration = parameters.get("calibration")
    if calibration is None:
        return None
    figures = {name: calibration["figures"][name] for name in MEASURES if name in calibration["figures"]}
    traits: Mapping[str, Any] = next(iter(figures.values()), {})
    rows = tuple((trait, *(_figure(each[trait]) for each in figures.values())) for trait in traits)
    return AgreementTable(("trait", *(MEASURES[name] for name in figures)), rows)


def _figure(measured: Mapping[str, float | None]) -> str:
    if measured["value"] is None:
        return "not defined"
    if measured["low"] is None or measured["high"] is None:
        return f"{measured['value']:.2f}"
    return f"{measured['value']:.2f} [{measured['low']:.2f}, {measured['high']:.2f}]"
