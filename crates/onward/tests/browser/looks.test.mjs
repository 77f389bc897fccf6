// Every page in a real browser, light, dark and as wide as a phone: nothing in the console, nothing that
// a screen reader or a keyboard could not use, nothing wider than the screen. With ONWARD_PICTURES it
// leaves a picture of each there.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { House, axe, browse, isLive, model, open } from "./house.mjs";

const PICTURES = process.env.ONWARD_PICTURES;
let browser, house, mind, others, pages;

before(async () => {
    browser = await browse();
    mind = await model();
    house = await House.open({
        ONWARD_EMBEDDINGS_URL: mind.url, ONWARD_EMBEDDINGS_MODEL: "small",
        ONWARD_EXTRACTION_URL: mind.url, ONWARD_EXTRACTION_MODEL: "small",
    });
    const empty = await House.open();
    const rough = await House.open();
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
    const { step } = await house.ask(boats, "Three candidates remain: Vancouver 28, Hallberg-Rassy 29, Contessa 32.\nThe last one is over budget, and the best at sea.", ["Is 10 % over budget all right?"]);
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
    await house.post(`/plans/${pump}/outputs`, { title: "Recommendation", content: "# Pump B\n\nIt is louder by 3 dB and costs less over 20 years." });
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
        empty: `${empty.url}/plans`,
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
    others = [empty, rough];
});
after(async () => {
    await browser.close();
    mind.close();
    for (const one of [house, ...others]) await one.close();
});

for (const [name, settings] of Object.entries({
    light: { colorScheme: "light", viewport: { width: 1_100, height: 760 } },
    dark: { colorScheme: "dark", viewport: { width: 1_100, height: 760 } },
    phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
})) {
    test(`every page is well in ${name}`, async () => {
        // The check itself is a script that the pages would not allow.
        const context = await browser.newContext({ ...settings, bypassCSP: true });
        for (const [what, url] of Object.entries(pages)) {
            const page = await open(context, url);
            if (await page.locator("body[data-live='']").count() === 0) await isLive(page);
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
            assert.deepEqual(page.complaints, [], what);
            await page.close();
        }
        await context.close();
    });
}

test("no page breaks its own policy", async () => {
    const context = await browser.newContext();
    for (const [what, url] of Object.entries(pages)) {
        // Whoever follows a link into a page begins there, and not at its top.
        const page = await open(context, url.split("#")[0]);
        await page.keyboard.press("Tab");
        assert.equal(await page.evaluate(() => document.activeElement.className), "skip", what);
        assert.deepEqual(page.complaints, [], what);
        await page.close();
    }
    await context.close();
});
