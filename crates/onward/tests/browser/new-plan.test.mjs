// The form for a new plan: usable with and without JavaScript, accessible, and without violations of
// the content security policy.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { TestServer, axe, launchBrowser, open } from "./test-server.mjs";

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser.close());

for (const javaScriptEnabled of [true, false]) {
    test(`a plan is written and created, JavaScript ${javaScriptEnabled ? "on" : "off"}`, async () => {
        const server = await TestServer.start();
        const context = await browser.newContext({ javaScriptEnabled });
        try {
            const page = await open(context, `${server.url}/plans`);
            await page.click("a[href='/plans/new']");
            const input = (name) => page.locator(`[name="${name}"]`);
            await input("name").fill("Boats");
            await input("researchQuestion").fill("Which boat?");
            await input("steps[0].title").fill("Offers");
            await input("steps[0].instructions").fill("Find offers.");
            await input("steps[1].instructions").fill("Compare them.");
            await page.click("button[value='add:step']");
            await input("steps[2].title").fill("Decide");
            assert.equal(await input("name").inputValue(), "Boats");
            await page.click("button[value='add:branch']");
            await input("branchingConditions[0].afterStepOrder").fill("1");
            await input("branchingConditions[0].conditionExpression").fill("confidence > 0.9");
            await input("branchingConditions[0].actionParams.targetStepOrder").fill("3");
            // Enter in an input creates the plan. The last step has no instructions yet.
            await input("steps[2].title").press("Enter");
            await page.waitForSelector("#errors");
            assert.equal(await page.locator("[aria-invalid]").count(), 1);
            assert.equal(await input("steps[1].instructions").inputValue(), "Compare them.");
            if (javaScriptEnabled) {
                await page.evaluate(axe);
                const { violations } = await page.evaluate(() => window.axe.run());
                assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
            }
            await input("steps[2].instructions").fill("Recommend one.");
            await input("steps[2].dependsOn").fill("1, 2");
            await page.locator(".new-plan button.primary").last().click();
            await page.waitForURL(/\/plans\/[0-9a-f-]{36}/);
            const plan = new URL(page.url()).pathname.split("/")[2];
            const exported = await (await fetch(`${server.url}/api/v1/plans/${plan}/export`)).json();
            assert.equal(exported.steps.length, 3);
            assert.equal(exported.branches.length, 1);
            assert.deepEqual(page.consoleErrors.filter((text) => !text.includes("400")), []);
        } finally {
            await context.close();
            await server.close();
        }
    });
}
