// Desktop notifications in a real browser: opt-in only, each displayed once across all tabs, and
// none from before they were turned on.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { TestServer, launchBrowser, waitForStream, open } from "./test-server.mjs";

// The texts of `onward.js`.
const OFF = "off";
const ON = "on while a page is open";
const TITLES = ["Review requested", "Plan failed", "Step stuck"];

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

// Records all notifications and permission requests of all pages.
async function recordNotifications(context) {
    const notifications = [];
    const permissionRequests = [];
    await context.exposeFunction("recordNotification", (title, options) => notifications.push({ title, ...options }));
    await context.exposeFunction("recordPermissionRequest", () => permissionRequests.push(true));
    await context.addInitScript(() => {
        const Real = window.Notification;
        class Recorded extends Real {
            constructor(title, options) {
                super(title, options);
                window.recordNotification(title, { body: options.body, tag: options.tag });
            }

            static requestPermission() {
                window.recordPermissionRequest();
                return Real.requestPermission();
            }
        }
        window.Notification = Recorded;
    });
    return { notifications, permissionRequests };
}

async function withServer(work) {
    const server = await TestServer.start();
    const context = await browser.newContext();
    try {
        const recorded = await recordNotifications(context);
        await work(server, context, recorded);
    } finally {
        await context.close();
        await server.close();
    }
}

async function waitForLength(list, number) {
    for (let tries = 0; list.length < number; tries += 1) {
        assert.ok(tries < 600, `${list.length} of ${number}: ${JSON.stringify(list)}`);
        await new Promise((ready) => setTimeout(ready, 50));
    }
}

test("each notification is displayed once across all tabs", () => withServer(async (server, context, recorded) => {
    await context.grantPermissions(["notifications"], { origin: server.url });
    // Earlier notifications are not displayed.
    await server.requestReview(await server.createPlan("Old boats"), "Before.");
    const settings = await open(context, `${server.url}/settings/alerts`);
    assert.equal(await settings.textContent("#desktop"), OFF);
    await settings.click("[data-desktop]");
    await settings.waitForSelector(`#desktop:text-is("${ON}")`);
    const plans = await open(context, `${server.url}/plans`);
    const reviews = await open(context, `${server.url}/inbox`);
    for (const page of [plans, reviews]) await waitForStream(page);
    await settings.waitForSelector("html[data-stream=open]");
    const { reviewId } = await server.requestReview(await server.createPlan("Boats"), "Two remain.");
    await waitForLength(recorded.notifications, 1);
    const plan = await server.createPlan("Houses");
    await server.post(`/plans/${plan}/abandon`, { reason: "no roof" });
    await waitForLength(recorded.notifications, 2);
    const quick = await server.createPlan("Stuck", { stallThresholdMs: 1 });
    await server.startStep(quick);
    await waitForLength(recorded.notifications, 3);
    const titles = recorded.notifications.map(({ title }) => title);
    assert.deepEqual(titles, TITLES);
    assert.ok(recorded.notifications[0].tag.endsWith(`/review/${reviewId}`));
    assert.match(recorded.notifications[0].body, /Boats/);
    assert.equal(new Set(recorded.notifications.map(({ tag }) => tag)).size, 3);
    for (const page of [settings, plans, reviews]) assert.deepEqual(page.consoleErrors, []);
    // Turning them off applies to all pages.
    await settings.click("[data-desktop]");
    await settings.waitForSelector(`#desktop:text-is("${OFF}")`);
    await server.requestReview(await server.createPlan("Ships"), "Three remain.");
    await reviews.waitForSelector(".inbox-list >> text=Ships");
    assert.equal(recorded.notifications.length, 3);
}));

test("no page requests the permission automatically", () => withServer(async (server, context, recorded) => {
    await server.requestReview(await server.createPlan("Boats"));
    for (const path of ["/plans", "/inbox", "/settings/alerts"]) {
        const page = await open(context, `${server.url}${path}`);
        await page.evaluate(() => new Promise(requestAnimationFrame));
        assert.deepEqual(page.consoleErrors, []);
    }
    assert.deepEqual(recorded.permissionRequests, []);
    assert.deepEqual(recorded.notifications, []);
}));
