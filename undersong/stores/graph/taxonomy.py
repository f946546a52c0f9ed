"""The taxonomy and the patterns as nodes, under the first seed's names."""

from __future__ import annotations

from undersong.patterns import all_rules
from undersong.stores.graph.connection import Transaction
from undersong.stores.graph.histories import pattern_names
from undersong.taxonomy import CombinationPattern, SabotagePathway, Taxonomy, taxonomy

_TRAITS = """
UNWIND $items AS item
MERGE (d:Dimension {name: item.dimension})
MERGE (t:Trait {name: item.name}) SET t.polarity = item.polarity, t.value = item.value
MERGE (t)-[:BELONGS_TO]->(d)
"""
_INDICATORS = """
UNWIND $items AS item
MATCH (t:Trait {name: item.trait})
MERGE (i:Indicator {indicator_id: item.id})
SET i.name = item.name, i.description = item.description, i.sequence_only = item.sequence_only
MERGE (i)-[:BELONGS_TO]->(t)
"""
_PATTERNS = """
UNWIND $items AS item
MERGE (p:Pattern {name: item.name})
SET p.rule = item.rule, p.title = item.title, p.level = item.level, p.pattern_id = item.id
WITH p, item UNWIND item.indicators AS id
MATCH (i:Indicator {indicator_id: id})
MERGE (p)-[:COMPOSED_OF]->(i)
"""


def seed(transaction: Transaction) -> None:
    """Make the nodes, or bring them up to date; the same again changes nothing."""
    catalog = taxonomy()
    traits = catalog.traits.values()
    transaction.run_batched(
        _TRAITS,
        [{"name": t.id, "dimension": t.dimension, "polarity": t.polarity, "value": t.value} for t in traits],
    )
    transaction.run_batched(
        _INDICATORS,
        [
            {
                "id": i.id,
                "name": i.name,
                "trait": i.trait,
                "description": i.description,
                "sequence_only": i.sequence_only,
            }
            for i in catalog.indicators.values()
        ],
    )
    transaction.run_batched(_PATTERNS, _patterns(catalog))


def _patterns(catalog: Taxonomy) -> list[dict[str, object]]:
    """Every rule is a Pattern; combination patterns and sabotage pathways are composed of their indicators."""
    shapes: dict[str, CombinationPattern | SabotagePathway] = {
        **catalog.combination_patterns,
        **catalog.sabotage_pathways,
    }
    parts = {shape.name: (id_, sorted(shape.indicators)) for id_, shape in shapes.items()}
    items: list[dict[str, object]] = []
    for rule in all_rules():
        name = pattern_names().get(rule.id, rule.id)
        id_, indicators = parts.pop(rule.id, (None, []))
        about = {"rule": rule.id, "title": rule.file.title, "level": rule.file.level}
        items.append({"name": name, "id": id_, "indicators": indicators, **about})
    for name, (id_, indicators) in parts.items():
        items.append({"name": name, "id": id_, "indicators": indicators, "rule": None, "title": name, "level": None})
    return items
