//! Variable parts of outputs, such as times and process ids: two outputs that differ only in them
//! are equal.

use crate::harness::{Harness, shell};

/// Whether the second output of a command counts as already seen after the first.
fn is_same(mut harness: Harness, first: &str, second: &str) -> bool {
    harness.observe(&shell("check", first));
    harness.idle_halves(&shell("check", second)) == Some(2)
}

const PAIRS: [(&str, &str, &str); 16] = [
    (
        "clock",
        "Tue Nov  4 11:00:00 UTC 2025",
        "Wed Dec 31 23:59:59 UTC 2025",
    ),
    ("clock, day first", "04 Nov 2025 11:00", "28 Jul 2026 09:30"),
    (
        "instant",
        "started at 2026-07-28T09:30:00.123Z by the server",
        "started at 2026-07-29T23:01:59+02:00 by the server",
    ),
    ("unix timestamp", "1785229200", "1785229260"),
    (
        "duration in one word",
        "Finished `dev` profile [unoptimized] target(s) in 0.35s",
        "Finished `dev` profile [unoptimized] target(s) in 1m20s",
    ),
    (
        "duration in two words",
        "test result: ok. 14 passed; finished in 12 ms",
        "test result: ok. 14 passed; finished in 3 seconds",
    ),
    (
        "process id",
        "[1] server is running, pid 4711",
        "[1] server is running, pid 52003",
    ),
    (
        "process table",
        "USER PID %CPU COMMAND\ndev 4211 1.1 2.3 981244 190112 ? Sl 10:41 0:09 node server.js",
        "USER PID %CPU COMMAND\ndev 4388 1.7 2.4 981300 190200 ? Sl 10:41 1:03 node server.js",
    ),
    (
        "counter",
        "attempt 3 was rejected",
        "attempt 4 was rejected",
    ),
    (
        "numbered",
        "request #12 was rejected",
        "request #13 was rejected",
    ),
    (
        "chunk",
        "Chunk ID: 03df, output follows",
        "Chunk ID: a7be, output follows",
    ),
    (
        "address",
        "<Session object at 0x7f3a2c10> is closed",
        "<Session object at 0x55d0ffe8> is closed",
    ),
    (
        "unique id",
        "job 6f1c2a9e-0d1b-4c1e-9a51-2f6b7c8d9e0f is queued",
        "job 0b7d8a11-93c4-4f5e-8d2a-1c2b3a4d5e6f is queued",
    ),
    (
        "named duration",
        "{\"status\": \"degraded\", \"uptime_s\": 7}",
        "{\"status\": \"degraded\", \"uptime_s\": 12}",
    ),
    (
        "named duration in camel case",
        "done elapsedMs=350",
        "done elapsedMs=1200",
    ),
    (
        "temporary path",
        "writing to /tmp/tmpab3f9x/out/report.xml",
        "writing to /tmp/tmpq81k2z/out/report.xml",
    ),
];

#[test]
fn ignores_variable_parts() {
    for (case, first, second) in PAIRS {
        assert!(is_same(Harness::default(), first, second), "{case}");
        assert!(
            is_same(Harness::default(), second, first),
            "{case}, reversed"
        );
    }
}

#[test]
fn without_masks_variable_parts_count() {
    for (case, first, second) in PAIRS {
        let off = Harness::with_parts(|parts| parts.masks = false);
        assert!(!is_same(off, first, second), "{case}");
    }
}

#[test]
fn does_not_mask_meaningful_parts() {
    for (case, first, second) in [
        (
            "a name",
            "the test of alpha failed",
            "the test of beta failed",
        ),
        ("a number of things", "12 tests failed", "7 tests failed"),
        ("a percentage", "copied 45.5%", "copied 46.5%"),
        ("a short commit", "HEAD is at 9f31c2a", "HEAD is at 1c2a9f3"),
        ("a version", "node v22.11.0", "node v24.0.1"),
        (
            "a project path",
            "see /srv/dev/a/report.xml",
            "see /srv/dev/b/report.xml",
        ),
        (
            "a named file in /tmp",
            "see /tmp/report/alpha.xml",
            "see /tmp/report/beta.xml",
        ),
        ("a word of hexadecimal letters", "the facade", "the decade"),
        ("a name with a similar ending", "pages: 3", "pages: 4"),
        ("a share", "usage: 45", "usage: 46"),
        ("a unit without a number", "in seconds", "in minutes"),
    ] {
        assert!(!is_same(Harness::default(), first, second), "{case}");
    }
}
