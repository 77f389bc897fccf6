// Runs the plan with the official TypeScript SDK for 2026-07-28: npm `@modelcontextprotocol/client` 2.x,
// which also supports older versions.
//
//     client_2.mjs VERSION http URL
//     client_2.mjs VERSION stdio COMMAND [ARGUMENT...]

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { TIMEOUT_MS, answerForm, parseResult, runPlan, updateQueue } from './plan.mjs';

const [version, kind, ...target] = process.argv.slice(2);
const stateless = version >= '2026';

function transport() {
    if (kind === 'http') return new StreamableHTTPClientTransport(new URL(target[0]));
    return new StdioClientTransport({ command: target[0], args: target.slice(1) });
}

async function connect(decisions) {
    const client = new Client(
        { name: 'onward-test', version: '0' },
        {
            capabilities: { elicitation: { form: {} } },
            // `auto` negotiates the version, as an agent would.
            versionNegotiation: { mode: stateless ? 'auto' : 'legacy' },
        },
    );
    const updates = updateQueue();
    client.setRequestHandler('elicitation/create', ({ params }) => answerForm(decisions, params));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => updates.add(params.uri));
    await client.connect(transport(), { timeout: TIMEOUT_MS });
    return {
        version: () => client.getNegotiatedProtocolVersion(),
        tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
        call: async (name, args) => parseResult(await client.callTool({ name, arguments: args })),
        resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
        read: async (uri) => (await client.readResource({ uri })).contents[0].text,
        prompts: async () => (await client.listPrompts()).prompts.map((prompt) => prompt.name),
        prompt: async (name, args) =>
            (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
        watch: async (uri) => {
            if (stateless) {
                const stream = await client.listen({ resourceSubscriptions: [uri] });
                return { next: updates.next, end: () => stream.close() };
            }
            await client.subscribeResource({ uri });
            return { next: updates.next, end: () => client.unsubscribeResource({ uri }) };
        },
        close: () => client.close(),
    };
}

await runPlan(connect, version);
