// The app: a plan and its review inside a chat.
//
// Speaks MCP Apps 2026-01-26 with the host: JSON-RPC over `postMessage`. The tool `render_plan`
// returns the plan as HTML, and `submit_user_decision` decides its review. The host reports no
// changes, so the script polls while the document is visible. The sandbox may forbid forms, links,
// storage and the network; the script needs none of them.
"use strict";

(() => {
    const POLL_MS = 3_000;
    const RETRY_MS = 10_000; // After a failed call.
    const FLASH_MS = 15_000; // How long the message about a decision is displayed.
    const main = document.getElementById("plan");
    const connection = document.getElementById("connection");

    // Messages to and from the host. Its origin is not known to the app; only it is the parent.
    let lastId = 0;
    const pending = new Map();
    const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
    const notify = (method, params) => post({ method, params });
    const request = (method, params) => new Promise((resolve, reject) => {
        lastId += 1;
        pending.set(lastId, { resolve, reject });
        post({ id: lastId, method, params });
    });
    addEventListener("message", ({ source, data }) => {
        if (source !== parent || data?.jsonrpc !== "2.0") return;
        const { id, method, params, result, error } = data;
        if (method === undefined) {
            const { resolve, reject } = pending.get(id) ?? {};
            pending.delete(id);
            if (error) reject?.(new Error(error.message));
            else resolve?.(result);
        } else if (id === undefined) {
            notifications[method]?.(params ?? {});
        } else if (method === "ping" || method === "ui/resource-teardown") {
            if (method !== "ping") stop();
            post({ id, result: {} });
        } else {
            post({ id, error: { code: -32601, message: `unknown method ${method}` } });
        }
    });

    // The host: its capabilities, its theme and fonts, and the user's locale and time zone.
    let capabilities = {};
    let context = {};
    const applyContext = (changed) => {
        context = { ...context, ...changed };
        const style = document.documentElement.style;
        style.colorScheme = context.theme ?? "";
        for (const [name, value] of Object.entries(changed.styles?.variables ?? {})) {
            if (name.startsWith("--font-") && value) style.setProperty(name, value);
        }
        localizeClocks();
    };
    const localizeClocks = () => {
        const { locale, timeZone } = context;
        const format = (options) => new Intl.DateTimeFormat(locale, { timeZone, ...options });
        try {
            const [day, time] = [format({ day: "numeric", month: "short" }), format({ hour: "2-digit", minute: "2-digit" })];
            for (const clock of document.querySelectorAll("time[data-as=clock], text[data-at]")) {
                const at = new Date(clock.dataset.at ?? clock.dateTime);
                const isToday = day.format(at) === day.format(new Date());
                clock.textContent = isToday ? time.format(at) : `${day.format(at)} ${time.format(at)}`;
            }
        } catch {
            // An unknown locale or time zone: the times of the server stay.
        }
    };

    const callTool = async (name, args) => {
        const result = await request("tools/call", { name, arguments: args });
        if (!result.isError) return result.structuredContent ?? {};
        const text = result.content?.find((block) => block.type === "text")?.text ?? "";
        let error = { message: text };
        try {
            error = JSON.parse(text).error ?? error;
        } catch {
            // An error of the host.
        }
        throw Object.assign(new Error(error.message || "the call failed"), { code: error.code });
    };

    // The plan: named by the arguments or the result of the tool call that opened the app.
    let target = null;
    let version;
    let decision;
    let timer = null;
    let stopped = false;
    let refreshing = false;
    let again = false;
    const stop = () => { stopped = true; clearTimeout(timer); };
    const open = ({ planId, stepId } = {}) => {
        if (!planId && !stepId) return;
        target = planId ? { planId } : { stepId };
        refresh();
    };
    const schedule = (delay) => {
        clearTimeout(timer);
        if (!stopped && !document.hidden) timer = setTimeout(refresh, delay);
    };
    const refresh = async () => {
        again = true;
        if (!target || refreshing || stopped) return;
        refreshing = true;
        again = false;
        let delay = POLL_MS;
        try {
            const plan = await callTool("render_plan", { ...target, version, decision });
            if (plan.html !== undefined) show(plan.html);
            version = plan.version;
            if (plan.hasEnded && !decision) stop();
            connection.hidden = true;
        } catch (error) {
            delay = RETRY_MS;
            connection.textContent = `Cannot load the plan: ${error.message}`;
            connection.hidden = false;
        }
        refreshing = false;
        schedule(again ? 0 : delay);
    };
    document.addEventListener("visibilitychange", () => schedule(0));

    // Replaces the content. Input, open details, focus and selection are kept.
    const show = (html) => {
        const fields = [...main.querySelectorAll("textarea[id], input[id], select[id]")];
        const values = fields.map(({ id, value, checked }) => ({ id, value, checked }));
        const details = [...main.querySelectorAll("details[id][open]")].map(({ id }) => id);
        const { id: focus, selectionStart, selectionEnd } = document.activeElement;
        const fresh = new DOMParser().parseFromString(html, "text/html");
        const base = fresh.querySelector("[data-base]")?.dataset.base;
        for (const link of fresh.querySelectorAll("a[href]")) {
            const href = link.getAttribute("href");
            if (capabilities.openLinks && URL.canParse(href, base)) link.setAttribute("href", new URL(href, base).href);
            else link.removeAttribute("href");
        }
        main.replaceChildren(...fresh.body.childNodes);
        main.removeAttribute("aria-busy");
        const find = (id) => (id ? main.querySelector(`#${CSS.escape(id)}`) : null);
        for (const { id, value, checked } of values) {
            const field = find(id);
            if (field) Object.assign(field, { value, checked });
        }
        for (const id of details) find(id)?.setAttribute("open", "");
        const focused = find(focus);
        focused?.focus({ preventScroll: true });
        if (focused?.matches("textarea")) focused.setSelectionRange(selectionStart, selectionEnd);
        localizeClocks();
    };

    // The answers, each after its question, and then the other feedback, as on the review page.
    const feedback = (form) => {
        const answers = [...form.querySelectorAll("[data-question]")].map((field) => [field.dataset.question, field.value.trim()]);
        const parts = answers.filter(([, answer]) => answer).map((pair) => pair.join("\n"));
        return [...parts, form.elements.feedback.value.trim()].filter(Boolean).join("\n\n");
    };
    // The answers to the typed questions. A value without the type of its question stays a text, which
    // the tool rejects.
    const answers = (form) => {
        const typed = (text) => { try { return JSON.parse(text); } catch { return text; } };
        const entries = [...form.querySelectorAll("[data-field]")].map((field) => {
            const { field: name, kind } = field.dataset;
            if (kind === "choices") return [name, [...field.querySelectorAll(":checked")].map((box) => box.value)];
            // An empty text replaces a default.
            if (!field.value.trim() && !(kind === "text" && field.defaultValue)) return [name];
            return [name, ["number", "boolean"].includes(kind) ? typed(field.value) : field.value];
        });
        return Object.fromEntries(entries.filter(([, answer]) => answer !== undefined));
    };
    const fail = (form, message) => {
        form.querySelector(".error")?.remove();
        const error = document.createElement("p");
        Object.assign(error, { className: "error", textContent: message });
        error.setAttribute("role", "alert");
        form.querySelector(".decisions").before(error);
    };
    const decide = async (button) => {
        const form = button.closest("form");
        if (form.inert) return;
        form.inert = true;
        form.classList.add("sending");
        const [stepId, text] = [form.dataset.step, feedback(form)];
        const reviewId = form.elements.review.value; // Not a later review of the step.
        try {
            await callTool("submit_user_decision", { stepId, reviewId, decision: button.value, ...(text && { feedback: text }), ...(form.querySelector("[data-field]") && { answers: answers(form) }) });
            decision = button.value;
            setTimeout(() => { decision = undefined; refresh(); }, FLASH_MS);
            refresh();
            messageAgent(stepId, decision);
        } catch (error) {
            form.inert = false;
            form.classList.remove("sending");
            fail(form, error.code === "feedback_required" ? "Describe what the agent should change." : error.message);
        }
    };
    // The plan stores the decision and the feedback. The message makes the agent continue.
    const messageAgent = async (stepId, decided) => {
        const content = [{ type: "text", text: `I decided the review of step ${stepId}: ${decided}. Call get_next_step to continue.` }];
        try {
            if (capabilities.message) await request("ui/message", { role: "user", content });
            else if (capabilities.updateModelContext) await request("ui/update-model-context", { content });
        } catch {
            // The user or the host declined. The agent reads the decision with its next call.
        }
    };

    // Clicks, because a sandbox without `allow-forms` does not submit forms.
    main.addEventListener("click", (event) => {
        const button = event.target.closest("button[name=decision]");
        const link = event.target.closest("a");
        if (!button && !link) return;
        event.preventDefault();
        if (button) decide(button);
        else if (link.hasAttribute("href")) request("ui/open-link", { url: link.getAttribute("href") }).catch(() => {});
    });

    const resultOf = ({ structuredContent, content }) => {
        if (structuredContent) return structuredContent;
        try {
            return JSON.parse(content[0].text);
        } catch {
            return {};
        }
    };
    const notifications = {
        "ui/notifications/tool-input": (params) => open(params.arguments),
        "ui/notifications/tool-result": (result) => {
            if (!result.isError) open(resultOf(result));
            else if (!target) main.textContent = "The call failed. The agent has the reason.";
        },
        "ui/notifications/tool-cancelled": () => { if (!target) main.textContent = "The call was cancelled."; },
        "ui/notifications/host-context-changed": applyContext,
    };

    let size = "";
    const sizes = new ResizeObserver(() => {
        const [width, height] = [Math.ceil(innerWidth), Math.ceil(document.body.getBoundingClientRect().height)];
        if (size === `${width} ${height}`) return;
        size = `${width} ${height}`;
        notify("ui/notifications/size-changed", { width, height });
    });

    request("ui/initialize", {
        appInfo: { name: "onward", version: "1" },
        appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
        protocolVersion: "2026-01-26",
    }).then((host) => {
        capabilities = host.hostCapabilities ?? {};
        applyContext(host.hostContext ?? {});
        notify("ui/notifications/initialized", {});
        sizes.observe(document.body);
    });
})();
