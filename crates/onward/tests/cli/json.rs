//! `--json`: every read command prints one line of JSON with the documented keys, and errors are
//! JSON on standard error.

use serde_json::Value;

use crate::fixture::Fixture;
use crate::script::shell;

/// The output of a command, as JSON.
fn read(fixture: &Fixture, command: &str) -> Value {
    let run = shell(fixture, command).output().expect("the shell starts");
    let text = String::from_utf8(run.stdout).expect("the output is UTF-8");
    assert!(
        run.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert_eq!(text.lines().count(), 1, "{command}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command}: {error}: {text}"))
}

fn id<'s>(fixture: &'s Fixture, name: &str) -> &'s str {
    let found = fixture.names.iter().find(|(other, _)| other == name);
    &found.expect("the fixture has this id").1
}

fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no `{field}` in {value}");
    }
}

#[test]
fn every_read_command_prints_one_line_of_json() {
    let fixture = Fixture::empty("json").with_plans();
    let tides = id(&fixture, "tides");

    let list = read(&fixture, "onward --json plan list --all");
    assert_eq!(list["plans"].as_array().expect("an array").len(), 6);
    let plan = [
        "planId",
        "name",
        "researchQuestion",
        "status",
        "stalled",
        "progress",
        "totalSteps",
        "updatedAt",
    ];
    has(&list["plans"][0], &plan);

    let show = read(&fixture, &format!("onward plan show {tides} --json"));
    has(
        &show,
        &[
            "planId",
            "name",
            "status",
            "derivedStatus",
            "stalled",
            "stalledSteps",
        ],
    );
    has(
        &show,
        &[
            "progress",
            "totalSteps",
            "counts",
            "currentStep",
            "completedSteps",
        ],
    );
    has(&show, &["pendingSteps", "failedSteps", "nextStallAt"]);
    has(
        &show["counts"],
        &[
            "pending",
            "inProgress",
            "awaitingInput",
            "completed",
            "skipped",
            "failed",
        ],
    );
    has(
        &show["currentStep"],
        &[
            "stepId",
            "stepOrder",
            "stepType",
            "status",
            "startedAt",
            "attempt",
        ],
    );
    assert_eq!(show["counts"]["skipped"], 1);
    assert_eq!(
        show["completedSteps"][0]["resultSummary"],
        "Three sources, all agree."
    );

    let log = read(&fixture, &format!("onward --json plan log {tides}"));
    assert_eq!(log["planId"], tides);
    has(
        &log["events"][1],
        &["seq", "at", "eventType", "stepId", "actor", "details"],
    );
    assert!(!log.to_string().contains("claimToken"), "{log}");

    let next = read(&fixture, &format!("onward --json plan next {tides}"));
    assert_eq!(next["status"], "step_ready");
    let started = read(
        &fixture,
        &format!("onward --json plan next {tides} --claim --session s"),
    );
    assert_eq!(started["status"], "step_started");
    has(
        &started,
        &[
            "planId",
            "stepId",
            "stepOrder",
            "stepType",
            "instructions",
            "attempt",
        ],
    );
    has(
        &started,
        &["claimToken", "stallThresholdMs", "totalSteps", "progress"],
    );
    let none = read(&fixture, &format!("onward --json plan next {tides}"));
    assert_eq!(none["status"], "no_pending_steps");
    has(
        &none,
        &[
            "inProgressCount",
            "failedCount",
            "blockedCount",
            "inProgress",
        ],
    );

    let reviews = read(&fixture, "onward review list --json");
    has(
        &reviews["reviews"][0],
        &["reviewId", "stepId", "summary", "questions", "requestedAt"],
    );
    let status = read(&fixture, "onward status --json");
    has(&status, &["plans", "stalled", "reviews", "inProgress"]);
    assert_eq!(status["plans"]["awaitingReview"], 1);

    has(
        &read(&fixture, "onward config --json"),
        &[
            "database",
            "tenant",
            "retention",
            "serve",
            "access",
            "limits",
            "files",
        ],
    );
    assert_eq!(read(&fixture, "onward doctor --json")["ok"], true);
    assert_eq!(
        read(&fixture, "onward migrate --check --json")["upToDate"],
        true
    );
    has(&read(&fixture, "onward tenant list --json"), &["tenants"]);
    has(&read(&fixture, "onward token list --json"), &["tokens"]);
    has(&read(&fixture, "onward forget --json"), &["plans"]);
}

#[test]
fn reports_why_a_plan_has_no_next_step() {
    let fixture = Fixture::empty("json-ends").with_plans();
    let next = |name| {
        read(
            &fixture,
            &format!("onward --json plan next {}", id(&fixture, name)),
        )
    };
    let review = next("boats");
    assert_eq!(review["status"], "awaiting_review");
    has(
        &review["review"],
        &["reviewId", "stepId", "summary", "questions", "requestedAt"],
    );
    let failed = next("lost");
    assert_eq!(failed["status"], "plan_failed");
    assert_eq!(failed["reason"], "no sources found");
    let complete = next("greeting");
    assert_eq!(complete["status"], "plan_complete");
    has(&complete, &["planId", "next"]);
}

#[test]
fn errors_are_one_line_of_json_on_standard_error() {
    let fixture = Fixture::empty("json-errors").with_plans();
    let boats = id(&fixture, "boats");
    for (command, code, exit) in [
        ("onward --json plan show 0000000000", "plan_not_found", 3),
        (
            "onward --json review decide zz approve",
            "step_not_found",
            3,
        ),
        ("onward --json plan resume BOATS", "illegal_transition", 4),
        (
            "onward --json review decide BOATS modify",
            "feedback_required",
            4,
        ),
        ("onward --json --database / status", "unavailable", 5),
        ("onward --json --tenant missing status", "invalid_input", 3),
        ("onward --json plan frobnicate", "invalid_input", 2),
    ] {
        let command = command.replace("BOATS", boats);
        let run = shell(&fixture, &command)
            .output()
            .expect("the shell starts");
        assert_eq!(run.status.code(), Some(exit), "{command}");
        assert_eq!(run.stdout, b"", "{command}");
        let response: Value = serde_json::from_slice(&run.stderr).expect(&command);
        assert_eq!(response["error"]["code"], code, "{command}");
        has(&response["error"], &["message", "hint"]);
    }
}

#[test]
fn no_output_contains_control_characters() {
    let fixture = Fixture::empty("json-hostile").with_plans();
    let evil = id(&fixture, "evil");
    for command in [
        "show",
        "log",
        "next",
        "show --json",
        "log --json",
        "next --json",
    ] {
        let (verb, flags) = command.split_once(' ').unwrap_or((command, ""));
        check_plain(&fixture, &format!("onward plan {verb} {evil} {flags}"));
    }
    check_plain(&fixture, "onward plan list --all");
    check_plain(&fixture, "onward --json plan list --all");
    check_plain(&fixture, &format!("onward export {evil}"));
    check_plain(&fixture, &format!("onward export {evil} --markdown"));
    check_plain(&fixture, &format!("onward plan delete {evil} --yes"));
}

#[track_caller]
fn check_plain(fixture: &Fixture, command: &str) {
    let run = shell(fixture, command).output().expect("the shell starts");
    assert!(run.status.success(), "{command}");
    for stream in [run.stdout, run.stderr] {
        let text = String::from_utf8(stream).expect("the output is UTF-8");
        let is_control = |char: &char| (char.is_control() && *char != '\n') || *char == '\u{202e}';
        assert_eq!(text.chars().find(is_control), None, "{command}: {text:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let fixture = Fixture::empty("json-pipe").with_plans();
    let command = format!(
        "onward plan log {} | head -n 1; onward plan list | true",
        id(&fixture, "tides")
    );
    let run = shell(&fixture, &command)
        .output()
        .expect("the shell starts");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    assert!(run.status.success());
}
