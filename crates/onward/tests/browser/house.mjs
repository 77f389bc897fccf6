// A server of the real binary, on a port and a database of its own, and a real browser to look at it.
//
// ONWARD_BINARY, ONWARD_CHROMIUM and ONWARD_MODULES say where the parts are; `script/browser` sets them.

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

export function browse() {
    return chromium.launch({ executablePath: ONWARD_CHROMIUM, args: ["--no-sandbox"] });
}

export class House {
    static async open(environment = {}) {
        const house = new House();
        house.environment = environment;
        house.folder = fs.mkdtempSync(path.join(os.tmpdir(), "onward-browser-"));
        await house.start("127.0.0.1:0");
        return house;
    }

    // One where nobody comes in without a token; it acts with its owner's.
    static async closed() {
        const house = new House();
        house.environment = { ONWARD_ACCESS_REQUIRE_TOKENS: "true" };
        house.folder = fs.mkdtempSync(path.join(os.tmpdir(), "onward-browser-"));
        const token = (name, role) => {
            const asked = ["--quiet", "token", "create", "--name", name, "--role", role];
            return execFileSync(ONWARD_BINARY, asked, house.surroundings()).toString().trim();
        };
        house.tokens = { owner: token("ann", "owner"), reader: token("carl", "viewer") };
        await house.start("127.0.0.1:0");
        return house;
    }

    surroundings() {
        const database = path.join(this.folder, "onward.db");
        return { cwd: this.folder, env: { HOME: this.folder, USER: "ann", ONWARD_DATABASE: database, ...this.environment } };
    }

    async start(address) {
        this.server = spawn(ONWARD_BINARY, ["serve", "--bind", address], {
            ...this.surroundings(),
            stdio: ["ignore", "pipe", "inherit"],
        });
        const [line] = await once(this.server.stdout, "data");
        this.url = String(line).trim().split(" ").at(-1);
    }

    async stop() {
        this.server.kill("SIGKILL");
        await once(this.server, "exit");
    }

    // The same place again, after it was stopped.
    async startAgain() {
        await this.start(new URL(this.url).host);
    }

    async close() {
        await this.stop();
        fs.rmSync(this.folder, { recursive: true, force: true });
    }

    async post(at, body = {}) {
        const answer = await fetch(`${this.url}/api/v1${at}`, {
            method: "POST",
            headers: {
                "content-type": "application/json",
                ...(this.tokens && { authorization: `Bearer ${this.tokens.owner}` }),
            },
            body: JSON.stringify(body),
        });
        const said = await answer.json();
        if (!answer.ok) throw new Error(`${at}: ${JSON.stringify(said)}`);
        return said;
    }

    async plan(name, { steps = ["Find offers", "Compare them"], ...more } = {}) {
        const made = await this.post("/plans", {
            name,
            researchQuestion: `What about ${name}?`,
            steps: steps.map((title) => ({ stepType: "search", title, instructions: `${title}, please.` })),
            ...more,
        });
        return made.planId;
    }

    async begin(plan, sessionId = "claude-7f3a") {
        return (await this.post(`/plans/${plan}/next`, { sessionId })).stepId;
    }

    async ask(plan, summary = "Two remain.", questions = ["Is red fine?"]) {
        const step = await this.begin(plan);
        const review = await this.post(`/steps/${step}/review`, { summary, questions });
        return { step, ...review };
    }
}

// A model on this machine: near is what shares the first letters of words.
export async function model() {
    const numbers = (text) => {
        const all = new Array(64).fill(-0.02);
        for (const [word] of text.toLowerCase().matchAll(/[a-z]{3,}/g)) {
            all[(word.charCodeAt(0) * 7 + word.charCodeAt(1) * 3 + word.charCodeAt(2)) % 64] += 1;
        }
        return all;
    };
    const server = http.createServer((request, response) => {
        let body = "";
        request.on("data", (piece) => { body += piece; });
        request.on("end", () => {
            const asked = JSON.parse(body);
            const answer = asked.input
                ? { data: asked.input.map((text, index) => ({ index, embedding: numbers(text) })) }
                : { model: "small", choices: [{ message: { content: '{"pumps": ["A", "B"], "noise": 48}' }, finish_reason: "stop" }] };
            response.end(JSON.stringify(answer));
        });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() };
}

// A page, and everything that its console complained about.
export async function open(context, url) {
    const page = await context.newPage();
    page.complaints = [];
    page.on("console", (said) => { if (said.type() === "error") page.complaints.push(said.text()); });
    page.on("pageerror", (error) => page.complaints.push(String(error)));
    await page.goto(url);
    return page;
}

// Signs in to a house that is closed, as this one and nobody else.
export async function signIn(context, house, role) {
    await context.clearCookies();
    if (!role) return;
    const page = await context.newPage();
    await page.goto(`${house.url}/login`);
    await page.fill("#token", house.tokens[role]);
    await page.click("form.box button");
    await page.waitForURL("**/plans");
    await page.close();
}

// The stream is open: what changes from here on is seen.
export async function isLive(page) {
    await page.waitForSelector("html[data-stream=open]");
    // A page that is loaded anew forgets this.
    await page.evaluate(() => { window.sameAsBefore = true; });
}

export function isSame(page) {
    return page.evaluate(() => window.sameAsBefore === true);
}
