// A complete plan from the perspective of an agent and its reviewer, independent of the client library.
//
// `runPlan` is given a function that connects, and connects several times: the second session completes
// the plan of the first. A connection has `version`, `server`, `list`, `call`, `result`, `timesOut`,
// `skill`, `complete`, `read`, `prompt`, `watch` and `close`; a connection for tasks has `call`, `start`,
// `task`, `cancel`, `resume`, `tasksFollowed` and `close`. The Python version is `plan.py`.

import assert from 'node:assert/strict';

import { expectError } from './checks.mjs';
import * as features from './features.mjs';
import { Reviewer } from './reviewer.mjs';

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

/** `connectWithTasks`: connects a client that follows tasks, if the library does. */
export async function runPlan(connect, version, connectWithTasks) {
    const reviewer = new Reviewer();
    const first = await connect(reviewer);
    assert.equal(first.version, version, 'protocol version');
    await checkCapabilities(first);
    await features.checkSkill(first);
    const planId = await create(first);
    await features.checkDescriptions(first, planId);
    const claim = await search(first, planId);
    await review(first, reviewer, planId, claim);
    await first.close();
    const second = await connect(reviewer);
    await resume(second, planId);
    await checkHistory(second, planId);
    await features.checkTexts(second);
    await features.checkWaiting(second);
    await features.checkDecision(second, reviewer);
    await features.checkCancellation(second);
    await features.checkFields(second, reviewer);
    await features.checkTrace(second);
    await second.close();
    if (connectWithTasks) await features.checkTasks(connectWithTasks, reviewer);
    if (features.SERVER) {
        await features.checkDiscovery();
        await features.checkPage(connect, reviewer);
    } else {
        await features.checkAliases(connect, reviewer);
    }
    assert.deepEqual(reviewer.decisions, [], 'unused decisions');
}

async function checkCapabilities(client) {
    for (const [kind, key, expected] of [
        ['tools', 'name', TOOLS],
        ['prompts', 'name', PROMPTS],
        ['resources', 'uri', ['onward://plans']],
    ]) {
        const listed = (await client.list(kind))[kind].map((entry) => entry[key]);
        assert.deepEqual(expected.filter((name) => !listed.includes(name)), [], `missing ${kind}`);
    }
    const pong = await client.call('ping', {});
    assert.equal(pong.server.name, 'onward');
    const missing = { planId: '00000000-0000-0000-0000-000000000000' };
    await expectError(client.call('get_plan_status', missing), 'plan_not_found');
    const misspelt = await expectError(client.call('get_plan_status', { planID: 'x' }), 'invalid_input');
    assert.match(JSON.stringify(misspelt.details.issues), /planID/, 'the error names the misspelt field');
}

async function create(client) {
    const [{ planId }, links] = await client.result('create_research_plan', PLAN);
    assert.deepEqual(links, [`onward://plan/${planId}`], 'the link of the plan');
    return planId;
}

/** Completes the first step, whose result adds a step, and that step. Returns the claim of the next. */
async function search(client, planId) {
    const uri = `onward://plan/${planId}`;
    const watched = await client.watch(uri);
    const step = await client.call('get_next_step', { planId, sessionId: 'first' });
    assert.deepEqual([step.status, step.stepOrder], ['step_started', 1]);
    assert.equal(await watched.next(), uri, 'updated resource');
    await watched.end();
    const claim = features.claimOf(step);
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
    const next = await client.call('submit_step_result', { ...features.claimOf(done.nextStep), ...more });
    return features.claimOf(next.nextStep);
}

/** The reviewer requests a change, then declines the form and approves through the agent. */
async function review(client, reviewer, planId, claim) {
    reviewer.decisions.push({ decision: 'modify', feedback: 'In euros, please' });
    const request = { ...claim, summary: 'It pays off after 14 years', questions: ['Is that what you meant?'] };
    const modified = await client.call('request_user_review', request);
    assert.deepEqual([modified.decision, modified.stepStatus], ['modify', 'in_progress']);
    const step = await client.call('get_next_step', { planId, sessionId: 'first' });
    assert.equal(step.claimToken, claim.claimToken, 'the claim after a decision');
    assert.ok(step.instructions.endsWith('In euros, please'), 'feedback is in the instructions');
    reviewer.decisions.push(null);
    const [open, links] = await client.result('request_user_review', { ...request, summary: '28,000 euros' });
    // A server without a dashboard has no review page.
    assert.deepEqual(links, [`onward://plan/${planId}`, ...(open.url ? [open.url] : [])]);
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
    const last = { ...features.claimOf(step), resultSummary: 'One page', claimNext: true };
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
