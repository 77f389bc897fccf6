//! What goes where, for each agent: the MCP server under the name `onward`, and a hook for every event
//! that is understood.
//!
//! A hook of ours is known by its command, which ends in `hook AGENT` and begins with a program whose
//! name begins with `onward`: so one that another copy of the binary has put in is replaced, and one
//! of somebody else is left alone.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toml_edit::Array;

use super::json::{Entry, Leniency};
use super::{Content, Home, Piece, Scope, toml};
use crate::hooks::Agent;

/// The name of the MCP server.
const SERVER: &str = "onward";
/// How long a hook may take, in seconds. It gives up by itself long before.
const TIMEOUT: i64 = 10;
/// The longest that Codex gives a hook at a session's end; it warns of more at every start.
const CODEX_END: i64 = 3;
/// How our own file begins.
pub(super) const PLUGIN_HEAD: &str = "// Onward's plugin for opencode.";
const PLUGIN: &str = include_str!("opencode.js");

/// The events of each agent.
const CLAUDE_CODE: [&str; 12] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "SessionEnd",
];
const CODEX: [&str; 9] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "SessionEnd",
];
const GEMINI: [&str; 7] = [
    "SessionStart",
    "BeforeAgent",
    "BeforeToolSelection",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "SessionEnd",
];
const KIMI: [&str; 10] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "StopFailure",
    "Interrupt",
    "SessionEnd",
];
const CURSOR: [&str; 7] = [
    "sessionStart",
    "beforeSubmitPrompt",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "stop",
    "sessionEnd",
];

/// The binary that the agent is to start.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: String,
}

impl Program {
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let path = path.to_str()?.to_owned();
        Some(Self { path })
    }

    /// The command of a hook, for a shell.
    fn hook(&self, agent: Agent) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        let program = match self.path.chars().all(plain) {
            true => self.path.clone(),
            false => format!("'{}'", self.path.replace('\'', r"'\''")),
        };
        format!("{program} {}", mark(agent))
    }
}

/// What a hook's command ends in.
fn mark(agent: Agent) -> String {
    format!("hook {}", agent.as_str())
}

/// Whether a command is one of our hooks.
fn is_ours(command: &str, mark: &str) -> bool {
    let Some(program) = command.strip_suffix(mark) else {
        return false;
    };
    let program = program.trim_end().trim_matches(['\'', '"']);
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.starts_with("onward")
}

/// Whether an entry of a list holds one of our hooks, as all that it holds.
fn holds_ours(entry: &Value, mark: &str) -> bool {
    let command = |hook: &Value| {
        let command = hook.get("command").and_then(Value::as_str);
        command.is_some_and(|command| is_ours(command, mark))
    };
    match entry.get("hooks").and_then(Value::as_array) {
        Some(hooks) => !hooks.is_empty() && hooks.iter().all(command),
        None => command(entry),
    }
}

/// Everything that belongs to an agent.
pub(super) fn of(agent: Agent, scope: Scope, home: &Home, program: &Program) -> Vec<Piece> {
    let user = scope == Scope::User;
    let below = |variable: &str, folder: &str| match user {
        true => relocated(variable).unwrap_or_else(|| home.user.join(folder)),
        false => home.project.join(folder),
    };
    match agent {
        Agent::ClaudeCode => {
            let servers = match (user, relocated("CLAUDE_CONFIG_DIR")) {
                (true, Some(folder)) => folder.join(".claude.json"),
                (true, None) => home.user.join(".claude.json"),
                (false, _) => home.project.join(".mcp.json"),
            };
            let settings = below("CLAUDE_CONFIG_DIR", ".claude").join("settings.json");
            vec![
                json_piece(servers, vec![server(program)], Leniency::Strict),
                json_piece(
                    settings,
                    nested_hooks(agent, &CLAUDE_CODE, TIMEOUT, program),
                    Leniency::Strict,
                ),
            ]
        }
        Agent::Codex => {
            let folder = below("CODEX_HOME", ".codex");
            vec![
                Piece {
                    path: folder.join("config.toml"),
                    content: Content::Toml(vec![toml_server(program)]),
                },
                json_piece(
                    folder.join("hooks.json"),
                    nested_hooks(agent, &CODEX, TIMEOUT, program),
                    Leniency::Strict,
                ),
            ]
        }
        Agent::Gemini => {
            let mut entries = vec![server(program)];
            entries.extend(nested_hooks(agent, &GEMINI, TIMEOUT * 1_000, program));
            let settings = below("", ".gemini").join("settings.json");
            vec![json_piece(settings, entries, Leniency::Comments)]
        }
        Agent::Kimi => {
            let folder = below("KIMI_CODE_HOME", ".kimi-code");
            let servers = folder.join("mcp.json");
            let mut pieces = vec![json_piece(servers, vec![server(program)], Leniency::Strict)];
            if user {
                pieces.push(Piece {
                    path: folder.join("config.toml"),
                    content: Content::Toml(listed_hooks(program)),
                });
            }
            pieces
        }
        Agent::Cursor => {
            let folder = below("", ".cursor");
            vec![
                json_piece(
                    folder.join("mcp.json"),
                    vec![server(program)],
                    Leniency::Comments,
                ),
                json_piece(
                    folder.join("hooks.json"),
                    flat_hooks(program),
                    Leniency::Comments,
                ),
            ]
        }
        Agent::Opencode => opencode(user, home, program),
    }
}

/// What a person has to know beside the files.
pub(crate) fn note(agent: Agent, scope: Scope) -> Option<&'static str> {
    match (agent, scope) {
        (Agent::Codex, _) => Some(
            "Codex asks whether it may trust these hooks when it starts next; until then it runs none of them, and `codex exec` does not ask",
        ),
        (Agent::Kimi, Scope::Project) => {
            Some("Kimi has hooks for the user alone: `--scope user` installs them")
        }
        (Agent::ClaudeCode | Agent::Gemini | Agent::Kimi | Agent::Cursor | Agent::Opencode, _) => {
            None
        }
    }
}

/// A folder that the environment has put elsewhere.
fn relocated(variable: &str) -> Option<PathBuf> {
    if variable.is_empty() {
        return None;
    }
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.filter(|folder| folder.is_absolute())
}

fn json_piece(path: PathBuf, entries: Vec<Entry>, leniency: Leniency) -> Piece {
    Piece {
        path,
        content: Content::Json { entries, leniency },
    }
}

fn server(program: &Program) -> Entry {
    Entry::Member {
        at: vec!["mcpServers"],
        name: SERVER,
        value: json!({ "command": program.path, "args": ["mcp"] }),
    }
}

fn toml_server(program: &Program) -> toml::Entry {
    toml::Entry::Table {
        above: "mcp_servers",
        name: SERVER,
        keys: vec![
            ("command", program.path.as_str().into()),
            ("args", Array::from_iter(["mcp"]).into()),
        ],
    }
}

fn nested_hooks(
    agent: Agent,
    events: &[&'static str],
    timeout: i64,
    program: &Program,
) -> Vec<Entry> {
    let entry = |event: &&'static str| {
        let timeout = match (agent, *event) {
            (Agent::Codex, "SessionEnd") => CODEX_END,
            _ => timeout,
        };
        let hook = json!({ "type": "command", "command": program.hook(agent), "timeout": timeout });
        Entry::Element {
            at: vec!["hooks", event],
            value: json!({ "hooks": [hook] }),
            is_ours: holds_ours,
            mark: mark(agent),
        }
    };
    events.iter().map(entry).collect()
}

fn flat_hooks(program: &Program) -> Vec<Entry> {
    let hook = json!({ "command": program.hook(Agent::Cursor), "timeout": TIMEOUT });
    let mut entries = vec![Entry::Needed {
        name: "version",
        value: 1.into(),
    }];
    entries.extend(CURSOR.iter().map(|event| Entry::Element {
        at: vec!["hooks", event],
        value: hook.clone(),
        is_ours: holds_ours,
        mark: mark(Agent::Cursor),
    }));
    entries
}

fn listed_hooks(program: &Program) -> Vec<toml::Entry> {
    let entry = |event: &&'static str| toml::Entry::Listed {
        name: "hooks",
        keys: vec![
            ("event", (*event).into()),
            ("command", program.hook(Agent::Kimi).into()),
            ("timeout", TIMEOUT.into()),
        ],
        is_ours,
        mark: mark(Agent::Kimi),
        by: "event",
    };
    KIMI.iter().map(entry).collect()
}

fn opencode(user: bool, home: &Home, program: &Program) -> Vec<Piece> {
    let configuration = relocated("XDG_CONFIG_HOME").unwrap_or_else(|| home.user.join(".config"));
    let (folder, plugins) = match user {
        true => {
            let folder = configuration.join("opencode");
            (folder.clone(), folder.join("plugins"))
        }
        false => (home.project.clone(), home.project.join(".opencode/plugins")),
    };
    let with_comments = folder.join("opencode.jsonc");
    let path = match with_comments.exists() {
        true => with_comments,
        false => folder.join("opencode.json"),
    };
    let server = Entry::Member {
        at: vec!["mcp"],
        name: SERVER,
        value: json!({ "type": "local", "command": [program.path, "mcp"], "enabled": true }),
    };
    let plugin = PLUGIN.replace(
        "\"{program}\"",
        &Value::from(program.path.as_str()).to_string(),
    );
    vec![
        json_piece(path, vec![server], Leniency::TrailingCommas),
        Piece {
            path: plugins.join("onward.js"),
            content: Content::Whole(plugin),
        },
    ]
}
