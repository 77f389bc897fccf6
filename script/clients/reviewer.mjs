// The user of a client, who decides reviews in the form that the client shows, or on the review page.

import assert from 'node:assert/strict';

/** Decides from the list `decisions`, in order. `null` declines. */
export class Reviewer {
    decisions = [];
    /** The properties of each form. */
    forms = [];
    /** The URL of each page. */
    pages = [];
    /** The ids of the pages that the server reported as completed. */
    completed = [];

    /** The result of an elicitation. */
    answer({ mode, url, requestedSchema }) {
        const decision = this.decisions.shift();
        if (mode === 'url') {
            this.pages.push(url);
            if (!decision) return { action: 'decline' };
            // The client opens the page, and the user decides there. An error ends the process.
            void decideOnPage(url, decision);
            return { action: 'accept' };
        }
        this.forms.push(requestedSchema.properties);
        assert.deepEqual(requestedSchema.required, ['decision'], 'required fields of the form');
        if (!decision) return { action: 'decline' };
        const { answers = {}, ...content } = decision;
        for (const [name, value] of Object.entries(answers)) content[`field_${name}`] = value;
        return { action: 'accept', content };
    }
}

/** Opens a review page and submits its form. */
async function decideOnPage(url, { answers = {}, ...fields }) {
    const page = await fetch(url);
    assert.equal(page.status, 200, url);
    const [, action, inputs] = (await page.text()).match(
        /<form method="post" action="(\/reviews\/[^"]+\/decide)"[^>]*>(.*?)<\/form>/s,
    );
    const body = new URLSearchParams(fields);
    for (const [, name, value] of inputs.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)) {
        body.append(name, value);
    }
    for (const [name, value] of Object.entries(answers)) {
        for (const one of [value].flat()) body.append(`field-${name}`, one);
    }
    const response = await fetch(new URL(action, url), { method: 'POST', body });
    assert.equal(response.status, 200, action);
}
