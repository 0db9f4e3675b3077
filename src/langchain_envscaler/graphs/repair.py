"""Repair of a history in which tool calls have no results, as a crash between model and tools leaves it."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

__all__ = ["close_open_calls"]


def close_open_calls(messages: Sequence[AnyMessage]) -> list[AnyMessage] | None:
    """The messages with an error result for each call that has none, or None if every call has one.

    Providers refuse a history with an open call. The result that stands in says what is known, which is
    nothing: the call may have been carried out before the run broke off.
    """
    repaired: list[AnyMessage] = []
    open_calls: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            open_calls.pop(message.tool_call_id, None)
        else:
            repaired += open_calls.values()
            open_calls = _stand_ins(message) if isinstance(message, AIMessage) else {}
        repaired.append(message)
    repaired += open_calls.values()
    return repaired if len(repaired) > len(messages) else None


def _stand_ins(message: AIMessage) -> dict[str, ToolMessage]:
    return {
        call["id"]: ToolMessage(
            content=(
                "Error: the run broke off before this call had a result. It is unknown whether the call took "
                "effect. Find out before you call the tool again."
            ),
            name=call["name"],
            tool_call_id=call["id"],
            status="error",
        )
        for call in message.tool_calls
        if call["id"] is not None
    }
