"""The records that the steps pass to each other: frozen, typed, JSON both ways."""

from __future__ import annotations

from undersong.models.evaluation import Evaluation, Indicator, PanelAnswer, Quote, Reading, Route, Stance, Usage
from undersong.models.finding import Emerging, Finding, Outcome, RetractedFinding, RuleOutcome, Why, by_pattern
from undersong.models.lead import Lead, LeadEvidence, lead_order, ranked_leads
from undersong.models.message import (
    DIMENSIONS,
    LEVELS,
    NEGATIVE_TRAITS,
    SIGNALS,
    TIERS,
    TRAITS,
    AlignmentStatus,
    Answer,
    Assessment,
    Break,
    Conversation,
    Depth,
    Domain,
    FreeSignal,
    InputFile,
    Level,
    Message,
    Observed,
    Problem,
    Record,
    Role,
    Scale,
    SignalKind,
    SourceRef,
    State,
    Tier,
    ToolCall,
    ToolResult,
    Trait,
    TraitScores,
    Width,
    applicable_scores,
    decode,
    encode,
)
from undersong.models.review import (
    REASONS,
    REVIEW_KINDS,
    REVIEW_VERDICTS,
    DrawnBy,
    Review,
    ReviewedRow,
    ReviewKind,
    ReviewStanding,
    ReviewVerdict,
    evidence_hash,
    in_force,
    standing_review,
    withdrawals,
)
from undersong.models.row import Row
from undersong.models.scan import (
    COUNTED,
    WHOLE_REPLIES,
    AgentFlags,
    CodeBlock,
    Deference,
    Hit,
    Loop,
    Scan,
    Telemetry,
    ThreadScan,
    ThreadSignal,
)
from undersong.models.sequence import Nomination, SequenceReading, ShapeReading, StageReading
from undersong.models.verdict import (
    AgentVerdict,
    Bypass,
    Case,
    Confirmed,
    Deduction,
    LedgerClaim,
    Mark,
    Mechanism,
    Missed,
    Moment,
    RepeatedFailure,
    SessionVerdict,
    SignalBand,
    Spending,
)

__all__ = [
    "COUNTED", "DIMENSIONS", "LEVELS", "NEGATIVE_TRAITS", "REASONS", "REVIEW_KINDS", "REVIEW_VERDICTS", "SIGNALS",
    "TIERS", "TRAITS", "WHOLE_REPLIES", "AgentFlags", "AgentVerdict", "AlignmentStatus", "Answer", "Assessment",
    "Break", "Bypass", "Case", "CodeBlock", "Confirmed", "Conversation", "Deduction", "Deference", "Depth", "Domain",
    "DrawnBy", "Emerging", "Evaluation", "Finding", "FreeSignal", "Hit", "Indicator", "InputFile", "Lead",
    "LeadEvidence", "LedgerClaim", "Level", "Loop", "Mark", "Mechanism", "Message", "Missed", "Moment", "Nomination",
    "Observed", "Outcome", "PanelAnswer", "Problem", "Quote", "Reading", "Record", "RepeatedFailure",
    "RetractedFinding", "Review", "ReviewKind", "ReviewStanding", "ReviewVerdict", "ReviewedRow", "Role", "Route",
    "Row", "RuleOutcome", "Scale", "Scan", "SequenceReading", "SessionVerdict", "ShapeReading", "SignalBand",
    "SignalKind", "SourceRef", "Spending", "StageReading", "Stance", "State", "Telemetry", "ThreadScan", "ThreadSignal",
    "Tier", "ToolCall", "ToolResult", "Trait", "TraitScores", "Usage", "Why", "Width", "applicable_scores",
    "by_pattern", "decode", "encode", "evidence_hash", "in_force", "lead_order", "ranked_leads",
    "standing_review", "withdrawals",
]  # fmt: skip
