//! What a log lets one say about the world outside: whether a step changed it.
//!
//! Only what leaves no doubt is said. An accepted edit is a change, a refused one is none, a
//! command made of reading commands only is none; what any other command did, nobody knows.
//! A live agent has a better signal, the fingerprint of its working tree.

use onward_core::turn::Outside;
use serde_json::Value;

use super::Call;

/// Commands that only read, whatever their arguments (but see [`WRITES`]).
const READING: [&str; 43] = [
    ":", "[", "basename", "cat", "cd", "column", "cut", "date", "df", "diff", "dirname", "du",
    "echo", "false", "file", "find", "grep", "head", "hexdump", "hostname", "id", "jq", "ls", "nl",
    "od", "printenv", "printf", "ps", "pwd", "realpath", "rg", "sleep", "sort", "stat", "tail",
    "test", "tr", "tree", "true", "type", "uniq", "wc", "which",
];

/// What git can be asked without changing anything.
const READING_GIT: [&str; 12] = [
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

/// Arguments by which a reading command writes or runs something after all.
const WRITES: [(&str, &[&str]); 3] = [
    (
        "find",
        &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint"],
    ),
    ("sort", &["-o", "--output"]),
    ("tree", &["-o"]),
];

/// What all the calls of a step say together: one change is a change, one doubt is a doubt.
pub(super) fn of_calls(calls: impl Iterator<Item = Outside>) -> Outside {
    let mut sum = None;
    for call in calls {
        sum = Some(match (sum, call) {
            (Some(Outside::Changed), _) | (_, Outside::Changed) => Outside::Changed,
            (Some(Outside::Unknown), _) | (_, Outside::Unknown) => Outside::Unknown,
            (Some(Outside::Late), _) | (_, Outside::Late) => Outside::Late,
            (None | Some(Outside::Same), Outside::Same) => Outside::Same,
        });
    }
    sum.unwrap_or_default()
}

/// The edits of a turn. One that repeats the last one and shows the same result changed nothing.
#[derive(Default)]
pub(super) struct Edits {
    last: Option<(Value, String)>,
}

impl Edits {
    /// What an accepted edit says.
    pub(super) fn accepted(&mut self, edit: &Call) -> Outside {
        let repeats = self
            .last
            .as_ref()
            .is_some_and(|(input, output)| *input == edit.input && *output == edit.output);
        self.last = Some((edit.input.clone(), edit.output.clone()));
        if repeats {
            Outside::Same
        } else {
            Outside::Changed
        }
    }
}

/// Whether a shell command that succeeded can only have changed something: files are moved or
/// copied, or a text is written to one.
pub(super) fn surely_changes(command: &str) -> bool {
    let command = command.trim_start();
    if command.starts_with("cat >") && command.contains("<<") {
        return true;
    }
    let mut moves = false;
    let known = pieces(command).is_some_and(|pieces| {
        pieces.iter().all(|words| {
            let is_move = match words.first().map(String::as_str) {
                Some("mv" | "cp") => true,
                Some("git") => words.get(1).is_some_and(|verb| verb == "mv"),
                Some(_) | None => false,
            };
            moves |= is_move;
            is_move || only_reads(words)
        })
    });
    known && moves
}

/// What a shell command says by its words alone.
pub(super) fn of_command(command: &str) -> Outside {
    let reads = pieces(command).is_some_and(|pieces| pieces.iter().all(|words| only_reads(words)));
    if reads {
        Outside::Same
    } else {
        Outside::Unknown
    }
}

fn only_reads(words: &[String]) -> bool {
    let Some((command, arguments)) = words.split_first() else {
        return true;
    };
    if command == "git" {
        let mut rest = arguments.iter();
        let mut verb = rest.next();
        while verb.is_some_and(|verb| verb == "-C") {
            verb = rest.nth(1);
        }
        return verb.is_some_and(|verb| READING_GIT.contains(&verb.as_str()));
    }
    let writes = WRITES
        .iter()
        .filter(|(name, _)| name == command)
        .flat_map(|(_, writes)| *writes);
    READING.contains(&command.as_str())
        && !writes
            .into_iter()
            .any(|write| arguments.iter().any(|argument| argument == write))
}

/// The simple commands of a line, as words; none where it does more than the eye can follow:
/// substitutions, files written to, text fed in.
fn pieces(command: &str) -> Option<Vec<Vec<String>>> {
    let mut pieces = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let quiet = command
        .replace("2>/dev/null", "")
        .replace(">/dev/null", "")
        .replace("2>&1", "");
    for c in quiet.chars() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (Some('\''), _) => word.push(c),
            (_, '`' | '$') => return None,
            (Some(_), _) => word.push(c),
            (None, '<' | '>' | '(' | ')' | '{' | '}') => return None,
            (None, ';' | '&' | '|' | '\n') => {
                end_word(&mut word, &mut pieces);
                pieces.push(Vec::new());
            }
            (None, _) if c.is_whitespace() => end_word(&mut word, &mut pieces),
            (None, _) => word.push(c),
        }
    }
    end_word(&mut word, &mut pieces);
    quote.is_none().then_some(pieces)
}

fn end_word(word: &mut String, pieces: &mut [Vec<String>]) {
    if let Some(piece) = pieces.last_mut()
        && !word.is_empty()
    {
        piece.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_only_read_change_nothing() {
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
            assert_eq!(of_command(command), Outside::Same, "{command}");
        }
    }

    #[test]
    fn what_another_command_did_is_unknown() {
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
            assert_eq!(of_command(command), Outside::Unknown, "{command}");
        }
    }

    #[test]
    fn moving_copying_and_writing_a_text_are_changes() {
        for command in [
            "mv a b",
            "cd src && git mv a b && ls",
            "cp a b",
            "cat > a <<'EOF'\ntext\nEOF",
        ] {
            assert!(surely_changes(command), "{command}");
        }
        for command in ["ls", "mv a b && make", "git status", "cat a"] {
            assert!(!surely_changes(command), "{command}");
        }
    }

    #[test]
    fn one_change_is_a_change_and_one_doubt_is_a_doubt() {
        use Outside::{Changed, Same, Unknown};
        for (calls, sum) in [
            (&[Same, Unknown, Changed] as &[Outside], Changed),
            (&[Same, Unknown], Unknown),
            (&[Same, Same], Same),
            (&[], Unknown),
        ] {
            assert_eq!(of_calls(calls.iter().copied()), sum, "{calls:?}");
        }
    }
}
