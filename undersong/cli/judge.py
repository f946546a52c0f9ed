"""``undersong judge``: how far a judge can be relied on, and the answers that were paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from undersong.cli.options import (
    DEFAULT_STORE,
    budget_options,
    check_existing,
    check_store,
    check_targets,
    corpus_options,
    echo,
    finish,
    judge_options,
    options_of,
    output,
)
from undersong.cli.progress import progress_bar
from undersong.core.sanitize import visible
from undersong.core.text import counted
from undersong.errors import UsageError
from undersong.models import encode

if TYPE_CHECKING:
    from undersong.judges.limits import RunLimits
    from undersong.judges.llm.judge_check import ModelCheck
    from undersong.judges.measurement import Calibration, RetestKind, Shift


MEMORY = "The figures say how well it remembers, not how well it judges."
KEPT = "Where answers are kept."
STORE = click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="FILE", help=KEPT)
JUDGE = click.option("--judge", required=True, metavar="NAME", help="Who is measured.")
SAMPLE = click.option("--sample", default=100, show_default=True, type=click.IntRange(1), help="Messages, at most.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("judge")
def command() -> None:
    """How far a judge can be relied on, the answers that were paid for, and judges of one's own."""


@command.command("train", short_help="Labels of your own → a judge for --judge offline:DIR.")
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where the judge goes.")
@click.option("--seed", default=0, show_default=True, help="Seed of the intervals.")
def train(labels: Path, out: Path, seed: int) -> None:
    """Train trait heads and their domain check on LABELS, and write them with a model card into DIR.

    A line of LABELS (.jsonl or .jsonl.gz) is {"author": "...", "text": "...", "traits": {"virtue": 0.7, ...}} with all
    twelve traits, 0 to 1. Authors are held out to measure it: give at least 4, better 50. Prototype phrases of your own
    go into DIR/prototypes.
    """
    try:
        from undersong.training.build import build_own
    except ModuleNotFoundError as error:
        what = f"training needs {error.name}, which is not installed"
        raise UsageError(what, remedy="pip install 'undersong[train]'") from error
    click.echo(build_own(labels, out, seed).summary())
    click.echo(f"use it with --judge offline:{out}")


@command.command("export", short_help="Write paid answers as a file for --judge replay:FILE.")
@click.option("--judge", required=True, metavar="NAME", help="Whose answers, as in the run.")
@click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help="Which holds them.")
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where they go.")
def export(judge: str, store: str, out: str) -> None:
    """Write every answer that a store keeps of a judge, raw: about messages, flagged places and whole sequences.

    What was asked under other prompts than those of this version, or under rules that do not ship, is written too and
    counted; what is left out is said with its reason.
    """
    from undersong.judges.ledger import open_ledger
    from undersong.judges.llm.model_spec import model_specs
    from undersong.judges.llm.prompt_fingerprint import questions_hash
    from undersong.judges.llm.providers.replay import replay_lines
    from undersong.pipeline.answer_counts import AnswerCounts

    check_existing(store)
    check_targets([store], out)
    counts = AnswerCounts([spec.name for spec in model_specs(judge)])
    with open_ledger(store) as ledger, output(out) as file:
        for line in replay_lines(judge, questions_hash(), counts.counting(ledger.all(counts.judges))):
            file.write(line)
        others = ledger.counts()
    for sentence in counts.sentences(judge, others):
        _announced(sentence)


@command.command("forget", short_help="Have questions asked again whose answers could not be used.")
@JUDGE
@click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help="Which holds them.")
@click.option("--failed", is_flag=True, required=True, help="Those whose answers could not be used, after one repair.")
def forget(judge: str, store: str, failed: bool) -> None:  # noqa: ARG001 - required: a bare `forget` must not act
    """Have the next run ask again what a judge answered in vain, under the prompts of this version.

    Nothing that was paid is lost: the answers are set aside, and their cost stays in the figures of their messages.
    """
    from undersong.judges.ledger import open_ledger
    from undersong.judges.llm.model_spec import model_specs
    from undersong.judges.llm.prompt_fingerprint import questions_hash

    check_existing(store)
    names = [spec.name for spec in model_specs(judge)]
    with open_ledger(store) as ledger:
        count = ledger.set_failed_aside(names, questions_hash())
    click.echo(f"{counted(count, 'question')} of {judge} will be asked again by the next run")


@command.command("check", short_help="One question: model, price, context, thinking, form of the answer.")
@click.argument("judge", metavar="NAME")
@judge_options
@JSON
def check(judge: str, terms: RunLimits, as_json: bool) -> None:
    """Ask each model of the judge NAME (as after --judge) one question, and say how it took it.

    It is asked for two code words, one before all instructions and one behind them: a server that cuts prompts
    without a word knows only one of them. Exit code 4 where a model knows less than both.
    """
    from undersong.judges.llm.judge_check import addresses_of, check_models, check_request, clients_of

    most = [client.max_cost(check_request(client)) for client in clients_of(judge, terms)]
    _announced(f"will ask {judge} {len(most)} questions, for {sum(most):,.4f} USD at most where the price is known")
    for variable, address in addresses_of(judge, terms).items():
        _announced(f"questions go to {address}, which {variable} names")
    checks = check_models(judge, terms)
    for each_check in checks:
        click.echo(encode(each_check)) if as_json else echo(_check_lines(each_check))
    raise SystemExit(0 if all(each.good for each in checks) else 4)


def _check_lines(done: ModelCheck) -> Iterator[str]:
    if done.error:
        yield f"{done.judge}: {done.error}"
        return
    ends = {(True, True): "both", (True, False): "the first alone", (False, True): "the last alone"}
    words = ends.get((done.first, done.last), "neither")
    cut = "" if done.good else ": it read only a part of the prompt, or does not follow instructions"
    yield f"{done.judge}: answered by {done.answered_by or 'a model without a name'} in {done.seconds:.1f} s"
    window = f"{done.window:,} tokens" if done.window else "not known"
    yield f"  {done.tokens_in:,} tokens in, {done.tokens_out:,} out; context {window}; code words known: {words}{cut}"
    yield f"  price of this question: {'not known' if done.cost is None else f'{done.cost:,.6f} USD'}"
    yield f"  thinking: {_thinking_words(done)}"
    form = "as asked, JSON and nothing else" if done.structured else "not as asked: JSON was picked out of other text"
    yield f"  form of the answer: {form}"


def _thinking_words(done: ModelCheck) -> str:
    if done.thought is None:
        return "not known, the answer names no tokens"
    return f"about {done.thought:,} of the tokens out" if done.thought else "none"


def _add_test_retest_verb(kind: RetestKind, help_: str, short: str) -> None:
    """Add a verb that reads a sample of the routed messages twice."""

    @command.command(kind, help=help_, short_help=short)
    @corpus_options
    @budget_options
    @judge_options
    @JUDGE
    @STORE
    @SAMPLE
    @click.option("--all", "read_all", is_flag=True, help="Draw from every message, whatever the router says.")
    @JSON
    def verb(paths: tuple[str, ...], store: str, sample: int, as_json: bool, **chosen: Any) -> None:
        from undersong.pipeline.judge_validation import retest
        from undersong.stores.sqlite import SQLiteStore

        check_store(store)
        with SQLiteStore(Path(store)) as opened_store, progress_bar() as progress:
            measured_shifts, problems, _ = retest(
                kind, paths, opened_store, options_of(**chosen), sample, progress, _announced
            )
        for shift in measured_shifts:
            click.echo(encode(shift)) if as_json else echo(_shift_lines(shift))
        if not measured_shifts:
            click.echo("no message asks for such a reading", err=True)
        finish(problems)


NOISE = "Ask the same questions again: the judge's own noise, which `stability` uses."
CONTEXT = "Ask without thread and history: how far context moves the scores."
FRAMING = "Ask with our words after the data and before: how far framing moves the scores."
_add_test_retest_verb("repeat", NOISE, "A judge's own noise.")
_add_test_retest_verb("context", CONTEXT, "What context changes.")
_add_test_retest_verb("framing", FRAMING, "What framing changes.")


@command.command("validate", short_help="Compare a judge with labels.")
@click.argument("labels", metavar="LABELS", required=False)
@judge_options
@JUDGE
@STORE
@click.option("--apply", is_flag=True, help="Send later scores of this judge through the maps that are fitted.")
@click.option("--forget", is_flag=True, help="Without LABELS: have later scores be the judge's own again.")
@click.option("--sample", type=click.IntRange(1), help="So many labelled messages instead of all.")
@click.option("--seed", default=0, show_default=True, help="Seed of the sample and of the intervals.")
@click.option("--learnt", is_flag=True, help="Also measure on messages that the judge was trained on, and mark it.")
@JSON
def validate(
    labels: str | None,
    store: str,
    apply: bool,
    forget: bool,
    sample: int | None,
    learnt: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Read the messages of LABELS (JSON Lines with author, text and traits) and print how far the judge agrees.

    The figures are kept under the judge's and the prompts' hash, and reports by the same judge print them. Labels may
    cover some traits only. From 30 labels of a trait on, a map from its scores to labels is fitted; --apply has later
    audits and evaluations with this store use it.
    """
    from undersong.pipeline.judge_validation import forget_maps
    from undersong.pipeline.judge_validation import validate as measured
    from undersong.pipeline.options import Options
    from undersong.stores.sqlite import SQLiteStore

    if (labels is None) != forget or (forget and apply):
        raise UsageError("give LABELS, or --forget alone", where="judge validate", remedy="see --help")
    check_store(store)
    with SQLiteStore(Path(store)) as opened_store:
        if labels is None:
            count = forget_maps(opened_store, Options(**chosen))
            click.echo(f"{counted(count, 'map')} removed: scores are the judge's own")
            return
        calibration = measured(
            Path(labels), opened_store, Options(**chosen), sample, learnt=learnt, apply=apply, announce=_announced
        )
    click.echo(encode(calibration)) if as_json else echo(_calibration_lines(calibration))


def _announced(sentence: str) -> None:
    click.echo(visible(sentence), err=True)


def _shift_lines(shift: Shift) -> Iterator[str]:
    yield f"{shift.kind}, width {shift.width}: {shift.messages} of {shift.asked} messages scored in both readings"
    yield f"{'trait':<16}{'apart':>8}{'moved':>8}   (mean absolute, mean signed difference)"
    for trait, apart in shift.apart.items():
        yield f"{trait:<16}{apart:>8.3f}{shift.moved[trait]:>+8.3f}"
    yield f"{shift.flips} change on any negative trait of .5 or more"


def _calibration_lines(calibration: Calibration) -> Iterator[str]:
    counts = f"{calibration.messages} of {calibration.asked}"
    yield f"{calibration.judge}: {counts} labelled messages by {calibration.groups} authors scored"
    if calibration.learnt_from:
        yield f"WARNING: the judge was trained on {calibration.learnt_from:,} of them. {MEMORY}"
    yield f"{'trait':<16}" + "".join(f"{name:>24}" for name in calibration.figures)
    for trait in next(iter(calibration.figures.values())):
        yield f"{trait:<16}" + "".join(f"{_figure(each[trait]):>24}" for each in calibration.figures.values())
    yield f"any harm, AUC {_figure(calibration.harmful)}"
    for trait, fitted in calibration.fitted.items():
        errors = f"mean absolute error on other authors {fitted.before:.3f}, mapped {fitted.after:.3f}"
        yield f"map of {trait} from {fitted.labels:,} labels: {errors}"
    yield "later scores go through the maps: " + (", ".join(calibration.maps) if calibration.maps else "none")


def _figure(measured: Any) -> str:
    if measured.value is None:
        return "not defined"
    return f"{measured.value:.3f} [{measured.low:.3f}, {measured.high:.3f}]"
