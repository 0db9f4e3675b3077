"""Telling clients that a list changed, in both protocol eras.

A client of the 2025-11-25 protocol is told on its connection; one of 2026-07-28 on the streams that it opened
with `subscriptions/listen`.
"""

from collections import OrderedDict
from typing import Any

from mcp.server import InitializationOptions, NotificationOptions, Server, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types import NotificationParams, SubscriptionsListenRequestParams

__all__ = ["Changes", "ChangingServer"]

_MAX_SESSIONS = 1024


class Changes:
    """The connections of one server, to be told when its lists change."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        # A session of the older era says hello but never goodbye to a handler, so the oldest make room;
        # a notification to one that is gone is dropped by the SDK.
        self._sessions: OrderedDict[int, ServerSession] = OrderedDict()

    def serve(self, server: "ChangingServer") -> None:
        """Let a server's clients subscribe, and remember the ones that need no subscription."""
        server.add_request_handler(
            "subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(self._bus)
        )
        server.add_notification_handler("notifications/initialized", NotificationParams, self._remember)
        server.announces_changes = True

    async def tools_changed(self) -> None:
        """The tools are others now."""
        for session in list(self._sessions.values()):
            await session.send_tool_list_changed()
        await self._bus.publish(ToolsListChanged())

    async def resources_changed(self, *updated: str) -> None:
        """The list of resources is another now, and so are the contents of the ones named."""
        for session in list(self._sessions.values()):
            await session.send_resource_list_changed()
        await self._bus.publish(ResourcesListChanged())
        for uri in updated:
            await self._bus.publish(ResourceUpdated(uri=uri))

    async def _remember(self, ctx: ServerRequestContext[Any, Any], _: NotificationParams) -> None:
        self._sessions[id(ctx.session)] = ctx.session
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)


class ChangingServer(Server[Any]):
    """A low-level server that says in its greeting whether it tells of changes."""

    announces_changes = False

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The greeting of the 2025-11-25 era; the later one finds out from the handlers by itself."""
        changing = self.announces_changes
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=changing, resources_changed=changing),
            experimental_capabilities,
            extensions,
        )
