"""LangGraph graphs that wire a chat model to MCP tools."""
