//! Help, version, and usage errors.

use std::process::{Command, Stdio};

use onward_testbed::Run;

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
fn prints_the_version_of_the_package() {
    let run = onward(&["--version"]);
    assert_eq!(
        run.stdout,
        concat!("onward ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(run.stderr, "");
    assert_eq!(run.code, Some(0));
}

#[test]
fn prints_the_help_on_standard_output_without_colour() {
    let run = onward(&["--help"]);
    assert!(!run.stdout.is_empty() && !run.stdout.contains('\u{1b}'));
    assert_eq!(run.stderr, "");
    assert_eq!(run.code, Some(0));
}

#[test]
fn without_arguments_prints_the_help_on_standard_error() {
    let run = onward(&[]);
    assert_eq!(run.stdout, "");
    assert_eq!(run.stderr, onward(&["--help"]).stdout);
    assert_eq!(run.code, Some(2));
}

#[test]
fn rejects_an_unknown_command() {
    let run = onward(&["frobnicate"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "error: unrecognized subcommand 'frobnicate'\n\
         hint: see `onward --help`\n"
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn suggests_the_nearest_flag() {
    let run = onward(&["--versoin"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "error: unexpected argument '--versoin' found\nhint: did you mean `--version`?\n"
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn suggests_the_nearest_command() {
    for (typed, meant) in [("transcrpt", "transcript"), ("statu", "status")] {
        let run = onward(&[typed]);
        assert_eq!(
            run.stderr,
            format!("error: unrecognized subcommand '{typed}'\nhint: did you mean `{meant}`?\n")
        );
        assert_eq!(run.code, Some(2));
    }
}

#[test]
fn without_a_subcommand_prints_the_help_on_standard_error() {
    let run = onward(&["transcript"]);
    assert_eq!(run.stdout, "");
    assert_eq!(run.stderr, onward(&["transcript", "--help"]).stdout);
    assert_eq!(run.code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn fails_if_the_help_cannot_be_written() {
    let full = std::fs::File::create("/dev/full").expect("`/dev/full` exists");
    let status = binary()
        .arg("--help")
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .expect("the binary starts");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn usage_errors_are_json_with_the_json_flag() {
    let run = onward(&["plan", "show", "--json"]);
    assert_eq!(run.stdout, "");
    let response: serde_json::Value = serde_json::from_str(&run.stderr).expect("the error is JSON");
    assert_eq!(response["error"]["code"], "invalid_input");
    assert_eq!(run.code, Some(2));
}

#[test]
fn prints_completions_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = onward(&["completions", shell]);
        assert_eq!(run.code, Some(0), "{shell}: {}", run.stderr);
        assert!(run.stdout.contains("doctor"), "{shell}");
    }
    assert_eq!(onward(&["completions", "tcsh"]).code, Some(2));
}
