// Test fixtures: the real binary on a free port with a temporary database, and a real browser.
//
// `script/browser` sets ONWARD_BINARY, ONWARD_CHROMIUM and ONWARD_MODULES.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const { ONWARD_BINARY, ONWARD_CHROMIUM, ONWARD_MODULES } = process.env;
const require = createRequire(`${ONWARD_MODULES}/`);
const { chromium } = require("playwright-core");

export const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export function launchBrowser() {
    return chromium.launch({ executablePath: ONWARD_CHROMIUM, args: ["--no-sandbox"] });
}

export class TestServer {
    static async start(environment = {}) {
        const server = new TestServer();
        server.environment = environment;
        server.directory = fs.mkdtempSync(path.join(os.tmpdir(), "onward-browser-"));
        await server.spawn("127.0.0.1:0");
        return server;
    }

    // A server that requires tokens. `post` uses the owner's token.
    static async startWithTokens() {
        const server = new TestServer();
        server.environment = { ONWARD_ACCESS__REQUIRE_TOKENS: "true" };
        server.directory = fs.mkdtempSync(path.join(os.tmpdir(), "onward-browser-"));
        const token = (name, role) => {
            const args = ["--quiet", "token", "create", "--name", name, "--role", role];
            return execFileSync(ONWARD_BINARY, args, server.processOptions()).toString().trim();
        };
        server.tokens = { owner: token("ann", "owner"), viewer: token("carl", "viewer") };
        await server.spawn("127.0.0.1:0");
        return server;
    }

    processOptions() {
        const database = path.join(this.directory, "onward.db");
        return { cwd: this.directory, env: { HOME: this.directory, USER: "ann", ONWARD_DATABASE: database, ...this.environment } };
    }

    async spawn(address) {
        this.process = spawn(ONWARD_BINARY, ["serve", "--bind", address], {
            ...this.processOptions(),
            stdio: ["ignore", "pipe", "inherit"],
        });
        const [line] = await once(this.process.stdout, "data");
        this.url = String(line).trim().split(" ").at(-1);
    }

    async stop() {
        this.process.kill("SIGKILL");
        await once(this.process, "exit");
    }

    // Starts a stopped server again, on the same address.
    async restart() {
        await this.spawn(new URL(this.url).host);
    }

    async close() {
        await this.stop();
        fs.rmSync(this.directory, { recursive: true, force: true });
    }

    async post(path, body = {}) {
        const response = await fetch(`${this.url}/api/v1${path}`, {
            method: "POST",
            headers: {
                "content-type": "application/json",
                ...(this.tokens && { authorization: `Bearer ${this.tokens.owner}` }),
            },
            body: JSON.stringify(body),
        });
        const json = await response.json();
        if (!response.ok) throw new Error(`${path}: ${JSON.stringify(json)}`);
        return json;
    }

    async createPlan(name, { steps = ["Find offers", "Compare them"], ...more } = {}) {
        const created = await this.post("/plans", {
            name,
            researchQuestion: `What about ${name}?`,
            steps: steps.map((title) => ({ stepType: "search", title, instructions: `${title}, please.` })),
            ...more,
        });
        return created.planId;
    }

    async startStep(plan, sessionId = "claude-7f3a") {
        return (await this.post(`/plans/${plan}/next`, { sessionId })).stepId;
    }

    async requestReview(plan, summary = "Two remain.", questions = ["Is red fine?"]) {
        const step = await this.startStep(plan);
        const review = await this.post(`/steps/${step}/review`, { summary, questions });
        return { step, ...review };
    }
}

// A model server. Its embeddings are similar if words share their first letters.
export async function startModel() {
    const embed = (text) => {
        const vector = new Array(64).fill(-0.02);
        for (const [word] of text.toLowerCase().matchAll(/[a-z]{3,}/g)) {
            vector[(word.charCodeAt(0) * 7 + word.charCodeAt(1) * 3 + word.charCodeAt(2)) % 64] += 1;
        }
        return vector;
    };
    const server = http.createServer((request, response) => {
        let body = "";
        request.on("data", (chunk) => { body += chunk; });
        request.on("end", () => {
            const input = JSON.parse(body).input;
            const output = input
                ? { data: input.map((text, index) => ({ index, embedding: embed(text) })) }
                : { model: "small", choices: [{ message: { content: '{"pumps": ["A", "B"], "noise": 48}' }, finish_reason: "stop" }] };
            response.end(JSON.stringify(output));
        });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() };
}

// Opens a page and collects its console errors.
export async function open(context, url) {
    const page = await context.newPage();
    page.consoleErrors = [];
    page.on("console", (message) => { if (message.type() === "error") page.consoleErrors.push(message.text()); });
    page.on("pageerror", (error) => page.consoleErrors.push(String(error)));
    await page.goto(url);
    return page;
}

// Signs in with the token of a role, or signs out without one.
export async function signIn(context, server, role) {
    await context.clearCookies();
    if (!role) return;
    const page = await context.newPage();
    await page.goto(`${server.url}/login`);
    await page.fill("#token", server.tokens[role]);
    await page.click("form.box button");
    await page.waitForURL("**/plans");
    await page.close();
}

// Waits for the event stream. Later changes appear on the page.
export async function waitForStream(page) {
    await page.waitForSelector("html[data-stream=open]");
    // A reload clears this.
    await page.evaluate(() => { window.notReloaded = true; });
}

export function wasNotReloaded(page) {
    return page.evaluate(() => window.notReloaded === true);
}
