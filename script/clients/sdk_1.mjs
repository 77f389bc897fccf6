// Runs the plan with the official TypeScript SDK for 2025-11-25: npm `@modelcontextprotocol/sdk` 1.x.
//
//     sdk_1.mjs VERSION http URL
//     sdk_1.mjs VERSION stdio COMMAND [ARGUMENT...]

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    ElicitRequestSchema,
    ElicitationCompleteNotificationSchema,
    ErrorCode,
    ResourceUpdatedNotificationSchema,
    ResultSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { parseResult } from './checks.mjs';
import { TIMEOUT_MS, updateQueue } from './features.mjs';
import { runPlan } from './plan.mjs';

const [version, kind, ...target] = process.argv.slice(2);

function transport(args) {
    if (kind === 'http') return new StreamableHTTPClientTransport(new URL(target[0]));
    return new StdioClientTransport({ command: target[0], args: [...target.slice(1), ...args] });
}

async function connect(reviewer, { elicitation = { form: {} }, args = [] } = {}) {
    const client = new Client({ name: 'onward-test', version: '0' }, { capabilities: { elicitation } });
    const updates = updateQueue();
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => reviewer.answer(params));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updates.add(params.uri));
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) =>
        reviewer.completed.push(params.elicitationId),
    );
    const connection = transport(args);
    // The client does not expose the negotiated version; it only passes it to the transport.
    let negotiated;
    const setProtocolVersion = connection.setProtocolVersion?.bind(connection);
    connection.setProtocolVersion = (version) => ((negotiated = version), setProtocolVersion?.(version));
    await client.connect(connection, { timeout: TIMEOUT_MS });
    const lists = {
        tools: () => client.listTools(),
        prompts: () => client.listPrompts(),
        resources: () => client.listResources(),
        resourceTemplates: () => client.listResourceTemplates(),
    };
    const result = async (name, args, _meta) =>
        parseResult(await client.callTool({ name, arguments: args, _meta }));
    const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
    return {
        version: negotiated,
        server: { serverInfo: client.getServerVersion(), capabilities: client.getServerCapabilities() },
        list: (kind) => lists[kind](),
        result,
        call: async (...call) => (await result(...call))[0],
        timesOut: async (name, args) => {
            const call = client.callTool({ name, arguments: args }, undefined, { timeout: 200 });
            return call.then(() => false, ({ code }) => code === ErrorCode.RequestTimeout);
        },
        skill: async () => {
            const { skills } = await client.request({ method: 'skills/list' }, ResultSchema);
            const params = { uri: skills[0].uri };
            const { skill } = await client.request({ method: 'skills/get', params }, ResultSchema);
            return [skill, await read(skill.uri)];
        },
        complete: async (uri, name, value) => {
            const ref = { type: 'ref/resource', uri };
            return (await client.complete({ ref, argument: { name, value } })).completion.values;
        },
        read,
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
