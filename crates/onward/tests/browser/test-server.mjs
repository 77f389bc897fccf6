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
                // Commands block the event loop. Meanwhile, the server closes idle connections.
                connection: "close",
                ...(this.tokens && { authorization: `Bearer ${this.tokens.owner}` }),
            },
            body: JSON.stringify(body),
        });
        const json = await response.json();
        if (!response.ok) throw new Error(`${path}: ${JSON.stringify(json)}`);
        return json;
    }

    // Runs a command on the database of this server, and returns its output.
    run(...args) {
        return execFileSync(ONWARD_BINARY, args, this.processOptions()).toString();
    }

    // The first line of a command that does not end.
    async firstLine(...args) {
        const process = spawn(ONWARD_BINARY, args, { ...this.processOptions(), stdio: ["ignore", "pipe", "inherit"] });
        let text = "";
        for await (const chunk of process.stdout) {
            text += chunk;
            if (text.includes("\n")) break;
        }
        process.kill("SIGKILL");
        return text.split("\n")[0];
    }

    // Imports a plan of another server with all its times shifted, as if it had been created earlier.
    async importShifted(server, plan, milliseconds) {
        const response = await fetch(`${server.url}/plans/${plan}/export.json`);
        const shift = (time) => new Date(Date.parse(time) + milliseconds).toISOString();
        const document = (await response.text()).replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, shift);
        execFileSync(ONWARD_BINARY, ["--quiet", "import", "-"], { ...this.processOptions(), input: document });
    }

    async createPlan(name, { steps = ["Find offers", "Compare them"], ...more } = {}) {
        const created = await this.post("/plans", {
            name,
            researchQuestion: `What about ${name}?`,
            steps: steps.map((step) => step.title ? step : { title: step }).map((step) => ({ stepType: "search", instructions: `${step.title}, please.`, ...step })),
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

// A session of Claude Code, as its hooks report it.
export class AgentSession {
    constructor(server, id, directory) {
        Object.assign(this, { server, id, directory, count: 0 });
    }

    hook(name, payload = {}) {
        const input = JSON.stringify({ session_id: this.id, cwd: this.directory, prompt_id: this.prompt_id, hook_event_name: name, ...payload });
        return execFileSync(ONWARD_BINARY, ["hook", "claude-code"], { ...this.server.processOptions(), input }).toString();
    }

    prompt(prompt) {
        this.prompt_id = `prompt-${++this.count}`;
        this.hook("UserPromptSubmit", { prompt });
    }

    // A call before it runs. Onward may reject it.
    begin(command, tool_name = "Bash") {
        this.call = { tool_name, tool_input: { command }, tool_use_id: `toolu_${++this.count}` };
        return this.hook("PreToolUse", this.call);
    }

    // A model response with one call and its output.
    respond(command, output) {
        this.begin(command);
        this.hook("PostToolBatch", { tool_calls: [{ ...this.call, tool_response: output }] });
    }

    askForApproval() {
        this.hook("PermissionRequest", this.call);
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

// Signs in with the token of a role.
export async function signIn(context, server, role) {
    const page = await context.newPage();
    await page.goto(`${server.url}/login`);
    await page.fill("#token", server.tokens[role]);
    await page.click("form.box button");
    await page.waitForURL((url) => url.pathname !== "/login");
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

// Runs `work` with a new server and a new browser context, and closes both.
export async function runWithServer(browser, work, options = {}) {
    const server = await TestServer.start();
    const context = await browser.newContext(options);
    try {
        await work(server, context);
    } finally {
        await context.close();
        await server.close();
    }
}
