//! The help of every command, compared with `help.txt`. The commands are found by parsing the help:
//! those of the program are in groups, those of a command in one list. The global options are
//! included once, in `onward --help`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use onward_testbed::golden;

/// The help of a command.
fn help(path: &[String]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_onward"))
        .env_clear()
        .args(path)
        .arg("--help")
        .output()
        .expect("the binary starts");
    assert!(run.status.success(), "{path:?}");
    assert_eq!(run.stderr, b"", "{path:?}");
    String::from_utf8(run.stdout).expect("the help is UTF-8")
}

/// The headings of the commands in a help.
const COMMANDS: [&str; 8] = [
    "Inspect:",
    "Decide:",
    "Connect:",
    "Team:",
    "Data:",
    "Check:",
    "Internal:",
    "Commands:",
];

/// The subcommands that a help lists, except `help`.
fn subcommands(help: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_listing = false;
    for line in help.lines() {
        match line.strip_prefix("  ") {
            None => is_listing = COMMANDS.contains(&line),
            // A line with more indentation continues a description.
            Some(entry) if is_listing && !entry.starts_with(' ') => {
                names.extend(entry.split_whitespace().next().map(str::to_owned));
            }
            Some(_) => {}
        }
    }
    names.retain(|name| name != "help");
    names
}

const GLOBAL_OPTIONS: &str = "\nGlobal options:\n";

/// A help without the section of global options. The text after the section stays.
fn without_global_options(help: &str) -> String {
    let (before, section) = help
        .split_once(GLOBAL_OPTIONS)
        .expect("every command has the global options");
    for name in ["--database", "--config", "--tenant", "--json", "--color"] {
        assert!(section.contains(name), "no `{name}` in {section}");
    }
    let is_option = |line: &&str| line.is_empty() || line.starts_with(' ');
    let after: Vec<&str> = section.lines().skip_while(is_option).collect();
    let mut text = before.to_owned();
    if !after.is_empty() {
        let _ = write!(text, "\n{}", after.join("\n"));
    }
    text
}

/// Appends the help of a command and of its subcommands. Only `onward --help` has the global
/// options.
fn collect(path: &mut Vec<String>, text: &mut String) {
    let mut help = help(path);
    let subcommands = subcommands(&help);
    if !path.is_empty() {
        help = without_global_options(&help);
        text.push('\n');
    }
    let command = [&["onward".to_owned()], path.as_slice()].concat().join(" ");
    let _ = writeln!(text, "$ {command} --help");
    for line in help.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for name in subcommands {
        path.push(name);
        collect(path, text);
        path.pop();
    }
}

#[test]
fn the_help_of_every_command_matches_the_golden_file() {
    let mut text = String::new();
    collect(&mut Vec::new(), &mut text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/help.txt");
    golden::assert_matches(path, &text);
}

#[test]
fn every_help_fits_80_columns() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/help.txt");
    let text = std::fs::read_to_string(path).expect("the golden file exists");
    for line in text.lines() {
        let is_long_word = line.trim_start().split(' ').count() == 1;
        assert!(line.chars().count() <= 80 || is_long_word, "{line}");
    }
}

#[test]
fn the_walk_finds_commands_and_subcommands() {
    let commands = subcommands(&help(&[]));
    for name in ["status", "plan", "step", "serve", "hook", "completions"] {
        assert!(commands.contains(&name.to_owned()), "{commands:?}");
    }
    let plan = subcommands(&help(&["plan".to_owned()]));
    let expected = [
        "list", "journal", "show", "log", "next", "edit", "budget", "create", "new", "template",
        "resume", "abandon", "fork", "delete",
    ];
    assert_eq!(plan, expected);
}
