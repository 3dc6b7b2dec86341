"""Request validation with the vendor's rules and wording: a client that passes here has no shape error on the real
service.
"""

from __future__ import annotations

import re
from typing import Any

from harness.simulator import catalog, compaction, edits
from harness.simulator.errors import ApiError

_FIELDS = frozenset(
    (
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "stop_sequences",
        "temperature",
        "top_p",
        "top_k",
        "metadata",
        "thinking",
        "service_tier",
        "cache_control",
        "container",
        "context_management",
        "diagnostics",
        "inference_geo",
        "output_config",
        "speed",
        "mcp_servers",
        "billing_policy",
        "compaction",
        "fallbacks",
        "fallback_credit_token",
        "thread",
        "user_profile_id",
        "workspace_id",
    )
)
_BLOCKS = frozenset(
    (
        "text",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
        "search_result",
        compaction.KIND,
    )
)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_VENDORS = {"memory_20250818": "memory"}
"""By type of a tool that the service knows: the name that it must have."""
Block = dict[str, object]


def _fail(message: str) -> ApiError:
    return ApiError(400, message)


def check(body: object, *, counting: bool = False, betas: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The request as a dict, with every message's content in place.

    Raises ApiError 400 or 404. ``counting``: a count_tokens request; ``betas``: those that its header names.
    """
    if not isinstance(body, dict):
        raise _fail("The request body is not valid JSON: expected an object")
    for name in body:
        if name not in _FIELDS:
            raise _fail(f"{name}: Extra inputs are not permitted")
    for name in ("model", "messages") if counting else ("model", "max_tokens", "messages"):
        if name not in body:
            raise _fail(f"{name}: Field required")
    if not isinstance(body["model"], str) or not body["model"]:
        raise _fail("model: Input should be a valid string")
    model = catalog.find(body["model"])
    if not counting:
        _max_tokens(body, model)
    _output(body.get("output_config"))
    edits.check(body.get("context_management"), betas)
    _tools(body.get("tools"))
    _system(body.get("system"))
    _messages(body["messages"], model)
    compaction.check(body["messages"], betas)
    return body


def _max_tokens(body: dict[str, object], model: catalog.Model) -> None:
    value = body["max_tokens"]
    if isinstance(value, bool) or not isinstance(value, int):
        raise _fail("max_tokens: Input should be a valid integer")
    if value < 1:
        raise _fail("max_tokens: Input should be greater than or equal to 1")
    if value > model.max_output:
        raise _fail(
            f"max_tokens: {value} > {model.max_output}, which is the maximum allowed number of output tokens for"
            f" {model.id}"
        )
    if not isinstance(body.get("stream", False), bool):
        raise _fail("stream: Input should be a valid boolean")


def _output(config: object) -> None:
    if config is None:
        return
    if not isinstance(config, dict):
        raise _fail("output_config: Input should be a valid dictionary")
    shape = config.get("format")
    if shape is None:
        return
    if not isinstance(shape, dict) or shape.get("type") != "json_schema":
        raise _fail("output_config.format.type: Input should be 'json_schema'")
    _schema("output_config.format.schema", shape.get("schema"))


def _schema(where: str, schema: object) -> None:
    if not isinstance(schema, dict):
        raise _fail(f"{where}: Field required")
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            raise _fail(f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false")
        for name, part in schema.get("properties", {}).items():
            _schema(f"{where}.properties.{name}", part)
    if schema.get("type") == "array":
        _schema(f"{where}.items", schema.get("items"))


def _tools(tools: object) -> None:
    if tools is None:
        return
    if not isinstance(tools, list):
        raise _fail("tools: Input should be a valid list")
    names: set[str] = set()
    for i, tool in enumerate(tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise _fail(f"tools.{i}.custom.name: Field required")
        if not _TOOL_NAME.match(tool["name"]):
            raise _fail(f"tools.{i}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool["name"] in names:
            raise _fail("tools: Tool names must be unique.")
        names.add(tool["name"])
        if tool.get("type", "custom") != "custom":
            _vendors(i, tool)
            continue
        schema = tool.get("input_schema")
        if not isinstance(schema, dict):
            raise _fail(f"tools.{i}.custom.input_schema: Field required")
        if schema.get("type") != "object":
            raise _fail(f"tools.{i}.custom.input_schema.type: Input should be 'object'")


def _vendors(i: int, tool: Block) -> None:
    """A tool whose schema the service itself knows."""
    name = _VENDORS.get(str(tool["type"]))
    if name is None:
        raise _fail(f"tools.{i}: Input tag '{tool['type']}' found using 'type' does not match any of the expected tags")
    if tool["name"] != name:
        raise _fail(f"tools.{i}.{tool['type']}.name: Input should be '{name}'")
    for field in tool:
        if field not in ("type", "name", "cache_control"):
            raise _fail(f"tools.{i}.{tool['type']}.{field}: Extra inputs are not permitted")


def _system(system: object) -> None:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise _fail("system: Input should be a valid string or list")
    for i, part in enumerate(system):
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise _fail(f"system.{i}: Input should be a text block")
        if not part["text"]:
            raise _fail("system: text content blocks must be non-empty")


def _messages(messages: object, model: catalog.Model) -> None:
    if not isinstance(messages, list):
        raise _fail("messages: Input should be a valid list")
    if not messages:
        raise _fail("messages: at least one message is required")
    last_role = ""
    open_ids: list[str] = []
    for i, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            raise _fail(f"messages.{i}.role: Input should be 'user' or 'assistant'")
        role = message["role"]
        if i == 0 and role != "user":
            raise _fail('messages: first message must use the "user" role')
        if role == last_role:
            raise _fail(
                f'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles in'
                " a row"
            )
        blocks = _content(i, message)
        if role == "user":
            _results(i, blocks, open_ids)
            open_ids = []
        else:
            open_ids = [str(b["id"]) for b in blocks if b["type"] == "tool_use"]
            if len(set(open_ids)) != len(open_ids):
                raise _fail("messages: `tool_use` ids must be unique")
        last_role = role
    if open_ids:
        raise _missing(len(messages) - 1, open_ids)
    if last_role == "assistant" and not model.prefill:
        raise _fail(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _missing(i: int, ids: list[str]) -> ApiError:
    return _fail(
        f"messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _results(i: int, blocks: list[Block], expected: list[str]) -> None:
    """Each open call is answered exactly once, before any other content."""
    given = [str(b["tool_use_id"]) for b in blocks if b["type"] == "tool_result"]
    for tool_use_id in given:
        if tool_use_id not in expected:
            raise _fail(
                f"messages.{i}.content: unexpected `tool_use_id` found in `tool_result` blocks: {tool_use_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
    if len(set(given)) != len(given):
        raise _fail(
            f"messages.{i}.content: each tool_use must have a single result. Found multiple `tool_result` blocks with"
            f" id: {given[-1]}"
        )
    leading = [str(b["tool_use_id"]) for b in blocks[: len(given)] if b["type"] == "tool_result"]
    missing = [x for x in expected if x not in leading]
    if missing:
        raise _missing(i - 1, missing)


def _content(i: int, message: dict[str, Any]) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str):
        if not content:
            raise _fail(f"messages.{i}: all messages must have non-empty content")
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise _fail(f"messages.{i}.content: Input should be a valid string or list")
    if not content:
        raise _fail(f"messages.{i}: all messages must have non-empty content")
    for j, block in enumerate(content):
        _block(f"messages.{i}.content.{j}", message["role"], block)
    return content


def _block(where: str, role: str, block: object) -> None:
    if not isinstance(block, dict) or block.get("type") not in _BLOCKS:
        kind = block.get("type") if isinstance(block, dict) else block
        raise _fail(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    kind = block["type"]
    if kind == "text":
        if not isinstance(block.get("text"), str):
            raise _fail(f"{where}.text.text: Field required")
        if not block["text"]:
            raise _fail("messages: text content blocks must be non-empty")
        if not block["text"].strip():
            raise _fail("messages: text content blocks must contain non-whitespace text")
    elif kind == "tool_use":
        if role != "assistant":
            raise _fail(f"{where}: `tool_use` blocks can only be in `assistant` messages")
        if not isinstance(block.get("id"), str) or not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
            raise _fail(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not isinstance(block.get("name"), str) or not _TOOL_NAME.match(block["name"]):
            raise _fail(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(block.get("input"), dict):
            raise _fail(f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        if role != "user":
            raise _fail(f"{where}: `tool_result` blocks can only be in `user` messages")
        if not isinstance(block.get("tool_use_id"), str):
            raise _fail(f"{where}.tool_result.tool_use_id: Field required")
        if not isinstance(block.get("content", ""), (str, list)):
            raise _fail(f"{where}.tool_result.content: Input should be a valid string or list")
    elif kind == "thinking" and (
        not isinstance(block.get("thinking"), str) or not isinstance(block.get("signature"), str)
    ):
        raise _fail(f"{where}.thinking.signature: Field required")
