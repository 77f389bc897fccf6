//! The purpose of a call, from its tool name and input: reading, editing or anything else.
//!
//! The purpose decides how an unremarkable output is judged. A search without a match has no
//! new output; a command without output may have had an effect. An unknown call counts as one that
//! may have an effect, which is the more lenient judgement.

use serde_json::Value;

use super::Call;
use super::shell::{SimpleCommand, split};

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Reading, without changes.
    Read,
    /// Changing a file with an edit tool.
    Edit,
    /// Changing files with a shell command.
    ShellWrite,
    /// Anything else.
    Other,
}

/// Words in the names of shell tools.
const SHELL_TOOLS: [&str; 7] = ["bash", "shell", "sh", "exec", "terminal", "command", "cmd"];
/// Words in the names of edit tools, and words that exclude a tool.
const EDIT_TOOLS: [&str; 8] = [
    "edit", "editor", "write", "patch", "replace", "create", "insert", "append",
];
const NOT_EDIT_TOOLS: [&str; 5] = ["todo", "task", "stdin", "issue", "plan"];
/// Words in the names of read tools.
const READ_TOOLS: [&str; 17] = [
    "read", "grep", "glob", "search", "find", "list", "ls", "view", "open", "goto", "scroll",
    "get", "fetch", "visit", "show", "query", "inspect",
];

/// Commands that only read.
const READ_COMMANDS: [&str; 62] = [
    "ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "ag", "find", "fd", "wc", "stat",
    "file", "which", "type", "whereis", "locate", "du", "df", "pwd", "tree", "less", "more", "awk",
    "sort", "uniq", "cut", "tr", "diff", "cmp", "od", "xxd", "hexdump", "strings", "jq", "yq",
    "ps", "date", "uptime", "free", "env", "printenv", "id", "whoami", "uname", "hostname",
    "nproc", "test", "[", "echo", "printf", "true", "false", ":", "basename", "dirname",
    "realpath", "readlink", "column", "sleep", "nl",
];
/// Commands that change files.
const WRITE_COMMANDS: [&str; 14] = [
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
/// Git subcommands that only read. Others write.
const GIT_READ: [&str; 13] = [
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
/// Git subcommands that read or write, depending on their arguments.
const GIT_MIXED: [&str; 4] = ["branch", "remote", "config", "tag"];

/// The purpose of a call.
pub(crate) fn intent(call: &Call<'_>) -> Intent {
    let words = name_words(call.tool);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(&EDIT_TOOLS) && !has(&NOT_EDIT_TOOLS) {
        // A combined editor tool has `view` as one of its commands.
        return match call.input.get("command").and_then(Value::as_str) {
            Some("view") => Intent::Read,
            Some(_) | None => Intent::Edit,
        };
    }
    let line = command_line(call).map_or(Intent::Other, line_intent);
    if line == Intent::Other && has(&READ_TOOLS) {
        Intent::Read
    } else {
        line
    }
}

/// A command line reads if all its commands do, and writes if any does. `cd` counts for neither,
/// unless it is the only command.
fn line_intent(line: &str) -> Intent {
    let commands = split(line);
    let mut steps = commands
        .iter()
        .filter(|command| command.name() != "cd")
        .peekable();
    if steps.peek().is_none() {
        return Intent::Other;
    }
    steps
        .map(command_intent)
        .fold(Intent::Read, |line, command| match (line, command) {
            (Intent::ShellWrite, _) | (_, Intent::ShellWrite) => Intent::ShellWrite,
            (Intent::Read, Intent::Read) => Intent::Read,
            (Intent::Read | Intent::Other | Intent::Edit, _) => Intent::Other,
        })
}

pub(super) fn command_intent(command: &SimpleCommand) -> Intent {
    if command.writes_to.is_some() {
        return Intent::ShellWrite;
    }
    let name = command.name();
    match name {
        "git" => {
            let verb = git_verb(command);
            if GIT_READ.contains(&verb) {
                Intent::Read
            } else if GIT_MIXED.contains(&verb) {
                Intent::Other
            } else {
                Intent::ShellWrite
            }
        }
        "sed" | "perl" if command.arguments().any(|word| word.starts_with("-i")) => {
            Intent::ShellWrite
        }
        "sed" => Intent::Read,
        "xargs" => {
            let run = command
                .arguments()
                .find(|word| !word.starts_with('-'))
                .unwrap_or("");
            if READ_COMMANDS.contains(&run) {
                Intent::Read
            } else {
                Intent::Other
            }
        }
        _ if READ_COMMANDS.contains(&name) => Intent::Read,
        _ if WRITE_COMMANDS.contains(&name) => Intent::ShellWrite,
        _ => Intent::Other,
    }
}

/// The subcommand of a git command, after its options; empty if there is none.
pub(super) fn git_verb(command: &SimpleCommand) -> &str {
    let mut arguments = command.arguments();
    while let Some(word) = arguments.next() {
        match word {
            "-C" | "-c" => {
                arguments.next();
            }
            _ if word.starts_with('-') => {}
            _ => return word,
        }
    }
    ""
}

/// The command line of a call: the input if it is a string, otherwise the command field of a shell
/// tool.
pub(crate) fn command_line<'a>(call: &Call<'a>) -> Option<&'a str> {
    if let Value::String(line) = call.input {
        return Some(line);
    }
    let words = name_words(call.tool);
    let shell = words
        .iter()
        .any(|word| SHELL_TOOLS.contains(&word.as_str()));
    let fields = ["command", "cmd", "script"];
    let line = fields.iter().find_map(|field| call.input.get(field));
    match line.filter(|_| shell)? {
        Value::String(line) => Some(line),
        // `["bash", "-lc", "…"]`: the last argument is the command line.
        Value::Array(words) => words.last().and_then(Value::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The words of a tool's name: `mcp__files__readFile` gives `mcp`, `files`, `read`, `file`.
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

/// All strings in an input, without field names.
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
