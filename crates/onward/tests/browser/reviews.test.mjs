// Reviews in a real browser: typed questions on the review page, and a decision link from a received
// notification.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";

import { ANSWERS, FIELDS, answersOf, fill } from "./questions.mjs";
import { TestServer, axe, launchBrowser, open, runWithServer, waitForStream } from "./test-server.mjs";

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

async function assertAccessible(page) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
}

const focusedName = (page) => page.evaluate(() => document.activeElement.name);
// The sizes of a phone and of a desktop.
const VIEWPORTS = [{ width: 390, height: 844 }, { width: 1280, height: 800 }];
const REQUIRED = [
    { name: "focus", type: "choice", title: "Which focus?", options: [{ value: "costs" }, { value: "time" }] },
    { name: "limit", type: "number", title: "Up to how much?" },
];
const requestReview = async (server, fields, name = "Boats") => {
    const plan = await server.createPlan(name);
    const step = await server.startStep(plan);
    const { reviewId } = await server.post(`/steps/${step}/review`, { summary: "Two remain.", fields });
    return { plan, step, reviewId, url: `${server.url}/reviews/${reviewId}` };
};
const decisionsOf = async (server, plan) => {
    const { events } = await (await fetch(`${server.url}/api/v1/plans/${plan}/audit`)).json();
    return events.filter(({ eventType }) => eventType === "user_reviewed").map(({ details }) => details.action).slice(1);
};
// ONWARD_SCREENSHOTS names a directory for pictures of the tested states.
const screenshot = async (page, name) => {
    const { ONWARD_SCREENSHOTS: directory } = process.env;
    if (directory) await page.screenshot({ path: `${directory}/${name}.png`, fullPage: true });
};

for (const viewport of VIEWPORTS) for (const javaScriptEnabled of [true, false]) {
    test(`an approval without required answers is not sent, ${viewport.width} px, JavaScript ${javaScriptEnabled ? "on" : "off"}`, () => runWithServer(browser, async (server, context) => {
        const { plan, url } = await requestReview(server, REQUIRED);
        const page = await open(context, url);
        if (javaScriptEnabled) await page.clock.install();
        await page.locator("button[value=approve]").click();
        assert.equal(await focusedName(page), "field-focus");
        // No countdown begins, and the invalid answers stay marked until they are corrected.
        assert.equal(await page.locator("#toast").isVisible(), false);
        const marked = page.locator(".field .error:visible");
        assert.equal(await marked.count(), 2);
        if (javaScriptEnabled) await assertAccessible(page);
        await screenshot(page, `required-${viewport.width}-${javaScriptEnabled}`);
        await page.locator("[name=field-focus]").selectOption("costs");
        assert.equal(await marked.count(), 1);
        await page.locator("[name=field-limit]").fill("2.5");
        await page.locator("button[value=approve]").click();
        if (javaScriptEnabled) {
            await page.locator("#toast").waitFor();
            await page.clock.runFor(10_000);
        }
        await page.waitForURL(/done=approve|inbox$/);
        assert.deepEqual(await answersOf(server, plan), { focus: "costs", limit: 2.5 });
        assert.deepEqual(await decisionsOf(server, plan), ["approve"]);
    }, { javaScriptEnabled, viewport }));
}

test("the other decisions need no answers", () => runWithServer(browser, async (server, context) => {
    const { plan, url } = await requestReview(server, REQUIRED);
    const page = await open(context, url);
    await page.locator("button[value=skip]").click();
    await page.waitForURL(/done=skip|inbox$/);
    assert.deepEqual(await decisionsOf(server, plan), ["skip"]);
}));

test("spaces are not an answer", () => runWithServer(browser, async (server, context) => {
    const { url } = await requestReview(server, [{ name: "why", type: "text" }]);
    const page = await open(context, url);
    await page.locator("[name=field-why]").fill("  ");
    await page.locator("button[value=approve]").click();
    assert.equal(await page.locator("#toast").isVisible(), false);
    assert.equal(await focusedName(page), "field-why");
}));

for (const viewport of VIEWPORTS) test(`the countdown covers no button, ${viewport.width} px`, () => runWithServer(browser, async (server, context) => {
    await requestReview(server, [], "First");
    const { url } = await requestReview(server, []);
    const page = await open(context, url);
    await waitForStream(page);
    // The button is at the bottom edge of a low window.
    await page.setViewportSize({ ...viewport, height: 420 });
    await page.locator("button[value=approve]").evaluate((button) => button.scrollIntoView({ block: "end" }));
    await page.locator("button[value=approve]").click();
    await page.locator("#toast").waitFor();
    const overlaps = () => page.evaluate(() => {
        const box = (element) => element.getBoundingClientRect();
        const toast = box(document.getElementById("toast"));
        const buttons = [...document.querySelectorAll(".decisions > div > :is(button, details)")];
        const covered = buttons.filter((button) => box(button).bottom > toast.top && box(button).top < toast.bottom && box(button).right > toast.left && box(button).left < toast.right);
        return { buttons: buttons.length, covered: covered.length, isVisible: toast.top >= 0 && toast.bottom <= innerHeight };
    });
    assert.deepEqual(await overlaps(), { buttons: 4, covered: 0, isVisible: true });
    await screenshot(page, `countdown-${viewport.width}`);
    // A live update of the page keeps the countdown in its place.
    await requestReview(server, [], "Third");
    await page.locator(".inbox-list li", { hasText: "Third" }).waitFor({ state: "attached" });
    assert.deepEqual(await overlaps(), { buttons: 4, covered: 0, isVisible: true });
    await page.locator("#toast button").click();
    assert.equal(await page.locator("#toast").isVisible(), false);
    assert.equal(await page.evaluate(() => localStorage.getItem("onward.decision")), null);
    assert.deepEqual(page.consoleErrors, []);
}, { viewport }));

test("the next page confirms an approval that was sent when its page was left", () => runWithServer(browser, async (server, context) => {
    const { plan, url } = await requestReview(server, REQUIRED);
    const page = await open(context, url);
    await page.locator("[name=field-focus]").selectOption("costs");
    await page.locator("[name=field-limit]").fill("3");
    await page.locator("button[value=approve]").click();
    await page.locator("#toast").waitFor();
    await page.goto(`${server.url}/library`);
    await page.locator(".flash[role=status]").waitFor();
    assert.deepEqual(await decisionsOf(server, plan), ["approve"]);
    assert.deepEqual(await answersOf(server, plan), { focus: "costs", limit: 3 });
    assert.equal(await page.evaluate(() => localStorage.getItem("onward.decision")), null);
}));

for (const viewport of VIEWPORTS) test(`the next page reports an approval that was not accepted, ${viewport.width} px`, () => runWithServer(browser, async (server, context) => {
    const { plan, url, reviewId } = await requestReview(server, REQUIRED);
    const page = await open(context, url);
    await page.locator("[name=field-focus]").selectOption("costs");
    await page.locator("[name=field-limit]").fill("3");
    await page.locator("[name=feedback]").fill("Use euros.");
    // The server rejects the decision: the token of the form is not the session's.
    await page.locator("[name=csrf_token]").first().evaluate((input) => { input.value = "wrong"; });
    await page.locator("form.decide [name=csrf_token]").evaluate((input) => { input.value = "wrong"; });
    await page.locator("button[value=approve]").click();
    await page.locator("#toast").waitFor();
    await page.goto(`${server.url}/library`);
    const report = page.locator(".flash[role=alert]");
    await report.waitFor();
    await assertAccessible(page);
    await screenshot(page, `rejected-${viewport.width}`);
    assert.deepEqual(await decisionsOf(server, plan), []);
    // It is reported until the user opens the review, which has the entered text.
    await page.goto(`${server.url}/sessions`);
    await report.locator(`a[href="/reviews/${reviewId}"]`).click();
    await report.waitFor();
    assert.equal(await page.locator("[name=field-focus]").inputValue(), "costs");
    assert.equal(await page.locator("[name=field-limit]").inputValue(), "3");
    assert.equal(await page.locator("[name=feedback]").inputValue(), "Use euros.");
    await screenshot(page, `restored-${viewport.width}`);
    await page.goto(`${server.url}/sessions`);
    await page.locator("h1").waitFor();
    assert.equal(await report.count(), 0);
}, { viewport }));

test("an approval that another one replaces is sent, and reported if it is not accepted", () => runWithServer(browser, async (server, context) => {
    const first = await requestReview(server, [], "First");
    const second = await requestReview(server, [], "Second");
    const page = await open(context, first.url);
    await page.clock.install();
    await page.locator("button[value=approve]").click();
    await page.locator("#toast").waitFor();
    server.run("review", "decide", first.plan, "skip");
    // A live update of the page shows another review. The approval of it replaces the first one.
    await page.locator("form.decide").evaluate((form, { step, reviewId }) => {
        form.action = `/reviews/${step}/decide`;
        form.elements.review.value = reviewId;
    }, second);
    await page.locator("button[value=approve]").click();
    await page.locator(".flash[role=alert]", { hasText: "First" }).waitFor();
    await page.clock.runFor(10_000);
    await page.waitForURL(/done=approve|inbox$/);
    assert.deepEqual(await decisionsOf(server, second.plan), ["approve"]);
    assert.deepEqual(await decisionsOf(server, first.plan), ["skip"]);
}));

test("another page reports an approval whose page ended without an event", () => runWithServer(browser, async (server, context) => {
    const { plan, url } = await requestReview(server, []);
    const page = await open(context, url);
    await page.locator("button[value=approve]").click();
    await page.locator("#toast").waitFor();
    const record = await page.evaluate(() => localStorage.getItem("onward.decision"));
    await page.locator("#toast button").click();
    const other = await context.newPage();
    await other.goto(`${server.url}/library`);
    const past = { ...JSON.parse(record), until: Date.now() - 60_000 };
    await other.evaluate((text) => localStorage.setItem("onward.decision", text), JSON.stringify(past));
    await other.reload();
    await other.locator(".flash[role=status]").waitFor();
    assert.deepEqual(await decisionsOf(server, plan), ["approve"]);
}));

for (const javaScriptEnabled of [true, false]) {
    test(`a review with questions of every type is answered on its page, JavaScript ${javaScriptEnabled ? "on" : "off"}`, () => runWithServer(browser, async (server, context) => {
        const plan = await server.createPlan("Boats");
        const step = await server.startStep(plan);
        const { reviewId } = await server.post(`/steps/${step}/review`, { summary: "Two remain.", fields: FIELDS });
        const page = await open(context, `${server.url}/reviews/${reviewId}`);
        assert.equal(await page.locator("[name=field-note]").inputValue(), "cheap");
        assert.equal(await page.locator("[name=field-sizes]:checked").count(), 2);
        if (javaScriptEnabled) await page.clock.install();
        const approve = async () => {
            await page.locator("button[value=approve]").click();
            // The approval can be undone for ten seconds.
            if (javaScriptEnabled) await page.clock.runFor(10_000);
        };
        await fill(page);
        // The browser does not send an invalid number, and keeps the other input.
        await page.locator("[name=field-count]").fill("many");
        await page.locator("button[value=approve]").click();
        assert.equal(await focusedName(page), "field-count");
        assert.equal(await page.locator("#toast").isVisible(), false);
        // If the browser sends it, the server rejects and marks it.
        await page.locator("[name=field-count]").evaluate((input) => input.removeAttribute("pattern"));
        await approve();
        await page.waitForURL(/decide$/);
        assert.equal(await focusedName(page), "field-count");
        assert.equal(await page.locator("[aria-invalid]").count(), 1);
        assert.equal(await page.locator(".field .error:not(.unmet)").count(), 1);
        assert.equal(await page.locator("[name=field-note]").inputValue(), "light");
        assert.deepEqual(await page.locator("[name=field-sizes]:checked").evaluateAll((boxes) => boxes.map((box) => box.value)), ["m", "l"]);
        if (javaScriptEnabled) await assertAccessible(page);
        await page.locator("[name=field-count]").fill("2.5");
        await approve();
        await page.waitForURL(/done=approve/);
        assert.deepEqual(await answersOf(server, plan), ANSWERS);
        assert.deepEqual(page.consoleErrors.filter((text) => !text.includes("400")), []);
    }, { javaScriptEnabled }));
}

// A webhook that keeps its requests.
async function startWebhook() {
    const bodies = [];
    const webhook = http.createServer((request, response) => {
        let body = "";
        request.on("data", (chunk) => { body += chunk; });
        request.on("end", () => {
            bodies.push(JSON.parse(body));
            response.end();
            webhook.emit("received");
        });
    });
    webhook.listen(0, "127.0.0.1");
    await once(webhook, "listening");
    const next = async () => {
        if (bodies.length === 0) await once(webhook, "received");
        return bodies.shift();
    };
    return { url: `http://127.0.0.1:${webhook.address().port}/hook`, next, close: () => webhook.close() };
}

test("a decision link of a notification is confirmed once, without a session", async () => {
    const webhook = await startWebhook();
    const server = await TestServer.start({
        ONWARD_NOTIFY__WEBHOOK: webhook.url,
        ONWARD_NOTIFY__SECRET: "a secret of thirty-two characters",
    });
    const context = await browser.newContext();
    try {
        const plan = await server.createPlan("Boats");
        const step = await server.startStep(plan);
        await server.post(`/steps/${step}/review`, { summary: "Two **remain**.", fields: FIELDS, assignee: "ann" });
        const { decisions, blocks } = await webhook.next();
        const { url } = decisions.find(({ action }) => action === "approve");
        assert.equal(blocks.at(-1).elements[0].url, url);
        const page = await open(context, url);
        await page.locator(".prose strong", { hasText: "remain" }).waitFor();
        assert.equal(await page.locator("form button").count(), 1);
        await assertAccessible(page);
        await fill(page);
        // The address of the page is a credential, so its path is not sent on.
        const sent = page.waitForRequest((request) => request.method() === "POST");
        await page.locator("form button").click();
        const headers = await (await sent).allHeaders();
        assert.equal(headers.origin, server.url);
        assert.ok(!headers.referer?.includes("/decide/"), headers.referer);
        await page.locator("[data-code=done]").waitFor();
        assert.deepEqual(await answersOf(server, plan), ANSWERS);
        assert.deepEqual(page.consoleErrors, []);
        const again = await open(context, url);
        await again.locator("[data-code=used]", { hasText: "ann" }).waitFor();
        assert.equal(await again.locator("form").count(), 0);
        await assertAccessible(again);
    } finally {
        await context.close();
        await server.close();
        webhook.close();
    }
});
