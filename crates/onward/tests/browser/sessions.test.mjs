// Session pages in a real browser: reported calls appear, open details stay open, and a call can be
// marked as dead.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launchBrowser, open, runWithServer, waitForStream, wasNotReloaded } from "./test-server.mjs";

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

const withServer = (work) => runWithServer(browser, work);

test("calls and their state changes appear on an open page", () => withServer(async (server, context) => {
    const calls = "/sessions/s-1/calls";
    await server.post(calls, { tool: "Bash", input: { command: "make" }, status: "running" });
    const page = await open(context, `${server.url}/sessions/s-1`);
    await waitForStream(page);
    await page.waitForSelector(".call .badge.running");
    await server.post(calls, { tool: "Read", input: { command: "notes" } });
    await page.waitForSelector(".call .badge.requested");
    await page.click(".call .action summary >> nth=0");
    await server.post(`${calls}/1/2`, { change: "fail", result: "no such file" });
    await page.waitForSelector(".call .badge.failed");
    assert.ok(await page.locator(".call details[open]").count(), "open details stay open");
    assert.ok(await wasNotReloaded(page), "the page was reloaded");
    await page.click("form[action$='/close'] button");
    await page.waitForSelector(".flash");
    await page.waitForSelector(".call .badge.interrupted");
    await page.waitForSelector("#dead-title");
    assert.deepEqual(page.consoleErrors, []);
}));

test("the list of sessions updates", () => withServer(async (server, context) => {
    const page = await open(context, `${server.url}/sessions`);
    await waitForStream(page);
    await page.waitForSelector("#no-sessions");
    await server.post("/sessions/s-1/calls", { tool: "Bash", agent: "my-harness" });
    await page.waitForSelector("#sessions >> text=my-harness");
    assert.ok(await wasNotReloaded(page), "the page was reloaded");
    assert.deepEqual(page.consoleErrors, []);
}));
