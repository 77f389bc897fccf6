//! The effect of a shell command on files, from its text alone, for logs without fingerprints.
//!
//! Only certain effects count. A command line is certain if it contains no expansions except file
//! patterns. The lists of commands are in [`intent`](super::intent).

use super::ExternalChange;
use super::intent::{Intent, command_intent, git_verb};
use super::shell::{ShellWord, SimpleCommand, split};

/// Arguments with which a command that reads may write or run something.
const WRITE_ARGUMENTS: [(&str, &[&str]); 6] = [
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    (
        "find",
        &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint"],
    ),
    ("sort", &["-o", "--output"]),
    ("tree", &["-o"]),
    ("xxd", &["-r"]),
    ("yq", &["-i", "--inplace"]),
];
/// Commands that run the command in their arguments.
const RUNNERS: [&str; 2] = ["env", "xargs"];

/// The effect of a command line: [`Unchanged`](ExternalChange::Unchanged) if all its commands only
/// read, otherwise [`Unknown`](ExternalChange::Unknown).
pub fn command_effect(line: &str) -> ExternalChange {
    if split(line).iter().all(only_reads) {
        ExternalChange::Unchanged
    } else {
        ExternalChange::Unknown
    }
}

/// Whether a command line, if it succeeds, certainly changes files: it moves or copies them, or
/// writes a here-document to a file. Its other commands only read.
pub fn certainly_changes(line: &str) -> bool {
    let commands = split(line);
    let changes = |command: &SimpleCommand| moves(command) || writes_here_document(command);
    commands.iter().any(changes)
        && commands
            .iter()
            .all(|command| changes(command) || only_reads(command))
}

fn only_reads(command: &SimpleCommand) -> bool {
    let name = command.name();
    let has_argument = |list: &[&str]| command.arguments().any(|word| list.contains(&word));
    let may_write = WRITE_ARGUMENTS
        .iter()
        .any(|(reader, writes)| *reader == name && has_argument(writes));
    let runs = RUNNERS.contains(&name) && command.arguments().next().is_some();
    let reads = match name {
        "cd" => command.writes_to.is_none(),
        _ => command_intent(command) == Intent::Read,
    };
    reads && !may_write && !runs && is_certain(command)
}

fn moves(command: &SimpleCommand) -> bool {
    let moves = match command.name() {
        "mv" | "cp" => true,
        "git" => git_verb(command) == "mv",
        _ => false,
    };
    moves && command.writes_to.is_none() && is_certain(command)
}

fn writes_here_document(command: &SimpleCommand) -> bool {
    command.name() == "cat" && command.here_document && command.writes_to.is_some()
}

/// Whether every word is literal or a file pattern.
fn is_certain(command: &SimpleCommand) -> bool {
    let is_pattern =
        |word: &ShellWord| word.text.contains(['*', '?']) && !word.text.contains(['$', '`']);
    command
        .words
        .iter()
        .all(|word| word.literal || is_pattern(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_command_changes_nothing() {
        for command in [
            "ls -la",
            "ls *.rs",
            "cat a.rs | grep -n 'fn main' | head -5",
            "cd src && git status; git log --oneline -5",
            "grep -r \"a > b\" . 2>/dev/null || echo 'none'",
            "git -C src diff HEAD~1 2>&1 | tail",
            "grep -o tide a",
            "sleep 5",
            "env",
            "",
        ] {
            assert_eq!(
                command_effect(command),
                ExternalChange::Unchanged,
                "{command}"
            );
        }
    }

    #[test]
    fn the_effect_of_another_command_is_unknown() {
        for command in [
            "make",
            "cat a > b",
            "ls $(rm a)",
            "ls `rm a`",
            "cat <(rm a)",
            "find . -name a -delete",
            "fd -x rm",
            "sort -o a b",
            "git checkout main",
            "git",
            "git -C src",
            "env make",
            "ls | xargs rm",
            "ls && make",
            "echo 'open",
            "lsof",
        ] {
            assert_eq!(
                command_effect(command),
                ExternalChange::Unknown,
                "{command}"
            );
        }
    }

    #[test]
    fn moves_copies_and_here_documents_are_changes() {
        for command in [
            "mv a b",
            "cd src && git mv a b && ls",
            "cp a b",
            "cat > a <<'EOF'\ntext\nEOF",
        ] {
            assert!(certainly_changes(command), "{command}");
        }
        for command in ["ls", "mv a b && make", "git status", "cat a", "cat <<EOF"] {
            assert!(!certainly_changes(command), "{command}");
        }
    }
}
