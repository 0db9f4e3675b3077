"""An MCP tool result as the content of a tool message: text, or LangChain's standard content blocks.

All of it is JSON, so that it passes through any checkpointer.
"""

import json
from typing import Any

from langchain_core.messages.content import (
    ContentBlock,
    create_file_block,
    create_image_block,
    create_text_block,
)
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from mcp_types import ContentBlock as MCPBlock

__all__ = ["artifact", "message_content"]

_PROTOCOL = "io.modelcontextprotocol/"


def message_content(result: CallToolResult) -> str | list[Any]:
    """What a model reads of a result.

    A single text stays a text, as environments' observations must. Without any content the structured content
    stands in, as JSON.
    """
    if not result.content:
        if result.structured_content is not None:
            return json.dumps(result.structured_content, ensure_ascii=False)
        return ""
    if len(result.content) == 1 and isinstance(result.content[0], TextContent):
        return result.content[0].text
    return [_without_id(_block(block)) for block in result.content]


def artifact(result: CallToolResult) -> dict[str, Any] | None:
    """What a program may want of a result beside what the model reads: structured content and `_meta`."""
    kept: dict[str, Any] = {}
    if result.structured_content is not None:
        kept["structured_content"] = result.structured_content
    # The protocol's own keys tell of the connection, not of the result.
    meta = {key: value for key, value in (result.meta or {}).items() if not key.startswith(_PROTOCOL)}
    if meta:
        kept["meta"] = meta
    return kept or None


def _block(block: MCPBlock) -> ContentBlock:
    if isinstance(block, TextContent):
        return create_text_block(block.text)
    if isinstance(block, ImageContent):
        return create_image_block(base64=block.data, mime_type=block.mime_type)
    if isinstance(block, AudioContent):
        # LangGraph's tool node takes no audio blocks, but files.
        return create_file_block(base64=block.data, mime_type=block.mime_type)
    if isinstance(block, ResourceLink):
        return _link(block)
    if isinstance(block, EmbeddedResource):
        return _resource(block)
    # A newer SDK may know more kinds than these.
    return create_text_block(json.dumps(block.model_dump(mode="json", by_alias=True), ensure_ascii=False))


def _link(link: ResourceLink) -> ContentBlock:
    uri = str(link.uri)
    if not uri.startswith(("http://", "https://")):
        # Only the server itself can resolve such an address, so it is of use as a text only.
        about = f": {link.description}" if link.description else ""
        return create_text_block(f"{link.title or link.name} ({uri}){about}")
    if link.mime_type and link.mime_type.startswith("image/"):
        return create_image_block(url=uri, mime_type=link.mime_type)
    return create_file_block(url=uri, mime_type=link.mime_type)


def _resource(embedded: EmbeddedResource) -> ContentBlock:
    resource = embedded.resource
    if not isinstance(resource, BlobResourceContents):
        return create_text_block(resource.text)
    if resource.mime_type and resource.mime_type.startswith("image/"):
        return create_image_block(base64=resource.blob, mime_type=resource.mime_type)
    return create_file_block(base64=resource.blob, mime_type=resource.mime_type or "application/octet-stream")


def _without_id(block: ContentBlock) -> dict[str, Any]:
    # The random ids that LangChain gives to blocks would make equal results differ.
    return {key: value for key, value in block.items() if key != "id"}
