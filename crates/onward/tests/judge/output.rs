//! What is printed where: lines for people, JSON for scripts, talk on standard error.

use std::process::Stdio;

use crate::desk::{command, judge, row};

#[test]
fn a_person_gets_an_aligned_line_for_each_turn() {
    let run = judge(&["turns.jsonl"]);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 8);
    assert!(
        lines[0].starts_with(
            "harbour/true                                    12 steps  stalled at step 7     8 idle \
             steps in a row; "
        ),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1],
        "harbour/reading                                 10 steps  ok                    no idle step"
    );
    assert_eq!(run.stderr, "turns: 8, steps: 79, stalled: 3\n");
    assert_eq!(run.code, Some(0));
}

#[test]
fn a_script_gets_an_object_for_each_turn() {
    let run = judge(&["--json", "turns.jsonl"]);
    for value in run.values() {
        let object = value.as_object().expect("an object");
        let keys: Vec<_> = object.keys().map(String::as_str).collect();
        assert_eq!(keys, ["id", "stalled_at", "steps", "why"]);
        assert!(value["why"].is_string());
    }
    assert!(
        run.stdout
            .starts_with("{\"id\":\"harbour/true\",\"steps\":12,\"stalled_at\":7,\"why\":\""),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("\"stalled_at\":null"));
    assert_eq!(run.stderr, "turns: 8, steps: 79, stalled: 3\n");
}

#[test]
fn flags_for_every_command_may_stand_before_it() {
    let before = std::process::Command::new(env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "-q", "transcript", "judge", "swe-agent.traj"])
        .current_dir(crate::desk::fixtures())
        .output()
        .expect("the binary starts");
    let after = judge(&["swe-agent.traj", "--json", "-q"]);
    assert_eq!(String::from_utf8_lossy(&before.stdout), after.stdout);
    assert_eq!(after.stderr, "");
}

#[test]
fn the_plain_rule_is_there_by_name() {
    let stalled = |args: &[&str]| judge(args).rows()[2].clone();
    assert_eq!(
        stalled(&["--json", "--rule", "plain", "turns.jsonl"]),
        row("harbour/edits", 10, Some(8))
    );
    assert_eq!(
        stalled(&["--json", "--rule", "default", "turns.jsonl"]),
        row("harbour/edits", 10, None)
    );
    assert_eq!(
        stalled(&["--json", "turns.jsonl"]),
        row("harbour/edits", 10, None)
    );
}

#[test]
fn the_threshold_can_be_lowered() {
    let rows = judge(&["--json", "--threshold", "3", "turns.jsonl"]).rows();
    assert_eq!(rows[0], row("harbour/true", 12, Some(2)));
    assert_eq!(rows[3], row("lagoon/four", 6, Some(3)));
    assert_eq!(rows[5], row("lagoon/again", 20, Some(3)));
}

#[test]
fn wrong_values_are_wrong_usage() {
    for (args, error) in [
        (
            &["--threshold", "0", "turns.jsonl"] as &[&str],
            "invalid value '0' for '--threshold <N>'",
        ),
        (
            &["--rule", "strict", "turns.jsonl"],
            "invalid value 'strict' for '--rule <RULE>'",
        ),
        (
            &["--format", "xml", "turns.jsonl"],
            "invalid value 'xml' for '--format <FORMAT>'",
        ),
        (&[], "the following required arguments were not provided"),
    ] {
        let run = judge(args);
        assert_eq!(run.stdout, "");
        assert!(
            run.stderr.starts_with(&format!("error: {error}")),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("\nhint: "), "{}", run.stderr);
        assert_eq!(run.code, Some(2), "{args:?}");
    }
}

#[test]
fn a_long_id_is_shortened_from_the_front_for_people_only() {
    let scratch = crate::desk::Scratch::new("a-folder-with-a-name-that-is-rather-long");
    let path = scratch.file("session.traj", crate::desk::fixture("swe-agent.traj"));
    let run = judge(&[&path]);
    let id: String = run.stdout.chars().take(44).collect();
    assert!(id.starts_with('…') && id.ends_with("session.traj"), "{id}");
    assert_eq!(judge(&["--json", &path]).rows()[0].0, path);
}

#[test]
fn colour_is_for_terminals_or_for_whoever_insists() {
    assert!(!judge(&["turns.jsonl"]).stdout.contains('\u{1b}'));
    let insisted = judge(&["--color", "always", "turns.jsonl"]).stdout;
    assert!(
        insisted.contains("\u{1b}[1;33mstalled at step 7"),
        "{insisted}"
    );
    assert!(
        !judge(&["--color", "never", "turns.jsonl"])
            .stdout
            .contains('\u{1b}')
    );
}

#[cfg(target_os = "linux")]
#[test]
fn verdicts_that_cannot_be_written_are_a_failure() {
    let full = std::fs::File::create("/dev/full").expect("Linux has a full device");
    let run = command(&["turns.jsonl"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("the binary starts");
    assert_eq!(run.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(stderr.starts_with("error: standard output"), "{stderr}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = command(&["turns.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let run = child.wait_with_output().expect("the binary ends");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    assert_eq!(run.status.code(), Some(0));
}
