// Live updates in a real browser: changes appear, tabs stay in sync, a lost connection is reported
// and recovered, and user input is kept.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { TestServer, launchBrowser, open, runWithServer, waitForStream, wasNotReloaded } from "./test-server.mjs";

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

const withServer = (work) => runWithServer(browser, work);

test("a stall appears on an open page and disappears when the step is released", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats", { stallThresholdMs: 1 });
    const page = await open(context, `${server.url}/plans/${plan}`);
    await waitForStream(page);
    assert.equal(await page.locator(".verdict.stuck").count(), 0);
    await server.startStep(plan);
    await page.waitForSelector(".verdict.stuck form[action$='/release']");
    await page.waitForSelector(".head .badge.stuck");
    assert.ok(await wasNotReloaded(page), "the page was reloaded");
    await page.click("form[action$='/release'] button");
    await page.waitForSelector(".flash");
    assert.equal(await page.locator(".verdict.stuck").count(), 0);
    // The silence stays in the timeline.
    assert.equal(await page.locator(".bars rect.stuck").count(), 1);
    assert.deepEqual(page.consoleErrors, []);
}));

test("the list of plans updates", () => withServer(async (server, context) => {
    const page = await open(context, `${server.url}/plans`);
    await waitForStream(page);
    await page.waitForSelector("#first-run");
    const plan = await server.createPlan("Boats");
    await page.waitForSelector("#plans >> text=Boats");
    await waitForStream(page);
    await server.startStep(plan);
    await page.waitForSelector("#plans .badge.working");
    await server.createPlan("Houses");
    await page.waitForSelector("#plans >> text=Houses");
    assert.ok(await wasNotReloaded(page), "the page was reloaded");
}));

test("a decision appears in another tab", () => withServer(async (server, context) => {
    await server.requestReview(await server.createPlan("Boats"));
    const one = await open(context, `${server.url}/inbox`);
    const other = await open(context, `${server.url}/inbox`);
    await waitForStream(other);
    await one.click("button[value=skip]");
    await one.waitForSelector(".flash");
    await other.waitForSelector("#no-reviews");
    assert.ok(await wasNotReloaded(other), "the page was reloaded");
    assert.deepEqual([...one.consoleErrors, ...other.consoleErrors], []);
}));

test("user input is kept while the page updates", () => withServer(async (server, context) => {
    await server.requestReview(await server.createPlan("Boats"), "First.");
    const page = await open(context, `${server.url}/inbox`);
    await waitForStream(page);
    await page.click("details[id^=context-] summary");
    await page.click("textarea[name=feedback]");
    await page.keyboard.type("Only red ");
    await server.requestReview(await server.createPlan("Houses"), "Second.");
    await page.waitForSelector(".inbox-list >> text=Houses");
    await page.keyboard.type("ones");
    assert.equal(await page.inputValue("textarea[name=feedback]"), "Only red ones");
    assert.ok(await page.locator("details[id^=context-]").first().evaluate((details) => details.open));
    assert.ok(await wasNotReloaded(page), "the page was reloaded");
}));

test("added and moved steps appear in another tab", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats");
    const one = await open(context, `${server.url}/plans/${plan}?tab=about`);
    const other = await open(context, `${server.url}/plans/${plan}`);
    await waitForStream(other);
    await one.click("#add summary");
    await one.fill("#add-instructions", "Ask both yards.");
    await one.fill("#add-title", "Ask the yards");
    // User input is kept while the plan changes.
    await waitForStream(one);
    await server.startStep(plan);
    await one.waitForSelector(".head .badge.working");
    assert.equal(await one.inputValue("#add-instructions"), "Ask both yards.");
    await one.click("#add button");
    await one.waitForSelector(".flash");
    await other.waitForSelector("#tab >> text=Ask the yards");
    const titles = (page) => page.locator("table.steps td.main > a").allInnerTexts();
    await one.click(".views >> text=Table");
    await one.waitForSelector("table.steps");
    assert.deepEqual(await titles(one), ["Find offers", "Compare them", "Ask the yards"]);
    await one.click("a[href*='reorder=1']");
    await one.click("button:has-text('Move step 3 up')");
    await one.waitForURL(/reorder=1/);
    assert.deepEqual(await titles(one), ["Find offers", "Ask the yards", "Compare them"]);
    assert.ok(await one.isDisabled("button:has-text('Move step 1 up')"));
    await one.click(".heading-row a.button");
    await one.waitForSelector("a[href*='reorder=1']");
    assert.ok(await wasNotReloaded(other), "the page was reloaded");
    assert.deepEqual([...one.consoleErrors, ...other.consoleErrors], []);
}));

test("a lost connection is reported and recovered", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats");
    const page = await open(context, `${server.url}/plans/${plan}`);
    await waitForStream(page);
    await server.stop();
    await page.waitForSelector("#connection:not([hidden])");
    await server.restart();
    // Changes before the page has reconnected.
    await server.startStep(plan);
    await page.waitForSelector("#connection", { state: "hidden" });
    await page.waitForSelector(".head .badge.working");
    assert.ok(await wasNotReloaded(page), "the page was reloaded");
}));

test("all actions work without JavaScript", async () => {
    const server = await TestServer.start();
    const context = await browser.newContext({ javaScriptEnabled: false });
    try {
        const plan = await server.createPlan("Boats");
        await server.requestReview(plan);
        const page = await context.newPage();
        await page.goto(`${server.url}/inbox`);
        await page.fill("textarea[name=feedback]", "Only red ones.");
        await page.click("button[value=modify]");
        assert.ok(await page.isVisible(".flash"));
        await page.goto(`${server.url}/plans/${plan}?tab=about`);
        await page.click("#add summary");
        await page.fill("#add-instructions", "Ask both yards.");
        await page.click("#add button");
        assert.ok(await page.isVisible(".flash"));
        await page.click(".views >> text=Table");
        await page.click("a[href*='reorder=1']");
        await page.click("button:has-text('Move step 3 up')");
        assert.equal(await page.locator("tr:target td.number").innerText(), "2");
        await page.goto(`${server.url}/plans/${plan}?tab=about`);
        await page.click("#cancel summary");
        await page.fill("#cancel-reason", "no wind");
        await page.click("#cancel button");
        assert.ok(await page.isVisible("text=no wind"));
    } finally {
        await context.close();
        await server.close();
    }
});
