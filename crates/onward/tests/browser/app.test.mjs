// The app for MCP hosts in a real browser, with the official client and the official host bridge:
// in a sandbox that allows only scripts, under the content security policy of the specification.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { ANSWERS, FIELDS, answersOf, fill } from "./questions.mjs";
import { axe, launchBrowser, runWithServer } from "./test-server.mjs";

const MODULES = path.join(process.env.ONWARD_MODULES, "node_modules");
// The entry points of the packages for browsers.
const IMPORTS = {
    "@modelcontextprotocol/ext-apps/app-bridge": "@modelcontextprotocol/ext-apps/dist/src/app-bridge.js",
    "@modelcontextprotocol/client": "@modelcontextprotocol/client/dist/index.mjs",
    "@modelcontextprotocol/client/_shims": "@modelcontextprotocol/client/dist/shimsBrowser.mjs",
    "@modelcontextprotocol/core": "@modelcontextprotocol/core/dist/index.mjs",
    "@modelcontextprotocol/core/internal": "@modelcontextprotocol/core/dist/internal.mjs",
    "eventsource": "eventsource/dist/index.js",
    "eventsource-parser": "eventsource-parser/dist/index.js",
    "eventsource-parser/stream": "eventsource-parser/dist/stream.js",
    "jose": "jose/dist/webapi/index.js",
    "pkce-challenge": "pkce-challenge/dist/index.browser.js",
    "zod/v4": "zod/v4/index.js",
};

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

// The policy that the specification requires of hosts.
function policy({ connectDomains = [], resourceDomains = [], frameDomains = [], baseUriDomains = [] }) {
    const resources = resourceDomains.join(" ");
    return [
        "default-src 'none'",
        `script-src 'self' 'unsafe-inline' ${resources}`,
        `style-src 'self' 'unsafe-inline' ${resources}`,
        `img-src 'self' data: ${resources}`,
        `font-src 'self' ${resources}`,
        `connect-src 'self' ${connectDomains.join(" ")}`,
        `frame-src ${frameDomains.join(" ") || "'none'"}`,
        "object-src 'none'",
        `base-uri ${baseUriDomains.join(" ") || "'self'"}`,
    ].join("; ");
}

// A page of a host on the address of the server, so that its client may call `/mcp`.
async function openHost(server, context) {
    const page = await context.newPage();
    page.consoleErrors = [];
    page.on("console", (message) => { if (message.type() === "error") page.consoleErrors.push(message.text()); });
    page.on("pageerror", (error) => page.consoleErrors.push(String(error)));
    const imports = Object.fromEntries(Object.entries(IMPORTS).map(([name, file]) => [name, `/modules/${file}`]));
    await page.route(`${server.url}/host`, (route) => route.fulfill({
        contentType: "text/html",
        body: `<!doctype html><script type="importmap">${JSON.stringify({ imports })}</script>
            <script type="module">window.hosting = import("/app-host.mjs");</script>`,
    }));
    const script = (route, file) => route.fulfill({ contentType: "text/javascript", path: file });
    await page.route(`${server.url}/app-host.mjs`, (route) => script(route, new URL("app-host.mjs", import.meta.url).pathname));
    await page.route(`${server.url}/modules/**`, (route) => {
        const { pathname } = new URL(route.request().url());
        return script(route, path.join(MODULES, pathname.replace("/modules/", "")));
    });
    await page.exposeFunction("serveView", async (body, csp) => {
        const headers = { "content-security-policy": policy(csp) };
        await page.route("https://view.test/", (route) => route.fulfill({ contentType: "text/html", headers, body }));
    });
    await page.goto(`${server.url}/host`);
    await page.waitForFunction(() => window.hosting);
    await page.evaluate(async () => { window.client = await (await window.hosting).connect(); });
    return page;
}

// Calls a tool whose result has an app. Returns the frame of the app.
async function openApp(page, tool, args, hostContext = { theme: "light" }) {
    await page.evaluate(async ([tool, args, hostContext]) => {
        window.host = await (await window.hosting).openApp(window.client, tool, args, hostContext);
    }, [tool, args, hostContext]);
    return page.frameLocator("iframe");
}

const readStep = async (server, plan) => (await (await fetch(`${server.url}/api/v1/plans/${plan}/steps`)).json()).steps[0];

test("an app shows the rail of a plan and follows its changes", () => runWithServer(browser, async (server, context) => {
    const plan = await server.createPlan("Boats", { steps: ["Find offers", "Compare them", "Buy one"] });
    const page = await openHost(server, context);
    const app = await openApp(page, "get_plan_status", { planId: plan });
    await app.locator(".rail li").nth(2).waitFor();
    assert.deepEqual(await app.locator(".rail .what bdi").allInnerTexts(), ["Find offers", "Compare them", "Buy one"]);
    assert.equal(await app.locator(".rail .badge.working").count(), 0);
    await server.startStep(plan);
    await app.locator(".rail li:first-child .badge.working").waitFor();
    // The model gets the same result as without the app.
    const result = await page.evaluate(() => window.host.result);
    assert.equal(result.structuredContent.planId, plan);
    // The frame has the height of its content.
    const overflow = () => page.frames().at(-1).evaluate(() => document.documentElement.scrollHeight - innerHeight);
    await page.waitForFunction(() => Number.parseInt(document.querySelector("iframe").style.height, 10) > 100);
    assert.ok(await overflow() <= 1, `${await overflow()}`);
    assert.equal(await app.locator("#connection").isVisible(), false);
    assert.deepEqual(page.consoleErrors, []);
}));

test("a button decides a review through the host, with the answers, and sends the agent a message", () => runWithServer(browser, async (server, context) => {
    const plan = await server.createPlan("Boats");
    const [stepId, other] = [await server.startStep(plan), await server.startStep(plan, "codex-1")];
    const page = await openHost(server, context);
    const args = { stepId, summary: "Two **remain**.", questions: ["Is red fine?", "How many?"] };
    const app = await openApp(page, "request_user_review", args);
    await app.locator(".review .prose strong", { hasText: "remain" }).waitFor();
    // Requesting changes without a reason is rejected, and the input is kept.
    await app.locator("button[value=modify]").click();
    await app.locator(".decide .error").waitFor();
    assert.equal((await readStep(server, plan)).status, "awaiting_input");
    await app.locator("textarea[name=answer-2]").fill("One");
    await app.locator("textarea[name=feedback]").fill("Soon");
    // A change of the plan replaces the content, but not the input.
    await server.post(`/steps/${other}/progress`, { note: "two yards called" });
    await app.locator(".rail li", { hasText: "two yards called" }).waitFor();
    assert.ok(await app.locator("textarea[name=feedback]").evaluate((field) => field === document.activeElement));
    await app.locator("button[value=approve]").click();
    await app.locator(".flash").waitFor();
    await app.locator("article.review").waitFor({ state: "detached" });
    assert.equal((await readStep(server, plan)).status, "completed");
    const { events } = await (await fetch(`${server.url}/api/v1/plans/${plan}/audit`)).json();
    const decided = events.find(({ eventType, details }) => eventType === "user_reviewed" && details.action === "approve");
    assert.equal(decided.details.feedback, "2. How many?\nOne\n\nSoon");
    await page.waitForFunction(() => window.host.messages.length === 1);
    const [message] = await page.evaluate(() => window.host.messages);
    assert.ok(message.includes(stepId) && message.includes("approve"), message);
    assert.deepEqual(page.consoleErrors, []);
}));

test("an app answers questions of every type", () => runWithServer(browser, async (server, context) => {
    const plan = await server.createPlan("Boats");
    const stepId = await server.startStep(plan);
    const page = await openHost(server, context);
    const app = await openApp(page, "request_user_review", { stepId, summary: "Two remain.", fields: FIELDS });
    await app.locator("[name=field-note]").waitFor();
    await fill(app);
    await app.locator("[name=field-count]").fill("many");
    await app.locator("button[value=approve]").click();
    await app.locator(".decide .error:visible").first().waitFor();
    assert.equal(await app.locator("[name=field-note]").inputValue(), "light");
    await app.locator("[name=field-count]").fill("2.5");
    await app.locator("button[value=approve]").click();
    await app.locator("article.review").waitFor({ state: "detached" });
    assert.deepEqual(await answersOf(server, plan), ANSWERS);
    assert.deepEqual(page.consoleErrors, []);
}));

test("an app links to the page of a review that a step requires", () => runWithServer(browser, async (server, context) => {
    const step = { stepType: "search", instructions: "Find offers.", reviewRequired: true };
    const { planId } = await server.post("/plans", { name: "Boats", researchQuestion: "Which?", steps: [step] });
    const stepId = await server.startStep(planId);
    await server.post(`/steps/${stepId}/result`, { resultSummary: "Two remain." });
    const page = await openHost(server, context);
    const app = await openApp(page, "get_plan_status", { planId });
    await app.locator("article.review a.button").click();
    await page.waitForFunction(() => window.host.links.length === 1);
    const { reviews } = await (await fetch(`${server.url}/api/v1/reviews`)).json();
    assert.deepEqual(await page.evaluate(() => window.host.links), [`${server.url}/reviews/${reviews[0].reviewId}`]);
    assert.equal(await app.locator("button[name=decision]").count(), 0);
}));

test("an app follows the theme of the host, not that of the system", () => runWithServer(browser, async (server, context) => {
    const plan = await server.createPlan("Boats");
    const page = await openHost(server, context);
    await page.emulateMedia({ colorScheme: "dark" });
    const app = await openApp(page, "get_plan_status", { planId: plan }, { theme: "light" });
    const brightness = async () => {
        const color = await app.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
        return Math.max(...color.match(/\d+/g).slice(0, 3).map(Number));
    };
    await app.locator(".rail li").first().waitFor();
    assert.ok(await brightness() > 200);
    await page.evaluate(() => window.host.bridge.setHostContext({ theme: "dark" }));
    await app.locator("html[style*='dark']").waitFor();
    assert.ok(await brightness() < 60);
}));

test("links open through the host, and texts of agents are not HTML", () => runWithServer(browser, async (server, context) => {
    const name = `<img src=x onerror="parent.postMessage('x','*')">`;
    const plan = await server.createPlan(name, { steps: [name] });
    const page = await openHost(server, context);
    const app = await openApp(page, "get_plan_status", { planId: plan });
    await app.locator("h1 a").click();
    await page.waitForFunction(() => window.host.links.length === 1);
    assert.deepEqual(await page.evaluate(() => window.host.links), [`${server.url}/plans/${plan}`]);
    assert.equal(await app.locator("h1").innerText(), name);
    assert.equal(await app.locator("img").count(), 0);
    assert.equal(page.frames().at(-1).url(), "https://view.test/");
}));

test("an app has no accessibility violation in either theme", () => runWithServer(browser, async (server, context) => {
    const plan = await server.createPlan("Boats");
    await server.requestReview(plan);
    const page = await openHost(server, context);
    for (const theme of ["light", "dark"]) {
        const app = await openApp(page, "get_plan_status", { planId: plan }, { theme });
        await app.locator("article.review").waitFor();
        const frame = page.frames().at(-1);
        await frame.evaluate(axe);
        const { violations } = await frame.evaluate(() => globalThis.axe.run({ rules: { "page-has-heading-one": { enabled: true } } }));
        assert.deepEqual(violations.map(({ id, nodes }) => `${theme} ${id}: ${nodes[0].html}`), []);
        await page.evaluate(() => window.host.iframe.remove());
    }
}));

test("an app says that the server is unreachable, and recovers", () => runWithServer(browser, async (server, context) => {
    const plan = await server.createPlan("Boats");
    const page = await openHost(server, context);
    const app = await openApp(page, "get_plan_status", { planId: plan });
    await app.locator(".rail li").first().waitFor();
    await page.route(`${server.url}/mcp`, (route) => route.abort());
    await app.locator("#connection:not([hidden])").waitFor();
    await page.unroute(`${server.url}/mcp`);
    await app.locator("#connection[hidden]").waitFor({ state: "attached" });
}));
