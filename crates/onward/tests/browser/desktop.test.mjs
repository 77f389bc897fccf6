// Findings on the desktop, in a real browser: nobody is asked unasked, each finding is shown once however
// many tabs there are, and none that is older than the wish to see them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { House, browse, isLive, open } from "./house.mjs";

let browser;
before(async () => { browser = await browse(); });
after(() => browser.close());

// Everything that any page showed on the desktop, and whether a page asked for the permission.
async function watched(context) {
    const shown = [];
    const asked = [];
    await context.exposeFunction("wasShown", (title, options) => shown.push({ title, ...options }));
    await context.exposeFunction("wasAsked", () => asked.push(true));
    await context.addInitScript(() => {
        const Real = window.Notification;
        class Watched extends Real {
            constructor(title, options) {
                super(title, options);
                window.wasShown(title, { body: options.body, tag: options.tag });
            }

            static requestPermission() {
                window.wasAsked();
                return Real.requestPermission();
            }
        }
        window.Notification = Watched;
    });
    return { shown, asked };
}

async function inHouse(work) {
    const house = await House.open();
    const context = await browser.newContext();
    try {
        const seen = await watched(context);
        await work(house, context, seen);
    } finally {
        await context.close();
        await house.close();
    }
}

async function reaches(list, number) {
    for (let tries = 0; list.length < number; tries += 1) {
        assert.ok(tries < 600, `${list.length} of ${number}: ${JSON.stringify(list)}`);
        await new Promise((ready) => setTimeout(ready, 50));
    }
}

test("each finding is shown once, in however many tabs", () => inHouse(async (house, context, seen) => {
    await context.grantPermissions(["notifications"], { origin: house.url });
    // What was found before is no news.
    await house.ask(await house.plan("Old boats"), "Before.");
    const settings = await open(context, `${house.url}/settings`);
    assert.equal(await settings.textContent("#desktop"), "shows none");
    await settings.click("text=Show them on this desktop");
    await settings.waitForSelector("text=shows them while a page is open");
    const plans = await open(context, `${house.url}/plans`);
    const reviews = await open(context, `${house.url}/reviews`);
    for (const page of [plans, reviews]) await isLive(page);
    await settings.waitForSelector("html[data-stream=open]");
    const { reviewId } = await house.ask(await house.plan("Boats"), "Two remain.");
    await reaches(seen.shown, 1);
    const plan = await house.plan("Houses");
    await house.post(`/plans/${plan}/abandon`, { reason: "no roof" });
    await reaches(seen.shown, 2);
    const quick = await house.plan("Silence", { stallThresholdMs: 1 });
    await house.begin(quick);
    await reaches(seen.shown, 3);
    const titles = seen.shown.map((one) => one.title);
    assert.deepEqual(titles, ["A review waits for you", "A plan failed", "A step is stalled"]);
    assert.ok(seen.shown[0].tag.endsWith(`/review/${reviewId}`));
    assert.match(seen.shown[0].body, /“Boats”: step 1 .* waits for your decision/);
    assert.equal(new Set(seen.shown.map((one) => one.tag)).size, 3);
    for (const page of [settings, plans, reviews]) assert.deepEqual(page.complaints, []);
    // Switched off, it is silent; another page that is loaded knows that, too.
    await settings.click("text=Stop showing them");
    await settings.waitForSelector("text=shows none");
    await house.ask(await house.plan("Ships"), "Three remain.");
    await reviews.waitForSelector("text=Three remain.");
    assert.equal(seen.shown.length, 3);
}));

test("no page asks for the permission by itself", () => inHouse(async (house, context, seen) => {
    await house.ask(await house.plan("Boats"));
    for (const at of ["/plans", "/reviews", "/settings"]) {
        const page = await open(context, `${house.url}${at}`);
        await page.evaluate(() => new Promise(requestAnimationFrame));
        assert.deepEqual(page.complaints, []);
    }
    assert.deepEqual(seen.asked, []);
    assert.deepEqual(seen.shown, []);
}));
