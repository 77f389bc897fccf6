//! Output on a terminal of 80 columns: width, colours, local time. And databases that reading commands
//! must not create.

use std::process::{Command, Stdio};

use unicode_width::UnicodeWidthStr;

use crate::fixture::Fixture;
use crate::script::shell;

/// The output of a command on a terminal of 80 columns, without carriage returns.
fn on_terminal(fixture: &Fixture, variables: &[(&str, &str)], command: &str) -> String {
    // `shell` has the environment; `script` has the pseudoterminal.
    let inner = format!("stty cols 80; {command}");
    let mut outer: Command = shell(fixture, "script -qec \"$INNER\" /dev/null");
    outer.env("INNER", inner).env("TERM", "xterm-256color");
    for (name, value) in variables {
        outer.env(name, value);
    }
    let run = outer.stdin(Stdio::null()).output().expect("`script` runs");
    let text = String::from_utf8(run.stdout).expect("the output is UTF-8");
    text.replace('\r', "")
}

/// The text without colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (_, rest) = part.split_once('m').expect("a colour ends with `m`");
        plain.push_str(rest);
    }
    plain
}

const READING: [&str; 14] = [
    "onward",
    "onward status",
    "onward plan list --all",
    "onward plan show comets",
    "onward plan show boats",
    "onward plan show tides",
    "onward plan log tides",
    "onward step show comets/1",
    "onward review list",
    "onward review show boats",
    "onward session list",
    "onward session show tide",
    "onward token list",
    "onward tenant list",
];

/// A session with a long prompt that loops.
fn add_session(fixture: &Fixture) {
    let prompt = "Wait until the pods are ready, and then run all tests of the deployment.";
    let commands = format!(
        "printf '{{\"session_id\":\"tide-1\",\"cwd\":\"/srv/a/long/directory/of/a/project\",\
         \"prompt\":\"{prompt}\",\"hook_event_name\":\"UserPromptSubmit\"}}' | onward hook claude-code; \
         for n in 1 2 3 4 5 6 7 8 9; do printf '{{\"session_id\":\"tide-1\",\
         \"hook_event_name\":\"PostToolBatch\",\"tool_calls\":[{{\"tool_name\":\"Bash\",\
         \"tool_input\":{{\"command\":\"kubectl get pods --namespace production --watch=false\"}},\
         \"tool_use_id\":\"%s\",\"tool_response\":\"\"}}]}}' $n | onward hook claude-code; done"
    );
    let run = shell(fixture, &commands)
        .output()
        .expect("the shell starts");
    assert!(run.status.success(), "{run:?}");
}

#[test]
fn every_line_fits_80_columns() {
    let fixture = Fixture::empty("terminal-width").with_plans();
    add_session(&fixture);
    for command in READING {
        let text = plain(&on_terminal(&fixture, &[("COLUMNS", "80")], command));
        assert!(!text.starts_with("error:"), "{command}: {text}");
        for line in text.lines() {
            assert!(line.width() <= 80, "{command}: {line}");
        }
    }
}

#[test]
fn colours_follow_the_meaning_and_no_color_disables_them() {
    let fixture = Fixture::empty("terminal-colour").with_plans();
    let text = on_terminal(&fixture, &[], "onward plan list --all");
    for (label, code) in [
        ("stuck", "31"),
        ("needs you", "33"),
        ("working", "34"),
        ("done", "32"),
        ("cancelled", "2"),
    ] {
        let line = text.lines().find(|line| line.contains(label));
        let line = line.unwrap_or_else(|| panic!("no `{label}` in {text}"));
        assert!(line.contains(&format!("\u{1b}[{code}m")), "{line:?}");
    }
    let text = on_terminal(&fixture, &[("NO_COLOR", "1")], "onward plan list --all");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let piped = on_terminal(&fixture, &[], "onward plan list --all | cat");
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

#[test]
fn times_are_local_unless_utc_is_requested() {
    let fixture = Fixture::empty("terminal-zone").with_plans();
    let first = |zone: &str, flag: &str| {
        let command = format!("TZ={zone} onward plan log comets {flag}");
        let run = shell(&fixture, &command)
            .output()
            .expect("the shell starts");
        let text = String::from_utf8(run.stdout).expect("the output is UTF-8");
        text.lines().next().expect("the log has events").to_owned()
    };
    let (utc, east) = (first("UTC", "--utc"), first("JST-9", ""));
    let hour = |line: &str| line[11..13].parse::<u32>().expect("an hour");
    assert_eq!(&utc[19..20], "Z", "{utc}");
    assert_eq!(&east[19..20], " ", "{east}");
    assert_eq!((hour(&utc) + 9) % 24, hour(&east), "{utc} / {east}");
}

#[test]
fn reading_commands_do_not_create_a_database() {
    let fixture = Fixture::empty("terminal-missing");
    let commands = READING.iter().skip(1).chain(&[
        "onward plan next x",
        "onward step release x/1",
        "onward search words",
        "onward watch",
        "onward export x",
        "onward token revoke x",
    ]);
    for command in commands {
        let command = format!("{command} --database missing/x.db");
        let run = shell(&fixture, &command)
            .output()
            .expect("the shell starts");
        assert_eq!(run.status.code(), Some(3), "{command}: {run:?}");
    }
    assert!(!fixture.dir.join("missing").exists());
}

#[test]
fn without_a_command_prints_a_welcome_or_the_status() {
    let fixture = Fixture::empty("terminal-bare");
    let run = shell(&fixture, "onward")
        .output()
        .expect("the shell starts");
    let text = String::from_utf8(run.stdout).expect("the output is UTF-8");
    assert_eq!((text.lines().count(), run.status.code()), (6, Some(0)));
    assert!(!fixture.dir.join("onward.db").exists());
    let fixture = fixture.with_plans();
    let run = |command| shell(&fixture, command).output().expect("the shell starts");
    assert_eq!(run("onward").stdout, run("onward status").stdout);
    assert_eq!(run("onward --json").stdout.first(), Some(&b'{'));
}

#[test]
fn a_long_review_is_one_short_line_of_the_status_in_a_pipe() {
    let fixture = Fixture::empty("terminal-pipe").with_plans();
    for command in ["onward status", "onward review list"] {
        let run = shell(&fixture, command).output().expect("the shell starts");
        let text = String::from_utf8(run.stdout).expect("the output is UTF-8");
        assert!(text.lines().all(|line| line.width() <= 200), "{text}");
    }
}
