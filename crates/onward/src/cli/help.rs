//! The help: commands in groups, and two examples per command.
//!
//! `onward -h` lists the names of the commands, `onward --help` also describes them. Text is wrapped
//! at 80 columns. clap lists the commands of a program without groups, so they are hidden from its
//! list and printed before the usage.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::Cli;
use crate::output::format;

/// The maximum width of the help.
const COLUMNS: usize = 80;

/// The width of the column with the names.
const NAME_COLUMNS: usize = 12;
/// A line break within a description.
const HANGING: &str = "\n                ";

/// The groups of commands; every command is in one of them.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Inspect", &["status", "watch", "plan", "session", "search"]),
    ("Decide", &["review", "step"]),
    (
        "Connect",
        &["install", "uninstall", "proxy", "demo", "trust"],
    ),
    ("Team", &["serve", "token", "tenant"]),
    (
        "Data",
        &[
            "export",
            "import",
            "backup",
            "restore",
            "move",
            "forget",
            "transcript",
        ],
    ),
    ("Check", &["doctor", "config", "migrate", "reindex"]),
    (
        "Internal",
        &[
            "mcp",
            "hook",
            "prime",
            "instructions",
            "completions",
            "man",
            "plugins",
        ],
    ),
];

/// Two examples per command.
const EXAMPLES: [(&str, [&str; 2]); 62] = [
    (
        "status",
        ["onward status", "onward status --json | jq .needsYou"],
    ),
    ("watch", ["onward watch", "onward watch --json | jq .plans"]),
    (
        "plan list",
        [
            "onward plan list",
            "onward plan list --all --query postgres",
        ],
    ),
    (
        "plan show",
        ["onward plan show 5fa2", "onward plan show Backfill"],
    ),
    (
        "plan journal",
        [
            "onward plan journal",
            "onward plan journal ~/src/shop --limit 500",
        ],
    ),
    (
        "plan log",
        ["onward plan log 5fa2 --today", "onward plan log 5fa2 --utc"],
    ),
    (
        "plan next",
        [
            "onward plan next 5fa2",
            "onward plan next 5fa2 --claim --session ci-17",
        ],
    ),
    (
        "plan create",
        [
            "onward plan create release.md --dry-run",
            "onward plan create - < release.md",
        ],
    ),
    (
        "plan new",
        ["onward plan new", "onward plan new --save release.md"],
    ),
    (
        "plan template list",
        [
            "onward plan template list",
            "onward plan template list --json",
        ],
    ),
    (
        "plan template show",
        [
            "onward plan template show release",
            "onward plan template show release --json",
        ],
    ),
    (
        "plan template use",
        [
            "onward plan template use release",
            "onward plan template use release --name \"Release 2.4\"",
        ],
    ),
    (
        "plan resume",
        ["onward plan resume 5fa2", "onward plan resume Backfill"],
    ),
    (
        "plan abandon",
        [
            "onward plan abandon 5fa2 --reason \"no longer needed\"",
            "onward plan abandon Backfill --reason duplicate",
        ],
    ),
    (
        "plan edit",
        [
            "onward plan edit 5fa2 --set priority=9 --set projectKey=website",
            "onward plan edit Backfill --set projectKey=",
        ],
    ),
    (
        "plan budget",
        [
            "onward plan budget 5fa2 --max-steps 40",
            "onward plan budget Backfill --max-duration 8h --max-tokens 2000000",
        ],
    ),
    (
        "plan fork",
        [
            "onward plan fork 5fa2/6",
            "onward plan fork Backfill/6 --name \"Backfill, second run\"",
        ],
    ),
    (
        "plan delete",
        [
            "onward plan delete 5fa2",
            "onward plan delete 5fa2ffcb --yes",
        ],
    ),
    (
        "step show",
        [
            "onward step show 5fa2/6",
            "onward step show Backfill/6 --json",
        ],
    ),
    (
        "step release",
        [
            "onward step release 5fa2/6 5fa2/7",
            "onward step release 5fa2",
        ],
    ),
    (
        "step edit",
        [
            "onward step edit 5fa2/6 --set title=Sources --set dependsOn=[2,4]",
            "onward step edit 5fa2/6 --set reviewRequired=true",
        ],
    ),
    (
        "step fail",
        [
            "onward step fail 5fa2/6 --reason \"the API was shut down\"",
            "onward step fail 5fa2/6 5fa2/7",
        ],
    ),
    (
        "step retry",
        [
            "onward step retry 5fa2/6 --reason \"the source was outdated\"",
            "onward step retry 5fa2/6 --cascade --reason \"wrong units\"",
        ],
    ),
    (
        "step skip",
        ["onward step skip 5fa2/6", "onward step skip 5fa2/6 5fa2/7"],
    ),
    (
        "step continue",
        [
            "onward step continue 5fa2/7",
            "onward step continue 5fa2/7 5fa2/8",
        ],
    ),
    (
        "review list",
        ["onward review list", "onward review list --json"],
    ),
    (
        "review show",
        ["onward review show 94da", "onward review show 94da/6"],
    ),
    (
        "review decide",
        [
            "onward review decide 94da approve",
            "onward review decide 94da modify --feedback \"Compare costs, too.\"",
        ],
    ),
    (
        "session list",
        ["onward session list", "onward session list --limit 100"],
    ),
    (
        "session show",
        [
            "onward session show f0f1",
            "onward session show f0f1 --steps --calls",
        ],
    ),
    (
        "session off",
        ["onward session off f0f1", "onward session off f0f1d8db"],
    ),
    (
        "session on",
        ["onward session on f0f1", "onward session on f0f1d8db"],
    ),
    (
        "search",
        [
            "onward search sodium ion",
            "onward search latency --plan 5fa2",
        ],
    ),
    (
        "install",
        [
            "onward install claude-code",
            "onward install codex --scope project --dry-run",
        ],
    ),
    (
        "uninstall",
        [
            "onward uninstall claude-code",
            "onward uninstall codex --scope project --dry-run",
        ],
    ),
    (
        "proxy",
        ["onward proxy", "onward proxy --bind 127.0.0.1:8080"],
    ),
    ("demo", ["onward demo", "onward demo --fast"]),
    ("trust", ["onward trust", "onward trust ~/src/infra"]),
    (
        "serve",
        ["onward serve --open", "onward serve --bind 127.0.0.1:8080"],
    ),
    (
        "token create",
        [
            "onward token create --name ana --role member",
            "onward token create --name ci --role agent --expires-in 30d",
        ],
    ),
    (
        "token list",
        ["onward token list", "onward token list --tenant acme"],
    ),
    (
        "token revoke",
        ["onward token revoke ci", "onward token revoke onw_12ab34cd"],
    ),
    (
        "tenant create",
        ["onward tenant create acme", "onward tenant create research"],
    ),
    (
        "tenant list",
        ["onward tenant list", "onward tenant list --json"],
    ),
    (
        "tenant set",
        [
            "onward tenant set acme --agents-decide-reviews false",
            "onward tenant set acme --agents-decide-reviews true",
        ],
    ),
    (
        "export",
        [
            "onward export 5fa2 > plan.json",
            "onward export 5fa2 --markdown",
        ],
    ),
    (
        "import",
        [
            "onward import plan.json",
            "onward import plan.json --tenant acme",
        ],
    ),
    (
        "backup",
        [
            "onward backup onward-copy.db",
            "onward --database plans.db backup copy.db",
        ],
    ),
    (
        "restore",
        [
            "onward restore onward-copy.db",
            "onward --database plans.db restore copy.db",
        ],
    ),
    (
        "move",
        [
            "onward move --to postgres://onward@db.example.org/onward",
            "onward --database postgres://db.example.org/onward move --to plans.db",
        ],
    ),
    ("forget", ["onward forget", "onward forget --tenant acme"]),
    (
        "transcript judge",
        [
            "onward transcript judge session.jsonl",
            "onward transcript judge --threshold 5 --json *.jsonl",
        ],
    ),
    (
        "transcript check",
        [
            "onward transcript check session.jsonl",
            "onward transcript check --ended *.jsonl",
        ],
    ),
    (
        "transcript repair",
        [
            "onward transcript repair session.jsonl",
            "onward transcript repair session.jsonl --ended",
        ],
    ),
    ("doctor", ["onward doctor", "onward doctor --json"]),
    ("config", ["onward config", "onward config --json"]),
    ("migrate", ["onward migrate", "onward migrate --check"]),
    (
        "reindex",
        ["onward reindex", "onward reindex --tenant acme"],
    ),
    ("mcp", ["onward mcp", "onward mcp --tools core"]),
    (
        "hook",
        [
            "onward hook claude-code < event.json",
            "onward hook codex < event.json",
        ],
    ),
    ("prime", ["onward prime", "onward prime --json | jq .words"]),
    (
        "instructions",
        ["onward instructions", "onward instructions > docs/plans.md"],
    ),
];

/// The complete command line with its examples, for completions and man pages.
pub(super) fn command() -> Command {
    add_examples(Cli::command(), "")
}

/// The command line for parsing; its help lists the commands in groups.
pub(super) fn parser() -> Command {
    let command = command();
    let (short, long) = (names(), descriptions(&command));
    command
        .before_help(format!("{}\n\n{short}", title()))
        .before_long_help(long)
        .help_template("{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}")
        .override_usage("onward [OPTIONS] [COMMAND]")
        .max_term_width(COLUMNS)
        .mut_subcommands(|command| wrapped(command.hide(true)))
}

/// The first line of the help.
pub(super) fn title() -> String {
    format!(
        "Onward {}: durable plans for AI agents, and a watchdog for stuck work.",
        env!("CARGO_PKG_VERSION")
    )
}

fn wrapped(command: Command) -> Command {
    command.max_term_width(COLUMNS).mut_subcommands(wrapped)
}

fn add_examples(command: Command, parent: &str) -> Command {
    command.mut_subcommands(|command| {
        let path = format!("{parent} {}", command.get_name());
        let path = path.trim_start();
        let command = add_examples(command, path);
        let Some((_, examples)) = EXAMPLES.iter().find(|(name, _)| *name == path) else {
            return command;
        };
        let [first, second] = examples;
        let text = format!("Examples:\n  {first}\n  {second}");
        match command.get_after_help().map(ToString::to_string) {
            Some(after) => command.after_help(format!("{text}\n\n{after}")),
            None => command.after_help(text),
        }
    })
}

/// The groups with the names of their commands.
fn names() -> String {
    let mut text = String::new();
    for (group, commands) in GROUPS {
        let _ = writeln!(text, "{group:<9} {}", commands.join(" · "));
    }
    text.push_str("\nStart:  onward install claude-code        Command help:  onward help plan");
    text
}

/// The groups with a description of each command.
fn descriptions(command: &Command) -> String {
    let mut text = title();
    text.push_str("\n\n");
    if let Some(about) = command.get_long_about() {
        let about = about.to_string();
        let paragraphs = about.split_once("\n\n");
        text.push_str(paragraphs.map_or("", |(_, second)| second));
        text.push('\n');
    }
    for (group, commands) in GROUPS {
        let _ = write!(text, "\n{group}:\n");
        for name in commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let lines = format::wrapped(&about, COLUMNS - NAME_COLUMNS - 4);
            let _ = writeln!(text, "  {name:<NAME_COLUMNS$}  {}", lines.join(HANGING));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn every_command_has_two_valid_examples() {
        fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
            for child in command.get_subcommands() {
                let path = format!("{path} {}", child.get_name()).trim().to_owned();
                if child.has_subcommands() {
                    leaves(child, &path, found);
                } else {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        leaves(&Cli::command(), "", &mut found);
        for path in &found {
            // Their long description has an example for a shell or a directory.
            if ["completions", "man", "plugins"].contains(&path.as_str()) {
                continue;
            }
            let examples = EXAMPLES.iter().find(|(name, _)| name == path);
            let (_, examples) = examples.unwrap_or_else(|| panic!("no examples of `{path}`"));
            for example in examples {
                assert!(example.len() <= COLUMNS - 2, "{example}");
                let shell = example
                    .split([' '])
                    .take_while(|word| !["|", ">", "<"].contains(word));
                let text = shell.collect::<Vec<_>>().join(" ");
                let mut words = Vec::new();
                for (place, part) in text.split('"').enumerate() {
                    if place % 2 == 1 {
                        words.push(part);
                    } else {
                        words.extend(part.split_whitespace());
                    }
                }
                let parsed = parser().try_get_matches_from(&words);
                let parsed = parsed.unwrap_or_else(|error| panic!("{example}: {error}"));
                let mut names = Vec::new();
                let mut level = parsed.subcommand();
                while let Some((name, matches)) = level {
                    names.push(name);
                    level = matches.subcommand();
                }
                assert_eq!(names.join(" "), *path);
            }
        }
        assert!(
            EXAMPLES
                .iter()
                .all(|(name, _)| found.iter().any(|path| path == name))
        );
    }
}
