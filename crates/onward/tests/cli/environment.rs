//! Environment variables of the configuration: `ONWARD_TABLE__KEY`, and the deprecated spelling
//! with a single `_`, which is accepted with a warning.

use std::process::{Output, Stdio};

use serde_json::Value;

use crate::fixture::Fixture;
use crate::script::shell;

struct Run {
    config: Value,
    stderr: String,
}

/// The output of `onward config` with these variables.
fn config(fixture: &Fixture, variables: &str) -> Run {
    let run = run(fixture, &format!("{variables} onward --json config"));
    assert!(run.status.success(), "{variables}: {run:?}");
    Run {
        config: serde_json::from_slice(&run.stdout).expect("the configuration is JSON"),
        stderr: String::from_utf8(run.stderr).expect("the warnings are UTF-8"),
    }
}

fn run(fixture: &Fixture, command: &str) -> Output {
    shell(fixture, command).output().expect("the shell starts")
}

impl Run {
    #[track_caller]
    fn has(&self, pointer: &str, value: &Value, variable: &str) {
        let setting = self.config.pointer(pointer).expect("the key exists");
        assert_eq!(&setting["value"], value);
        assert_eq!(setting["source"], "environment");
        assert_eq!(setting["name"], variable);
    }

    /// Checks that there is one warning, and that it names both variables.
    #[track_caller]
    fn warns(&self, deprecated: &str, current: &str) {
        let lines: Vec<&str> = self.stderr.lines().collect();
        let [line] = lines[..] else {
            panic!("expected one warning, got {lines:?}");
        };
        assert!(line.starts_with("warning: "), "{line}");
        assert!(line.contains(&format!("`{deprecated}`")), "{line}");
        assert!(line.contains(&format!("`{current}`")), "{line}");
    }
}

#[test]
fn double_underscores_separate_tables_and_keys() {
    let fixture = Fixture::empty("env-current");
    let run = config(
        &fixture,
        "ONWARD_SERVE__BIND=127.0.0.1:7 ONWARD_LOOP_CONTROL__ON_STALL=warn \
         ONWARD_ACCESS__ISSUER__URL=https://id.example.org ONWARD_ACCESS__ISSUER__AUDIENCE=a \
         ONWARD_TENANT=acme",
    );
    let issuer = "ONWARD_ACCESS__ISSUER__URL";
    run.has("/serve/bind", &"127.0.0.1:7".into(), "ONWARD_SERVE__BIND");
    run.has(
        "/loopControl/onStall",
        &"warn".into(),
        "ONWARD_LOOP_CONTROL__ON_STALL",
    );
    run.has(
        "/access/issuer/url",
        &"https://id.example.org".into(),
        issuer,
    );
    run.has("/tenant", &"acme".into(), "ONWARD_TENANT");
    assert_eq!(run.stderr, "");
}

#[test]
fn accepts_single_underscores_with_a_warning() {
    let fixture = Fixture::empty("env-deprecated");
    for (deprecated, current, pointer, text, value) in [
        (
            "ONWARD_SERVE_BIND",
            "ONWARD_SERVE__BIND",
            "/serve/bind",
            "127.0.0.1:7",
            Value::from("127.0.0.1:7"),
        ),
        (
            "ONWARD_LOOP_CONTROL_ON_STALL",
            "ONWARD_LOOP_CONTROL__ON_STALL",
            "/loopControl/onStall",
            "off",
            Value::from("off"),
        ),
        (
            "ONWARD_REVIEWS_FORM_SECONDS",
            "ONWARD_REVIEWS__FORM_SECONDS",
            "/reviews/formSeconds",
            "5",
            Value::from(5),
        ),
        (
            "ONWARD_ACCESS_REQUIRE_TOKENS",
            "ONWARD_ACCESS__REQUIRE_TOKENS",
            "/access/requireTokens",
            "true",
            Value::from(true),
        ),
    ] {
        let run = config(&fixture, &format!("{deprecated}={text}"));
        run.has(pointer, &value, deprecated);
        run.warns(deprecated, current);
    }
}

#[test]
fn warns_once_per_deprecated_variable() {
    let fixture = Fixture::empty("env-several");
    let run = config(
        &fixture,
        "ONWARD_ACCESS_ISSUER_URL=https://id.example.org ONWARD_ACCESS_ISSUER_AUDIENCE=a",
    );
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
}

#[test]
fn double_underscores_win_if_both_are_set() {
    let fixture = Fixture::empty("env-both");
    let run = config(
        &fixture,
        "ONWARD_SERVE__BIND=127.0.0.1:7 ONWARD_SERVE_BIND=127.0.0.1:8",
    );
    run.has("/serve/bind", &"127.0.0.1:7".into(), "ONWARD_SERVE__BIND");
    run.warns("ONWARD_SERVE_BIND", "ONWARD_SERVE__BIND");
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let fixture = Fixture::empty("env-blank");
    let run = config(
        &fixture,
        "ONWARD_SERVE__BIND= ONWARD_SERVE_BIND=127.0.0.1:8 ONWARD_LIMITS_STREAMS=",
    );
    run.has("/serve/bind", &"127.0.0.1:8".into(), "ONWARD_SERVE_BIND");
    run.warns("ONWARD_SERVE_BIND", "ONWARD_SERVE__BIND");
}

#[test]
fn quiet_suppresses_the_warning() {
    let fixture = Fixture::empty("env-quiet");
    let run = run(&fixture, "ONWARD_SERVE_BIND=127.0.0.1:8 onward -q config");
    assert!(run.status.success());
    assert_eq!(run.stderr, b"");
}

#[test]
fn a_hook_prints_at_most_one_line() {
    let fixture = Fixture::empty("env-hook");
    let variables = "ONWARD_LOOP_CONTROL_ON_STALL=warn ONWARD_REVIEWS_FORM_SECONDS=5";
    let prompt = r#"{"session_id":"s","cwd":"/","hook_event_name":"UserPromptSubmit"}"#;
    for input in [prompt, "garbage"] {
        let command = format!("printf '%s' '{input}' | {variables} onward hook claude-code");
        let run = shell(&fixture, &command)
            .stdin(Stdio::null())
            .output()
            .expect("the shell starts");
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        assert_eq!(run.stdout, b"", "{run:?}");
        let stderr = String::from_utf8(run.stderr).expect("the message is UTF-8");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        if input == prompt {
            assert!(
                stderr.contains("`ONWARD_LOOP_CONTROL__ON_STALL`"),
                "{stderr}"
            );
            assert!(
                stderr.contains("`ONWARD_REVIEWS__FORM_SECONDS`"),
                "{stderr}"
            );
        }
    }
}
