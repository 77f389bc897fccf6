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
fn prints_the_version_the_commit_and_the_build() {
    let run = onward(&["--version"]);
    let prefix = concat!("onward ", env!("CARGO_PKG_VERSION"), " (");
    let details = run.stdout.strip_prefix(prefix);
    let details = details.and_then(|rest| rest.strip_suffix(")\n"));
    let (commit, build) = details
        .and_then(|rest| rest.split_once(", "))
        .expect("commit and build");
    let is_hash = commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A build without optimization does not read the commit, so that a commit does not rebuild it.
    assert!(is_hash || commit == "unknown commit", "{}", run.stdout);
    let (profile, target) = build.split_once(' ').expect("profile and target");
    assert!(["debug", "release", "dist"].contains(&profile), "{build}");
    assert!(target.contains(std::env::consts::ARCH), "{build}");
    assert_eq!(run.stderr, "");
    assert_eq!(run.code, Some(0));
    assert_eq!(onward(&["-V"]).stdout, run.stdout);
}

#[test]
fn writes_a_man_page_for_each_command() {
    let dir = onward_testbed::TestDir::new("man");
    let pages = dir.path().join("man1");
    let run = onward(&["man", pages.to_str().expect("a UTF-8 path")]);
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(0)));
    let page = |name: &str| std::fs::read_to_string(pages.join(name));
    for name in [
        "onward.1",
        "onward-serve.1",
        "onward-plan.1",
        "onward-plan-show.1",
    ] {
        let text = page(name).expect("the page exists");
        assert!(text.contains(".SH NAME"), "{name}");
    }
    let main = page("onward.1").expect("the page exists");
    assert!(main.contains(concat!("v", env!("CARGO_PKG_VERSION"))));
    let run = onward(&["man", "/dev/null/pages"]);
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(1)));
}

#[test]
fn completes_commands_in_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = onward(&["completions", shell]);
        assert_eq!(run.code, Some(0), "{shell}: {}", run.stderr);
        assert!(run.stdout.contains("doctor"), "{shell}");
    }
}

#[test]
fn prints_the_help_on_standard_output_without_colour() {
    let run = onward(&["--help"]);
    assert!(!run.stdout.is_empty() && !run.stdout.contains('\u{1b}'));
    assert_eq!(run.stderr, "");
    assert_eq!(run.code, Some(0));
}

#[test]
fn rejects_an_unknown_command() {
    let run = onward(&["frobnicate"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "error: unknown command `frobnicate`\n\
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
    for (typed, meant) in [
        ("transcrpt", "transcript"),
        ("statu", "status"),
        ("list", "plan list"),
        ("open", "serve --open"),
    ] {
        let run = onward(&[typed]);
        assert_eq!(
            run.stderr,
            format!("error: unknown command `{typed}`\nhint: did you mean `{meant}`?\n")
        );
        assert_eq!(run.code, Some(2));
    }
}

#[test]
fn suggests_the_nearest_value() {
    let run = onward(&["install", "cloude"]);
    assert!(
        run.stderr.ends_with("hint: did you mean `claude-code`?\n"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(2));
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
