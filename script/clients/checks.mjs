// Assertions about results and errors of tools.

import assert from 'node:assert/strict';

/** The error in a result with `isError`. */
class ToolError extends Error {
    constructor(text) {
        const { code, message, hint, details } = JSON.parse(text).error;
        super(`${code}: ${message}; ${hint}`);
        Object.assign(this, { code, details });
    }
}

/** The structured content of a tool result, which must equal its text, and the URIs of its links. */
export function parseResult({ isError, content: [{ text }, ...links], structuredContent }) {
    if (isError) {
        assert.equal(structuredContent, undefined, 'an error has no structured content');
        throw new ToolError(text);
    }
    assert.deepEqual(JSON.parse(text), structuredContent);
    assert.ok(links.every(({ type }) => type === 'resource_link'), 'types of the other blocks');
    return [structuredContent, links.map(({ uri }) => uri)];
}

export async function expectError(call, code) {
    let result;
    try {
        result = await call;
    } catch (error) {
        assert.equal(error.code, code, error.stack);
        return error;
    }
    assert.fail(`expected \`${code}\`, got ${JSON.stringify(result)}`);
}
