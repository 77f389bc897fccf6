//! What a call is for, as far as its name and its input say: to look, to change a file, or something
//! else.
//!
//! The answer decides only how an *unremarkable* result is read. A search that finds nothing taught
//! nothing; a command that says nothing may have done something. Where nobody knows, a call is taken
//! to act, which is the milder reading.

use serde_json::Value;

use super::Call;
use super::shell::{Simple, split};

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// To look at something. It changes nothing.
    Look,
    /// To change a file with a tool that is made for it.
    Edit,
    /// To change files with a shell command that is made for it.
    Write,
    /// Anything else.
    Act,
}

/// Tools that hand a line to a shell.
const SHELLS: [&str; 7] = ["bash", "shell", "sh", "exec", "terminal", "command", "cmd"];
/// Words in the names of tools that change files, and of those that only sound like it.
const EDITS: [&str; 8] = [
    "edit", "editor", "write", "patch", "replace", "create", "insert", "append",
];
const NO_EDITS: [&str; 5] = ["todo", "task", "stdin", "issue", "plan"];
/// Words in the names of tools that look.
const LOOKS: [&str; 17] = [
    "read", "grep", "glob", "search", "find", "list", "ls", "view", "open", "goto", "scroll",
    "get", "fetch", "visit", "show", "query", "inspect",
];

/// Commands that look and change nothing.
const LOOKING: [&str; 62] = [
    "ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "ag", "find", "fd", "wc", "stat",
    "file", "which", "type", "whereis", "locate", "du", "df", "pwd", "tree", "less", "more", "awk",
    "sort", "uniq", "cut", "tr", "diff", "cmp", "od", "xxd", "hexdump", "strings", "jq", "yq",
    "ps", "date", "uptime", "free", "env", "printenv", "id", "whoami", "uname", "hostname",
    "nproc", "test", "[", "echo", "printf", "true", "false", ":", "basename", "dirname",
    "realpath", "readlink", "column", "sleep", "nl",
];
/// Commands that change files.
const WRITING: [&str; 14] = [
    "mv",
    "cp",
    "rm",
    "mkdir",
    "rmdir",
    "touch",
    "ln",
    "tee",
    "patch",
    "chmod",
    "chown",
    "dd",
    "truncate",
    "apply_patch",
];
/// What git can be asked without changing anything; the rest of it writes.
const GIT_LOOKS: [&str; 13] = [
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "blame",
    "grep",
    "describe",
    "cat-file",
    "reflog",
    "shortlog",
    "ls-tree",
];
/// Git's verbs that can do either.
const GIT_EITHER: [&str; 4] = ["branch", "remote", "config", "tag"];

/// What a call is for.
pub(crate) fn intent(call: &Call<'_>) -> Intent {
    let words = name_words(call.tool);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(&EDITS) && !has(&NO_EDITS) {
        // One editor for everything: `view` is one of its commands.
        return match call.input.get("command").and_then(Value::as_str) {
            Some("view") => Intent::Look,
            Some(_) | None => Intent::Edit,
        };
    }
    let line = command_line(call).map_or(Intent::Act, intent_of_line);
    match line == Intent::Act && has(&LOOKS) {
        true => Intent::Look,
        false => line,
    }
}

/// A line looks if all its commands do, and writes if any does. Going somewhere on the way counts for
/// neither; going somewhere is all that a lone `cd` does.
fn intent_of_line(line: &str) -> Intent {
    let commands = split(line);
    let mut steps = commands
        .iter()
        .filter(|command| command.name() != "cd")
        .peekable();
    if steps.peek().is_none() {
        return Intent::Act;
    }
    steps
        .map(intent_of_command)
        .fold(Intent::Look, |line, command| match (line, command) {
            (Intent::Write, _) | (_, Intent::Write) => Intent::Write,
            (Intent::Look, Intent::Look) => Intent::Look,
            (Intent::Look | Intent::Act | Intent::Edit, _) => Intent::Act,
        })
}

fn intent_of_command(command: &Simple) -> Intent {
    if command.writes_to.is_some() {
        return Intent::Write;
    }
    let name = command.name();
    match name {
        "git" => {
            let verb = command
                .arguments()
                .find(|word| !word.starts_with('-'))
                .unwrap_or("");
            if GIT_LOOKS.contains(&verb) {
                Intent::Look
            } else if GIT_EITHER.contains(&verb) {
                Intent::Act
            } else {
                Intent::Write
            }
        }
        "sed" | "perl" if command.arguments().any(|word| word.starts_with("-i")) => Intent::Write,
        "sed" => Intent::Look,
        "xargs" => {
            let run = command
                .arguments()
                .find(|word| !word.starts_with('-'))
                .unwrap_or("");
            match LOOKING.contains(&run) {
                true => Intent::Look,
                false => Intent::Act,
            }
        }
        _ if LOOKING.contains(&name) => Intent::Look,
        _ if WRITING.contains(&name) => Intent::Write,
        _ => Intent::Act,
    }
}

/// The command line of a call: the whole input where it is a text, the field that holds it where the
/// tool is a shell.
pub(crate) fn command_line<'a>(call: &Call<'a>) -> Option<&'a str> {
    if let Value::String(line) = call.input {
        return Some(line);
    }
    let words = name_words(call.tool);
    let shell = words.iter().any(|word| SHELLS.contains(&word.as_str()));
    let fields = ["command", "cmd", "script"];
    let line = fields.iter().find_map(|field| call.input.get(field));
    match line.filter(|_| shell)? {
        Value::String(line) => Some(line),
        // `["bash", "-lc", "…"]`: the last word is the line.
        Value::Array(words) => words.last().and_then(Value::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The words of a tool's name: `mcp__files__readFile` is `mcp`, `files`, `read`, `file`.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase();
    }
    words
}

/// Every text in an input, the names of fields left out.
pub(crate) fn input_texts(input: &Value) -> impl Iterator<Item = &str> {
    let mut open = vec![input];
    std::iter::from_fn(move || {
        loop {
            match open.pop()? {
                Value::String(text) => return Some(text.as_str()),
                Value::Array(items) => open.extend(items.iter().rev()),
                Value::Object(fields) => open.extend(fields.values().rev()),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    })
}
