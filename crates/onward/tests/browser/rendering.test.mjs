// All pages in a real browser, light and dark, on a desktop and on a phone: no console errors, no
// violations of the content security policy, no accessibility violations, no horizontal scrolling.
// With ONWARD_SCREENSHOTS, a screenshot of each page is written there.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { AgentSession, TestServer, axe, launchBrowser, open, signIn, startModel, waitForStream } from "./test-server.mjs";

const SCREENSHOTS = process.env.ONWARD_SCREENSHOTS;
const SUMMARY = `## Three candidates remain

| boat | price | at sea |
|---|---:|---|
| Vancouver 28 | 29,000 | good |
| Hallberg-Rassy 29 | 34,000 | good |
| Contessa 32 | **44,000** | best |

The last one exceeds the budget, and is the best at sea: see [the test](https://example.org/boats).`;
let browser, closed, model, pages, server;
const servers = [];

// A plan with taken branches that skip and add steps, a released step, and a late result.
async function seedBranches(server) {
    const steps = ["Collect candidate sources", "Search vendor documentation", "Extract figures into a table", "Compare against our workload", "Look for contradicting evidence", "Draft the recommendation", "Write the final report"];
    const branch = (afterStepOrder, conditionExpression, ifTrueAction, actionParams) => ({ afterStepOrder, conditionExpression, ifTrueAction, actionParams });
    const explain = ["Explain the outlier", "Repeat the measurement"].map((title) => ({ stepType: "analyze", title, instructions: `${title}, please.` }));
    const plan = await server.createPlan("Evaluate three vector databases for 40M embeddings", {
        steps,
        branchingConditions: [
            branch(1, "confidence < 0.3", "fail", { reason: "no source" }),
            branch(2, "confidence >= 0.95", "skip_to", { targetStepOrder: 4 }),
            branch(4, "has(result.spread) && result.spread > 25", "add_steps", { steps: explain }),
        ],
    });
    const results = [["Found four independent sources; two of them agree.", 0.86], ["212 pages read, 31 of them with figures.", 0.96], ["Option B is 40 % cheaper.", 0.9]];
    let compared;
    for (const [resultSummary, confidence] of results) {
        const step = await server.startStep(plan);
        await server.post(`/steps/${step}/result`, { resultSummary, confidence, result: { spread: 64 } });
        compared = step;
    }
    const next = () => server.post(`/plans/${plan}/next`, { sessionId: "claude-7f3a" });
    const { stepId, claimToken } = await next();
    await server.post(`/plans/${plan}/modify`, { action: "requeue_step", stepId });
    await next();
    await server.post(`/steps/${stepId}/result`, { resultSummary: "One region was measured at night." });
    await server.post(`/steps/${stepId}/result`, { resultSummary: "It was the cache.", claimToken }).catch(() => {});
    await next();
    return { plan, compared, released: stepId };
}

// One plan in each state that needs time, and a history for the chart: made on another server, and
// imported as if the work had been done earlier.
async function seedHistory(server) {
    const source = await TestServer.start();
    servers.push(source);
    const HOUR = 3_600_000;
    const create = (name, steps) => source.createPlan(name, { steps });
    const finish = async (plan, steps) => {
        for (let step = 0; step < steps; step++) {
            await source.post(`/steps/${await source.startStep(plan)}/result`, { resultSummary: "Checked twice, no surprise.", confidence: 0.9 });
        }
    };
    const fail = async (plan, reason) => source.post(`/plans/${plan}/modify`, { action: "fail_step", stepId: await source.startStep(plan), reason });
    const plans = {};
    plans.no_agent = await create("Rotate the TLS certificates of the edge proxies", ["List the certificates", "Renew them", "Deploy", "Remove the old ones"]);
    await finish(plans.no_agent, 1);
    plans.done_with_failures = await create("Check the links of the handbook", ["Chapters 1 to 4", "Chapters 5 to 9", "Appendix"]);
    await finish(plans.done_with_failures, 2);
    await fail(plans.done_with_failures, "The appendix is a scan.");
    plans.failed = await create("Choose a payment provider", ["Collect offers", "Recommend one"]);
    await finish(plans.failed, 1);
    const { step } = await source.requestReview(plans.failed, "Provider A is cheapest.", []);
    await source.post(`/steps/${step}/decision`, { decision: "reject", feedback: "None of them is licensed here." });
    for (const plan of Object.values(plans)) await server.importShifted(source, plan, -3 * HOUR);
    for (const [hours, steps] of [[1, 4], [2, 7], [6, 3], [8, 12], [9, 5], [22, 2], [25, 9], [26, 14], [31, 6], [46, 3]]) {
        const plan = await create(`Nightly checks, ${hours} h ago`, Array.from({ length: steps }, (_, step) => `Check ${step + 1}`));
        await finish(plan, steps);
        await server.importShifted(source, plan, -hours * HOUR);
    }
    return plans;
}

// A plan of 192 steps in ten modules: 30 steps done, 12 stuck.
async function seedLongPlan(server) {
    const steps = [{ title: "Inventory of modules" }];
    for (let module = 1; module <= 10; module++) {
        const first = steps.length + 1;
        for (let step = 0; step < 19; step++) steps.push({ title: `Module ${module}: ${step === 0 ? "find call sites" : `convert view ${step}`}`, dependsOn: [step === 0 ? 1 : first] });
    }
    steps.push({ title: "Write the migration report", dependsOn: steps.slice(1).map((_, step) => step + 2) });
    const plan = await server.createPlan("Move checkout-web to Temporal, module by module", { steps, stallThresholdMs: 1 });
    for (let step = 0; step < 30; step++) await server.post(`/steps/${await server.startStep(plan)}/result`, { resultSummary: "31 call sites.", confidence: 0.9 });
    for (let agent = 0; agent < 12; agent++) await server.startStep(plan, `agent-${agent}`);
    return plan;
}

// Parallel work that joins, a branch that skips it, and two agents at work.
async function seedDependencies(server) {
    const plan = await server.createPlan("Ship version 2.0 of the mobile app", {
        steps: [
            { title: "Freeze the main branch" }, { title: "Build for Android", dependsOn: [1] }, { title: "Build for iOS", dependsOn: [1] },
            { title: "Translate the release notes", dependsOn: [1] }, { title: "Test both builds", dependsOn: [2, 3] },
            { title: "Publish", dependsOn: [4, 5] }, { title: "Announce it", dependsOn: [6] },
        ],
        branchingConditions: [{ afterStepOrder: 5, conditionExpression: "confidence < 0.5", ifTrueAction: "fail", actionParams: { reason: "The builds are not ready." } }],
    });
    await server.post(`/steps/${await server.startStep(plan)}/result`, { resultSummary: "Frozen at 3f1c2aa.", confidence: 1 });
    await server.post(`/steps/${await server.startStep(plan)}/result`, { resultSummary: "Signed and uploaded.", confidence: 0.9 });
    const step = await server.startStep(plan, "claude-ios");
    await server.post(`/steps/${step}/progress`, { note: "Archiving", percent: 60 });
    await server.startStep(plan, "claude-notes");
    return plan;
}

// Lists of ended sessions, one with long texts.
function seedUnfinishedLists(server) {
    const lists = [
        ["list-1", "/srv/src/shop", "Add a dark mode", ["Read the styles", "Add a switch", "Run the tests"]],
        ["list-2", `/srv/src/${"northwind-".repeat(8)}ranker`, `Export ${"orders_and_invoices_".repeat(8)}to CSV`, ["Read the orders", `Stream ${"large_files_".repeat(8)}`, "Run the tests"]],
    ];
    for (const [id, directory, prompt, titles] of lists) {
        const session = new AgentSession(server, id, directory);
        session.prompt(prompt);
        const todos = titles.map((content, index) => ({ content, status: ["completed", "in_progress", "pending"][index] }));
        session.hook("PostToolUse", { tool_name: "TodoWrite", tool_use_id: id, tool_input: { todos }, tool_response: { newTodos: todos } });
        session.hook("SessionEnd", { reason: "exit" });
    }
}

// A plan whose last step depends on several steps that failed.
async function seedBlocked(server) {
    const titles = Array.from({ length: 5 }, (_, vendor) => ({ title: `Ask vendor ${vendor + 1}` }));
    const plan = await server.createPlan("Choose a vendor", { steps: [...titles, { title: "Compare the offers", dependsOn: [1, 2, 3, 4, 5] }] });
    for (const _ of titles) await server.post(`/plans/${plan}/modify`, { action: "fail_step", stepId: await server.startStep(plan), reason: "The vendor has not answered." });
    const { pendingSteps } = await (await fetch(`${server.url}/api/v1/plans/${plan}`)).json();
    return { plan, waiting: pendingSteps[0].stepId };
}

// One session in each state.
function seedSessions(server) {
    const session = (id, directory, prompt) => {
        const session = new AgentSession(server, id, directory);
        session.prompt(prompt);
        return session;
    };
    const looping = session("looping-1", "/srv/src/ml-ranker", "Wait until the pod is ready, then run the benchmark");
    looping.respond("git log -3", "3f1c2aa Raise the memory limit of the ranker\n9a01b7e Pin the model to version 12");
    for (let response = 0; response < 9; response++) looping.respond("kubectl get pods -n ranker", "ranker-7c9  0/1  Pending");
    for (let call = 0; call < 3; call++) looping.begin("kubectl get pods -n ranker");
    const closed = session("closed-1", "/srv/src/billing", "Find out why the invoice job is slow");
    for (let response = 0; response < 9; response++) closed.respond("tail -1 job.log", "waiting for lock");
    const nudged = session("nudged-1", "/srv/src/api", "Make the tests pass");
    for (let response = 0; response < 6; response++) nudged.respond("cargo test", "test tides ... FAILED");
    session("working-1", "/srv/src/docs-site", "Find out why the release notes have no date").respond("ls docs", "release.md, index.md and 40 other files in three directories");
    const approval = session("approval-1", "/srv/src/data-platform", "Drop the old table");
    approval.begin("psql -c 'drop table events_2023'");
    approval.askForApproval();
    const idle = session("idle-1", "/srv/src/web", "Say hello");
    idle.hook("Stop");
    const parent = session("subagents-1", "/srv/src/search", "Review the three ranking changes");
    for (const agent_id of ["reviewer-a", "reviewer-b", "reviewer-c"]) parent.hook("SubagentStart", { agent_id });
    parent.hook("SubagentStop", { agent_id: "reviewer-a", last_assistant_message: "The first change is safe: it only renames a field." });
    const ended = session("ended-1", "/srv/src/web", "Say goodbye");
    ended.hook("SessionEnd");
}

before(async () => {
    browser = await launchBrowser();
    model = await startModel();
    server = await TestServer.start({
        ONWARD_EMBEDDINGS__URL: model.url, ONWARD_EMBEDDINGS__MODEL: "small",
        ONWARD_EXTRACTION__URL: model.url, ONWARD_EXTRACTION__MODEL: "small",
    });
    const empty = await TestServer.start();
    const rough = await TestServer.start();
    closed = await TestServer.startWithTokens();
    servers.push(server, empty, rough, closed);
    const pump = await server.createPlan("Heat pumps for old houses", {
        steps: ["Find independent tests", "Collect the figures", "Costs over 20 years", "Recommend"],
        branchingConditions: [{ afterStepOrder: 1, conditionExpression: "confidence >= 0.95", ifTrueAction: "skip_to", actionParams: { targetStepOrder: 3 } }],
        stallThresholdMs: 1_000,
    });
    const first = await server.startStep(pump);
    await server.post(`/steps/${first}/result`, { resultSummary: "Three tests: 2024, 2025 and 2026.", confidence: 0.8 });
    await server.startStep(pump);
    const evil = `<script>alert(1)</script> \u202egnp.exe ${"W".repeat(150)}`;
    const hostile = await rough.createPlan(evil, { steps: [evil] });
    const boats = await server.createPlan("Boats");
    const { step, reviewId } = await server.requestReview(boats, SUMMARY, ["Is 10 % over budget all right?", "Who signs?"]);
    await server.requestReview(await server.createPlan("Upgrade PostgreSQL 14 to 17 on the ledger cluster"), "I would go with option B.\n\n".repeat(20), []);
    seedSessions(server);
    seedUnfinishedLists(server);
    const blocked = await seedBlocked(server);
    const branching = await seedBranches(server);
    const history = await seedHistory(server);
    const long = await seedLongPlan(rough);
    const dependencies = await seedDependencies(server);
    const done = await server.createPlan("Tariffs of 2026", { steps: ["Read the law"] });
    await server.post(`/steps/${await server.startStep(done)}/result`, { resultSummary: "Done." });
    for (const content of ["# Tariffs\n\nA first draft.", "# Tariffs\n\n| tariff | cents per kWh |\n|---|---:|\n| day | 31.4 |\n| night | 22.8 |"]) {
        await server.post(`/plans/${done}/outputs`, { title: "Report", content });
    }
    const calls = "/sessions/claude-7f3a/calls";
    await server.post(calls, { agent: "claude-code", directory: "/src/heat-pumps", tool: "Bash", input: { command: "cargo test" }, status: "running" });
    await server.post(calls, { tool: "Bash", input: { command: "make deploy" }, status: "running" });
    await server.post(`${calls}/1/2/close`);
    await server.post(calls, { tool: "Read", input: { file_path: "/src/heat-pumps/README.md" } });
    await server.post(`${calls}/1/3`, { change: "complete", result: "# Heat pumps" });
    await rough.post(`/sessions/${encodeURIComponent(evil)}/calls`, { tool: evil, input: { command: evil }, status: "running" });
    const artifact = await server.post("/artifacts", {
        title: "Test of 2025: eleven heat pumps in houses from before 1970", artifactType: "source", planId: pump,
        content: "Pump A: 48 dB, seasonal efficiency 3.9.\nPump B: 51 dB, seasonal efficiency 4.2.", sourceUrl: "https://example.org/test",
    });
    await server.post("/artifacts", { title: "Radiators and low temperatures", content: "Larger radiators let a pump run at 45 degrees." });
    await server.post("/artifacts", { title: "Noise at night", artifactType: "quote", content: "A heat pump below 50 dB does not wake people." });
    await server.post("/extractions", { artifactId: artifact.artifactId, schema: { type: "object", properties: { noise: { type: "number" } } } });
    await server.post("/extractions", { artifactId: artifact.artifactId, schema: { required: ["price"] } });
    const { outputId } = await server.post(`/plans/${pump}/outputs`, { title: "Recommendation", content: "# Pump B\n\nIt is louder by 3 dB and costs less over 20 years." });
    const cancelled = await server.createPlan("Wood or gas");
    await server.startStep(cancelled);
    await server.post(`/plans/${cancelled}/abandon`, { reason: "Neither." });
    const many = await rough.createPlan("Thirty agents", { steps: Array.from({ length: 30 }, (_, step) => `Check ${step + 1}`), stallThresholdMs: 1 });
    for (let agent = 0; agent < 30; agent++) await rough.startStep(many, `agent-${agent}`);
    const evilText = `${SUMMARY}\n\n|${"W".repeat(200)}|${"9".repeat(200)}|\n|---|---:|\n|${evil}|${evil}|\n\n> ${evil}`;
    const wild = await rough.post("/artifacts", { title: evil, content: evilText });
    const ownedPlan = await closed.createPlan("Pumps", { stallThresholdMs: 1 });
    const ownedStep = await closed.startStep(ownedPlan);
    const { reviewId: ownedReview } = await closed.requestReview(await closed.createPlan("Boats"));
    await closed.post(calls, { agent: "codex", tool: "Bash", input: { command: "make" }, status: "running" });
    const log = (skillName, more) => server.post("/skills", { skillName, sessionId: "claude-7f3a", ...more });
    for (const [skillName, status] of [["market-survey", "completed"], ["cost-model", "failed"], ["market-survey", "executing"]]) {
        const { executionId } = await log(skillName, { status: "started" });
        const errorMessage = status === "failed" ? "Cannot read the price list of 2026: it is an image." : undefined;
        await log(skillName, { executionId, status, errorMessage, metadata: { outputMediaType: "text/markdown" } });
    }
    const { executionId } = await log("site-visit", { status: "started", planId: pump });
    pages = {
        library_results: `${server.url}/library?q=heat+pump+noise`,
        library: `${server.url}/library`,
        artifact: `${server.url}/artifacts/${artifact.artifactId}`,
        extractions: `${server.url}/plans/${pump}?tab=extractions`,
        outputs: `${server.url}/plans/${pump}?tab=outputs`,
        output: `${server.url}/outputs/${outputId}`,
        source: `${server.url}/artifacts/${artifact.artifactId}?as=written`,
        wild: `${rough.url}/artifacts/${wild.artifactId}`,
        many: `${rough.url}/plans/${many}`,
        cancelled: `${server.url}/plans/${cancelled}`,
        notfound: `${server.url}/nowhere`,
        no_agent: `${server.url}/plans/${history.no_agent}`,
        done_with_failures: `${server.url}/plans/${history.done_with_failures}`,
        failed: `${server.url}/plans/${history.failed}`,
        long: `${rough.url}/plans/${long}`,
        dependencies: `${server.url}/plans/${dependencies}`,
        dependencies_graph: `${server.url}/plans/${dependencies}?view=graph`,
        session_subagents: `${server.url}/sessions/subagents-1`,
        session_tools_closed: `${server.url}/sessions/closed-1`,
        session_nudged: `${server.url}/sessions/nudged-1`,
        viewer_overview: `${closed.url}/`,
        viewer_plans: `${closed.url}/plans`,
        login: `${closed.url}/login`,
        viewer: `${closed.url}/plans/${ownedPlan}`,
        viewer_step: `${closed.url}/plans/${ownedPlan}/steps/${ownedStep}`,
        viewer_inbox: `${closed.url}/inbox`,
        viewer_review: `${closed.url}/reviews/${ownedReview}`,
        viewer_session: `${closed.url}/sessions/claude-7f3a`,
        viewer_access: `${closed.url}/settings/access`,
        viewer_new_plan: `${closed.url}/plans/new`,
        owner_access: `${closed.url}/settings/access?as=owner`,
        empty: `${empty.url}/plans`,
        noreviews: `${empty.url}/inbox`,
        nosessions: `${empty.url}/sessions`,
        nolibrary: `${empty.url}/library`,
        overview: `${server.url}/`,
        overview_many: `${rough.url}/`,
        nooverview: `${empty.url}/`,
        plans: `${server.url}/plans`,
        plans_stuck: `${server.url}/plans?state=stuck`,
        graph: `${server.url}/plans/${pump}?view=graph`,
        table: `${server.url}/plans/${pump}?view=table`,
        inspector: `${server.url}/plans/${boats}?step=${step}`,
        activity: `${server.url}/plans/${pump}?tab=activity`,
        files: `${server.url}/plans/${pump}?tab=files`,
        plan_about: `${server.url}/plans/${pump}?tab=about`,
        done: `${server.url}/plans/${done}`,
        versions: `${server.url}/plans/${done}?tab=files`,
        branching: `${server.url}/plans/${branching.plan}`,
        attempts: `${server.url}/plans/${branching.plan}?step=${branching.released}`,
        branching_graph: `${server.url}/plans/${branching.plan}?view=graph`,
        plans_menu: `${server.url}/plans#menu-sort`,
        plan: `${server.url}/plans/${pump}`,
        branches: `${server.url}/plans/${pump}?tab=branches`,
        planreviews: `${server.url}/plans/${boats}?tab=reviews`,
        artifacts: `${server.url}/plans/${pump}?tab=artifacts`,
        audit: `${server.url}/plans/${pump}?tab=audit`,
        calls: `${server.url}/plans/${pump}?tab=calls`,
        step: `${server.url}/plans/${boats}/steps/${step}`,
        hostile: `${rough.url}/plans/${hostile}`,
        add: `${server.url}/plans/${pump}?tab=about#add`,
        reorder: `${server.url}/plans/${pump}?reorder=1`,
        skills: `${server.url}/library/skills`,
        skill: `${server.url}/library/skills/${executionId}`,
        noskills: `${empty.url}/library/skills`,
        plans_unfinished: `${server.url}/plans?state=unfinished_list`,
        journal: `${server.url}/journal`,
        journal_menu: `${server.url}/journal#menu-project`,
        nojournal: `${empty.url}/journal`,
        blocked: `${server.url}/plans/${blocked.plan}`,
        blocked_step: `${server.url}/plans/${blocked.plan}/steps/${blocked.waiting}`,
        inbox: `${server.url}/inbox`,
        inbox_many: `${rough.url}/inbox`,
        review: `${server.url}/reviews/${reviewId}`,
        jump: `${server.url}/jump?q=heat`,
        palette: `${server.url}/sessions#palette`,
        sessions: `${server.url}/sessions`,
        session: `${server.url}/sessions/claude-7f3a`,
        session_hostile: `${rough.url}/sessions/${encodeURIComponent(evil)}`,
        session_looping: `${server.url}/sessions/looping-1`,
        session_approval: `${server.url}/sessions/approval-1`,
        new_plan: `${server.url}/plans/new`,
        connect: `${server.url}/settings`,
        access: `${server.url}/settings/access`,
        alerts: `${server.url}/settings/alerts`,
        limits: `${server.url}/settings/limits`,
        about: `${server.url}/settings/about`,
    };
    // Wait for the stall and the index, so that the pages display them.
    const page = await open(await browser.newContext(), pages.plan);
    await page.waitForSelector(".verdict.stuck");
    await page.goto(pages.about);
    while (!(await page.content()).includes('id="index-pending">0<')) await page.reload();
});
after(async () => {
    await browser.close();
    model.close();
    for (const each of servers) await each.close();
});

// ONWARD_PAGES limits the pages, for example to `inbox,sessions`.
const isSelected = ([name]) => !process.env.ONWARD_PAGES || process.env.ONWARD_PAGES.split(",").includes(name);
// The role that a page is opened with.
const roleFor = (name) => ["viewer", "owner"].find((role) => name.startsWith(role)) ?? null;
// The browser logs an error for a 404 response.
const expectedErrors = (name) => name === "notfound" ? ["Failed to load resource: the server responded with a status of 404 (Not Found)"] : [];

test("all pages pass the checks", async () => {
    const devices = { desktop: { width: 1_280, height: 800 }, phone: { width: 390, height: 844 } };
    // The schemes differ only in colours.
    const schemes = { light: {}, dark: { runOnly: ["color-contrast"] } };
    const problems = [];
    for (const role of [null, "viewer", "owner"]) {
        const context = await browser.newContext({ viewport: devices.desktop });
        if (role) await signIn(context, closed, role);
        // A new page would start a process, which takes longer than all checks of a page.
        const page = await open(context, "about:blank");
        for (const [name, url] of Object.entries(pages).filter(isSelected).filter(([name]) => roleFor(name) === role)) {
            page.consoleErrors.length = 0;
            await page.setViewportSize(devices.desktop);
            await page.emulateMedia({ colorScheme: "light" });
            // Otherwise an address that differs only in its fragment does not load.
            await page.goto("about:blank");
            await page.goto(url);
            const { hash } = new URL(url);
            // With a fragment, the focus starts inside the page. On the other two pages, a field has it.
            if (!hash && !["login", "jump"].includes(name)) {
                await page.keyboard.press("Tab");
                const className = await page.evaluate(() => {
                    const { activeElement } = document;
                    activeElement.blur();
                    return activeElement.className;
                });
                if (className !== "skip") problems.push(`${name}: Tab focuses \`${className}\``);
            }
            if (await page.locator("body[data-live]:not([data-live=''])").count() > 0) await waitForStream(page);
            for (const details of await page.locator(`details[id='${hash.slice(1)}']`).all()) await details.locator("summary").click();
            if (name === "palette") await page.keyboard.press("Control+k").then(() => page.waitForSelector("#palette li"));
            await page.evaluate(axe);
            for (const [device, viewport] of Object.entries(devices)) {
                await page.setViewportSize(viewport);
                const width = await page.evaluate(() => document.documentElement.scrollWidth);
                if (width > viewport.width) problems.push(`${name}, ${device}: ${width} px wide`);
                for (const [colorScheme, rules] of Object.entries(schemes)) {
                    await page.emulateMedia({ colorScheme });
                    if (SCREENSHOTS) await page.screenshot({ path: path.join(SCREENSHOTS, `${name}-${device}-${colorScheme}.png`), fullPage: true });
                    // The elements that pass are many, and copying them takes longer than the checks.
                    const violations = await page.evaluate(async (rules) => (await globalThis.axe.run(rules)).violations, { ...rules, resultTypes: ["violations"] });
                    problems.push(...violations.map(({ impact, id, nodes }) => `${name}, ${device}, ${colorScheme}: ${impact} ${id}: ${nodes[0].html}`));
                }
            }
            // The browser logs violations of the content security policy too.
            if (page.consoleErrors.join() !== expectedErrors(name).join()) problems.push(`${name}: ${page.consoleErrors}`);
        }
        await context.close();
    }
    assert.deepEqual(problems, []);
});

test("on a phone the navigation fits one line, the selected tab is visible, and cells have labels", async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const page = await open(context, `${pages.plan}?tab=calls`);
    const lines = await page.locator(".top nav a").evaluateAll((links) => new Set(links.map((link) => link.offsetTop)).size);
    assert.equal(lines, 1);
    const edges = await page.locator(".tabs a[aria-current]").evaluate((tab) => {
        const { left, right } = tab.getBoundingClientRect();
        return [left, right];
    });
    assert.ok(edges[0] >= 0 && edges[1] <= 390, `${edges}`);
    await page.goto(pages.sessions);
    const label = await page.locator("td[data-name=responses]").first().evaluate((cell) => getComputedStyle(cell, "::before").content);
    assert.match(label, /responses/);
    await context.close();
});

test("times are in the time zone of the browser, whose name is displayed, and the labels of the chart are apart", async () => {
    for (const width of [390, 1_280]) {
        const context = await browser.newContext({ viewport: { width, height: 844 }, timezoneId: "Asia/Tokyo" });
        const page = await open(context, pages.overview);
        assert.equal(await page.locator("footer [data-zone]").innerText(), "Asia/Tokyo");
        const ticks = await page.locator(".chart text[data-at]").evaluateAll((texts) => texts.map((text) => {
            const { left, right } = text.getBoundingClientRect();
            const chart = text.closest("svg").getBoundingClientRect();
            return { at: text.dataset.at, label: text.textContent, left: left - chart.left, right: right - chart.left, width: chart.width };
        }));
        assert.equal(ticks.length, 4);
        for (const [index, { at, label, left, right, width }] of ticks.entries()) {
            const [hours, minutes] = at.slice(11, 16).split(":").map(Number);
            const local = (hours * 60 + minutes + 540) % 1_440;
            if (local > 0) assert.equal(label, [local / 60, local % 60].map((number) => String(Math.floor(number)).padStart(2, "0")).join(":"));
            assert.ok(left >= 0 && right <= width, label);
            assert.ok(index === 0 || ticks[index - 1].right < left, label);
        }
        await context.close();
    }
});

test("opening a tab scrolls to it and keeps the stall at the top", async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const page = await open(context, pages.plan);
    await page.click(".tabs >> text=Activity");
    await page.waitForURL(/#tabs$/);
    const top = await page.locator("#tabs").evaluate((tabs) => tabs.getBoundingClientRect().top);
    assert.ok(top >= 0 && top < 844, `${top}`);
    assert.equal(await page.locator(".verdict.stuck").count(), 1);
    await context.close();
});
