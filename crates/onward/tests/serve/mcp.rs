//! MCP.
