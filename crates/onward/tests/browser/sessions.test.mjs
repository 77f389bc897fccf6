// Agents' sessions in a real browser: what a harness tells appears by itself, what one opens stays open,
// and a call is given up by hand.

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

test("a call and what becomes of it appear on an open page", () => inHouse(async (house, context) => {
    const at = "/sessions/s-1/calls";
    await house.post(at, { tool: "Bash", input: { command: "make" }, status: "running" });
    const page = await open(context, `${house.url}/sessions/s-1`);
    await isLive(page);
    await page.waitForSelector(".call .badge.running");
    await house.post(at, { tool: "Read", input: { command: "notes" } });
    await page.waitForSelector(".call .badge.requested");
    await page.click(".call summary >> nth=0");
    await house.post(`${at}/1/2`, { change: "fail", result: "no such file" });
    await page.waitForSelector(".call .badge.failed");
    assert.ok(await page.locator(".call details[open]").count(), "what was open stays open");
    assert.ok(await isSame(page), "it was loaded anew");
    await page.click("text=It will not answer: close it");
    await page.waitForSelector("text=The call was given up");
    await page.waitForSelector(".call .badge.interrupted");
    await page.waitForSelector("#lost >> text=A call was interrupted");
    assert.deepEqual(page.complaints, []);
}));

test("the list of sessions is live", () => inHouse(async (house, context) => {
    const page = await open(context, `${house.url}/sessions`);
    await isLive(page);
    await page.waitForSelector("text=No agent has told of a session yet");
    await house.post("/sessions/s-1/calls", { tool: "Bash", agent: "my-harness" });
    await page.waitForSelector("#sessions >> text=my-harness");
    assert.ok(await isSame(page), "it was loaded anew");
    assert.deepEqual(page.complaints, []);
}));
