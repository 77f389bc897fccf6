// Runs the plan with the official TypeScript SDK for 2025-11-25: npm `@modelcontextprotocol/sdk` 1.x.
//
//     sdk_1.mjs VERSION http URL
//     sdk_1.mjs VERSION stdio COMMAND [ARGUMENT...]

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { TIMEOUT_MS, answerForm, linksOf, parseResult, runPlan, updateQueue } from './plan.mjs';

const [version, kind, ...target] = process.argv.slice(2);

function transport() {
    if (kind === 'http') return new StreamableHTTPClientTransport(new URL(target[0]));
    return new StdioClientTransport({ command: target[0], args: target.slice(1) });
}

async function connect(decisions) {
    const options = { capabilities: { elicitation: {} } };
    const client = new Client({ name: 'onward-test', version: '0' }, options);
    const updates = updateQueue();
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => answerForm(decisions, params));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updates.add(params.uri));
    const connection = transport();
    // The client does not expose the negotiated version; it only passes it to the transport.
    let negotiated;
    const setProtocolVersion = connection.setProtocolVersion?.bind(connection);
    connection.setProtocolVersion = (version) => ((negotiated = version), setProtocolVersion?.(version));
    await client.connect(connection, { timeout: TIMEOUT_MS });
    return {
        version: () => negotiated,
        tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
        call: async (name, args) => parseResult(await client.callTool({ name, arguments: args })),
        links: async (name, args) => linksOf(await client.callTool({ name, arguments: args })),
        complete: async (uri, name, value) => {
            const ref = { type: 'ref/resource', uri };
            return (await client.complete({ ref, argument: { name, value } })).completion.values;
        },
        resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
        read: async (uri) => (await client.readResource({ uri })).contents[0].text,
        prompts: async () => (await client.listPrompts()).prompts.map((prompt) => prompt.name),
        prompt: async (name, args) =>
            (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
        watch: async (uri) => {
            await client.subscribeResource({ uri });
            return { next: updates.next, end: () => client.unsubscribeResource({ uri }) };
        },
        close: () => client.close(),
    };
}

await runPlan(connect, version);
