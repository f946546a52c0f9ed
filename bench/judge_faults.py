"""A table of what a judge does in each kind of fault: state, requests, cost, and what is kept.

python bench/judges.py --faults [--provider anthropic]

Each kind is one message to a fresh server and ledger, at $3 and $15 for a million tokens, with three attempts and time
for one second. `again`: how many requests the same command sends once more over the same ledger.
"""

from __future__ import annotations

from typing import Any

from budget_runs import MILLION, serving
from fault_answers import FAULTS
from judges import question

from undersong.judges.limits import CUT, FAILED, MemoryLedger, RunLimits
from undersong.judges.llm.judge import LLMJudge
from undersong.judges.protocol import JudgeAbortedError, open_judge

PRICE_IN, PRICE_OUT = 3.0, 15.0
ONCE = ("429", "500", "529", "cut", "truncated", "half_envelope", "error_200", "no_body", "empty", "prose", "control")
REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {  # kind → of the server, for which providers
    "max_tokens is refused": ({"refuses": ("max_tokens",)}, ("openai",)),
    "temperature is refused": ({"refuses": ("temperature",)}, ("openai",)),
    "response_format is refused": ({"refuses": ("response_format",)}, ("openai",)),
    "output_config.format is refused": ({"refuses": ("output_config.format",)}, ("anthropic",)),
    "every answer thinks 1,800 tokens": ({"thinking": 1_800}, ("openai", "anthropic")),
}
HEAD = ("kind", "state", "requests", "booked", "charged", "kept", "again", "reason")


def table(provider: str) -> str:
    """The table as Markdown."""
    _row(provider, "", "please read this now", {})  # the library is loaded
    kinds = [*FAULTS, *(f"{fault}*1" for fault in ONCE)]
    rows = [_row(provider, kind, f"please read fault={kind} now", {}) for kind in kinds]
    rows += [
        _row(provider, kind, "please read this now", how)
        for kind, (how, providers) in REFUSED.items()
        if provider in providers
    ]
    lines = [HEAD, ("---",) * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(provider: str, kind: str, text: str, how: dict[str, Any]) -> tuple[str, ...]:
    ledger = MemoryLedger()
    with serving(**how) as server:
        path = "/v1" if provider == "openai" else ""
        name = f"{provider}:m@http://127.0.0.1:{server.port}{path}"
        state, reason, booked = _asked(name, text, ledger)
        requests, charged, stored = len(server.seen), server.charged, _kept(ledger)
        _asked(name, text, ledger)
        again = len(server.seen) - requests
    cost = (charged[0] * PRICE_IN + charged[1] * PRICE_OUT) / MILLION
    words = reason.replace("|", "/")[:110]
    return kind, state, str(requests), f"${booked:.3f}", f"${cost:.3f}", stored, str(again), words


def _asked(name: str, text: str, ledger: MemoryLedger) -> tuple[str, str, float]:
    """(state, reason, USD that were booked) of one question."""
    limits = RunLimits(
        price_in=PRICE_IN,
        price_out=PRICE_OUT,
        attempts=3,
        timeout=1.0,
        backoff=0.01,
        ledger=ledger,
        environment={"UNDERSONG_JUDGE_KEY": "key"},
    )
    judge = open_judge(name, limits)
    assert isinstance(judge, LLMJudge)
    try:
        (evaluation,) = judge.evaluate([question(1, text)])
    except JudgeAbortedError as error:
        return "run ends", error.what, judge.budget.usage.cost or 0.0
    return evaluation.state, evaluation.reason or "", judge.budget.usage.cost or 0.0


def _kept(ledger: MemoryLedger) -> str:
    """What the ledger holds, in words."""
    numbers = [number for entries in ledger._answers.values() for number in entries]
    answers, cut = sum(number < FAILED for number in numbers), sum(number >= CUT for number in numbers)
    words = [f"{answers} as answer"] if answers else []
    words += [f"{cut} as cut off"] if cut else []
    return ", ".join(words) or "nothing"
