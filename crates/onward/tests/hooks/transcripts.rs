//! Runs transcripts again, and compares.

use std::fmt::Write;
use std::path::Path;

use crate::desk::Desk;

#[track_caller]
fn compare(agent: &'static str) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks/scripts");
    let path = scripts.join(agent).with_extension("txt");
    let script = std::fs::read_to_string(&path).expect("the script is there");
    let desk = Desk::new(agent, agent);
    let mut said = String::new();
    for line in script.lines().take_while(|line| line.starts_with('#')) {
        let _ = writeln!(said, "{line}");
    }
    for name in script.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let answer = desk.tell(name);
        let _ = writeln!(said, "\n$ {name}");
        said.push_str(&answer.stdout);
        for line in answer.stderr.lines() {
            let _ = writeln!(said, "! {line}");
        }
        if answer.code != Some(0) {
            let _ = writeln!(said, "[{:?}]", answer.code);
        }
    }
    if std::env::var_os("ONWARD_BLESS").is_some() {
        std::fs::write(&path, &said).expect("the script can be written");
        return;
    }
    assert!(
        said == script,
        "`{agent}.txt` says something else; if that is meant: \
         ONWARD_BLESS=1 cargo test -p onward --test hooks\n\n{said}"
    );
}

#[test]
fn claude_code_is_nudged_reminded_refused_and_stopped() {
    compare("claude-code");
}

#[test]
fn codex_is_nudged_reminded_and_refused() {
    compare("codex");
}

#[test]
fn gemini_has_its_tools_taken_away() {
    compare("gemini");
}

#[test]
fn kimi_is_refused() {
    compare("kimi");
}

#[test]
fn cursor_is_nudged_reminded_and_refused() {
    compare("cursor");
}

#[test]
fn opencode_is_nudged_reminded_refused_and_stopped() {
    compare("opencode");
}
