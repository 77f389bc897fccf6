// What makes the pages live. Without it everything works; with it, one need not load them anew.
//
// A stream says which plans change. The page is then asked for once more, and its parts that are marked
// (`data-part`) are put in place. What somebody has written, opened or is looking at stays as it is.
"use strict";

(() => {
    const SOON = 150; // What changes at once is asked for at once.
    const OFTEN = 20_000; // Times and drawings move on without any change.
    const AGAIN = [500, 1_000, 2_000, 5_000, 10_000];
    const topic = document.body.dataset.live;
    const line = document.getElementById("line");

    // Times, in the words that the server uses.
    const ago = (seconds) => {
        if (seconds < 60) return "just now";
        if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
        if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
        return `${Math.floor(seconds / 86_400)} d ago`;
    };
    const tellTimes = () => {
        for (const time of document.querySelectorAll("time[datetime]")) {
            const told = ago((Date.now() - Date.parse(time.dateTime)) / 1_000);
            if (time.textContent !== told) time.textContent = told;
        }
    };

    const isDirty = (field) => {
        if (field.type === "hidden") return false;
        if (field instanceof HTMLSelectElement) {
            return [...field.options].some((option) => option.selected !== option.defaultSelected);
        }
        return field.value !== field.defaultValue;
    };

    // What of a part is the reader's own.
    const remember = (part) => {
        const fields = [...part.querySelectorAll("input[id], textarea[id], select[id]")];
        const active = document.activeElement;
        const inside = part.contains(active) && active !== part;
        return {
            open: [...part.querySelectorAll("details[id][open]")].map((details) => details.id),
            written: fields.filter(isDirty).map((field) => [field.id, field.value]),
            scrolled: part.scrollLeft,
            focus: inside ? path(part, active) : null,
            range: inside && active.selectionStart !== undefined && /^(text|search|textarea)$/.test(active.type)
                ? [active.selectionStart, active.selectionEnd] : null,
        };
    };
    // How to find an element in the part that takes this one's place.
    const path = (part, element) => {
        if (element.id) return `#${CSS.escape(element.id)}`;
        const owner = element.closest("[id]");
        const same = [...owner.querySelectorAll(element.localName)];
        return { owner: owner.id, name: element.localName, place: same.indexOf(element) };
    };
    const find = (part, where) => {
        if (typeof where === "string") return part.querySelector(where);
        const owner = document.getElementById(where.owner);
        return owner && owner.querySelectorAll(where.name)[where.place];
    };
    const restore = (part, kept) => {
        for (const id of kept.open) {
            const details = document.getElementById(id);
            if (details) details.open = true;
        }
        for (const [id, value] of kept.written) {
            const field = document.getElementById(id);
            if (field) field.value = value;
        }
        part.scrollLeft = kept.scrolled;
        if (!kept.focus) return;
        const element = find(part, kept.focus);
        if (!element) return;
        element.focus({ preventScroll: true });
        if (kept.range) element.setSelectionRange(...kept.range);
    };

    // Each part as the server wrote it last.
    const written = new Map();
    const parts = (of) => of.querySelectorAll("[data-part][id]");
    // Times are told anew all the time, and change nothing.
    const essence = (part) => part.outerHTML.replace(/<time[^>]*>[^<]*<\/time>/g, "<time>");
    for (const part of parts(document)) written.set(part.id, essence(part));

    let loading = false;
    let wanted = false;
    const refresh = async () => {
        if (!topic) return; // Nothing on it changes.
        wanted = true;
        if (loading) return;
        loading = true;
        try {
            while (wanted) {
                wanted = false;
                const address = new URL(location.href);
                address.searchParams.delete("done");
                const answer = await fetch(address, { headers: { accept: "text/html" }, cache: "no-store" });
                if (answer.redirected && new URL(answer.url).pathname === "/login") {
                    location.reload();
                    return;
                }
                if (!answer.ok) {
                    // What one looks at is gone, or may no longer be seen.
                    if (answer.status === 404 || answer.status === 403) location.reload();
                    return;
                }
                const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
                if ([...parts(document)].some((part) => !fresh.getElementById(part.id))) {
                    // It is another page by now, as the first one is when there is a first plan.
                    location.reload();
                    return;
                }
                for (const part of parts(fresh)) {
                    const old = document.getElementById(part.id);
                    const told = essence(part);
                    if (!old || written.get(part.id) === told) continue;
                    written.set(part.id, told);
                    const kept = remember(old);
                    const placed = document.importNode(part, true);
                    old.replaceWith(placed);
                    restore(placed, kept);
                }
                ready(document);
            }
        } catch {
            // The server is away; the stream says so, and asks again when it is back.
        } finally {
            loading = false;
        }
        tellTimes();
    };
    let soon = null;
    const refreshSoon = () => {
        soon ??= setTimeout(() => { soon = null; refresh(); }, SOON);
    };

    // The stream. When it breaks, the page says so; when it is back, it catches up.
    let tries = 0;
    let source = null;
    const listen = () => {
        source = new EventSource("/live");
        source.addEventListener("ready", () => {
            const broke = !line.hidden;
            tries = 0;
            line.hidden = true;
            document.documentElement.dataset.stream = "open";
            // What changed before the stream began is seen, too.
            if (broke || Date.now() - opened > 1_000) refresh();
            tellSoon();
        });
        source.addEventListener("plan_changed", (event) => {
            tellSoon();
            const [kind, plan] = topic.split(" ");
            if (kind === "plans" || (kind === "plan" && JSON.parse(event.data).planId === plan)) refreshSoon();
            else refreshNavigation();
        });
        source.addEventListener("session_changed", (event) => {
            const session = JSON.parse(event.data).sessionId;
            if (topic === "sessions" || topic === `session ${session}`) refreshSoon();
        });
        source.addEventListener("missed", () => { refreshSoon(); tellSoon(); });
        source.onerror = () => {
            source.close();
            document.documentElement.dataset.stream = "broken";
            line.textContent = "The connection to the server is lost: what you see may be old. Trying again…";
            line.hidden = false;
            setTimeout(listen, AGAIN[Math.min(tries, AGAIN.length - 1)]);
            tries += 1;
            // It may be that one is no longer signed in: then the page leads to where one does that.
            if (tries === 2) refreshSoon();
        };
    };
    // Another plan's change may mean that a review waits; the count is not urgent.
    let navigation = null;
    const refreshNavigation = () => {
        navigation ??= setTimeout(() => { navigation = null; refresh(); }, 2_000);
    };

    // Findings on the desktop, where somebody switched that on: one for each, however many tabs there are.
    const ON = "onward.desktop";
    const CURSOR = "onward.desktop.after";
    const SHOWN = "onward.desktop.shown";
    const TITLES = { stall: "A step is stalled", review: "A review waits for you", failure: "A plan failed" };
    const OVERLAP = 60_000; // Servers' clocks differ; what was shown is known by its name.
    const canTell = "Notification" in window && isSecureContext;
    const tells = () => canTell && Notification.permission === "granted" && localStorage.getItem(ON) === "on";
    const alone = (work) => navigator.locks ? navigator.locks.request("onward.desktop", work) : work();
    const asked = async (after) => {
        const address = after === null ? "/notices" : `/notices?after=${after}`;
        const answer = await fetch(address, { cache: "no-store" });
        return answer.ok && !answer.redirected ? answer.json() : null;
    };
    const tellFindings = () => alone(async () => {
        const cursor = Number(localStorage.getItem(CURSOR));
        const said = await asked(cursor - OVERLAP);
        if (!said || !tells()) return;
        const shown = JSON.parse(localStorage.getItem(SHOWN) ?? "[]");
        for (const finding of said.notices) {
            if (shown.includes(finding.id) || Date.parse(finding.foundAt) < since()) continue;
            shown.push(finding.id);
            localStorage.setItem(SHOWN, JSON.stringify(shown.slice(-100)));
            const told = new Notification(TITLES[finding.kind] ?? "Onward", {
                body: finding.text, tag: finding.id, icon: "/assets/onward.svg",
            });
            told.onclick = () => { window.focus(); location.href = finding.url; };
        }
        const last = said.notices.at(-1);
        if (last) localStorage.setItem(CURSOR, Math.max(cursor, Date.parse(last.foundAt)));
    });
    // What was found before it was switched on is no news.
    const since = () => Number(localStorage.getItem(`${ON}.since`));
    let telling = null;
    const tellSoon = () => {
        if (tells()) telling ??= setTimeout(() => { telling = null; tellFindings().catch(() => {}); }, SOON);
    };
    const desktop = () => {
        const button = document.querySelector("[data-desktop]");
        if (!button) return;
        const state = document.getElementById("desktop");
        button.hidden = !canTell || Notification.permission === "denied";
        button.textContent = tells() ? "Stop showing them" : "Show them on this desktop";
        if (!canTell) state.textContent = "cannot show them: that takes HTTPS, or this machine";
        else if (Notification.permission === "denied") state.textContent = "was told not to show them";
        else state.textContent = tells() ? "shows them while a page is open" : "shows none";
    };
    document.addEventListener("click", async (event) => {
        if (!event.target.closest("[data-desktop]")) return;
        if (tells()) {
            localStorage.setItem(ON, "off");
        } else if (await Notification.requestPermission() === "granted") {
            const said = await asked(null);
            if (said) {
                localStorage.setItem(`${ON}.since`, said.now);
                localStorage.setItem(CURSOR, said.now);
                localStorage.setItem(ON, "on");
                if (!source) listen();
            }
        }
        desktop();
    });

    // What only works with a script is shown by it.
    const ready = (root) => {
        desktop();
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
            button.textContent = "Select it by hand";
        }
    });

    // Reviews by keyboard.
    const reviews = () => [...document.querySelectorAll(".review")];
    const go = (by) => {
        const all = reviews();
        const at = all.indexOf(document.activeElement?.closest(".review"));
        const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
        next?.focus();
        next?.scrollIntoView({ block: "start" });
    };
    const decide = (review, word) => {
        const field = review.querySelector("textarea");
        if (word === "reject") {
            // It cannot be undone, so it asks.
            const details = review.querySelector("details[id^=reject-]");
            if (!details) return;
            details.open = true;
            details.querySelector("button").focus();
        } else if (word === "modify" && field.value.trim() === "") {
            field.focus();
        } else {
            review.querySelector(`button[value=${word}]:not(:disabled)`)?.click();
        }
    };
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.target.closest("input, textarea, select")) return;
        const moves = { j: 1, k: -1 };
        const words = { a: "approve", m: "modify", s: "skip", r: "reject" };
        if (moves[event.key] && reviews().length > 0) {
            event.preventDefault();
            go(moves[event.key]);
        }
        const review = event.target.closest(".review");
        if (review && words[event.key]) {
            event.preventDefault();
            decide(review, words[event.key]);
        }
    });

    // A sentence about what was done is said once.
    const here = new URL(location.href);
    if (here.searchParams.has("done")) {
        here.searchParams.delete("done");
        history.replaceState(null, "", here);
    }

    const opened = Date.now();
    ready(document);
    tellTimes();
    setInterval(tellTimes, 10_000);
    if (topic || tells()) {
        listen();
        setInterval(() => { if (!document.hidden) refreshSoon(); tellSoon(); }, OFTEN);
        document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshSoon(); });
        addEventListener("pagehide", () => source?.close());
        addEventListener("pageshow", (event) => { if (event.persisted) { listen(); refresh(); } });
    }
})();
