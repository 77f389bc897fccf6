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

    // Relative times, in the format of the server.
    const ago = (seconds) => {
        if (seconds < 60) return "just now";
        if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
        if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
        return `${Math.floor(seconds / 86_400)} d ago`;
    };
    const updateTimes = () => {
        for (const time of document.querySelectorAll("time[datetime]")) {
            const text = ago((Date.now() - Date.parse(time.dateTime)) / 1_000);
            if (time.textContent !== text) time.textContent = text;
        }
    };

    const isDirty = (field) => {
        if (field.type === "hidden") return false;
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
            edited: fields.filter(isDirty).map((field) => [field.id, field.value]),
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
        for (const [id, value] of state.edited) {
            const field = document.getElementById(id);
            if (field) field.value = value;
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
                if (response.redirected && new URL(response.url).pathname === "/login") {
                    location.reload();
                    return;
                }
                if (!response.ok) {
                    // The item was deleted, or the permission was revoked.
                    if (response.status === 404 || response.status === 403) location.reload();
                    return;
                }
                const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
                if ([...parts(document)].some((part) => !fresh.getElementById(part.id))) {
                    // The page has another structure, for example after the first plan was created.
                    location.reload();
                    return;
                }
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
            }
        } catch {
            // The server is unreachable. The stream reports it and reconnects.
        } finally {
            loading = false;
        }
        updateTimes();
    };
    let refreshTimer = null;
    const refreshSoon = () => {
        refreshTimer ??= setTimeout(() => { refreshTimer = null; refresh(); }, DEBOUNCE_MS);
    };

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
    // A change of another plan may change the number of pending reviews, which is not urgent.
    let navigationTimer = null;
    const refreshNavigation = () => {
        navigationTimer ??= setTimeout(() => { navigationTimer = null; refresh(); }, 2_000);
    };

    // Desktop notifications, if the user turned them on. Each is displayed once, however many tabs
    // are open.
    const ON = "onward.desktop";
    const CURSOR = "onward.desktop.after";
    const DISPLAYED = "onward.desktop.shown";
    const TITLES = { stall: "Step stuck", review: "Review requested", failure: "Plan failed" };
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
    let notifyTimer = null;
    const notifySoon = () => {
        if (isOn()) notifyTimer ??= setTimeout(() => { notifyTimer = null; notify().catch(() => {}); }, DEBOUNCE_MS);
    };
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
        for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
        for (const keys of root.querySelectorAll(".keys")) keys.hidden = false;
    };
    document.addEventListener("click", async (event) => {
        const button = event.target.closest("[data-copy]");
        if (!button) return;
        const text = document.getElementById(button.dataset.copy).textContent;
        try {
            await navigator.clipboard.writeText(text);
            button.textContent = "Copied";
        } catch {
            button.textContent = "Copy failed; select the text manually";
        }
    });

    // Keyboard shortcuts for reviews.
    const reviews = () => [...document.querySelectorAll(".review")];
    const focusReview = (offset) => {
        const all = reviews();
        const at = all.indexOf(document.activeElement?.closest(".review"));
        const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + offset))];
        next?.focus();
        next?.scrollIntoView({ block: "start" });
    };
    const decide = (review, decision) => {
        const field = review.querySelector("textarea");
        if (decision === "reject") {
            // Cannot be undone, so the user confirms it.
            const details = review.querySelector("details[id^=reject-]");
            if (!details) return;
            details.open = true;
            details.querySelector("button").focus();
        } else if (decision === "modify" && field.value.trim() === "") {
            field.focus();
        } else {
            review.querySelector(`button[value=${decision}]:not(:disabled)`)?.click();
        }
    };
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.target.closest("input, textarea, select")) return;
        const offsets = { j: 1, k: -1 };
        const decisions = { a: "approve", m: "modify", s: "skip", r: "reject" };
        if (offsets[event.key] && reviews().length > 0) {
            event.preventDefault();
            focusReview(offsets[event.key]);
        }
        const review = event.target.closest(".review");
        if (review && decisions[event.key]) {
            event.preventDefault();
            decide(review, decisions[event.key]);
        }
    });

    // A reload does not repeat the flash message.
    const current = new URL(location.href);
    if (current.searchParams.has("done")) {
        current.searchParams.delete("done");
        history.replaceState(null, "", current);
    }

    const opened = Date.now();
    reveal(document);
    updateTimes();
    setInterval(updateTimes, 10_000);
    if (topic || isOn()) {
        listen();
        setInterval(() => { if (!document.hidden) refreshSoon(); notifySoon(); }, REFRESH_MS);
        document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshSoon(); });
        addEventListener("pagehide", () => source?.close());
        addEventListener("pageshow", (event) => { if (event.persisted) { listen(); refresh(); } });
    }
})();
