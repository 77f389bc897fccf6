// Every page in a real browser, light and dark, on a screen and on a phone: nothing in the console, nothing
// that a screen reader or a keyboard could not use, nothing wider than the screen. With ONWARD_PICTURES it
// leaves a picture of each there.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { House, axe, browse, isLive, model, open, signIn } from "./house.mjs";

const PICTURES = process.env.ONWARD_PICTURES;
const SUMMARY = `## Three candidates remain

| boat | price | at sea |
|---|---:|---|
| Vancouver 28 | 29,000 | good |
| Hallberg-Rassy 29 | 34,000 | good |
| Contessa 32 | **44,000** | best |

The last one is over budget, and the best at sea: see [the test](https://example.org/boats).`;
let browser, closed, house, mind, others, pages;

before(async () => {
    browser = await browse();
    mind = await model();
    house = await House.open({
        ONWARD_EMBEDDINGS_URL: mind.url, ONWARD_EMBEDDINGS_MODEL: "small",
        ONWARD_EXTRACTION_URL: mind.url, ONWARD_EXTRACTION_MODEL: "small",
    });
    const empty = await House.open();
    const rough = await House.open();
    closed = await House.closed();
    const pump = await house.plan("Heat pumps for old houses", {
        steps: ["Find independent tests", "Collect the figures", "Costs over 20 years", "Recommend"],
        branchingConditions: [{ afterStepOrder: 1, conditionExpression: "confidence >= 0.95", ifTrueAction: "skip_to", actionParams: { targetStepOrder: 3 } }],
        stallThresholdMs: 1_000,
    });
    const first = await house.begin(pump);
    await house.post(`/steps/${first}/result`, { resultSummary: "Three tests: 2024, 2025 and 2026.", confidence: 0.8 });
    await house.begin(pump);
    const evil = `<script>alert(1)</script> \u202egnp.exe ${"W".repeat(150)}`;
    const hostile = await rough.plan(evil, { steps: [evil] });
    const boats = await house.plan("Boats");
    const { step } = await house.ask(boats, SUMMARY, ["Is 10 % over budget all right?"]);
    const done = await house.plan("Tariffs of 2026", { steps: ["Read the law"] });
    await house.post(`/steps/${await house.begin(done)}/result`, { resultSummary: "Done." });
    const told = "/sessions/claude-7f3a/calls";
    await house.post(told, { agent: "claude-code", directory: "/src/heat-pumps", tool: "Bash", input: { command: "cargo test" }, status: "running" });
    await house.post(told, { tool: "Bash", input: { command: "make deploy" }, status: "running" });
    await house.post(`${told}/1/2/close`);
    await house.post(told, { tool: "Read", input: { file_path: "/src/heat-pumps/README.md" } });
    await house.post(`${told}/1/3`, { change: "complete", result: "# Heat pumps" });
    await rough.post(`/sessions/${encodeURIComponent(evil)}/calls`, { tool: evil, input: { command: evil }, status: "running" });
    const found = await house.post("/artifacts", {
        title: "Test of 2025: eleven heat pumps in houses from before 1970", artifactType: "source", planId: pump,
        content: "Pump A: 48 dB, seasonal efficiency 3.9.\nPump B: 51 dB, seasonal efficiency 4.2.", sourceUrl: "https://example.org/test",
    });
    await house.post("/artifacts", { title: "Radiators and low temperatures", content: "Larger radiators let a pump run at 45 degrees." });
    await house.post("/artifacts", { title: "Noise at night", artifactType: "quote", content: "A heat pump under 50 dB wakes nobody." });
    await house.post("/extractions", { artifactId: found.artifactId, schema: { type: "object", properties: { noise: { type: "number" } } } });
    await house.post("/extractions", { artifactId: found.artifactId, schema: { required: ["price"] } });
    const { outputId } = await house.post(`/plans/${pump}/outputs`, { title: "Recommendation", content: "# Pump B\n\nIt is louder by 3 dB and costs less over 20 years." });
    const given = await house.plan("Wood or gas");
    await house.begin(given);
    await house.post(`/plans/${given}/abandon`, { reason: "Neither." });
    const many = await rough.plan("Thirty at once", { steps: Array.from({ length: 30 }, (_, step) => `Look ${step + 1}`), stallThresholdMs: 1 });
    for (let agent = 0; agent < 30; agent++) await rough.begin(many, `agent-${agent}`);
    const evilText = `${SUMMARY}\n\n|${"W".repeat(200)}|${"9".repeat(200)}|\n|---|---:|\n|${evil}|${evil}|\n\n> ${evil}`;
    const wild = await rough.post("/artifacts", { title: evil, content: evilText });
    const hidden = await closed.plan("Pumps", { stallThresholdMs: 1 });
    const seen = await closed.begin(hidden);
    await closed.ask(await closed.plan("Boats"));
    await closed.post(told, { agent: "codex", tool: "Bash", input: { command: "make" }, status: "running" });
    const log = (skillName, more) => house.post("/skills", { skillName, sessionId: "claude-7f3a", ...more });
    for (const [skillName, status] of [["market-survey", "completed"], ["cost-model", "failed"], ["market-survey", "executing"]]) {
        const { executionId } = await log(skillName, { status: "started" });
        const errorMessage = status === "failed" ? "The price list of 2026 could not be read: it is a picture." : undefined;
        await log(skillName, { executionId, status, errorMessage, metadata: { outputMediaType: "text/markdown" } });
    }
    const { executionId } = await log("site-visit", { status: "started", planId: pump });
    pages = {
        search: `${house.url}/search?q=heat+pump+noise`,
        artifact: `${house.url}/artifacts/${found.artifactId}`,
        extractions: `${house.url}/plans/${pump}?tab=extractions`,
        outputs: `${house.url}/plans/${pump}?tab=outputs`,
        output: `${house.url}/outputs/${outputId}`,
        written: `${house.url}/artifacts/${found.artifactId}?as=written`,
        wild: `${rough.url}/artifacts/${wild.artifactId}`,
        many: `${rough.url}/plans/${many}`,
        given: `${house.url}/plans/${given}`,
        nowhere: `${house.url}/nowhere`,
        login: `${closed.url}/login`,
        reader: `${closed.url}/plans/${hidden}`,
        reader_step: `${closed.url}/plans/${hidden}/steps/${seen}`,
        reader_reviews: `${closed.url}/reviews`,
        reader_session: `${closed.url}/sessions/claude-7f3a`,
        reader_settings: `${closed.url}/settings`,
        owner_settings: `${closed.url}/settings?as=owner`,
        empty: `${empty.url}/plans`,
        noreviews: `${empty.url}/reviews`,
        nosessions: `${empty.url}/sessions`,
        nothing: `${empty.url}/search`,
        plans: `${house.url}/plans`,
        plan: `${house.url}/plans/${pump}`,
        branches: `${house.url}/plans/${pump}?tab=branches`,
        asked: `${house.url}/plans/${boats}?tab=reviews`,
        artifacts: `${house.url}/plans/${pump}?tab=artifacts`,
        audit: `${house.url}/plans/${pump}?tab=audit`,
        calls: `${house.url}/plans/${pump}?tab=calls`,
        step: `${house.url}/plans/${boats}/steps/${step}`,
        hostile: `${rough.url}/plans/${hostile}`,
        add: `${house.url}/plans/${pump}#add`,
        arrange: `${house.url}/plans/${pump}?arrange=1`,
        skills: `${house.url}/skills`,
        skill: `${house.url}/skills/${executionId}`,
        noskills: `${empty.url}/skills`,
        reviews: `${house.url}/reviews`,
        sessions: `${house.url}/sessions`,
        session: `${house.url}/sessions/claude-7f3a`,
        session_hostile: `${rough.url}/sessions/${encodeURIComponent(evil)}`,
        settings: `${house.url}/settings`,
    };
    // The pictures shall show a stall.
    const page = await open(await browser.newContext(), pages.plan);
    await page.waitForSelector(".stall");
    await page.goto(pages.search);
    while (!(await page.content()).includes('Waiting</dt><dd class="figures">0<')) await page.reload();
    others = [empty, rough, closed];
});
after(async () => {
    await browser.close();
    mind.close();
    for (const one of [house, ...others]) await one.close();
});

// Who looks at a page.
const who = (what) => ["reader", "owner"].find((role) => what.startsWith(role)) ?? null;
// The browser itself says of a page that is not there that it is not.
const unasked = (what) => what === "nowhere" ? ["Failed to load resource: the server responded with a status of 404 (Not Found)"] : [];

for (const [name, settings] of Object.entries({
    light: { colorScheme: "light", viewport: { width: 1_100, height: 760 } },
    dark: { colorScheme: "dark", viewport: { width: 1_100, height: 760 } },
    phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
    "phone-dark": { colorScheme: "dark", viewport: { width: 390, height: 844 } },
})) {
    test(`every page is well in ${name}`, async () => {
        // The check itself is a script that the pages would not allow.
        const context = await browser.newContext({ ...settings, bypassCSP: true });
        for (const [what, url] of Object.entries(pages)) {
            await signIn(context, closed, who(what));
            const page = await open(context, url);
            if (await page.locator("body[data-live]:not([data-live=''])").count() > 0) await isLive(page);
            for (const folded of await page.locator(`details[id='${new URL(url).hash.slice(1)}']`).all()) {
                await folded.locator("summary").click();
            }
            if (PICTURES) await page.screenshot({ path: path.join(PICTURES, `${what}-${name}.png`) });
            const width = await page.evaluate(() => document.documentElement.scrollWidth);
            assert.ok(width <= settings.viewport.width, `${what}: ${width} wide`);
            await page.evaluate(axe);
            const { violations } = await page.evaluate(() => globalThis.axe.run());
            const found = violations.map(({ impact, id, nodes }) => `${impact} ${id}: ${nodes[0].html}`);
            assert.deepEqual(found, [], what);
            assert.deepEqual(page.complaints, unasked(what), what);
            await page.close();
        }
        await context.close();
    });
}

test("on a phone the navigation is one line, the chosen tab is in sight, and figures have names", async () => {
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
    const name = await page.locator("td[data-name=turns]").first().evaluate((cell) => getComputedStyle(cell, "::before").content);
    assert.match(name, /turns/);
    await context.close();
});

test("whoever opens a tab is led to it, and what stopped is still above", async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const page = await open(context, pages.plan);
    await page.click(".tabs >> text=Audit");
    await page.waitForURL(/#tabs$/);
    const top = await page.locator("#tabs").evaluate((tabs) => tabs.getBoundingClientRect().top);
    assert.ok(top >= 0 && top < 844, `${top}`);
    assert.equal(await page.locator(".stall").count(), 1);
    await context.close();
});

test("no page breaks its own policy", async () => {
    const context = await browser.newContext();
    for (const [what, url] of Object.entries(pages)) {
        // Whoever follows a link into a page begins there, and not at its top.
        await signIn(context, closed, who(what));
        const page = await open(context, url.split("#")[0]);
        // Where one signs in, the field has the focus.
        if (what !== "login") {
            await page.keyboard.press("Tab");
            assert.equal(await page.evaluate(() => document.activeElement.className), "skip", what);
        }
        assert.deepEqual(page.complaints, unasked(what), what);
        await page.close();
    }
    await context.close();
});
