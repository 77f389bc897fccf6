// The plan through the official TypeScript SDK of 2025-11-25: npm `@modelcontextprotocol/sdk` 1.x.
//
//     sdk_1.mjs VERSION http URL
//     sdk_1.mjs VERSION stdio COMMAND [ARGUMENT...]

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { PATIENCE, answer, fillIn, go, updates } from './plan.mjs';

const [version, kind, ...target] = process.argv.slice(2);

function transport() {
    if (kind === 'http') return new StreamableHTTPClientTransport(new URL(target[0]));
    return new StdioClientTransport({ command: target[0], args: target.slice(1) });
}

async function connect(person) {
    const options = { capabilities: { elicitation: {} } };
    const client = new Client({ name: 'onward-test', version: '0' }, options);
    const changed = updates();
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => fillIn(person, params));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => changed.add(params.uri));
    const way = transport();
    let agreed;
    const told = way.setProtocolVersion?.bind(way);
    // The client keeps to itself what was agreed, and tells its transport.
    way.setProtocolVersion = (version) => ((agreed = version), told?.(version));
    await client.connect(way, { timeout: PATIENCE });
    return {
        version: () => agreed,
        tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
        call: async (name, args) => answer(await client.callTool({ name, arguments: args })),
        resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
        read: async (uri) => (await client.readResource({ uri })).contents[0].text,
        prompts: async () => (await client.listPrompts()).prompts.map((prompt) => prompt.name),
        prompt: async (name, args) =>
            (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
        watch: async (uri) => {
            await client.subscribeResource({ uri });
            return { next: changed.next, end: () => client.unsubscribeResource({ uri }) };
        },
        close: () => client.close(),
    };
}

await go(connect, version);
