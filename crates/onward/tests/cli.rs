//! The real binary, run as a script would run it: what it prints, where, and how it ends.
//!
//! Colour and terminals are out of scope: both streams are pipes here, and must stay plain.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot run the binary must fail"
)]

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
    assert!(run.stdout.contains("transcript  "), "{}", run.stdout);
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
