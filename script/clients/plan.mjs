// A complete plan from the perspective of an agent and its reviewer, independent of the client library.
//
// `runPlan` is given a function that connects, and connects twice: the second session completes the plan
// of the first. A connection has `version`, `tools`, `call`, `links`, `complete`, `resources`, `read`,
// `prompts`, `prompt`, `watch` and `close`. Review forms are answered from the list `decisions`, in order.
// The Python version is `plan.py`.

import assert from 'node:assert/strict';

/** Timeout of every wait, in milliseconds. */
export const TIMEOUT_MS = 20_000;

const TOOLS = [
    'ping', 'create_research_plan', 'list_active_plans', 'get_plan_status', 'modify_plan',
    'list_plan_steps', 'get_next_step', 'submit_step_result', 'report_step_progress',
    'request_user_review', 'submit_user_decision', 'get_step_context', 'get_research_context',
    'log_skill_execution', 'submit_feedback',
];
const PROMPTS = ['run_plan', 'resume_plan', 'design_plan'];

const PLAN = {
    name: 'Heat pumps in old houses',
    researchQuestion: 'Does a heat pump pay off in a house built in 1930?',
    sessionId: 'first',
    steps: [
        { stepType: 'search', instructions: 'Find three studies' },
        { stepType: 'analyze', instructions: 'Compare their figures', dependsOn: [1] },
        { stepType: 'synthesize', instructions: 'Write one page', dependsOn: [2] },
    ],
    branchingConditions: [
        {
            afterStepOrder: 1,
            conditionExpression: 'confidence < 0.5',
            ifTrueAction: 'add_steps',
            actionParams: { steps: [{ stepType: 'search', instructions: 'Find a fourth' }] },
        },
    ],
};

/** The error in a result with `isError`. */
class ToolError extends Error {
    constructor(text) {
        const { code, message, hint, details } = JSON.parse(text).error;
        super(`${code}: ${message}; ${hint}`);
        Object.assign(this, { code, details });
    }
}

/** The structured content of a tool result, which must equal its text. */
export function parseResult({ isError, content, structuredContent }) {
    if (isError) {
        assert.equal(structuredContent, undefined, 'an error has no structured content');
        throw new ToolError(content[0].text);
    }
    assert.deepEqual(JSON.parse(content[0].text), structuredContent);
    return structuredContent;
}

/** Answers a review form with the next decision, or declines it if that is null. */
export function answerForm(decisions, { requestedSchema }) {
    assert.deepEqual(requestedSchema.required, ['decision'], 'required fields of the form');
    const decision = decisions.shift();
    return decision ? { action: 'accept', content: decision } : { action: 'decline' };
}

/** A queue of the URIs of updated resources. */
export function updateQueue() {
    const uris = [];
    let wake = () => {};
    return {
        add(uri) {
            uris.push(uri);
            wake();
        },
        async next() {
            if (uris.length === 0) {
                await new Promise((resolve, reject) => {
                    const timer = setTimeout(() => reject(new Error('no update received')), TIMEOUT_MS);
                    wake = () => (clearTimeout(timer), resolve());
                });
            }
            return uris.shift();
        },
    };
}

async function expectError(call, code) {
    let result;
    try {
        result = await call;
    } catch (error) {
        assert.equal(error.code, code, error.stack);
        return error;
    }
    assert.fail(`expected \`${code}\`, got ${JSON.stringify(result)}`);
}

/** `connectWithTasks`: connects a client that follows tasks, if the library does. */
export async function runPlan(connect, version, connectWithTasks) {
    const decisions = [];
    const first = await connect(decisions);
    assert.equal(first.version(), version, 'protocol version');
    await checkCapabilities(first);
    const { planId } = await first.call('create_research_plan', PLAN);
    const claim = await search(first, planId);
    await review(first, decisions, planId, claim);
    await first.close();
    const second = await connect(decisions);
    await resume(second, planId);
    await checkHistory(second, planId);
    await checkTexts(second);
    await waitForStep(second);
    await second.close();
    if (connectWithTasks) {
        const third = await connectWithTasks(decisions);
        await waitForStep(third);
        await reviewAsTask(third, decisions);
        await third.close();
    }
    assert.deepEqual(decisions, [], 'unused decisions');
}

async function checkCapabilities(client) {
    const [tools, prompts] = [await client.tools(), await client.prompts()];
    assert.deepEqual(TOOLS.filter((name) => !tools.includes(name)), [], 'missing tools');
    assert.deepEqual(PROMPTS.filter((name) => !prompts.includes(name)), [], 'missing prompts');
    assert.ok((await client.resources()).includes('onward://plans'), '`onward://plans` is listed');
    const pong = await client.call('ping', {});
    assert.equal(pong.server.name, 'onward');
    const missing = { planId: '00000000-0000-0000-0000-000000000000' };
    await expectError(client.call('get_plan_status', missing), 'plan_not_found');
    const misspelt = await expectError(client.call('get_plan_status', { planID: 'x' }), 'invalid_input');
    assert.match(JSON.stringify(misspelt.details.issues), /planID/, 'the error names the misspelt field');
}

const claimOf = ({ stepId, claimToken }) => ({ stepId, claimToken });

/** Completes the first step, whose result adds a step, and that step. Returns the claim of the next. */
async function search(client, planId) {
    const uri = `onward://plan/${planId}`;
    const watched = await client.watch(uri);
    const step = await client.call('get_next_step', { planId, sessionId: 'first' });
    assert.deepEqual([step.status, step.stepOrder], ['step_started', 1]);
    assert.equal(await watched.next(), uri, 'updated resource');
    await watched.end();
    const claim = claimOf(step);
    await client.call('report_step_progress', { ...claim, note: 'two of three', percent: 66 });
    const result = { resultSummary: 'Two studies', result: { found: 2 }, confidence: 0.3 };
    const done = await client.call('submit_step_result', { ...claim, ...result, claimNext: true });
    assert.equal(done.branchTaken.action, 'add_steps');
    assert.equal(done.nextStep.instructions, 'Find a fourth', 'the added step');
    const again = await client.call('submit_step_result', { ...claim, ...result, claimNext: true });
    assert.deepEqual(again, done, 'a repeated result returns the same response');
    const other = { ...claim, ...result, resultSummary: 'Something else' };
    const late = await expectError(client.call('submit_step_result', other), 'illegal_transition');
    assert.ok(late.details.keptArtifactId, 'a rejected result is stored');
    const more = { resultSummary: 'One more', confidence: 0.9, claimNext: true };
    const next = await client.call('submit_step_result', { ...claimOf(done.nextStep), ...more });
    return claimOf(next.nextStep);
}

/** The reviewer requests a change, then declines the form and approves through the agent. */
async function review(client, decisions, planId, claim) {
    decisions.push({ decision: 'modify', feedback: 'In euros, please' });
    const request = { ...claim, summary: 'It pays off after 14 years', questions: ['Is that what you meant?'] };
    const modified = await client.call('request_user_review', request);
    assert.deepEqual([modified.decision, modified.stepStatus], ['modify', 'in_progress']);
    const step = await client.call('get_next_step', { planId, sessionId: 'first' });
    assert.equal(step.claimToken, claim.claimToken, 'the claim after a decision');
    assert.ok(step.instructions.endsWith('In euros, please'), 'feedback is in the instructions');
    decisions.push(null);
    const open = await client.call('request_user_review', { ...request, summary: '28,000 euros' });
    assert.deepEqual([open.stepStatus, open.decision], ['awaiting_input', undefined]);
    const pending = await client.call('get_next_step', { planId });
    assert.equal(pending.status, 'awaiting_review');
    const approval = { stepId: claim.stepId, decision: 'approve' };
    const decided = await client.call('submit_user_decision', approval);
    assert.deepEqual([decided.stepStatus, decided.planStatus], ['completed', 'executing']);
}

/** A second session reads the context and completes the plan. */
async function resume(client, planId) {
    const second = { planId, sessionId: 'second' };
    const context = await client.call('get_research_context', second);
    const statuses = context.steps.map((step) => step.status);
    assert.deepEqual(statuses, ['completed', 'completed', 'completed', 'pending']);
    const step = await client.call('get_next_step', { ...second, includeStalled: true });
    assert.equal(step.instructions, 'Write one page');
    const last = { ...claimOf(step), resultSummary: 'One page', claimNext: true };
    const done = await client.call('submit_step_result', last);
    assert.deepEqual([done.planStatus, done.progress], ['completed', 100]);
    assert.equal(done.nextStep.status, 'plan_complete');
}

async function checkHistory(client, planId) {
    const page = await client.read(`onward://plan/${planId}`);
    assert.ok(page.includes(PLAN.name), 'the plan can be read');
    const audit = JSON.parse(await client.read(`onward://plan/${planId}/audit`));
    const types = audit.events.map((event) => event.eventType);
    for (const type of ['branch_taken', 'user_reviewed', 'session_resumed', 'plan_completed']) {
        assert.ok(types.includes(type), `${type} is missing`);
    }
    assert.ok((await client.prompt('run_plan', { planId })).includes(planId), 'the prompt contains the plan id');
}

/** The structured content of a result, and the URIs of its links. */
export function linksOf({ content, structuredContent }) {
    const links = content.filter(({ type }) => type === 'resource_link');
    return [structuredContent, links.map(({ uri }) => uri)];
}

/** Stored texts are linked, can be read, and are completed by their titles. */
async function checkTexts(client) {
    const note = { title: 'Insulation figures', content: '0.2 W/m2K' };
    const [stored, links] = await client.links('store_research', note);
    assert.deepEqual(links, [`onward://artifact/${stored.artifactId}`]);
    assert.equal(JSON.parse(await client.read(links[0])).content, note.content);
    const template = 'onward://artifact/{artifactId}{?offset,maxChars}';
    const found = await client.complete(template, 'artifactId', 'insulation fig');
    assert.ok(found.includes(stored.artifactId), 'the completion');
}

/** A plan of two steps, of which the first is claimed. */
async function claimFirstOfTwo(client) {
    const steps = [
        { stepType: 'search', instructions: 'First' },
        { stepType: 'search', instructions: 'Second', dependsOn: [1] },
    ];
    const plan = { name: 'Two steps', researchQuestion: 'Which is first?', steps };
    const { planId } = await client.call('create_research_plan', plan);
    return { planId, claim: claimOf(await client.call('get_next_step', { planId })) };
}

/** The call returns when the user has decided in the form of the task. */
async function reviewAsTask(client, decisions) {
    const { claim } = await claimFirstOfTwo(client);
    decisions.push({ decision: 'approve' });
    const decided = await client.call('request_user_review', { ...claim, summary: 'Is it the first?' });
    assert.deepEqual([decided.decision, decided.stepStatus], ['approve', 'completed']);
    assert.equal(client.tasksFollowed(), 2, 'followed tasks');
}

async function waitForStep(client) {
    const { planId, claim } = await claimFirstOfTwo(client);
    const [step] = await Promise.all([
        client.call('get_next_step', { planId, waitMs: TIMEOUT_MS }),
        client.call('submit_step_result', { ...claim, resultSummary: 'done' }),
    ]);
    assert.deepEqual([step.status, step.instructions], ['step_started', 'Second']);
}
