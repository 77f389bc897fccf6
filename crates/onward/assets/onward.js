// Live updates of the dashboard. All pages work without this script.
//
// An event stream reports changed plans and sessions. The script then fetches the page again and
// replaces the changed parts (`data-part`). User input, open details, focus and scroll position are
// kept.
"use strict";

(() => {
    const DEBOUNCE_MS = 150; // Merges changes that arrive together into one refresh.
    const REFRESH_MS = 20_000; // Times and timelines advance without changes.
    const RECONNECT_MS = [500, 1_000, 2_000, 5_000, 10_000];
    const topic = document.body.dataset.live;
    const connection = document.getElementById("connection");

    document.documentElement.dataset.script = "";

    // Times in the format of the server, and in the time zone of the browser.
    const age = (seconds) => {
        const [d, h, min] = [seconds / 86_400, (seconds / 3_600) % 24, (seconds / 60) % 60].map(Math.floor);
        const units = d >= 7 ? [[d, "d"]] : d ? [[d, "d"], [h, "h"]] : [[h, "h"], [min, "min"]];
        return units.filter(([number]) => number).map((unit) => unit.join(" ")).join(" ") || "< 1 min";
    };
    const clock = (at, isTick) => {
        const [date, time] = at.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }).split(", ");
        if (isTick && time === "00:00") return date;
        return isTick || at.toDateString() === new Date().toDateString() ? time : `${date} ${time}`;
    };
    const updateTimes = () => {
        for (const time of document.querySelectorAll("time[datetime], text[data-at]")) {
            const at = new Date(time.dataset.at ?? time.dateTime);
            const seconds = (Date.now() - at) / 1_000;
            const form = time.dataset.at ? "clock" : time.dataset.as;
            const ago = () => form === "age" ? age(seconds) : seconds < 60 ? "just now" : `${age(seconds)} ago`;
            const text = form === "clock" ? clock(at, time.dataset.as === "tick") : ago();
            if (time.textContent !== text) time.textContent = text;
            time.title = `${at.toLocaleString()} (${at.toISOString()})`;
        }
    };

    const isDirty = (field) => {
        if (field.type === "hidden") return false;
        if (field.type === "checkbox") return field.checked !== field.defaultChecked;
        if (field instanceof HTMLSelectElement) {
            return [...field.options].some((option) => option.selected !== option.defaultSelected);
        }
        return field.value !== field.defaultValue;
    };

    // The user's state in a part: open details, edited fields, scroll position and focus.
    const saveState = (part) => {
        const fields = [...part.querySelectorAll("input[id], textarea[id], select[id]")];
        const active = document.activeElement;
        const inside = part.contains(active) && active !== part;
        return {
            open: [...part.querySelectorAll("details[id][open]")].map((details) => details.id),
            edited: fields.filter(isDirty).map((field) => [field.id, field.type === "checkbox" ? "checked" : "value", field]),
            scrolled: part.scrollLeft,
            focus: inside ? path(part, active) : null,
            range: inside && active.selectionStart !== undefined && /^(text|search|textarea)$/.test(active.type)
                ? [active.selectionStart, active.selectionEnd] : null,
        };
    };
    // How to find an element again in the replacement of a part.
    const path = (part, element) => {
        if (element.id) return `#${CSS.escape(element.id)}`;
        const owner = element.closest("[id]");
        const same = [...owner.querySelectorAll(element.localName)];
        return { owner: owner.id, name: element.localName, index: same.indexOf(element) };
    };
    const find = (part, path) => {
        if (typeof path === "string") return part.querySelector(path);
        const owner = document.getElementById(path.owner);
        return owner && owner.querySelectorAll(path.name)[path.index];
    };
    const restoreState = (part, state) => {
        for (const id of state.open) {
            const details = document.getElementById(id);
            if (details) details.open = true;
        }
        for (const [id, property, old] of state.edited) {
            const field = document.getElementById(id);
            if (field) field[property] = old[property];
        }
        part.scrollLeft = state.scrolled;
        if (!state.focus) return;
        const element = find(part, state.focus);
        if (!element) return;
        element.focus({ preventScroll: true });
        if (state.range) element.setSelectionRange(...state.range);
    };

    // The last HTML of each part from the server.
    const rendered = new Map();
    const parts = (root) => root.querySelectorAll("[data-part][id]");
    // Relative times always differ and do not count as a change.
    const withoutTimes = (part) => part.outerHTML.replace(/<time[^>]*>[^<]*<\/time>/g, "<time>");
    for (const part of parts(document)) rendered.set(part.id, withoutTimes(part));

    let loading = false;
    let refreshRequested = false;
    const refresh = async () => {
        if (!topic) return; // A static page.
        refreshRequested = true;
        if (loading) return;
        loading = true;
        try {
            while (refreshRequested) {
                refreshRequested = false;
                const url = new URL(location.href);
                url.searchParams.delete("done");
                const response = await fetch(url, { headers: { accept: "text/html" }, cache: "no-store" });
                // The session expired, the item was deleted, or the permission was revoked.
                const isSignedOut = response.redirected && new URL(response.url).pathname === "/login";
                if (isSignedOut || response.status === 404 || response.status === 403) return location.reload();
                if (!response.ok) return;
                const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
                // The page has another structure, for example after the first plan was created.
                if ([...parts(document)].some((part) => !fresh.getElementById(part.id))) return location.reload();
                document.title = fresh.title;
                for (const part of parts(fresh)) {
                    const old = document.getElementById(part.id);
                    const html = withoutTimes(part);
                    if (!old || rendered.get(part.id) === html) continue;
                    rendered.set(part.id, html);
                    const state = saveState(old);
                    const replacement = document.importNode(part, true);
                    old.replaceWith(replacement);
                    restoreState(replacement, state);
                }
                reveal(document);
                if (pending) placeToast();
            }
        } catch {
            // The server is unreachable. The stream reports it and reconnects.
        } finally {
            loading = false;
        }
        updateTimes();
    };
    const debounced = (work, delay) => {
        let timer = null;
        return () => { timer ??= setTimeout(() => { timer = null; work(); }, delay); };
    };
    const refreshSoon = debounced(refresh, DEBOUNCE_MS);
    // A change of another plan may change the counts in the navigation, which is not urgent.
    const refreshNavigation = debounced(refresh, 2_000);

    // The event stream. The page displays a lost connection and refreshes after a reconnect.
    let attempts = 0;
    let source = null;
    const listen = () => {
        source = new EventSource("/live");
        source.addEventListener("ready", () => {
            const wasLost = !connection.hidden;
            attempts = 0;
            connection.hidden = true;
            document.documentElement.dataset.stream = "open";
            // Changes before the stream was open are not reported.
            if (wasLost || Date.now() - opened > 1_000) refresh();
            notifySoon();
        });
        source.addEventListener("plan_changed", (event) => {
            notifySoon();
            const [kind, plan] = topic.split(" ");
            if (kind === "plans" || (kind === "plan" && JSON.parse(event.data).planId === plan)) refreshSoon();
            else refreshNavigation();
        });
        source.addEventListener("session_changed", (event) => {
            const session = JSON.parse(event.data).sessionId;
            if (topic === "sessions" || topic === `session ${session}`) refreshSoon();
            else refreshNavigation();
        });
        source.addEventListener("missed", () => { refreshSoon(); notifySoon(); });
        source.onerror = () => {
            source.close();
            document.documentElement.dataset.stream = "broken";
            connection.textContent = "Connection lost; data may be stale. Reconnecting…";
            connection.hidden = false;
            setTimeout(listen, RECONNECT_MS[Math.min(attempts, RECONNECT_MS.length - 1)]);
            attempts += 1;
            // The session may have expired: a refresh redirects to the sign-in page.
            if (attempts === 2) refreshSoon();
        };
    };

    // Desktop notifications, if the user turned them on. Each is displayed once, however many tabs
    // are open.
    const ON = "onward.desktop";
    const CURSOR = "onward.desktop.after";
    const DISPLAYED = "onward.desktop.shown";
    const TITLES = { stall: "Step stuck", review: "Review requested", failure: "Plan failed", no_agent: "Plan without an agent", budget: "Budget exhausted" };
    const OVERLAP_MS = 60_000; // Tolerates clock skew between servers; ids prevent duplicates.
    const canNotify = "Notification" in window && isSecureContext;
    const isOn = () => canNotify && Notification.permission === "granted" && localStorage.getItem(ON) === "on";
    const exclusively = (work) => navigator.locks ? navigator.locks.request("onward.desktop", work) : work();
    const fetchNotifications = async (after) => {
        const url = after === null ? "/notices" : `/notices?after=${after}`;
        const response = await fetch(url, { cache: "no-store" });
        return response.ok && !response.redirected ? response.json() : null;
    };
    const notify = () => exclusively(async () => {
        const cursor = Number(localStorage.getItem(CURSOR));
        const response = await fetchNotifications(cursor - OVERLAP_MS);
        if (!response || !isOn()) return;
        const displayed = JSON.parse(localStorage.getItem(DISPLAYED) ?? "[]");
        for (const notice of response.notices) {
            if (displayed.includes(notice.id) || Date.parse(notice.foundAt) < turnedOnAt()) continue;
            displayed.push(notice.id);
            localStorage.setItem(DISPLAYED, JSON.stringify(displayed.slice(-100)));
            const notification = new Notification(TITLES[notice.kind] ?? "Onward", {
                body: notice.text, tag: notice.id, icon: "/assets/onward.svg",
            });
            notification.onclick = () => { window.focus(); location.href = notice.url; };
        }
        const last = response.notices.at(-1);
        if (last) localStorage.setItem(CURSOR, Math.max(cursor, Date.parse(last.foundAt)));
    });
    // Earlier notifications are not displayed.
    const turnedOnAt = () => Number(localStorage.getItem(`${ON}.since`));
    const notifySoon = debounced(() => { if (isOn()) notify().catch(() => {}); }, DEBOUNCE_MS);
    const renderDesktopSetting = () => {
        const button = document.querySelector("[data-desktop]");
        if (!button) return;
        const state = document.getElementById("desktop");
        button.hidden = !canNotify || Notification.permission === "denied";
        button.textContent = isOn() ? "Turn off" : "Turn on";
        if (!canNotify) state.textContent = "unavailable (requires HTTPS or localhost)";
        else if (Notification.permission === "denied") state.textContent = "blocked by the browser";
        else state.textContent = isOn() ? "on while a page is open" : "off";
    };
    document.addEventListener("click", async (event) => {
        if (!event.target.closest("[data-desktop]")) return;
        if (isOn()) {
            localStorage.setItem(ON, "off");
        } else if (await Notification.requestPermission() === "granted") {
            const response = await fetchNotifications(null);
            if (response) {
                localStorage.setItem(`${ON}.since`, response.now);
                localStorage.setItem(CURSOR, response.now);
                localStorage.setItem(ON, "on");
                if (!source) listen();
            }
        }
        renderDesktopSetting();
    });

    // Reveals controls that need JavaScript.
    const reveal = (root) => {
        renderDesktopSetting();
        renderKeySetting();
        renderViews();
        renderSelection();
        for (const control of root.querySelectorAll("[data-copy], [data-save-view], [data-select-all], [data-scripted]")) control.hidden = false;
        for (const keys of root.querySelectorAll(".keys")) keys.hidden = !hasKeys();
    };
    document.addEventListener("click", async (event) => {
        const button = event.target.closest("[data-copy]");
        if (!button) return;
        const text = document.getElementById(button.dataset.copy)?.textContent ?? button.dataset.copy;
        try {
            await navigator.clipboard.writeText(text);
            button.textContent = "Copied";
        } catch {
            button.textContent = "Copy failed; select the text manually";
        }
    });

    // Selected rows, for actions on several plans.
    const boxes = () => [...document.querySelectorAll("[data-row] input[type=checkbox]")];
    const renderSelection = () => {
        const count = boxes().filter((box) => box.checked).length;
        for (const label of document.querySelectorAll("[data-selected]")) label.textContent = count ? `${count} selected` : "";
    };
    document.addEventListener("change", (event) => {
        if (event.target.matches("[data-select-all]")) for (const box of boxes()) box.checked = event.target.checked;
        renderSelection();
    });

    // Named views: links that this browser stores.
    const make = (tag, properties, ...children) => {
        const element = Object.assign(document.createElement(tag), properties);
        element.append(...children);
        return element;
    };
    const views = () => JSON.parse(localStorage.getItem("onward.views") ?? "[]");
    const without = (name) => views().filter((view) => view[0] !== name);
    const storeViews = (all) => { localStorage.setItem("onward.views", JSON.stringify(all)); renderViews(); };
    const renderViews = () => {
        for (const list of document.querySelectorAll("[data-views]")) {
            list.hidden = views().length === 0;
            list.replaceChildren(...views().map(([name, href]) => make("li", {}, make("a", { href, textContent: name }), make("button", {
                type: "button", className: "quiet", textContent: "×", ariaLabel: `Remove view ${name}`, onclick: () => storeViews(without(name)),
            }))));
        }
    };
    document.addEventListener("submit", (event) => {
        if (!event.target.matches("[data-save-view]")) return;
        event.preventDefault();
        const name = event.target.elements.view.value.trim();
        if (name) storeViews([...without(name), [name, location.pathname + location.search]]);
        event.target.reset();
    });

    // An approval is sent after 10 seconds, or when the page is left. The browser stores it until then.
    // A page that is left cannot read the response, so the next page sends the decision again, which
    // changes nothing if it has arrived, and reports the outcome.
    const UNDO_MS = 10_000;
    const TOLERANCE_MS = 2_000; // Before another page takes over from a page that ended without an event.
    const DECISION = "onward.decision";
    const toast = document.getElementById("toast");
    const stored = () => JSON.parse(localStorage.getItem(DECISION));
    const store = (decision) => localStorage.setItem(DECISION, JSON.stringify(decision));
    let pending = null;
    const formOf = (decision) => [...document.querySelectorAll("form.decide")].find((form) => form.elements.review?.value === decision.review);
    // In the form, where it covers nothing, or else at the edge of the window.
    const placeToast = () => {
        const button = formOf(pending)?.querySelector("button[data-undo]");
        if (!button) document.body.append(toast);
        else if (button.nextElementSibling !== toast) button.after(toast);
    };
    const cancel = () => {
        const last = pending;
        clearTimeout(last?.timer);
        [pending, toast.hidden] = [null, true];
        if (last) localStorage.removeItem(DECISION);
        return last;
    };
    const post = ({ url, body }) => fetch(url, { method: "POST", body: new URLSearchParams(body), keepalive: true }).catch(() => null);
    // The form of the decision may have been replaced since.
    const submit = () => {
        const { url, body } = cancel();
        const fields = [...new URLSearchParams(body)].map(([name, value]) => make("input", { type: "hidden", name, value }));
        document.body.appendChild(make("form", { method: "post", action: url, hidden: true }, ...fields)).submit();
    };
    document.addEventListener("submit", (event) => {
        const button = event.submitter;
        if (pending?.url === event.target.action) cancel(); // Another decision on the same review.
        if (!button?.dataset.undo) return;
        event.preventDefault();
        // The server does not accept spaces as an answer either.
        const { form } = button;
        for (const field of form.elements) if (field.required && !field.value.trim()) field.value = "";
        if (!form.reportValidity()) return;
        const other = cancel();
        if (other) post(other).then((response) => report(other, response));
        const [review, title] = [form.elements.review.value, form.closest("[data-review]").querySelector("h2").textContent];
        pending = { url: form.action, body: String(new URLSearchParams(new FormData(form, button))), review, title, until: Date.now() + UNDO_MS };
        store(pending);
        pending.timer = setTimeout(submit, UNDO_MS);
        toast.firstElementChild.textContent = `${button.dataset.undo} in 10 s.`;
        toast.hidden = false;
        placeToast();
        toast.scrollIntoView({ block: "nearest" });
    });
    toast.lastElementChild.onclick = cancel;
    addEventListener("pagehide", () => {
        const last = cancel();
        if (last) store({ ...last, until: 0 });
        if (last) post(last);
    });
    addEventListener("pageshow", (event) => { if (event.persisted) settle(); });
    const restoreInput = (form, body) => {
        const entered = new URLSearchParams(body);
        for (const field of form.querySelectorAll("[name]:not([type=hidden], button)")) {
            const values = entered.getAll(field.name);
            if (field.type === "checkbox") field.checked = values.includes(field.value);
            else field.value = values[0] ?? field.value;
        }
    };
    const announce = (role, ...content) => document.getElementById("main").prepend(make("p", { className: `flash ${role}`, role }, ...content));
    const forget = (decision) => { if (stored()?.body === decision.body) localStorage.removeItem(DECISION); };
    // Until the user opens the review, each page reports that the decision was not accepted.
    const report = (decision, response) => {
        if (response?.ok && new URL(response.url).pathname === "/inbox") {
            forget(decision);
            return announce("status", `Approved: ${decision.title}.`);
        }
        if (!pending) store({ ...decision, until: 0, rejected: response !== null });
        const form = formOf(decision);
        if (form) restoreInput(form, decision.body);
        // Its page shows who decided it, or the form with the input.
        if (form || location.pathname === `/reviews/${decision.review}`) forget(decision);
        const dismiss = ({ target }) => { forget(decision); target.parentElement.remove(); };
        announce("alert", "Your approval was not accepted: ", make("a", { href: `/reviews/${decision.review}`, textContent: decision.title }), ". ",
            make("button", { type: "button", className: "quiet", textContent: "Dismiss", onclick: dismiss }));
    };
    const settle = async () => {
        const last = stored();
        if (!last || pending) return;
        const wait = last.until && last.until + TOLERANCE_MS - Date.now();
        if (wait > 0) return void setTimeout(settle, wait);
        const response = last.rejected ? undefined : await post(last);
        if (stored()?.body === last.body) report(last, response); // Else another page was faster.
    };

    // The palette: the results of `/jump` in a dialog, and the main actions of this page.
    const palette = document.getElementById("palette");
    const field = palette?.querySelector("input");
    const showResults = async () => {
        const query = field.value;
        const response = await fetch(`/jump?q=${encodeURIComponent(query)}`);
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        if (field.value !== query) return;
        const actions = [...document.querySelectorAll("main [data-primary]:not(:disabled)")].filter((action) => action.textContent.toLowerCase().includes(query.toLowerCase()));
        palette.querySelector("ul").replaceChildren(...actions.slice(0, 3).map((action) => make("li", {}, make("button", {
            type: "button", className: "quiet", onclick: () => { palette.close(); action.click(); },
        }, make("span", { className: "tag", textContent: "action" }), action.textContent))), ...fresh.querySelectorAll("#results > li"));
    };
    const openPalette = () => {
        if (!palette || palette.open) return;
        palette.showModal();
        field.select();
        showResults();
    };
    palette?.addEventListener("input", showResults);
    palette?.addEventListener("submit", (event) => {
        const first = palette.querySelector("li :is(a, button)");
        if (first) { event.preventDefault(); first[field.value ? "click" : "focus"](); }
    });
    palette?.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const all = [field, ...palette.querySelectorAll("li :is(a, button)")];
        all[Math.max(0, Math.min(all.length - 1, all.indexOf(document.activeElement) + step))].focus();
    });

    // Keyboard shortcuts. Single keys can be turned off.
    const hasKeys = () => localStorage.getItem("onward.keys") !== "off";
    const renderKeySetting = () => {
        for (const state of document.querySelectorAll("[data-keys-state]")) state.textContent = `Single-key shortcuts: ${hasKeys() ? "on" : "off"}`;
        for (const button of document.querySelectorAll("[data-keys]")) Object.assign(button, { hidden: false, textContent: hasKeys() ? "Turn off" : "Turn on" });
    };
    document.addEventListener("click", (event) => {
        if (event.target.closest("[data-palette]")) { event.preventDefault(); openPalette(); }
        if (!event.target.closest("[data-keys]")) return;
        localStorage.setItem("onward.keys", hasKeys() ? "off" : "on");
        reveal(document);
    });
    const row = () => document.activeElement?.closest("[data-row]");
    const moveFocus = (offset) => {
        const all = [...document.querySelectorAll("main [data-row]")];
        const at = all.indexOf(row());
        const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + offset))];
        (next?.matches("[tabindex]") ? next : next?.querySelector("a, summary, button"))?.focus();
        next?.scrollIntoView({ block: "nearest" });
    };
    const decide = (decision) => {
        const review = document.querySelector("main [data-review]");
        const button = review?.querySelector(`button[value=${decision}]`);
        if (["reject", "skip"].includes(decision) && button) {
            // Cannot be undone, so the user confirms it.
            button.closest("details")?.setAttribute("open", "");
            button.focus();
        } else if (decision === "modify" && button && [...review.querySelectorAll("textarea")].every((text) => text.value.trim() === "")) {
            review.querySelector("textarea[name=feedback]").focus();
        } else {
            button?.click();
        }
    };
    const primary = (root) => root?.querySelector("[data-primary]:not(:disabled)");
    const PAGES = { o: "/", p: "/plans", i: "/inbox", s: "/sessions", l: "/library" };
    const ACTIONS = {
        "/": openPalette,
        "?": () => document.getElementById("keys")?.showModal(),
        j: () => moveFocus(1),
        k: () => moveFocus(-1),
        x: () => row()?.querySelector("input[type=checkbox]")?.click(),
        e: () => (primary(row()) ?? primary(document.querySelector("main")))?.click(),
        a: () => decide("approve"),
        m: () => decide("modify"),
        s: () => decide("skip"),
        r: () => decide("reject"),
    };
    let prefixAt = 0; // When `g` was pressed.
    document.addEventListener("keydown", (event) => {
        const isChord = event.ctrlKey || event.metaKey || event.altKey;
        if (isChord && !event.altKey && event.key.toLowerCase() === "k") { event.preventDefault(); openPalette(); }
        if (isChord || !hasKeys() || event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
        const page = Date.now() - prefixAt < 1_500 && PAGES[event.key];
        prefixAt = event.key === "g" ? Date.now() : 0;
        if (!page && !Object.hasOwn(ACTIONS, event.key)) return;
        event.preventDefault();
        if (page) location.href = page;
        else ACTIONS[event.key]();
    });

    // A reload does not repeat the flash message.
    const address = new URL(location.href);
    if (address.searchParams.has("done")) {
        address.searchParams.delete("done");
        history.replaceState(null, "", address);
    }

    const opened = Date.now();
    for (const zone of document.querySelectorAll("[data-zone]")) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
    reveal(document);
    updateTimes();
    settle();
    setInterval(updateTimes, 10_000);
    if (topic || isOn()) {
        listen();
        setInterval(() => { if (!document.hidden) refreshSoon(); notifySoon(); }, REFRESH_MS);
        document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshSoon(); });
        addEventListener("pagehide", () => source?.close());
        addEventListener("pageshow", (event) => { if (event.persisted) { listen(); refresh(); } });
    }
})();
