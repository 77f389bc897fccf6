// A whole plan, as an agent and its person go through it, whichever client carries it.
//
// `go` is handed a way to connect, and connects twice: what one session began, another one ends. A
// connection has `version`, `tools`, `call`, `resources`, `read`, `prompts`, `prompt`, `watch` and
// `close`; the forms that the server shows are answered from `person`, one answer after the other.
// The same story in Python is `plan.py`.

import assert from 'node:assert/strict';

/** How long anything may take that is waited for, in milliseconds. */
export const PATIENCE = 20_000;

const TOOLS = [
    'ping', 'create_research_plan', 'list_active_plans', 'get_plan_status', 'modify_plan',
    'list_plan_steps', 'get_next_step', 'submit_step_result', 'report_step_progress',
    'request_user_review', 'submit_user_decision', 'get_step_context', 'get_research_context',
    'log_skill_execution', 'submit_feedback',
];
const PROMPTS = ['run_plan', 'resume_plan', 'design_plan'];

const PLAN = {
    name: 'Heat pumps in old houses',
    researchQuestion: 'Does a heat pump pay in a house of 1930?',
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

/** A result with `isError`: the refusal that its text holds. */
class Refused extends Error {
    constructor(text) {
        const { code, message, hint, details } = JSON.parse(text).error;
        super(`${code}: ${message}; ${hint}`);
        Object.assign(this, { code, details });
    }
}

/** What a tool said. The structured content and the text must say the same. */
export function answer({ isError, content, structuredContent }) {
    if (isError) {
        assert.equal(structuredContent, undefined, 'a refusal has no structured content');
        throw new Refused(content[0].text);
    }
    assert.deepEqual(JSON.parse(content[0].text), structuredContent);
    return structuredContent;
}

/** What a person does with a form: the next of their answers, or nothing. */
export function fillIn(person, { requestedSchema }) {
    assert.deepEqual(requestedSchema.required, ['decision'], 'the form');
    const decided = person.shift();
    return decided ? { action: 'accept', content: decided } : { action: 'decline' };
}

/** The URIs that the server said have changed, one by one. */
export function updates() {
    const told = [];
    let wake = () => {};
    return {
        add(uri) {
            told.push(uri);
            wake();
        },
        async next() {
            if (told.length === 0) {
                await new Promise((resolve, reject) => {
                    const late = () => reject(new Error('was not told of any change'));
                    const timer = setTimeout(late, PATIENCE);
                    wake = () => (clearTimeout(timer), resolve());
                });
            }
            return told.shift();
        },
    };
}

async function refused(asking, code) {
    let answered;
    try {
        answered = await asking;
    } catch (refusal) {
        assert.equal(refusal.code, code, refusal.stack);
        return refusal;
    }
    assert.fail(`expected \`${code}\`, was answered ${JSON.stringify(answered)}`);
}

export async function go(connect, version) {
    const person = [];
    const first = await connect(person);
    assert.equal(first.version(), version, 'the protocol\'s version');
    await lookAround(first);
    const { planId } = await first.call('create_research_plan', PLAN);
    const claim = await search(first, planId);
    await review(first, person, planId, claim);
    await first.close();
    const second = await connect(person);
    await resume(second, planId);
    await lookBack(second, planId);
    await second.close();
    assert.deepEqual(person, [], 'answers that nobody asked for');
}

async function lookAround(client) {
    const [tools, prompts] = [await client.tools(), await client.prompts()];
    assert.deepEqual(TOOLS.filter((name) => !tools.includes(name)), [], 'tools that are missing');
    assert.deepEqual(PROMPTS.filter((name) => !prompts.includes(name)), [], 'prompts that are missing');
    assert.ok((await client.resources()).includes('onward://plans'), '`onward://plans` is listed');
    const pong = await client.call('ping', {});
    assert.equal(pong.server.name, 'onward');
    const nobody = { planId: '00000000-0000-0000-0000-000000000000' };
    await refused(client.call('get_plan_status', nobody), 'plan_not_found');
    const misspelt = await refused(client.call('get_plan_status', { planID: 'x' }), 'invalid_input');
    assert.match(JSON.stringify(misspelt.details.issues), /planID/, 'a misspelt field is named');
}

const claimOf = ({ stepId, claimToken }) => ({ stepId, claimToken });

/** The first step, whose result adds one; then that one. Hands back the claim of the next. */
async function search(client, planId) {
    const uri = `onward://plan/${planId}`;
    const watched = await client.watch(uri);
    const step = await client.call('get_next_step', { planId, sessionId: 'first' });
    assert.deepEqual([step.status, step.stepOrder], ['step_started', 1]);
    assert.equal(await watched.next(), uri, 'what has changed');
    await watched.end();
    const claim = claimOf(step);
    await client.call('report_step_progress', { ...claim, note: 'two of three', percent: 66 });
    const result = { resultSummary: 'Two studies', result: { found: 2 }, confidence: 0.3 };
    const done = await client.call('submit_step_result', { ...claim, ...result, claimNext: true });
    assert.equal(done.branchTaken.action, 'add_steps');
    assert.equal(done.nextStep.instructions, 'Find a fourth', 'the step that was added');
    const again = await client.call('submit_step_result', { ...claim, ...result, claimNext: true });
    assert.deepEqual(again, done, 'the same result once more');
    const other = { ...claim, ...result, resultSummary: 'Something else' };
    const late = await refused(client.call('submit_step_result', other), 'illegal_transition');
    assert.ok(late.details.keptArtifactId, 'a refused result is kept');
    const more = { resultSummary: 'One more', confidence: 0.9, claimNext: true };
    const next = await client.call('submit_step_result', { ...claimOf(done.nextStep), ...more });
    return claimOf(next.nextStep);
}

/** A person asks for more, then does not answer the form, and approves in words. */
async function review(client, person, planId, claim) {
    person.push({ decision: 'modify', feedback: 'In euros, please' });
    const asked = { ...claim, summary: 'It pays after 14 years', questions: ['Is that what you meant?'] };
    const told = await client.call('request_user_review', asked);
    assert.deepEqual([told.decision, told.stepStatus], ['modify', 'in_progress']);
    const step = await client.call('get_next_step', { planId });
    assert.equal(step.claimToken, claim.claimToken, 'the claim after a decision');
    assert.ok(step.instructions.endsWith('In euros, please'), 'feedback is in the instructions');
    person.push(null);
    const open = await client.call('request_user_review', { ...asked, summary: '28,000 euros' });
    assert.deepEqual([open.stepStatus, open.decision], ['awaiting_input', undefined]);
    const waits = await client.call('get_next_step', { planId });
    assert.equal(waits.status, 'awaiting_review');
    const approval = { stepId: claim.stepId, decision: 'approve' };
    const decided = await client.call('submit_user_decision', approval);
    assert.deepEqual([decided.stepStatus, decided.planStatus], ['completed', 'executing']);
}

/** Another session finds out where things stand, and ends it. */
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

async function lookBack(client, planId) {
    const page = await client.read(`onward://plan/${planId}`);
    assert.ok(page.includes(PLAN.name), 'the plan can be read');
    const audit = JSON.parse(await client.read(`onward://plan/${planId}/audit`));
    const kinds = audit.events.map((event) => event.eventType);
    for (const kind of ['branch_taken', 'user_reviewed', 'session_resumed', 'plan_completed']) {
        assert.ok(kinds.includes(kind), `${kind} is missing`);
    }
    assert.ok((await client.prompt('run_plan', { planId })).includes(planId), 'the prompt names the plan');
}
