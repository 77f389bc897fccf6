//! What holds for every command: help, version, and command lines that make no sense.

use std::process::{Command, Output, Stdio};

/// One finished run.
struct Run {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
            code: output.status.code(),
        }
    }
}

fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_onward"))
}

fn onward(args: &[&str]) -> Run {
    binary()
        .args(args)
        .output()
        .expect("the binary starts")
        .into()
}

#[test]
fn the_version_is_the_one_of_the_package() {
    let run = onward(&["--version"]);
    assert_eq!(
        run.stdout,
        concat!("onward ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(run.stderr, "");
    assert_eq!(run.code, Some(0));
}

#[test]
fn help_is_data_and_names_the_commands() {
    let run = onward(&["--help"]);
    assert!(run.stdout.contains("Usage: onward"), "{}", run.stdout);
    for command in [
        "mcp",
        "serve",
        "demo",
        "status",
        "plan",
        "review",
        "export",
        "import",
        "transcript",
        "token",
        "tenant",
        "config",
        "doctor",
        "migrate",
        "backup",
        "forget",
        "completions",
    ] {
        let line = format!("\n  {command} ");
        assert!(run.stdout.contains(&line), "{command}: {}", run.stdout);
    }
    assert!(
        !run.stdout.contains('\u{1b}'),
        "colour in a pipe: {:?}",
        run.stdout
    );
    assert_eq!(run.stderr, "");
    assert_eq!(run.code, Some(0));
}

#[test]
fn no_argument_shows_the_help_as_talk_and_is_wrong_usage() {
    let run = onward(&[]);
    assert_eq!(run.stdout, "");
    assert_eq!(run.stderr, onward(&["--help"]).stdout);
    assert_eq!(run.code, Some(2));
}

#[test]
fn an_unknown_command_is_wrong_usage_with_an_error_and_a_hint() {
    let run = onward(&["frobnicate"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "error: unrecognized subcommand 'frobnicate'\n\
         hint: run `onward --help` to see what there is\n"
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn a_misspelt_flag_is_answered_with_the_one_that_was_meant() {
    let run = onward(&["--versoin"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "error: unexpected argument '--versoin' found\nhint: did you mean `--version`?\n"
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn a_misspelt_command_is_answered_with_the_one_that_was_meant() {
    let run = onward(&["transcrpt"]);
    assert_eq!(
        run.stderr,
        "error: unrecognized subcommand 'transcrpt'\nhint: did you mean `transcript`?\n"
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn a_command_without_its_verb_shows_its_help_as_talk_and_is_wrong_usage() {
    let run = onward(&["transcript"]);
    assert_eq!(run.stdout, "");
    assert_eq!(run.stderr, onward(&["transcript", "--help"]).stdout);
    assert_eq!(run.code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let full = std::fs::File::create("/dev/full").expect("Linux has a full device");
    let status = binary()
        .arg("--help")
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .expect("the binary starts");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn every_command_says_what_it_is_for() {
    for command in [
        &["plan", "list"][..],
        &["plan", "show"],
        &["plan", "log"],
        &["plan", "next"],
        &["plan", "resume"],
        &["plan", "abandon"],
        &["plan", "delete"],
        &["review", "list"],
        &["review", "decide"],
        &["token", "create"],
        &["token", "list"],
        &["token", "revoke"],
        &["tenant", "create"],
        &["tenant", "list"],
        &["serve"],
        &["status"],
        &["export"],
        &["import"],
        &["config"],
        &["doctor"],
        &["migrate"],
        &["backup"],
        &["forget"],
        &["completions"],
    ] {
        let run = onward(&[command, &["--help"]].concat());
        assert_eq!(run.code, Some(0), "{command:?}");
        let first = run.stdout.lines().next().unwrap_or_default();
        assert!(first.len() > 10, "{command:?} has no first line");
        assert!(
            run.stdout.contains("--database"),
            "{command:?} has no global flags"
        );
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_json_where_json_is_asked_for() {
    let run = onward(&["plan", "show", "--json"]);
    assert_eq!(run.stdout, "");
    let answer: serde_json::Value = serde_json::from_str(&run.stderr).expect("it is JSON");
    assert_eq!(answer["error"]["code"], "invalid_input");
    assert_eq!(run.code, Some(2));
}

#[test]
fn completions_are_scripts_that_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = onward(&["completions", shell]);
        assert_eq!(run.code, Some(0), "{shell}: {}", run.stderr);
        assert!(run.stdout.contains("doctor"), "{shell}");
    }
    assert_eq!(onward(&["completions", "tcsh"]).code, Some(2));
}
