// Runs the plan with the official TypeScript SDK for 2026-07-28: npm `@modelcontextprotocol/client` 2.x,
// which also supports older versions.
//
//     client_2.mjs VERSION http URL
//     client_2.mjs VERSION stdio COMMAND [ARGUMENT...]

import { Client, SdkErrorCode, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';

import { parseResult } from './checks.mjs';
import { TIMEOUT_MS, updateQueue } from './features.mjs';
import { runPlan } from './plan.mjs';

const [version, kind, ...target] = process.argv.slice(2);
const stateless = version >= '2026';
// `auto` negotiates the version, as an agent would.
const versionNegotiation = { mode: stateless ? 'auto' : 'legacy' };

function transport(args = []) {
    if (kind === 'http') return new StreamableHTTPClientTransport(new URL(target[0]));
    return new StdioClientTransport({ command: target[0], args: [...target.slice(1), ...args] });
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
async function connectWithTasks(reviewer, elicitation = { form: {} }) {
    const clientInfo = { name: 'onward-test', version: '0' };
    const capabilities = { elicitation, extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const client = new Client(clientInfo, { capabilities, versionNegotiation });
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
        onInputRequest: async ({ params }) => reviewer.answer(params),
    });
    const settle = async (execution) => {
        const { outcome } = await execution.settle();
        return parseResult(resultFromTaskOutcome(outcome))[0];
    };
    return {
        call: async (name, args) => settle(await session.callTool(name, args)),
        tasksFollowed: () => followed,
        /** Returns a reference to the task, which another connection can resume. */
        start: async (name, args) => {
            const execution = await session.callTool(name, args);
            const reference = execution.serializeReference();
            await execution.detach();
            // Closing the session cancels tasks that it still follows.
            await execution.result().catch(() => {});
            return reference;
        },
        task: ({ taskId }) => session.task(taskId).snapshot(),
        cancel: ({ taskId }) => session.cancelTask(taskId),
        resume: async (reference) => settle(await session.resumeTask(reference)),
        close: async () => {
            await session.close();
            await client.close();
        },
    };
}

async function connect(reviewer, { elicitation = { form: {} }, args = [] } = {}) {
    const options = { capabilities: { elicitation }, versionNegotiation };
    const client = new Client({ name: 'onward-test', version: '0' }, options);
    const updates = updateQueue();
    client.setRequestHandler('elicitation/create', ({ params }) => reviewer.answer(params));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => updates.add(params.uri));
    client.setNotificationHandler('notifications/elicitation/complete', ({ params }) =>
        reviewer.completed.push(params.elicitationId),
    );
    await client.connect(transport(args), { timeout: TIMEOUT_MS });
    const lists = {
        tools: () => client.listTools(),
        prompts: () => client.listPrompts(),
        resources: () => client.listResources(),
        resourceTemplates: () => client.listResourceTemplates(),
    };
    const result = async (name, args, _meta) =>
        parseResult(await client.callTool({ name, arguments: args, _meta }));
    return {
        version: client.getNegotiatedProtocolVersion(),
        server: {
            ...client.getDiscoverResult(),
            serverInfo: client.getServerVersion(),
            capabilities: client.getServerCapabilities(),
        },
        list: (kind) => lists[kind](),
        result,
        call: async (...call) => (await result(...call))[0],
        timesOut: async (name, args) => {
            const call = client.callTool({ name, arguments: args }, { timeout: 200 });
            return call.then(() => false, ({ code }) => code === SdkErrorCode.RequestTimeout);
        },
        skill: async () => {
            const extension = new SkillsClient(client);
            const { skills } = await extension.list();
            const { skill } = await extension.get(skills[0].uri);
            // Verifies size, digest and front matter.
            return [skill, (await extension.read(skill)).text];
        },
        complete: async (uri, name, value) => {
            const ref = { type: 'ref/resource', uri };
            return (await client.complete({ ref, argument: { name, value } })).completion.values;
        },
        read: async (uri) => (await client.readResource({ uri })).contents[0].text,
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
