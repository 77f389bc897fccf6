// The acceptance criteria of the dashboard in a real browser: what needs a person is found and acted
// on quickly, no statement is wrong, and everything works without the script.

import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";

import { axe, launchBrowser, open, runWithServer, waitForStream } from "./test-server.mjs";

const HOUR = 3_600_000;
const DESKTOP = { viewport: { width: 1_280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 } };
// The words of plans, as CSS classes.
const WORDS = ["stuck", "needs_you", "no_agent", "blocked", "working", "not_started", "done", "done_with_failures", "failed", "cancelled"];

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

const withServer = (work, options = DESKTOP) => runWithServer(browser, work, options);

async function stuckPlan(server, name) {
    const plan = await server.createPlan(name, { stallThresholdMs: 1, onStall: "ignore" });
    await server.startStep(plan);
    return plan;
}

async function counts(server, plan) {
    return (await (await fetch(`${server.url}/api/v1/plans/${plan}`)).json()).counts;
}

// A plan of 192 steps in ten modules: three stuck steps, one at work, sixty done.
async function longPlan(server) {
    const names = ["find call sites", "classify them", "write characterisation tests", "convert the easy ones"];
    const steps = [{ title: "Inventory of modules" }];
    for (let module = 0; module < 10; module++) {
        const start = steps.length + 1;
        for (let step = 0; step < 19; step++) {
            const dependsOn = [step === 0 ? 1 : step < 4 ? start + step - 1 : start + 3];
            steps.push({ title: `module ${module + 1}: ${names[step] ?? `convert view ${step}`}`, dependsOn });
        }
    }
    steps.push({ title: "Write the migration report", dependsOn: [1] });
    const created = await server.post("/plans", {
        name: "Move checkout-web from moment.js to Temporal, module by module", researchQuestion: "Which modules remain?",
        steps: steps.map((step) => ({ stepType: "custom", instructions: `${step.title}, please.`, ...step })),
    });
    return created.planId;
}

test("1: pages, command line, API and metrics agree on the number of stuck plans, also right after a start", () => withServer(async (server, context) => {
    for (let plan = 0; plan < 3; plan++) await stuckPlan(server, `Boats ${plan}`);
    await server.createPlan("Houses");
    await server.stop();
    await server.restart();
    const page = await open(context, server.url);
    assert.equal(await page.locator(".tile.stuck .number").first().innerText(), "3");
    assert.equal(await page.locator(".queue .badge.stuck").count(), 3);
    await page.goto(`${server.url}/plans?state=stuck`);
    assert.equal(await page.locator("tbody tr").count(), 3);
    const { plans } = await (await fetch(`${server.url}/api/v1/plans`)).json();
    assert.equal(plans.filter(({ attention }) => attention === "stuck").length, 3);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(metrics, /onward_plans\{attention="stuck"\} 3/);
    assert.equal(JSON.parse(server.run("status", "--json")).attention.stuck, 3);
    assert.match(server.run("status"), /^3 stuck /m);
    assert.equal(JSON.parse(await server.firstLine("watch", "--json")).attention.stuck, 3);
}));

test("2: every plan that has been open for an hour is listed under a word", () => withServer(async (server, context) => {
    const plans = [];
    const create = async (word, name, options) => {
        const plan = await server.createPlan(name, options);
        plans.push([word, plan]);
        return plan;
    };
    await create("no_agent", "Never started");
    await server.startStep(await create("stuck", "Silent"));
    await server.requestReview(await create("needs_you", "Asks"));
    await server.startStep(await create("working", "Patient", { stallThresholdMs: 24 * HOUR }));
    const failed = await create("no_agent", "Failed and left");
    const stepId = await server.startStep(failed);
    await server.post(`/plans/${failed}/modify`, { action: "fail_step", stepId, reason: "no yard answers" });
    await withServer(async (later) => {
        for (const [, plan] of plans) await later.importShifted(server, plan, -2 * HOUR);
        const page = await open(context, `${later.url}/plans`);
        assert.equal(await page.locator("tbody tr").count(), plans.length);
        for (const [word, plan] of plans) {
            const badge = page.locator("tr", { has: page.locator(`a[href="/plans/${plan}"]`) }).locator(".badge");
            const classes = (await badge.getAttribute("class")).split(" ");
            assert.deepEqual(classes.filter((name) => WORDS.includes(name)), [word]);
        }
        // None is waiting without a mention on the overview.
        await page.goto(later.url);
        for (const [word, plan] of plans) {
            const list = word === "working" ? "#working" : "#needs";
            const links = page.locator(`${list} a[href="/plans/${plan}"], ${list} form[action^="/plans/${plan}"]`);
            assert.ok(await links.count() > 0, word);
        }
    });
}));

test("3: a plan with a failed step has no success class", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats");
    await server.post(`/steps/${await server.startStep(plan)}/result`, { resultSummary: "Two remain." });
    const stepId = await server.startStep(plan);
    await server.post(`/plans/${plan}/modify`, { action: "fail_step", stepId, reason: "no yard answers" });
    const page = await open(context, `${server.url}/plans/${plan}`);
    assert.equal(await page.locator(":is(.verdict, .head .badge):is(.done, .completed)").count(), 0);
    assert.equal(await page.locator(".verdict.done_with_failures").count(), 1);
    for (const list of ["/plans", "/"]) {
        await page.goto(`${server.url}${list}`);
        assert.equal(await page.locator("tbody .badge:is(.done, .completed), #finished .badge:is(.done, .completed)").count(), 0, list);
    }
    assert.equal(await page.locator(".tile.done").count(), 0);
}));

test("4: a silence stays in the timeline with its bounds after the release", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats");
    await server.startStep(plan);
    await withServer(async (later) => {
        await later.importShifted(server, plan, -2 * HOUR);
        const page = await open(context, `${later.url}/plans/${plan}`);
        const silence = () => page.locator(".bars rect.stuck").evaluateAll((bars) => bars.map((bar) => [bar.getAttribute("x"), bar.querySelector("title").textContent]));
        const before = await silence();
        assert.equal(before.length, 1);
        assert.match(before[0][1], /2 h/);
        await page.click(".verdict button.primary");
        await page.waitForSelector(".flash");
        assert.deepEqual(await silence(), before);
        assert.equal(await page.locator(".verdict.stuck").count(), 0);
    });
}));

test("5: 192 steps, 12 of them stuck: all stuck steps are on the first screen", () => withServer(async (server, context) => {
    const steps = Array.from({ length: 192 }, (_, step) => `Check ${step + 1}`);
    const plan = await server.createPlan("Modules", { steps, stallThresholdMs: 1 });
    for (let agent = 0; agent < 12; agent++) await server.startStep(plan, `agent-${agent}`);
    const page = await open(context, `${server.url}/plans/${plan}`);
    await page.waitForSelector(".verdict.stuck");
    const bottoms = await page.locator(".stuck-list a").evaluateAll((links) => links.map((link) => link.getBoundingClientRect().bottom));
    assert.equal(bottoms.length, 12);
    assert.ok(Math.max(...bottoms) < 900, `${bottoms}`);
}));

test("192 steps of a plan with dependencies fit 1,500 px", () => withServer(async (server, context) => {
    const plan = await longPlan(server);
    const start = async (agent) => server.startStep(plan, agent);
    const finish = async (step) => server.post(`/steps/${step}/result`, { resultSummary: "212 call sites, 31 of which parse dates by hand. Module cart has 90 of them, account 40.", confidence: 0.9 });
    await finish(await start("agent-0"));
    // Three modules are done up to a step that is stuck, and a fourth one is at work.
    for (let step = 0; step < 60; step++) await finish(await start("agent-0"));
    for (const agent of ["agent-1", "agent-2", "agent-3", "agent-4"]) await start(agent);
    await withServer(async (later) => {
        await later.importShifted(server, plan, -5 * HOUR);
        const page = await open(context, `${later.url}/plans/${plan}`);
        await page.waitForSelector(".verdict.stuck");
        const height = await page.evaluate(() => document.documentElement.scrollHeight);
        assert.ok(height <= 1_500, `${height}`);
        const stuck = await page.locator(".rail > li.stuck").count();
        assert.equal(stuck, 4, "rows that need a person do not collapse");
    });
}));

test("6: no word in a table cell is broken on a phone", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Evaluate three vector databases for forty million embeddings", {
        steps: ["Collect candidate sources", "Search vendor documentation", "Compare against our workload"],
    });
    const summary = "| option | p95 | cost / month | risk |\n|---|---:|---:|---|\n| pgvector on the existing PostgreSQL | 38 ms | $2,740 | one region only |";
    const { reviewId } = await server.requestReview(plan, summary);
    await server.post("/sessions/s-1/calls", { agent: "claude-code", directory: "/src/data-platform", tool: "Bash", input: { command: "make" } });
    for (const address of ["/plans", `/plans/${plan}?view=table`, `/reviews/${reviewId}`, "/sessions", "/settings"]) {
        const page = await open(context, `${server.url}${address}`);
        const broken = await page.locator("td, th").evaluateAll((cells) => cells.flatMap((cell) => {
            const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
            const found = [];
            while (walker.nextNode()) {
                const node = walker.currentNode;
                if (node.parentElement.closest(".visually-hidden, code")) continue;
                for (const { index, 0: word } of node.textContent.matchAll(/\S+/g)) {
                    const range = document.createRange();
                    range.setStart(node, index);
                    range.setEnd(node, index + word.length);
                    if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) found.push(word);
                }
            }
            return found;
        }));
        assert.deepEqual(broken, [], address);
    }
}, PHONE));

test("7: from the overview to a released step in two keys, and from a terminal with one command", () => withServer(async (server, context) => {
    const plan = await stuckPlan(server, "Boats");
    const page = await open(context, server.url);
    await page.waitForSelector(".queue .badge.stuck");
    await waitForStream(page);
    await page.keyboard.press("j");
    await page.keyboard.press("e");
    await page.waitForURL(new RegExp(`/plans/${plan}`));
    assert.equal((await counts(server, plan)).inProgress, 0);
    const other = await stuckPlan(server, "Houses");
    const [, command] = /release: onward (step release \S+)/.exec(server.run("status"));
    server.run(...command.split(" "));
    assert.equal((await counts(server, other)).inProgress, 0);
}));

test("8: every function works without the script, and nothing has an inline style", () => withServer(async (server, context) => {
    const page = await context.newPage();
    const flash = () => page.waitForSelector(".flash");
    const plan = await stuckPlan(server, "Boats");
    // The prompt can be read and selected.
    await page.goto(`${server.url}/plans/${plan}`);
    await page.click(".resume summary");
    assert.match(await page.innerText("#prompt"), new RegExp(plan));
    await page.goto(server.url);
    assert.equal(await page.locator("[style], style").count(), 0);
    await page.click(".queue button");
    await flash();
    assert.equal((await counts(server, plan)).inProgress, 0);
    const { reviewId } = await server.requestReview(await server.createPlan("Houses"), "Two remain.", ["Is red fine?"]);
    await page.goto(`${server.url}/reviews/${reviewId}`);
    await page.fill("textarea[name=answer-1]", "Yes.");
    await page.click("button[value=approve]");
    await flash();
    await page.goto(`${server.url}/jump?q=hou`);
    await page.click("#results a");
    await page.waitForURL("**/plans/*");
    // Filters and orders are links.
    await page.goto(`${server.url}/plans`);
    await page.click("#menu-sort summary");
    await page.click("#menu-sort >> text=by name");
    await page.waitForURL("**/plans?sort=name");
    assert.deepEqual(await page.locator("td.main a").allInnerTexts(), ["Boats", "Houses"]);
    // Several plans are selected with checkboxes.
    for (const box of await page.locator("td.pick input").all()) await box.check();
    const download = page.waitForEvent("download");
    await page.click("button[formaction='/plans/export']");
    const exported = fs.readFileSync(await (await download).path(), "utf8");
    assert.equal(exported.trim().split("\n").length, 2);
    await page.click("#bulk-cancel summary");
    await page.click("#bulk-cancel button");
    await flash();
    assert.equal(await page.locator(".badge.cancelled").count(), 2);
    assert.equal(await page.locator("[style], style").count(), 0);
}, { ...DESKTOP, javaScriptEnabled: false }));

test("8: the overview with every kind of row passes axe", () => withServer(async (server, context) => {
    await stuckPlan(server, "Boats");
    await server.requestReview(await server.createPlan("Houses"));
    const page = await open(context, server.url);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
}, { ...DESKTOP, bypassCSP: true }));

test("8: one stylesheet, and a script of at most 520 lines", () => withServer(async (server) => {
    const html = await (await fetch(server.url)).text();
    assert.equal(html.match(/<link rel="stylesheet"/g).length, 1);
    assert.equal(html.match(/<script/g).length, 1);
    const script = await (await fetch(`${server.url}/assets/onward.js`)).text();
    assert.ok(script.split("\n").length <= 520, `${script.split("\n").length}`);
}));

// What is stuck, since when, whose is it, does an agent work on it, and what do I do?
test("9: the first screen of the overview answers the five questions", () => withServer(async (server, context) => {
    const silent = await server.createPlan("Survey of sodium-ion battery suppliers");
    await server.startStep(silent);
    const idle = await server.createPlan("Competitor pricing");
    await withServer(async (later) => {
        for (const plan of [silent, idle]) await later.importShifted(server, plan, -3 * HOUR);
        const working = await later.createPlan("Reduce the inference cost");
        await later.startStep(working);
        const page = await open(context, later.url);
        const isVisible = async (locator) => {
            const box = await locator.boundingBox();
            return box !== null && box.x >= 0 && box.y >= 0 && box.x + box.width <= 1_280 && box.y + box.height <= 900;
        };
        const row = page.locator(".queue > li", { hasText: "sodium-ion" });
        const answers = {
            what: row.locator(".badge.stuck"),
            name: row.locator("a", { hasText: "Survey of sodium-ion" }),
            since: row.locator(".when strong", { hasText: "3 h" }),
            clock: row.locator(".when .sub", { hasText: "since" }),
            who: row.locator(".what .sub", { hasText: "ann" }),
            action: row.locator("button", { hasText: "Release step" }),
            withoutAgent: page.locator(".queue > li", { hasText: "Competitor" }).locator(".badge.no_agent"),
            withAgent: page.locator("#working a", { hasText: "Reduce the inference cost" }),
        };
        for (const [question, locator] of Object.entries(answers)) {
            assert.equal(await locator.count(), 1, question);
            assert.ok(await isVisible(locator), question);
        }
        // One main action per row.
        for (const item of await page.locator(".queue > li").all()) assert.equal(await item.locator("[data-primary]").count(), 1);
    });
}));
