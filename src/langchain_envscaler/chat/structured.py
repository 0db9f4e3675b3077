"""Structured output: what to bind to the model for a schema, and how to read the answer back into it."""

import json
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from langchain_core.utils.pydantic import is_basemodel_subclass
from pydantic import BaseModel

from langchain_envscaler.errors import UsageError

__all__ = ["METHODS", "Method", "StructuredOutput", "with_raw"]

Method: TypeAlias = Literal["json_schema", "function_calling", "json_mode"]
METHODS: tuple[Method, ...] = ("json_schema", "function_calling", "json_mode")


class StructuredOutput:
    """One schema and the method by which the model is held to it.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema or an OpenAI function schema; None only with
            `json_mode`: any object.
        method: "json_schema": the answer is JSON of the schema. "function_calling": it is a call of a tool of
            the schema. "json_mode": it is a JSON object, and the caller describes it in the prompt.

    Raises:
        UsageError: The method is unknown, or needs a schema that is missing.
    """

    def __init__(self, schema: dict[str, Any] | type | None, method: str) -> None:
        if method not in METHODS:
            raise UsageError(f"method: expected one of {', '.join(METHODS)}, got {method!r}")
        if schema is None and method != "json_mode":
            raise UsageError(f"method {method!r} needs a schema; give one, or take json_mode")
        self._schema = schema
        self._method = method

    def binding(self) -> dict[str, Any]:
        """The options to bind to the model."""
        shown = {
            "ls_structured_output_format": {
                "kwargs": {"method": self._method},
                "schema": self._schema or {"title": "object", "type": "object", "properties": {}},
            }
        }
        if self._method == "function_calling":
            tool = convert_to_openai_tool(self._schema)  # type: ignore[arg-type]
            return {
                "tools": [tool],
                "tool_choice": tool["function"]["name"],
                "parallel_tool_calls": False,
                **shown,
            }
        if self._method == "json_mode":
            return {"response_format": {"type": "json_object"}, **shown}
        json_schema = convert_to_json_schema(self._schema)  # type: ignore[arg-type]
        named = {"name": json_schema.get("title", "answer"), "schema": json_schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}, **shown}

    def parser(self) -> Runnable[BaseMessage, Any]:
        """From the model's message to an object of the schema: an instance of a pydantic class, else a dict.

        Raises:
            OutputParserException: When it runs: the message holds no such object, for the reason told.
        """
        return RunnableLambda(self.parse, name="StructuredOutput")

    def parse(self, message: BaseMessage) -> Any:
        """The object that a message holds."""
        if not isinstance(message, AIMessage):
            raise OutputParserException(f"expected an AI message, got {type(message).__name__}")
        value = self._call_value(message) if self._method == "function_calling" else _json_value(message)
        if not is_basemodel_subclass(self._schema):  # type: ignore[arg-type]
            return value
        try:
            return _instance(self._schema, value)
        except ValueError as error:
            name = getattr(self._schema, "__name__", "object")
            raise OutputParserException(
                f"the answer is not a valid {name}: {error}", llm_output=json.dumps(value)
            ) from error

    def _call_value(self, message: AIMessage) -> Any:
        if message.tool_calls:
            return message.tool_calls[0]["args"]
        reasons = "; ".join(f"{call['error']}" for call in message.invalid_tool_calls)
        raise OutputParserException(
            f"the answer holds no valid call ({reasons or _ending(message)})", llm_output=message.text
        )


def with_raw(
    llm: Runnable[LanguageModelInput, AIMessage], parser: Runnable[BaseMessage, Any]
) -> Runnable[Any, Any]:
    """The model's message beside the object: `raw`, `parsed` and `parsing_error`, one of the latter None."""
    parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
    unparsed = RunnablePassthrough.assign(parsed=lambda _: None)
    return RunnableMap(raw=llm) | parsed.with_fallbacks([unparsed], exception_key="parsing_error")


def _instance(schema: Any, value: Any) -> Any:
    """An instance of a class of pydantic's, of its second version or its first."""
    return schema.model_validate(value) if issubclass(schema, BaseModel) else schema.parse_obj(value)


def _json_value(message: AIMessage) -> Any:
    text = message.text
    try:
        return json.loads(text, strict=False)
    except ValueError as error:
        raise OutputParserException(
            f"the answer is not JSON ({_ending(message)}): {error}", llm_output=text
        ) from error


def _ending(message: AIMessage) -> str:
    if message.response_metadata.get("finish_reason") == "length":
        return "cut off by the token limit; raise max_tokens or set a thinking_budget"
    return "the model ended its turn"
