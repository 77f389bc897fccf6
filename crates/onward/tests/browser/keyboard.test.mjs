// Keyboard shortcuts, the palette, delayed approval and the switch for single keys, in a real browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launchBrowser, open, runWithServer, waitForStream } from "./test-server.mjs";

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

const withServer = (work) => runWithServer(browser, work);

// Counts the submitted decisions.
function recordDecisions(page) {
    const decisions = [];
    page.on("request", (request) => {
        if (request.url().endsWith("/decide")) decisions.push(new URLSearchParams(request.postData()).get("decision"));
    });
    return decisions;
}

test("reviews can be decided with the keyboard", () => withServer(async (server, context) => {
    await server.requestReview(await server.createPlan("Boats"), "First.", []);
    await server.requestReview(await server.createPlan("Houses"), "Second.", []);
    const page = await open(context, `${server.url}/inbox`);
    // Requesting changes requires feedback, so the key focuses the field.
    await page.keyboard.press("m");
    await page.keyboard.type("Only red ones, am I clear?");
    await page.click("button[value=modify]");
    await page.waitForSelector(".flash");
    // Rejecting needs a confirmation.
    await page.keyboard.press("r");
    assert.equal(await page.locator("text=Second.").count(), 1);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#no-reviews");
    assert.deepEqual(page.consoleErrors, []);
}));

for (const [way, approve] of [["key", (page) => page.keyboard.press("a")], ["button", (page) => page.click("button[value=approve]")]]) test(`approval by ${way} can be undone for ten seconds`, () => withServer(async (server, context) => {
    const { step } = await server.requestReview(await server.createPlan("Boats"), "First.", []);
    const page = await context.newPage();
    await page.clock.install();
    await page.goto(`${server.url}/inbox`);
    const decisions = recordDecisions(page);
    assert.ok(await page.locator("[data-scripted]").isVisible());
    await approve(page);
    await page.waitForSelector("#toast:not([hidden])");
    await page.click("#toast button");
    await page.clock.runFor(15_000);
    assert.deepEqual(decisions, []);
    await approve(page);
    await page.clock.runFor(9_000);
    assert.deepEqual(decisions, []);
    await page.clock.runFor(2_000);
    await page.waitForSelector("#no-reviews");
    assert.deepEqual(decisions, ["approve"]);
    assert.ok(step);
}));

test("another decision replaces an approval that was not sent", () => withServer(async (server, context) => {
    await server.requestReview(await server.createPlan("Boats"), "First.", []);
    const page = await open(context, `${server.url}/inbox`);
    const decisions = recordDecisions(page);
    await page.click("button[value=approve]");
    await page.waitForSelector("#toast:not([hidden])");
    await page.click("button[value=skip]");
    await page.waitForSelector("#no-reviews");
    assert.deepEqual(decisions, ["skip"]);
}));

test("an approval is sent when the page is left", () => withServer(async (server, context) => {
    await server.requestReview(await server.createPlan("Boats"), "First.", []);
    const page = await open(context, `${server.url}/inbox`);
    await page.keyboard.press("a");
    await page.waitForSelector("#toast:not([hidden])");
    await page.goto(`${server.url}/library`);
    const other = await open(context, `${server.url}/inbox`);
    await other.waitForSelector("#no-reviews");
}));

test("single keys can be turned off", () => withServer(async (server, context) => {
    await server.requestReview(await server.createPlan("Boats"), "First.", []);
    const page = await open(context, `${server.url}/settings/alerts`);
    await page.click("main [data-keys]");
    await page.goto(`${server.url}/inbox`);
    for (const key of ["j", "a", "?", "/"]) await page.keyboard.press(key);
    assert.equal(await page.locator("#toast:not([hidden]), dialog[open]").count(), 0);
    // Key combinations stay.
    await page.keyboard.press("Control+k");
    await page.waitForSelector("#palette[open]");
}));

test("the palette finds plans and pages, and opens the first result", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats");
    const page = await open(context, `${server.url}/sessions`);
    await page.keyboard.press("/");
    await page.keyboard.type("boa");
    await page.waitForSelector(`#palette a[href="/plans/${plan}"]`);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/plans/${plan}`);
    await page.keyboard.press("g");
    await page.keyboard.press("i");
    await page.waitForURL("**/inbox");
    await page.keyboard.press("?");
    await page.waitForSelector("#keys[open]");
    assert.deepEqual(page.consoleErrors, []);
}));

test("the palette has the actions of the page and recent plans before a text is typed", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats", { stallThresholdMs: 1 });
    await server.startStep(plan);
    const page = await open(context, `${server.url}/plans/${plan}`);
    await page.waitForSelector("#verdict [data-primary]");
    await page.keyboard.press("Control+k");
    await page.waitForSelector(`#palette li a[href="/plans/${plan}"]`);
    // The first Enter selects the action, the second one runs it.
    await page.keyboard.press("Enter");
    assert.ok(await page.locator("#palette li:first-child button").evaluate((button) => button === document.activeElement));
    await page.keyboard.press("Enter");
    await page.waitForURL(/done=released|\/plans\/[^?]*$/);
    await page.waitForSelector(".flash");
    assert.deepEqual(page.consoleErrors, []);
}));

test("a stuck step is released from the inbox with one key", () => withServer(async (server, context) => {
    const plan = await server.createPlan("Boats", { stallThresholdMs: 1 });
    await server.startStep(plan);
    const page = await open(context, `${server.url}/inbox`);
    await waitForStream(page);
    await page.keyboard.press("e");
    await page.waitForSelector(".flash");
    await page.goto(`${server.url}/inbox`);
    await page.waitForSelector("#no-reviews");
}));

test("rows are focused with j and k, and opened with Enter", () => withServer(async (server, context) => {
    for (const session of ["one", "two"]) await server.post(`/sessions/${session}/calls`, { tool: "Bash" });
    const page = await open(context, `${server.url}/sessions`);
    const focused = () => page.evaluate(() => document.activeElement.closest("[data-row]")?.rowIndex);
    await page.keyboard.press("j");
    assert.equal(await focused(), 1);
    await page.keyboard.press("j");
    assert.equal(await focused(), 2);
    await page.keyboard.press("k");
    assert.equal(await focused(), 1);
    await page.keyboard.press("Enter");
    await page.waitForURL("**/sessions/*");
}));
