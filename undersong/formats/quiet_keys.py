"""Keys of each format under which words stand that are no message, so that an ordinary export stays silent.

``unread_words`` names every other string with words that no reader takes and no note names.
"""

from __future__ import annotations

from collections.abc import Mapping

# Labels and names of people, places and products: there a sentence alone is worth a note.
LABELS: Mapping[str, frozenset[str]] = {
    "chatgpt": frozenset(("gizmo_type", "reasoning_title", "initial_text", "finished_text", "image_gen_title")),
    "claude": frozenset(("full_name", "integration_name", "message", "icon_name")),
    "claude-code": frozenset(("gitBranch", "userType", "entrypoint", "permissionMode", "serverToolUse")),
    "codex": frozenset(("originator", "cli_version", "branch", "approval_policy", "effort")),
    "copilot": frozenset(("responderUsername", "fullName", "details", "editorType")),
    "discord": frozenset(("category", "nickname", "code", "color")),
    "gemini": frozenset(("products", "activityControls")),
    "inspect": frozenset(("solver", "scorer", "location", "task", "tags")),
    "langfuse": frozenset(("tags", "environment", "release")),
    "langsmith": frozenset(("tags", "platform", "runtime", "session_name")),
    "braintrust": frozenset(("tags", "caller_functionname", "caller_filename")),
    "openai": frozenset(("system_fingerprint", "service_tier", "finish_reason")),
    "otel": frozenset(("schemaUrl", "process.runtime.description", "os.description", "service.name")),
    "signal": frozenset(("given", "family", "profileGivenName", "profileFamilyName", "systemGivenName")),
    "slack": frozenset(("real_name", "display_name", "first_name", "real_name_normalized", "display_name_normalized")),
    "telegram": frozenset(("first_name", "last_name", "from", "actor", "forwarded_from", "saved_from", "author")),
}

# What a program tells its model, found on the web, or computed from the messages.
REPEATING: Mapping[str, frozenset[str]] = {
    "chatgpt": frozenset(
        ("citations", "content_references", "search_result_groups", "search_queries", "image_results",
         "aggregate_result", "jupyter_messages", "invoked_plugin", "user_context_message_data", "dalle",
         "moderation_results")
    ),
    "claude": frozenset(("citations", "display_content", "structured_content", "prompt_context_metadata")),
    "claude-code": frozenset(("originalFile", "structuredPatch", "oldTodos", "newTodos", "activeForm")),
    "claude-stream": frozenset(("slash_commands", "permission_denials", "modelUsage")),
    "codex": frozenset(
        ("user_instructions", "developer_instructions", "collaboration_mode", "replacement_history", "parsed_cmd",
         "unified_diff", "formatted_output")
    ),
    "copilot": frozenset(
        ("description", "examples", "sampleRequest", "renderedUserMessage", "renderedGlobalContext", "followups",
         "contentReferences", "codeCitations", "usedContext", "modelDescription", "toolSpecificData", "resultDetails",
         "confirmationMessages")
    ),
    "inspect": frozenset(("events", "store", "explanation", "packages", "attachments", "traceback", "timelines")),
    "jsonl": frozenset(
        ("reasons", "reason", "signals", "quotes", "hits", "reading", "triage", "loops", "deference", "engines",
         "labels", "indicators", "flags", "spans", "hard_constraints", "answer", "judge")
    ),
    "langsmith": frozenset(("serialized", "manifest", "invocation_params", "feedback_stats")),
    "openai": frozenset(("response_format", "parameters", "logprobs")),
    "openhands": frozenset(("tool_call_metadata", "llm_metrics", "tools", "extended_content", "old_content", "diff")),
    "otel": frozenset(("process.command_line", "process.command_args", "gen_ai.tool.definitions", "llm.tools")),
    "wildchat": frozenset(("user-agent", "accept-language")),
}  # fmt: skip

# Words that a program puts around somebody's words.
FRAMES: Mapping[str, frozenset[str]] = {
    "claude-code": frozenset(("Error",)),
    "gemini": frozenset(("Prompted",)),
    "openai": frozenset(("Human", "Assistant")),
    "openhands": frozenset(
        ("Running", "command", "Python", "code", "interactively", "Reading", "file", "Writing", "Editing", "editing",
         "browsing", "interacting", "browser", "Command", "executed", "with", "exit", "read", "wrote", "edited",
         "Agent", "state", "changed", "Executed", "IPython", "cell", "Done")
    ),
    "telegram": frozenset(("Here", "data", "requested", "This", "page", "lists", "chats", "from", "this", "export")),
    "sweagent": frozenset(("DISCUSSION", "THOUGHT", "ACTION")),
}  # fmt: skip
