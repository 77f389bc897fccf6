// Typed questions of a review, for the tests of the review page, decision links and the app.

// One question of every type.
export const FIELDS = [
    { name: "note", title: "Why?", type: "text", default: "cheap" },
    { name: "count", type: "number" },
    { name: "sure", type: "boolean", default: true },
    { name: "colour", type: "choice", options: [{ value: "red", title: "Red & bright" }, { value: "blue" }] },
    { name: "sizes", type: "choices", options: [{ value: "s" }, { value: "m" }, { value: "l" }], default: ["s", "m"] },
];

export const answersOf = async (server, plan) => {
    const exported = await (await fetch(`${server.url}/api/v1/plans/${plan}/export`)).json();
    return exported.steps[0].result?.review?.answers;
};

// Answers every question.
export async function fill(page) {
    await page.locator("[name=field-note]").fill("light");
    await page.locator("[name=field-count]").fill("2.5");
    await page.locator("[name=field-sure]").selectOption("false");
    await page.locator("[name=field-colour]").selectOption("red");
    await page.locator("[name=field-sizes][value=s]").uncheck();
    await page.locator("[name=field-sizes][value=l]").check();
}
export const ANSWERS = { note: "light", count: 2.5, sure: false, colour: "red", sizes: ["m", "l"] };
