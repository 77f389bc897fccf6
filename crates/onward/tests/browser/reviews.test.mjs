// Reviews in a real browser: typed questions on the review page, and a decision link from a received
// notification.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";

import { ANSWERS, FIELDS, answersOf, fill } from "./questions.mjs";
import { TestServer, axe, launchBrowser, open, runWithServer } from "./test-server.mjs";

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

async function assertAccessible(page) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
}

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
        // An invalid number is rejected, and the other input is kept.
        await page.locator("[name=field-count]").fill("many");
        await approve();
        await page.locator(".decide .error").waitFor();
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
