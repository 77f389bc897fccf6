// Runs the plan with the official TypeScript SDK for 2026-07-28: npm `@modelcontextprotocol/client` 2.x,
// which also supports older versions.
//
//     client_2.mjs VERSION http URL
//     client_2.mjs VERSION stdio COMMAND [ARGUMENT...]

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';

import { TIMEOUT_MS, answerForm, linksOf, parseResult, runPlan, updateQueue } from './plan.mjs';

const [version, kind, ...target] = process.argv.slice(2);
const stateless = version >= '2026';

function transport() {
    if (kind === 'http') return new StreamableHTTPClientTransport(new URL(target[0]));
    return new StdioClientTransport({ command: target[0], args: target.slice(1) });
}

/** Sends requests past the SDK, whose codec rejects the results that the tasks extension adds. */
function rawDispatch(connection) {
    const pending = new Map();
    const deliver = connection.onmessage;
    connection.onmessage = (message, extra) => {
        const resolve = pending.get(message.id);
        if (!resolve) return deliver(message, extra);
        pending.delete(message.id);
        const { error, result } = message;
        return resolve(error ? { kind: 'error', error } : { kind: 'result', result });
    };
    let last = 0;
    return async (request) => {
        const id = `task-${(last += 1)}`;
        const response = new Promise((resolve) => pending.set(id, resolve));
        await connection.send({ ...request, jsonrpc: '2.0', id });
        return response;
    };
}

/** A connection whose calls are followed as tasks. */
async function connectWithTasks(decisions) {
    const clientInfo = { name: 'onward-test', version: '0' };
    const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const client = new Client(clientInfo, { capabilities, versionNegotiation: { mode: 'auto' } });
    const connection = transport();
    await client.connect(connection, { timeout: TIMEOUT_MS });
    let followed = 0;
    const dispatch = rawDispatch(connection);
    const session = createTaskSessionFromClient(client, {
        endpointId: 'onward',
        rawDispatch: async (request) => {
            const response = await dispatch(request);
            if (response.result?.resultType === 'task') followed += 1;
            return response;
        },
        v2RequestFraming: { protocolVersion: version, clientInfo, clientCapabilities: capabilities },
        onInputRequest: async ({ params }) => answerForm(decisions, params),
    });
    return {
        call: async (name, args) => {
            const execution = await session.callTool(name, args);
            const { outcome } = await execution.settle();
            return parseResult(resultFromTaskOutcome(outcome));
        },
        tasksFollowed: () => followed,
        close: async () => {
            await session.close();
            await client.close();
        },
    };
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

await runPlan(connect, version, stateless ? connectWithTasks : undefined);
