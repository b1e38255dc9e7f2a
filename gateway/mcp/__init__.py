"""The MCP edge: JSON-RPC codec, tools, the server that knows no transport, and its transports."""
