//! `--json` on every read is one line of JSON with the names of the contract, and errors are JSON on
//! standard error.

use serde_json::Value;

use crate::scene::Scene;
use crate::script::shell;

/// What a command prints, as JSON.
fn read(scene: &Scene, command: &str) -> Value {
    let run = shell(scene, command).output().expect("a shell starts");
    let text = String::from_utf8(run.stdout).expect("it is UTF-8");
    assert!(
        run.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert_eq!(text.lines().count(), 1, "{command}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{command}: {why}: {text}"))
}

fn id<'s>(scene: &'s Scene, name: &str) -> &'s str {
    let found = scene.names.iter().find(|(known, _)| known == name);
    &found.expect("the scene has it").1
}

fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no `{field}` in {value}");
    }
}

#[test]
fn every_read_is_one_line_of_json_with_the_names_of_the_contract() {
    let scene = Scene::empty("json").with_plans();
    let tides = id(&scene, "tides");

    let list = read(&scene, "onward --json plan list --all");
    assert_eq!(list["plans"].as_array().expect("a list").len(), 6);
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

    let show = read(&scene, &format!("onward plan show {tides} --json"));
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

    let log = read(&scene, &format!("onward --json plan log {tides}"));
    assert_eq!(log["planId"], tides);
    has(
        &log["events"][1],
        &["seq", "at", "eventType", "stepId", "actor", "details"],
    );
    assert!(!log.to_string().contains("claimToken"), "{log}");

    let next = read(&scene, &format!("onward --json plan next {tides}"));
    assert_eq!(next["status"], "step_ready");
    let started = read(
        &scene,
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
    let none = read(&scene, &format!("onward --json plan next {tides}"));
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

    let reviews = read(&scene, "onward review list --json");
    has(
        &reviews["reviews"][0],
        &["reviewId", "stepId", "summary", "questions", "requestedAt"],
    );
    let status = read(&scene, "onward status --json");
    has(&status, &["plans", "stalled", "reviews", "inProgress"]);
    assert_eq!(status["plans"]["awaitingReview"], 1);

    has(
        &read(&scene, "onward config --json"),
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
    assert_eq!(read(&scene, "onward doctor --json")["ok"], true);
    assert_eq!(
        read(&scene, "onward migrate --check --json")["upToDate"],
        true
    );
    has(&read(&scene, "onward tenant list --json"), &["tenants"]);
    has(&read(&scene, "onward token list --json"), &["tokens"]);
    has(&read(&scene, "onward forget --json"), &["plans"]);
}

#[test]
fn a_plan_that_awaits_review_or_is_over_says_so_in_json() {
    let scene = Scene::empty("json-ends").with_plans();
    let next = |name| {
        read(
            &scene,
            &format!("onward --json plan next {}", id(&scene, name)),
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
    assert_eq!(failed["reason"], "nobody knows");
    let complete = next("greeting");
    assert_eq!(complete["status"], "plan_complete");
    has(
        &complete,
        &[
            "outputMediaType",
            "outputFormattingInstructions",
            "planFormattingNotes",
        ],
    );
    has(&complete, &["stepFormattingNotes"]);
}

#[test]
fn errors_are_one_line_of_json_on_standard_error() {
    let scene = Scene::empty("json-errors").with_plans();
    let boats = id(&scene, "boats");
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
        ("onward --json --tenant nobody status", "invalid_input", 3),
        ("onward --json plan frobnicate", "invalid_input", 2),
    ] {
        let command = command.replace("BOATS", boats);
        let run = shell(&scene, &command).output().expect("a shell starts");
        assert_eq!(run.status.code(), Some(exit), "{command}");
        assert_eq!(run.stdout, b"", "{command}");
        let answer: Value = serde_json::from_slice(&run.stderr).expect(&command);
        assert_eq!(answer["error"]["code"], code, "{command}");
        has(&answer["error"], &["message", "hint"]);
    }
}

#[test]
fn no_output_holds_a_character_that_a_terminal_obeys() {
    let scene = Scene::empty("json-hostile").with_plans();
    let evil = id(&scene, "evil");
    for command in [
        "show",
        "log",
        "next",
        "show --json",
        "log --json",
        "next --json",
    ] {
        let (verb, flags) = command.split_once(' ').unwrap_or((command, ""));
        plain(&scene, &format!("onward plan {verb} {evil} {flags}"));
    }
    plain(&scene, "onward plan list --all");
    plain(&scene, "onward --json plan list --all");
    plain(&scene, &format!("onward export {evil}"));
    plain(&scene, &format!("onward export {evil} --markdown"));
    plain(&scene, &format!("onward plan delete {evil} --yes"));
}

#[track_caller]
fn plain(scene: &Scene, command: &str) {
    let run = shell(scene, command).output().expect("a shell starts");
    assert!(run.status.success(), "{command}");
    for stream in [run.stdout, run.stderr] {
        let text = String::from_utf8(stream).expect("it is UTF-8");
        let bad = |char: &char| (char.is_control() && *char != '\n') || *char == '\u{202e}';
        assert_eq!(text.chars().find(bad), None, "{command}: {text:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let scene = Scene::empty("json-pipe").with_plans();
    let command = format!(
        "onward plan log {} | head -n 1; onward plan list | true",
        id(&scene, "tides")
    );
    let run = shell(&scene, &command).output().expect("a shell starts");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    assert!(run.status.success());
}
