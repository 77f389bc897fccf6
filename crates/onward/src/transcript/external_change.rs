//! External changes of a step, derived from a log.
//!
//! Only certain results count: a successful edit is a change, a failed edit is not, and a command
//! that only reads is not. The effect of any other command is unknown. Live agents have a better
//! signal, the fingerprint of the working tree.

use onward_core::turn::ExternalChange;
use serde_json::Value;

use super::Call;

/// Commands that only read, except with [`WRITE_ARGUMENTS`].
const READ_COMMANDS: [&str; 43] = [
    ":", "[", "basename", "cat", "cd", "column", "cut", "date", "df", "diff", "dirname", "du",
    "echo", "false", "file", "find", "grep", "head", "hexdump", "hostname", "id", "jq", "ls", "nl",
    "od", "printenv", "printf", "ps", "pwd", "realpath", "rg", "sleep", "sort", "stat", "tail",
    "test", "tr", "tree", "true", "type", "uniq", "wc", "which",
];

/// Git commands that only read.
const READ_GIT_COMMANDS: [&str; 12] = [
    "blame",
    "cat-file",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "reflog",
    "rev-parse",
    "show",
    "status",
];

/// Arguments with which a read command writes or runs something.
const WRITE_ARGUMENTS: [(&str, &[&str]); 3] = [
    (
        "find",
        &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint"],
    ),
    ("sort", &["-o", "--output"]),
    ("tree", &["-o"]),
];

/// Combines the effects of calls. Precedence: `Changed`, `Unknown`, `TimedOut`, `Unchanged`.
pub(super) fn combine(calls: impl Iterator<Item = ExternalChange>) -> ExternalChange {
    let mut combined = None;
    for call in calls {
        combined = Some(match (combined, call) {
            (Some(ExternalChange::Changed), _) | (_, ExternalChange::Changed) => {
                ExternalChange::Changed
            }
            (Some(ExternalChange::Unknown), _) | (_, ExternalChange::Unknown) => {
                ExternalChange::Unknown
            }
            (Some(ExternalChange::TimedOut), _) | (_, ExternalChange::TimedOut) => {
                ExternalChange::TimedOut
            }
            (None | Some(ExternalChange::Unchanged), ExternalChange::Unchanged) => {
                ExternalChange::Unchanged
            }
        });
    }
    combined.unwrap_or_default()
}

/// The edits of a turn. An edit that repeats the previous one with the same result changes nothing.
#[derive(Default)]
pub(super) struct EditTracker {
    last: Option<(Value, String)>,
}

impl EditTracker {
    /// Records a successful edit and returns its effect.
    pub(super) fn record_edit(&mut self, edit: &Call) -> ExternalChange {
        let repeats = self
            .last
            .as_ref()
            .is_some_and(|(input, output)| *input == edit.input && *output == edit.output);
        self.last = Some((edit.input.clone(), edit.output.clone()));
        if repeats {
            ExternalChange::Unchanged
        } else {
            ExternalChange::Changed
        }
    }
}

/// Whether a successful shell command is certainly a change: it moves or copies files, or writes a
/// here-document to a file.
pub(super) fn is_certain_change(command: &str) -> bool {
    let command = command.trim_start();
    if command.starts_with("cat >") && command.contains("<<") {
        return true;
    }
    let mut moves = false;
    let all_known = split_commands(command).is_some_and(|commands| {
        commands.iter().all(|words| {
            let is_move = match words.first().map(String::as_str) {
                Some("mv" | "cp") => true,
                Some("git") => words.get(1).is_some_and(|verb| verb == "mv"),
                Some(_) | None => false,
            };
            moves |= is_move;
            is_move || is_read_only(words)
        })
    });
    all_known && moves
}

/// The effect of a shell command, from its text alone.
pub(super) fn for_command(command: &str) -> ExternalChange {
    let reads = split_commands(command)
        .is_some_and(|commands| commands.iter().all(|words| is_read_only(words)));
    if reads {
        ExternalChange::Unchanged
    } else {
        ExternalChange::Unknown
    }
}

fn is_read_only(words: &[String]) -> bool {
    let Some((command, arguments)) = words.split_first() else {
        return true;
    };
    if command == "git" {
        let mut rest = arguments.iter();
        let mut verb = rest.next();
        while verb.is_some_and(|verb| verb == "-C") {
            verb = rest.nth(1);
        }
        return verb.is_some_and(|verb| READ_GIT_COMMANDS.contains(&verb.as_str()));
    }
    let writes = WRITE_ARGUMENTS
        .iter()
        .filter(|(name, _)| name == command)
        .flat_map(|(_, writes)| *writes);
    READ_COMMANDS.contains(&command.as_str())
        && !writes
            .into_iter()
            .any(|write| arguments.iter().any(|argument| argument == write))
}

/// Splits a command line into simple commands and their words. Returns `None` for substitutions,
/// redirections and groups.
fn split_commands(command: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let stripped = command
        .replace("2>/dev/null", "")
        .replace(">/dev/null", "")
        .replace("2>&1", "");
    for c in stripped.chars() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (Some('\''), _) => word.push(c),
            (_, '`' | '$') => return None,
            (Some(_), _) => word.push(c),
            (None, '<' | '>' | '(' | ')' | '{' | '}') => return None,
            (None, ';' | '&' | '|' | '\n') => {
                end_word(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, _) if c.is_whitespace() => end_word(&mut word, &mut commands),
            (None, _) => word.push(c),
        }
    }
    end_word(&mut word, &mut commands);
    quote.is_none().then_some(commands)
}

fn end_word(word: &mut String, commands: &mut [Vec<String>]) {
    if let Some(words) = commands.last_mut()
        && !word.is_empty()
    {
        words.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_command_changes_nothing() {
        for command in [
            "ls -la",
            "cat a.rs | grep -n 'fn main' | head -5",
            "cd src && git status; git log --oneline -5",
            "grep -r \"a > b\" . 2>/dev/null || echo 'none'",
            "git -C src diff HEAD~1 2>&1 | tail",
            "grep -o tide a",
            "sleep 5",
            "",
        ] {
            assert_eq!(for_command(command), ExternalChange::Unchanged, "{command}");
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
            "sort -o a b",
            "git checkout main",
            "git",
            "git -C src",
            "env make",
            "ls && make",
            "echo 'open",
            "lsof",
        ] {
            assert_eq!(for_command(command), ExternalChange::Unknown, "{command}");
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
            assert!(is_certain_change(command), "{command}");
        }
        for command in ["ls", "mv a b && make", "git status", "cat a"] {
            assert!(!is_certain_change(command), "{command}");
        }
    }

    #[test]
    fn combines_the_effects_of_all_calls() {
        use ExternalChange::{Changed, Unchanged, Unknown};
        for (calls, combined) in [
            (&[Unchanged, Unknown, Changed] as &[ExternalChange], Changed),
            (&[Unchanged, Unknown], Unknown),
            (&[Unchanged, Unchanged], Unchanged),
            (&[], Unknown),
        ] {
            assert_eq!(combine(calls.iter().copied()), combined, "{calls:?}");
        }
    }
}
