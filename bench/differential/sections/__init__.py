"""What is run and recorded, section by section; every section is a function of a Bench."""

from __future__ import annotations

from bench.differential.bench import Section
from bench.differential.sections.data import corpus, planted, rules
from bench.differential.sections.judge import judge
from bench.differential.sections.monitor import monitor
from bench.differential.sections.samples import samples
from bench.differential.sections.store import store

SECTIONS: dict[str, Section] = {  # the slow ones first
    "judge": judge,
    "rules": rules,
    "planted": planted,
    "corpus": corpus,
    "samples": samples,
    "monitor": monitor,
    "store": store,
}
