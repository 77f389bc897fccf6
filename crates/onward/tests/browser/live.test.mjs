// What the script adds, in a real browser: changes arrive by themselves, two tabs stay in step, a lost
// connection is told and caught up with, and nothing that somebody writes is lost on the way.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { House, browse, isLive, isSame, open } from "./house.mjs";

let browser;
before(async () => { browser = await browse(); });
after(() => browser.close());

async function inHouse(work) {
    const house = await House.open();
    const context = await browser.newContext();
    try {
        await work(house, context);
    } finally {
        await context.close();
        await house.close();
    }
}

test("a stall appears on an open page, and goes when the step is handed out again", () => inHouse(async (house, context) => {
    const plan = await house.plan("Boats", { stallThresholdMs: 1 });
    const page = await open(context, `${house.url}/plans/${plan}`);
    await isLive(page);
    assert.equal(await page.locator(".stall").count(), 0);
    await house.begin(plan);
    await page.waitForSelector(".stall >> text=has been silent for");
    await page.waitForSelector(".head .badge.stalled");
    assert.ok(await isSame(page), "it was loaded anew");
    await page.click("text=Hand out again");
    await page.waitForSelector("text=will be handed out again");
    assert.equal(await page.locator(".stall").count(), 0);
    assert.deepEqual(page.complaints, []);
}));

test("the list of plans is live", () => inHouse(async (house, context) => {
    const page = await open(context, `${house.url}/plans`);
    await isLive(page);
    await page.waitForSelector("text=Connect an agent");
    const plan = await house.plan("Boats");
    await page.waitForSelector("#plans >> text=Boats");
    await isLive(page);
    await house.begin(plan);
    await page.waitForSelector("#plans .badge.executing");
    await house.plan("Houses");
    await page.waitForSelector("#plans >> text=Houses");
    assert.ok(await isSame(page), "it was loaded anew");
}));

test("a review is decided by click, and another tab sees it", () => inHouse(async (house, context) => {
    await house.ask(await house.plan("Boats"));
    const one = await open(context, `${house.url}/reviews`);
    const other = await open(context, `${house.url}/reviews`);
    await isLive(other);
    await one.click("button[value=approve]");
    await one.waitForSelector("text=Approved");
    await other.waitForSelector("text=Nothing waits for you");
    assert.ok(await isSame(other), "it was loaded anew");
    assert.deepEqual([...one.complaints, ...other.complaints], []);
}));

test("reviews are decided by keyboard", () => inHouse(async (house, context) => {
    await house.ask(await house.plan("Boats"), "First.");
    await house.ask(await house.plan("Houses"), "Second.");
    await house.ask(await house.plan("Cars"), "Third.");
    const page = await open(context, `${house.url}/reviews`);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("a");
    await page.waitForSelector("text=Approved");
    assert.equal(await page.locator("text=Second.").count(), 0);
    // To modify one has to say how.
    await page.keyboard.press("j");
    await page.keyboard.press("m");
    await page.keyboard.type("Only red ones, am I clear?");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=Sent back to the agent");
    // What cannot be undone asks first.
    await page.keyboard.press("j");
    await page.keyboard.press("r");
    assert.equal(await page.locator("text=Third.").count(), 1);
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=Nothing waits for you");
    assert.deepEqual(page.complaints, []);
}));

test("what one writes stays while the page changes around it", () => inHouse(async (house, context) => {
    await house.ask(await house.plan("Boats"), "First.");
    const page = await open(context, `${house.url}/reviews`);
    await isLive(page);
    await page.click("summary >> text=What the step is about");
    await page.click("textarea");
    await page.keyboard.type("Only red ");
    await house.ask(await house.plan("Houses"), "Second.");
    await page.waitForSelector("text=Second.");
    await page.keyboard.type("ones");
    assert.equal(await page.locator("textarea").first().inputValue(), "Only red ones");
    assert.ok(await page.locator("details[id^=context-]").first().evaluate((details) => details.open));
    assert.ok(await isSame(page), "it was loaded anew");
}));

test("a step is added and moved, and another tab sees it", () => inHouse(async (house, context) => {
    const plan = await house.plan("Boats");
    const one = await open(context, `${house.url}/plans/${plan}`);
    const other = await open(context, `${house.url}/plans/${plan}`);
    await isLive(other);
    await one.click("summary >> text=Add a step…");
    await one.fill("#add-instructions", "Ask both yards.");
    await one.fill("#add-title", "Ask the yards");
    // What one writes stays while the plan changes.
    await isLive(one);
    await house.begin(plan);
    await one.waitForSelector(".head .badge.executing");
    assert.equal(await one.inputValue("#add-instructions"), "Ask both yards.");
    await one.click("button >> text=Add it");
    await one.waitForSelector("text=The step was added.");
    await other.waitForSelector("#tab >> text=Ask the yards");
    const titles = (page) => page.locator("table.steps td.main > a").allInnerTexts();
    assert.deepEqual(await titles(one), ["Find offers", "Compare them", "Ask the yards"]);
    await one.click("text=Change the order");
    await one.click("button:has-text('Move step 3 up')");
    await one.waitForURL(/arrange=1/);
    assert.deepEqual(await titles(one), ["Find offers", "Ask the yards", "Compare them"]);
    assert.ok(await one.isDisabled("button:has-text('Move step 1 up')"));
    await one.click("text=Done with the order");
    await one.waitForSelector("text=Change the order");
    assert.ok(await isSame(other), "it was loaded anew");
    assert.deepEqual([...one.complaints, ...other.complaints], []);
}));

test("a lost connection is told, and caught up with", () => inHouse(async (house, context) => {
    const plan = await house.plan("Boats");
    const page = await open(context, `${house.url}/plans/${plan}`);
    await isLive(page);
    await house.stop();
    await page.waitForSelector("#line:not([hidden]) >> text=The connection to the server is lost");
    await house.startAgain();
    // Before the page has found its way back.
    await house.begin(plan);
    await page.waitForSelector("#line", { state: "hidden" });
    await page.waitForSelector(".head .badge.executing");
    assert.ok(await isSame(page), "it was loaded anew");
}));

test("without a script everything can still be done", async () => {
    const house = await House.open();
    const context = await browser.newContext({ javaScriptEnabled: false });
    try {
        const plan = await house.plan("Boats");
        await house.ask(plan);
        const page = await context.newPage();
        await page.goto(`${house.url}/reviews`);
        await page.fill("textarea", "Only red ones.");
        await page.click("button[value=modify]");
        assert.ok(await page.isVisible("text=Sent back to the agent"));
        await page.goto(`${house.url}/plans/${plan}`);
        await page.click("text=Add a step…");
        await page.fill("#add-instructions", "Ask both yards.");
        await page.click("text=Add it");
        assert.ok(await page.isVisible("text=The step was added."));
        await page.click("text=Change the order");
        await page.click("button:has-text('Move step 3 up')");
        assert.equal(await page.locator("tr:target td.number").innerText(), "2");
        await page.goto(`${house.url}/plans/${plan}`);
        await page.click("text=Abandon the plan…");
        await page.fill("#abandon-why", "no wind");
        await page.click("text=Abandon it");
        assert.ok(await page.isVisible("text=no wind"));
    } finally {
        await context.close();
        await house.close();
    }
});
