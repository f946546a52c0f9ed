"""An audit on Spark: the steps of ``undersong.arrow`` over a frame of messages, or of rows, byte for byte.

    from undersong import spark
    result = spark.audit(session.read.parquet("messages"))
    result.rows.write.parquet("rows")

Conversations, and then agents, are whole in one partition each; those that hold much of all get partitions by
themselves. Judges that are free run on the executors. A paid judge is asked from one place: have `undersong evaluate`
write its rows, and give them to ``detect``. The driver holds the findings, what routing has to know (50 bytes a
directed message) and a summary a partition. Needs the extra ``spark``, and one version of undersong on all workers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from undersong.arrow import (
    FINDINGS,
    MESSAGES,
    ROWS,
    SCANS,
    addressed_batches,
    conversations_in,
    detect_batches,
    findings_in,
    finished_batches,
    routing_from,
    rows_in,
    scan_batches,
    score_batches,
    summaries,
    summary_of,
    timed_batches,
    weigh_batches,
)
from undersong.arrow.summaries import packed_summary
from undersong.arrow.tables import ADDRESSED, NOT_SEARCHED, SUMMARY
from undersong.errors import InputError, UsageError
from undersong.models import Conversation, Finding, Row, RuleOutcome
from undersong.pipeline.case_builder import completed
from undersong.pipeline.options import Options
from undersong.pipeline.partwise import ScoredPart, SearchedPart, WeighedPart, following_rules, judge_is_paid

Batches = Iterator[pa.RecordBatch]
Step = Callable[[Batches], Batches]
Watch = Callable[[str], object]  # told the name of each step as it begins
HEAVY = 8  # what has more than this part of a partition's share of all is placed by itself
BUCKETS = 8  # a partition: what is light is placed by so many hashes
LOOKED_UP = 500  # conversations that are asked for at a time
KEY, WEIGHT, PLACE = "_key", "_weight", "_place"


class SparkResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit or a detection on Spark came to.

    ``rows`` is a frame of ROWS, stored by Spark until ``close``; ``findings`` and ``outcomes`` are as in a Case.
    ``corpus`` counts states and tiers, and has the ranks, null bands and the estimate of what was missed.
    """

    rows: DataFrame
    findings: tuple[Finding, ...]
    outcomes: tuple[RuleOutcome, ...]
    corpus: ScoredPart
    scans: DataFrame | None = None
    stored: tuple[DataFrame, ...] = ()

    def conversation(self, name: str) -> Conversation:
        """A conversation by its id; raises InputError where the frame has none."""
        conversation = _looked_up(self.scans, [name]).get(name)
        if conversation is None:
            raise InputError(f"no conversation {name[:80]!r}", remedy="an audit of messages has those of its frame")
        return conversation

    def close(self) -> None:
        """Let Spark drop what it stored for this result."""
        for frame in self.stored:
            frame.unpersist()


def audit(
    messages: DataFrame, options: Options | None = None, *, parts: int | None = None, watch: Watch | None = None
) -> SparkResult:
    """The audit of a frame of MESSAGES: their rows, and the findings with quotes, by the judge of the options.

    A frame needs ``conversation``, ``author``, ``text``, and ``position`` or ``time``; ids, roles, targets and the rest
    where it has them. ``parts`` is the number of partitions, by default that of the session's shuffles; it changes no
    byte of the result. ``watch`` is told of each step before its work begins. Raises UsageError for a judge that costs
    money, and InputError for columns that are missing.
    """
    options, tell = options or Options(), watch or _silent
    if judge_is_paid(options.judge):
        remedy = "ask it in one place with `undersong evaluate`, which has a ledger, and give its rows to spark.detect"
        raise UsageError(f"the judge '{options.judge}' is paid, and is asked on no executor", remedy=remedy)
    frame, parts = _of_schema(messages, MESSAGES, ("conversation", "author", "text")), parts or _parts(messages)
    whole = _placed(frame, sql.col("conversation"), sql.lit(1) + sql.length("text"), parts)
    scans = _stored(_mapped(_ordered(whole, "position", "time", "id"), partial(scan_batches, options=options), SCANS))
    tell("scan")
    routing = routing_from(_summaries(scans), options)
    rows = _stored(_mapped(scans, partial(score_batches, routing=routing, options=options), ROWS))
    tell("score")
    corpus = summary_of(_summaries(rows), ScoredPart)
    findings, outcomes = _searched(rows, corpus, options, parts, tell)
    tell("quote")
    bound = _bound_rows(rows, findings)
    texts = _looked_up(scans, sorted({name for finding in findings for name in finding.conversations}))
    return SparkResult(
        rows=_mapped(_plain(rows), partial(finished_batches, corpus=corpus), ROWS).drop(SUMMARY),
        findings=completed(findings, bound, texts, options),
        outcomes=outcomes,
        corpus=corpus,
        scans=scans,
        stored=(scans, rows),
    )


def detect(
    rows: DataFrame, options: Options | None = None, *, parts: int | None = None, watch: Watch | None = None
) -> SparkResult:
    """The findings in a frame of ROWS that were scored anywhere, each with chance, q, stability and confidence.

    Ids, ``conversation``, ``agent``, ``state`` and ``traits`` are needed; other columns where rules ask for them.
    """
    options, tell = options or Options(), watch or _silent
    frame, parts = _of_schema(rows, ROWS, ("id", "conversation", "agent", "traits", "state")), parts or _parts(rows)
    whole = _placed(frame, sql.col("conversation"), sql.lit(1), parts)
    timed = _stored(_mapped(_ordered(whole, "position", "id"), timed_batches, ROWS))
    tell("time")
    corpus = summary_of(_summaries(timed), ScoredPart)
    findings, outcomes = _searched(timed, corpus, options, parts, tell)
    return SparkResult(
        rows=_plain(timed).drop(SUMMARY), findings=findings, outcomes=outcomes, corpus=corpus, stored=(timed,)
    )


def _searched(
    rows: DataFrame, corpus: ScoredPart, options: Options, parts: int, tell: Watch
) -> tuple[tuple[Finding, ...], tuple[RuleOutcome, ...]]:
    """The findings about all agents, weighed, and the outcomes of the rules."""
    agents = _with_followed(_plain(rows).drop(*NOT_SEARCHED, SUMMARY), corpus, options)
    step: Step = partial(detect_batches, corpus=corpus, options=options)
    detected = _stored(_mapped(_by_agent(agents, parts), step, FINDINGS))
    tell("detect")
    searched = summary_of((packed_summary(SearchedPart()), *_summaries(detected)), SearchedPart)
    named = detected.where(sql.col("finding_id").isNotNull()).select(sql.col("agent").alias("_named")).distinct()
    again = _by_agent(agents.join(named, _agent_key() == sql.col("_named"), "left_semi"), parts)
    step = partial(weigh_batches, corpus=corpus, searched=searched, options=options)
    tell("weigh")
    weighed = _mapped(again, step, FINDINGS).toArrow()
    detected.unpersist()
    tests = summary_of((packed_summary(WeighedPart()), *summaries(weighed.to_batches())), WeighedPart)
    return tests.corrected(findings_in(weighed.to_batches()), searched), searched.outcomes(options, corpus)


def _with_followed(agents: DataFrame, corpus: ScoredPart, options: Options) -> DataFrame:
    """The rows of agents, and beside each agent those of whom it addressed, where a rule follows them."""
    if not following_rules(options, corpus):
        return agents
    directed = agents.where(sql.col("target").isNotNull() & (sql.col("state") == "scored"))
    pairs = _mapped(directed, partial(addressed_batches, corpus=corpus, options=options), ADDRESSED).distinct()
    others = agents.drop("beside").join(pairs, agents["agent"] == pairs["addressed"]).drop("addressed")
    return agents.unionByName(others)


def _agent_key() -> Column:
    return sql.coalesce("beside", "agent")


def _by_agent(agents: DataFrame, parts: int) -> DataFrame:
    placed = _placed(agents, _agent_key(), sql.lit(1), parts)
    return _ordered(placed, "event_time", "conversation", "position")


def _placed(frame: DataFrame, key: Column, weight: Column, parts: int) -> DataFrame:
    """The frame in ``parts`` partitions of about equal weight, all of one key in one of them.

    What is heavy is placed by itself and the rest by buckets of a hash, the heaviest first and each where least is.
    """
    keyed = frame.withColumn(KEY, key)
    if parts == 1:
        return keyed.repartition(1)
    weights = keyed.groupBy(KEY).agg(sql.sum(weight).alias(WEIGHT))
    total = weights.agg(sql.sum(WEIGHT)).first()
    share = (total[0] or 0) // (HEAVY * parts) if total is not None else 0
    bucket = sql.pmod(sql.xxhash64(KEY), sql.lit(BUCKETS * parts)).cast("string")
    own = sql.when(sql.col(WEIGHT) > share, sql.concat(sql.lit("k"), KEY)).otherwise(sql.concat(sql.lit("b"), bucket))
    groups = weights.groupBy(own.alias("name")).agg(sql.sum(WEIGHT).alias(WEIGHT)).collect()
    places = _places({row["name"]: row[WEIGHT] for row in groups}, parts)
    heavy = {name[1:]: place for name, place in places.items() if name[0] == "k"}
    light = {name[1:]: place for name, place in places.items() if name[0] == "b"}
    place = sql.coalesce(_looked_at(heavy, sql.col(KEY)), _looked_at(light, bucket), sql.lit(0))
    return keyed.withColumn(PLACE, place).repartitionById(parts, PLACE)


def _places(weights: dict[str, int], parts: int) -> dict[str, int]:
    """Each name with its partition: the heaviest first, each where least is so far."""
    loads = [(0, part) for part in range(parts)]
    places = {}
    for name in sorted(weights, key=lambda name: (-weights[name], name)):
        load, places[name] = heapq.heappop(loads)
        heapq.heappush(loads, (load + weights[name], places[name]))
    return places


def _looked_at(places: dict[str, int], name: Column) -> Column:
    if not places:
        return sql.lit(None).cast("int")
    pairs = [sql.lit(each) for item in sorted(places.items()) for each in item]
    return sql.try_element_at(sql.create_map(*pairs), name)


def _ordered(frame: DataFrame, *columns: str) -> DataFrame:
    """The rows of each key one after the other, in the order of those of the columns that are there."""
    chosen = [name for name in columns if name in frame.columns]
    return frame.sortWithinPartitions(KEY, *chosen).drop(KEY, WEIGHT, PLACE)


def _mapped(frame: DataFrame, step: Callable[..., Batches], schema: pa.Schema) -> DataFrame:
    return frame.mapInArrow(step, from_arrow_schema(schema))


def _stored(frame: DataFrame) -> DataFrame:
    return frame.persist(StorageLevel.DISK_ONLY)


def _plain(frame: DataFrame) -> DataFrame:
    return frame.where(sql.col(SUMMARY).isNull())


def _summaries(frame: DataFrame) -> list[bytes]:
    return [bytes(row[0]) for row in frame.where(sql.col(SUMMARY).isNotNull()).select(SUMMARY).collect()]


def _bound_rows(rows: DataFrame, findings: Sequence[Finding]) -> list[Row]:
    """The rows that findings name, by their ids."""
    places = {place for each in findings for place in zip(each.message_conversations, each.message_ids, strict=True)}
    names = sorted({conversation for conversation, _ in places})
    bound: list[Row] = []
    for start in range(0, len(names), LOOKED_UP):
        some = _plain(rows).where(sql.col("conversation").isin(names[start : start + LOOKED_UP]))
        bound += (row for row in rows_in(some.toArrow().to_batches()) if (row.conversation, row.id) in places)
    return bound


def _looked_up(scans: DataFrame | None, names: Sequence[str]) -> dict[str, Conversation]:
    """Scanned conversations by their ids."""
    conversations: dict[str, Conversation] = {}
    for start in range(0, len(names) if scans is not None else 0, LOOKED_UP):
        some = _plain(scans).where(sql.col("conversation").isin(list(names[start : start + LOOKED_UP])))
        table = some.toArrow().sort_by([("conversation", "ascending"), ("position", "ascending")])
        conversations |= {each.id: each for each in conversations_in(table.to_batches())}
    return conversations


def _of_schema(frame: DataFrame, schema: pa.Schema, needed: Sequence[str]) -> DataFrame:
    """The columns of the frame that the schema has; raises InputError where needed ones are missing."""
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise InputError(f"the frame has no column {', '.join(missing)}", remedy="undersong.arrow has the schemas")
    return frame.select(*(name for name in frame.columns if name in schema.names and name != SUMMARY))


def _parts(frame: DataFrame) -> int:
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def _silent(_step: str) -> None:
    """Nobody watches."""
