// Features of the protocol, one function each, independent of the client library.
//
// The Python version is `features.py`. Connections are described in `plan.mjs`.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Timeout of every wait, in milliseconds. */
export const TIMEOUT_MS = 20_000;
/** Set by `run`, for HTTP only: the server, and the collector of its traces. */
export const { SERVER, COLLECTOR } = process.env;

const ICON = 'data:image/svg+xml;base64,';
const HOUR_MS = 3_600_000;
/** Time-to-live and scope of each list. */
const CACHING = {
    tools: [HOUR_MS, 'public'],
    prompts: [HOUR_MS, 'public'],
    resourceTemplates: [HOUR_MS, 'public'],
    resources: [0, 'private'],
};
/** The words that agents search for. */
const WORDS = ['plan', 'task', 'todo', 'resume', 'review'];
const SKILLS = 'io.modelcontextprotocol/skills';
const TASKS = 'io.modelcontextprotocol/tasks';
const ALIASES = {
    create_research_plan: 'create_plan',
    get_research_context: 'get_plan_context',
    store_research_output: 'store_plan_output',
};
/** Typed questions, the property of the form for each, the user's answers, and the stored answers. */
const FIELDS = JSON.parse(readFileSync(new URL('fields.json', import.meta.url)));

async function until(condition, description) {
    const deadline = performance.now() + TIMEOUT_MS;
    while (!(await condition())) {
        assert.ok(performance.now() < deadline, description);
        await sleep(20);
    }
}

/** A queue of the URIs of updated resources. */
export function updateQueue() {
    const uris = [];
    return {
        add: (uri) => uris.push(uri),
        async next() {
            await until(() => uris.length > 0, 'no update received');
            return uris.shift();
        },
    };
}

export const claimOf = ({ stepId, claimToken }) => ({ stepId, claimToken });

/** Icons, titles, annotations, sizes and cache hints. */
export async function checkDescriptions(client, planId) {
    const { serverInfo, capabilities, ...discovered } = client.server;
    assert.ok(serverInfo.icons[0].src.startsWith(ICON), 'icon of the server');
    for (const key of ['title', 'description', 'websiteUrl']) {
        assert.ok(serverInfo[key], `${key} of the server`);
    }
    assert.equal(capabilities.logging, undefined, 'logging is not declared');
    const isStateless = client.version >= '2026';
    assert.equal(TASKS in capabilities.extensions, isStateless, 'tasks are declared');
    if (isStateless) {
        assert.deepEqual([discovered.ttlMs, discovered.cacheScope], [HOUR_MS, 'public'], 'server/discover');
    }
    for (const [kind, caching] of Object.entries(CACHING)) {
        const listed = await client.list(kind);
        for (const entry of listed[kind]) {
            assert.ok(entry.icons[0].src.startsWith(ICON), `icon of ${JSON.stringify(entry)}`);
            assert.ok(entry.title, `title of ${JSON.stringify(entry)}`);
        }
        if (isStateless) assert.deepEqual([listed.ttlMs, listed.cacheScope], caching, kind);
    }
    const titles = (await client.list('tools')).tools.map(({ title }) => title.toLowerCase()).join(' ');
    assert.deepEqual(WORDS.filter((word) => !titles.includes(word)), [], 'words missing in titles');
    const { resources } = await client.list('resources');
    for (const { uri, annotations } of resources) {
        assert.deepEqual(annotations.audience, ['user', 'assistant'], uri);
        assert.ok(annotations.priority > 0 && annotations.priority <= 1, uri);
    }
    const resource = (wanted) => resources.find(({ uri }) => uri === wanted);
    const plan = resource(`onward://plan/${planId}`);
    assert.ok(plan.annotations.lastModified && plan.size > 0, `age and size of ${JSON.stringify(plan)}`);
    const profile = resource('onward://user/profile');
    assert.equal(profile.size, Buffer.byteLength(await client.read(profile.uri)), 'size of the profile');
}

/** The skill is listed, can be read, and has the listed digest. */
export async function checkSkill(client) {
    assert.deepEqual(client.server.capabilities.extensions[SKILLS], {}, 'the extension');
    const [{ uri, resources }, text] = await client.skill();
    const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`;
    assert.deepEqual(resources, [{ uri, digest, size: Buffer.byteLength(text) }], 'files of the skill');
}

/** Stored texts are linked, can be read, and are completed by their titles. */
export async function checkTexts(client) {
    const note = { title: 'Insulation figures', content: '0.2 W/m2K' };
    const [stored, links] = await client.result('store_research', note);
    assert.deepEqual(links, [`onward://artifact/${stored.artifactId}`]);
    assert.equal(JSON.parse(await client.read(links[0])).content, note.content);
    const template = 'onward://artifact/{artifactId}{?offset,maxChars}';
    const found = await client.complete(template, 'artifactId', 'insulation fig');
    assert.ok(found.includes(stored.artifactId), 'the completion');
}

/** The tool set `plan` has names without "research". */
export async function checkAliases(connect, reviewer) {
    const client = await connect(reviewer, { args: ['--tools', 'plan'] });
    const names = (await client.list('tools')).tools.map(({ name }) => name);
    for (const [name, alias] of Object.entries(ALIASES)) {
        assert.deepEqual([names.includes(name), names.includes(alias)], [false, true], alias);
    }
    const steps = [{ stepType: 'search', instructions: 'Look' }];
    const plan = { name: 'Alias', researchQuestion: 'Which name?', steps };
    const { planId } = await client.call('create_plan', plan);
    const context = await client.call('get_plan_context', { planId });
    assert.deepEqual(context.steps.map(({ status }) => status), ['pending']);
    await client.close();
}

/** A plan of two steps, of which the first is claimed. */
async function claimFirstOfTwo(client) {
    const steps = [
        { stepType: 'search', instructions: 'First', labels: ['first'] },
        { stepType: 'search', instructions: 'Second', dependsOn: [1] },
    ];
    const plan = { name: 'Two steps', researchQuestion: 'Which is first?', steps };
    const { planId } = await client.call('create_research_plan', plan);
    return { planId, claim: claimOf(await client.call('get_next_step', { planId })) };
}

function assertSecond({ status, instructions }) {
    assert.deepEqual([status, instructions], ['step_started', 'Second']);
}

/** A wait returns the step that becomes ready, or the reason when the time is up. */
export async function checkWaiting(client) {
    const { planId, claim } = await claimFirstOfTwo(client);
    const reason = await client.call('get_next_step', { planId, sessionId: 'waiter', waitMs: 1 });
    assert.equal(reason.status, 'no_pending_steps');
    const [step] = await Promise.all([
        client.call('get_next_step', { planId, sessionId: 'waiter', waitMs: TIMEOUT_MS }),
        client.call('submit_step_result', { ...claim, resultSummary: 'done' }),
    ]);
    assertSecond(step);
}

/** The decision on a review ends a wait. */
export async function checkDecision(client, reviewer) {
    const { planId, claim } = await claimFirstOfTwo(client);
    reviewer.decisions.push(null);
    await client.call('request_user_review', { ...claim, summary: 'Is it the first?' });
    const [step] = await Promise.all([
        client.call('get_next_step', { planId, sessionId: 'waiter', waitMs: TIMEOUT_MS }),
        client.call('submit_user_decision', { stepId: claim.stepId, decision: 'approve' }),
    ]);
    assertSecond(step);
}

/** A wait that the client has cancelled claims no step. */
export async function checkCancellation(client) {
    const { planId, claim } = await claimFirstOfTwo(client);
    const streams = await openStreams();
    assert.ok(await client.timesOut('get_next_step', { planId, sessionId: 'waiter', waitMs: 60_000 }), 'the call times out');
    // Over HTTP, a client of 2026-07-28 cancels by closing the connection.
    await until(async () => (await openStreams()) === streams, 'the wait has ended');
    await client.call('submit_step_result', { ...claim, resultSummary: 'done' });
    assertSecond(await client.call('get_next_step', { planId }));
}

/** The open streams of the HTTP server, `undefined` over stdio. */
async function openStreams() {
    if (!SERVER) return undefined;
    const metrics = await (await fetch(`${SERVER}/metrics`)).text();
    return metrics.match(/^onward_open_streams \d+$/m)[0];
}

/** Typed questions are in the form or on the page, and the answers are stored with the review. */
export async function checkFields(client, reviewer, onPage = false) {
    const { planId, claim } = await claimFirstOfTwo(client);
    reviewer.decisions.push({ decision: 'approve', answers: FIELDS.answers });
    Object.assign(reviewer, { forms: [], pages: [] });
    const review = { ...claim, summary: 'Which pump?', fields: FIELDS.fields };
    const decided = await client.call('request_user_review', review);
    assert.deepEqual([decided.decision, decided.stepStatus], ['approve', 'completed']);
    for (const form of reviewer.forms) {
        const typed = Object.entries(form).filter(([name]) => name.startsWith('field_'));
        assert.deepEqual(Object.fromEntries(typed), FIELDS.properties, 'fields of the form');
        assert.equal(form.decision.default, undefined, 'the decision has no default');
        const values = form.decision.oneOf.map((option) => option.const);
        assert.deepEqual(values, ['approve', 'modify', 'skip', 'reject']);
    }
    assert.deepEqual([reviewer.forms.length, reviewer.pages.length], onPage ? [0, 1] : [1, 0]);
    const step = await client.call('get_next_step', { planId });
    const context = await client.call('get_step_context', { stepId: step.stepId });
    assert.deepEqual(context.priorResults[0].result.review.answers, FIELDS.storedAnswers);
}

/** In URL mode, the user answers on the review page. */
export async function checkPage(connect, reviewer) {
    const client = await connect(reviewer, { elicitation: { form: {}, url: {} } });
    await checkFields(client, reviewer, true);
    const [page] = reviewer.pages;
    assert.equal(new URL(page).origin, SERVER, 'the page');
    // 2026-07-28 has no such notification.
    if (client.version < '2026') {
        await until(() => reviewer.completed.includes(page.split('/').at(-1)), 'the page is completed');
    }
    await client.close();
}

/** The span of a call has the trace of the client. Only `onward serve` sends traces. */
export async function checkTrace(client) {
    if (!COLLECTOR) return;
    const trace = randomBytes(16).toString('hex');
    await client.call('ping', {}, { traceparent: `00-${trace}-00f067aa0ba902b7-01` });
    await until(async () => (await fetch(`${COLLECTOR}/traces/${trace}`)).ok, 'the span is sent');
}

/** The catalog leads to the server card, and the card to the endpoint. The SDKs have no function for it. */
export async function checkDiscovery() {
    const get = async (url) => (await fetch(url)).json();
    const catalog = await get(`${SERVER}/.well-known/ai-catalog.json`);
    const card = await get(catalog.entries[0].url);
    assert.deepEqual(card.remotes.map(({ url }) => url), [`${SERVER}/mcp`], 'endpoints of the card');
}

/** Calls as tasks. A task survives its connection, and over stdio its server. */
export async function checkTasks(connect, reviewer) {
    const first = await connect(reviewer);
    await checkWaiting(first);
    await checkFields(first, reviewer);
    const source = { schema: { type: 'object', required: ['moons'] }, sourceText: 'Io and Europa' };
    assert.deepEqual((await first.call('extract_data', source)).data, { moons: 2 });
    // One wait does not become a task if the submission arrives before it.
    assert.ok([3, 4].includes(first.tasksFollowed()), 'followed tasks');
    const { planId, claim } = await claimFirstOfTwo(first);
    const cancelled = await first.start('get_next_step', { planId, sessionId: 'waiter', labels: [], waitMs: 60_000 });
    await first.cancel(cancelled);
    const kept = await first.start('get_next_step', { planId, sessionId: 'waiter', labels: [], waitMs: 60_000 });
    await first.close();
    const second = await connect(reviewer);
    assert.equal((await second.task(cancelled)).status, 'cancelled');
    assert.equal((await second.task(kept)).status, 'working');
    await second.call('submit_step_result', { ...claim, resultSummary: 'done' });
    assertSecond(await second.resume(kept));
    assert.equal((await second.task(cancelled)).status, 'cancelled', 'the outcome is final');
    await second.close();
    if (SERVER) {
        const third = await connect(reviewer, { url: {} });
        await checkFields(third, reviewer, true);
        await third.close();
    }
}
