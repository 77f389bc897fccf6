// An MCP host in the browser: the official client, connected to the server under test, and the
// official host bridge of MCP Apps. `app.test.mjs` serves this file and the view.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport, getToolUiResourceUri } from "@modelcontextprotocol/ext-apps/app-bridge";

const EXTENSION = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };

export async function connect() {
    const client = new Client(
        { name: "host", version: "1" },
        { capabilities: { extensions: EXTENSION }, versionNegotiation: { mode: "auto" } },
    );
    await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));
    return client;
}

// Calls a tool as an agent would, and displays its app.
export async function openApp(client, name, args, hostContext) {
    const { tools } = await client.listTools();
    const uri = getToolUiResourceUri(tools.find((tool) => tool.name === name));
    const { contents: [document_] } = await client.readResource({ uri });
    await window.serveView(document_.text, document_._meta.ui.csp);

    const iframe = document.createElement("iframe");
    iframe.sandbox = "allow-scripts";
    iframe.style = "width: 100%; height: 50px; border: 0";
    document.body.append(iframe);

    const capabilities = { openLinks: {}, serverTools: {}, message: { text: {} } };
    const bridge = new AppBridge(client, { name: "host", version: "1" }, capabilities, { hostContext });
    const host = { bridge, iframe, messages: [], links: [] };
    bridge.onmessage = async ({ content }) => { host.messages.push(content[0].text); return {}; };
    bridge.onopenlink = async ({ url }) => { host.links.push(url); return {}; };
    bridge.addEventListener("sizechange", ({ height }) => { iframe.style.height = `${height}px`; });
    const initialized = new Promise((resolve) => { bridge.addEventListener("initialized", resolve); });
    await bridge.connect(new PostMessageTransport(iframe.contentWindow, iframe.contentWindow));
    iframe.src = "https://view.test/";
    await initialized;

    await bridge.sendToolInput({ arguments: args });
    host.result = await client.callTool({ name, arguments: args });
    await bridge.sendToolResult(host.result);
    return host;
}
