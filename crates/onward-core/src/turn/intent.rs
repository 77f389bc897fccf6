//! The purpose of a call, from its tool name and input: reading, editing, acting or anything else.
//!
//! The purpose decides how an unremarkable output is judged. A search without a match has no
//! new output; a command without output may have had an effect; a call that acts has done so if it
//! succeeds, whatever it prints. An unknown call counts as one that may have an effect, which is
//! the more lenient judgement.

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
    /// Acting on something outside the working tree: a task board, a database, a cluster, a page.
    Act,
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

/// Verbs in the names of tools and subcommands that act.
const ACT_VERBS: [&str; 131] = [
    "add",
    "annotate",
    "answer",
    "apply",
    "approve",
    "archive",
    "ask",
    "assign",
    "attach",
    "ban",
    "binstall",
    "book",
    "cancel",
    "change",
    "clear",
    "click",
    "close",
    "comment",
    "complete",
    "configure",
    "cordon",
    "create",
    "deactivate",
    "activate",
    "delete",
    "deploy",
    "destroy",
    "disable",
    "dispatch",
    "drag",
    "drain",
    "drop",
    "enable",
    "evict",
    "fill",
    "flush",
    "grant",
    "hover",
    "import",
    "insert",
    "install",
    "invite",
    "label",
    "launch",
    "link",
    "lock",
    "mark",
    "merge",
    "move",
    "mute",
    "notify",
    "patch",
    "pin",
    "post",
    "press",
    "promote",
    "publish",
    "purge",
    "push",
    "put",
    "register",
    "reject",
    "reload",
    "remove",
    "rename",
    "reopen",
    "reply",
    "reset",
    "resolve",
    "restart",
    "resume",
    "retag",
    "revoke",
    "rotate",
    "save",
    "scale",
    "schedule",
    "select",
    "send",
    "set",
    "spawn",
    "start",
    "stop",
    "store",
    "submit",
    "subscribe",
    "tag",
    "toggle",
    "transfer",
    "trigger",
    "type",
    "unassign",
    "uninstall",
    "unlock",
    "update",
    "upgrade",
    "upload",
    "accept",
    "acknowledge",
    "backup",
    "checkout",
    "commit",
    "confirm",
    "decline",
    "dismiss",
    "edit",
    "escalate",
    "follow",
    "fork",
    "kill",
    "migrate",
    "modify",
    "provision",
    "react",
    "reboot",
    "record",
    "release",
    "renew",
    "report",
    "restore",
    "rollback",
    "share",
    "snooze",
    "suspend",
    "swipe",
    "tap",
    "terminate",
    "transition",
    "undo",
    "unsubscribe",
    "vote",
];
/// Verbs in subcommands that read.
const READ_VERBS: [&str; 18] = [
    "get", "list", "ls", "show", "view", "describe", "status", "info", "inspect", "logs", "search",
    "find", "query", "ps", "top", "help", "version", "history",
];
/// First words of statements in a query language that act, and that read.
const ACT_STATEMENTS: [&str; 10] = [
    "update", "insert", "delete", "alter", "create", "drop", "grant", "revoke", "merge", "truncate",
];
const READ_STATEMENTS: [&str; 5] = ["select", "explain", "show", "pragma", "describe"];
/// The number of words at the start of a command that may contain its verb.
const VERB_WORDS: usize = 6;

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
    if line == Intent::Other {
        tool_intent(&words)
    } else {
        line
    }
}

/// The purpose of a tool, by the first verb in its name.
fn tool_intent(words: &[String]) -> Intent {
    let verb = |word: &String| {
        if READ_TOOLS.contains(&word.as_str()) {
            Some(Intent::Read)
        } else if ACT_VERBS.contains(&word.as_str()) || EDIT_TOOLS.contains(&word.as_str()) {
            Some(Intent::Act)
        } else {
            None
        }
    };
    if words.iter().any(|word| word == "stdin") {
        return Intent::Other;
    }
    words.iter().find_map(verb).unwrap_or(Intent::Other)
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
        .map(likely_intent)
        .fold(Intent::Read, |line, command| match (line, command) {
            (Intent::ShellWrite, _) | (_, Intent::ShellWrite) => Intent::ShellWrite,
            (Intent::Act, _) | (_, Intent::Act) => Intent::Act,
            (Intent::Read, Intent::Read) => Intent::Read,
            (Intent::Read | Intent::Other | Intent::Edit, _) => Intent::Other,
        })
}

/// The purpose of a command, by its name.
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

/// The purpose of a command, guessed from its arguments if its name is ambiguous.
fn likely_intent(command: &SimpleCommand) -> Intent {
    let intent = command_intent(command);
    if intent != Intent::Other {
        return intent;
    }
    match command.name() {
        "ssh" | "sudo" | "bash" | "sh" | "zsh" => nested_intent(command),
        "curl" | "http" | "wget" => request_intent(command),
        _ => verb_intent(command),
    }
}

/// The purpose of a command in the arguments of another: `ssh host 'systemctl restart a'`.
fn nested_intent(command: &SimpleCommand) -> Intent {
    match command.name() {
        "sudo" => {
            let rest = command.words.iter().skip(1);
            let words = rest.skip_while(|word| word.text.starts_with('-')).cloned();
            let inner = SimpleCommand {
                words: words.collect(),
                ..SimpleCommand::default()
            };
            if inner.words.is_empty() {
                Intent::Other
            } else {
                likely_intent(&inner)
            }
        }
        _ => match command.arguments().last() {
            Some(line) if line.contains(' ') => line_intent(line),
            Some(_) | None => Intent::Other,
        },
    }
}

/// The purpose of an HTTP request: its method, or a body, or a file to write to.
fn request_intent(command: &SimpleCommand) -> Intent {
    const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];
    let acts = |word: &str| {
        METHODS.iter().any(|method| word.ends_with(method))
            || matches!(word, "-d" | "-F" | "-T" | "--form" | "--upload-file")
            || word.starts_with("--data")
            || word.starts_with("--json")
    };
    if command.arguments().any(acts) {
        Intent::Act
    } else {
        Intent::Other
    }
}

/// The purpose of a program by the first verb among its arguments, or by its statement:
/// `kubectl apply`, `aws rds describe-db-instances`, `psql -c 'update …'`.
fn verb_intent(command: &SimpleCommand) -> Intent {
    for word in command.arguments().take(VERB_WORDS) {
        if let Some((first, _)) = word.trim_start().split_once([' ', '\n']) {
            let first = first.to_lowercase();
            if ACT_STATEMENTS.contains(&first.as_str()) {
                return Intent::Act;
            }
            if READ_STATEMENTS.contains(&first.as_str()) {
                return Intent::Read;
            }
            continue;
        }
        if word.starts_with('-') || word.contains(['/', '.', '=']) {
            continue;
        }
        for part in word.split(['-', ':', '_']) {
            if part == "i" || ACT_VERBS.contains(&part) {
                return Intent::Act;
            }
            if READ_VERBS.contains(&part) {
                return Intent::Read;
            }
        }
    }
    Intent::Other
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
pub(super) fn name_words(name: &str) -> Vec<String> {
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
    leaves(input).filter_map(Value::as_str)
}

/// All values in an input that have no parts.
fn leaves(input: &Value) -> impl Iterator<Item = &Value> {
    let mut open = vec![input];
    std::iter::from_fn(move || {
        loop {
            match open.pop()? {
                Value::Array(items) => open.extend(items.iter().rev()),
                Value::Object(fields) => open.extend(fields.values().rev()),
                leaf @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                    return Some(leaf);
                }
            }
        }
    })
}
