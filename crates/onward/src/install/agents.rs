//! The configuration files and entries of each agent: the MCP server `onward`, and a hook for every
//! supported event.
//!
//! A hook is Onward's if its command is a program whose name starts with `onward`, followed by
//! `hook AGENT` and possibly its database. Hooks that another copy of the binary installed are replaced; all others are kept.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toml_edit::Array;

use super::json::{Entry, Syntax};
use super::{ConfigFile, Content, Directories, Scope, texts, toml};
use crate::hooks::Agent;

/// The name of the MCP server.
const SERVER: &str = "onward";
/// Timeout of a hook, in seconds. The hook's own deadline is shorter.
const TIMEOUT: i64 = 10;
/// The maximum timeout of a `SessionEnd` hook in Codex, which prints a warning at every start if it
/// is longer.
const CODEX_SESSION_END_TIMEOUT: i64 = 3;
/// The beginning of the plugin, which identifies the file as Onward's.
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
const GEMINI: [&str; 8] = [
    "SessionStart",
    "BeforeAgent",
    "BeforeToolSelection",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "PreCompress",
    "SessionEnd",
];
const KIMI: [&str; 12] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PermissionResult",
    "PostToolUse",
    "PostToolUseFailure",
    "PostCompact",
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

/// Variables that select the database. Codex passes only listed variables to an MCP server, but all
/// to a hook.
const DATABASE_VARIABLES: [&str; 6] = [
    "ONWARD_DATABASE",
    "DATABASE_URL",
    "ONWARD_TENANT",
    "ONWARD_CONFIG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The `onward` binary that the agent starts, and the database that it uses.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: String,
    database: Option<String>,
}

impl Program {
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let path = path.to_str()?.to_owned();
        Some(Self {
            path,
            database: None,
        })
    }

    /// The program in the search path.
    pub(super) fn in_search_path() -> Self {
        Self {
            path: "onward".to_owned(),
            database: None,
        }
    }

    /// The program with a fixed database; `None` is the configured one.
    pub(crate) fn with_database(self, database: Option<String>) -> Self {
        Self { database, ..self }
    }

    /// A command of the program with its arguments.
    fn arguments<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = command.to_vec();
        if let Some(database) = &self.database {
            arguments.extend(["--database", database]);
        }
        arguments
    }

    /// The shell command of a hook.
    fn hook(&self, agent: Agent) -> String {
        let suffix = command_suffix(agent);
        let mut command = format!("{} {suffix}", shell_word(&self.path));
        for argument in self.arguments(&[]) {
            command.push(' ');
            command.push_str(&shell_word(argument));
        }
        command
    }
}

/// A word of a shell command, quoted if necessary.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The database in the configuration of an MCP server, if it has one.
pub(super) fn database_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("\"--database\"")?;
    let value = rest.trim_start_matches([',', ' ', '\n', '\r', '\t']);
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
    values.next()?.ok()
}

/// The end of a hook's command.
fn command_suffix(agent: Agent) -> String {
    format!("hook {}", agent.as_str())
}

/// Whether a command is a hook of Onward.
fn is_our_command(command: &str, suffix: &str) -> bool {
    let Some((program, options)) = command.split_once(suffix) else {
        return false;
    };
    if !options.is_empty() && !options.starts_with(" --database ") {
        return false;
    }
    let program = program.trim_end().trim_matches(['\'', '"']);
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.starts_with("onward")
}

/// Whether an element of an array of hooks contains only hooks of Onward.
fn is_our_element(element: &Value, suffix: &str) -> bool {
    let is_our_hook = |hook: &Value| {
        let command = hook.get("command").and_then(Value::as_str);
        command.is_some_and(|command| is_our_command(command, suffix))
    };
    match element.get("hooks").and_then(Value::as_array) {
        Some(hooks) => !hooks.is_empty() && hooks.iter().all(is_our_hook),
        None => is_our_hook(element),
    }
}

/// The files of an agent: its configuration, and the skill with its commands.
pub(super) fn files(
    agent: Agent,
    scope: Scope,
    directories: &Directories,
    program: &Program,
) -> Vec<ConfigFile> {
    let mut files = config_files(agent, scope, directories, program);
    let folder = agent_folder(agent, scope, directories);
    files.extend(texts::files(agent, scope, &folder));
    files
}

/// The configuration files of an agent.
pub(super) fn config_files(
    agent: Agent,
    scope: Scope,
    directories: &Directories,
    program: &Program,
) -> Vec<ConfigFile> {
    let user = scope == Scope::User;
    let config_folder = |variable: Option<&str>, folder: &str| {
        if user {
            variable
                .and_then(folder_from_env)
                .unwrap_or_else(|| directories.user.join(folder))
        } else {
            directories.project.join(folder)
        }
    };
    match agent {
        Agent::ClaudeCode => {
            let servers = match (user, folder_from_env("CLAUDE_CONFIG_DIR")) {
                (true, Some(folder)) => folder.join(".claude.json"),
                (true, None) => directories.user.join(".claude.json"),
                (false, _) => directories.project.join(".mcp.json"),
            };
            let settings =
                config_folder(Some("CLAUDE_CONFIG_DIR"), ".claude").join("settings.json");
            vec![
                json_file(servers, vec![server(program)], Syntax::Strict),
                json_file(settings, event_hooks(agent, program), Syntax::Strict),
            ]
        }
        Agent::Codex => {
            let folder = config_folder(Some("CODEX_HOME"), ".codex");
            vec![
                ConfigFile {
                    path: folder.join("config.toml"),
                    content: Content::Toml(vec![toml_server(program)]),
                },
                json_file(
                    folder.join("hooks.json"),
                    event_hooks(agent, program),
                    Syntax::Strict,
                ),
            ]
        }
        Agent::Gemini => {
            let mut entries = vec![server(program)];
            entries.extend(event_hooks(agent, program));
            let settings = config_folder(None, ".gemini").join("settings.json");
            vec![json_file(settings, entries, Syntax::Comments)]
        }
        Agent::Kimi => {
            let folder = config_folder(Some("KIMI_CODE_HOME"), ".kimi-code");
            let servers = folder.join("mcp.json");
            let mut files = vec![json_file(servers, vec![server(program)], Syntax::Strict)];
            if user {
                files.push(ConfigFile {
                    path: folder.join("config.toml"),
                    content: Content::Toml(toml_hooks(program)),
                });
            }
            files
        }
        Agent::Cursor => {
            let folder = config_folder(None, ".cursor");
            vec![
                json_file(
                    folder.join("mcp.json"),
                    vec![server(program)],
                    Syntax::Comments,
                ),
                json_file(
                    folder.join("hooks.json"),
                    flat_hooks(program),
                    Syntax::Comments,
                ),
            ]
        }
        Agent::Opencode => opencode(user, directories, program),
    }
}

/// The folder with the configuration of an agent.
pub(super) fn agent_folder(agent: Agent, scope: Scope, directories: &Directories) -> PathBuf {
    let (variable, folder) = match (agent, scope) {
        (Agent::ClaudeCode, _) => (Some("CLAUDE_CONFIG_DIR"), ".claude"),
        (Agent::Codex, _) => (Some("CODEX_HOME"), ".codex"),
        (Agent::Gemini, _) => (None, ".gemini"),
        (Agent::Kimi, _) => (Some("KIMI_CODE_HOME"), ".kimi-code"),
        (Agent::Cursor, _) => (None, ".cursor"),
        (Agent::Opencode, Scope::User) => {
            let home = folder_from_env("XDG_CONFIG_HOME");
            let home = home.unwrap_or_else(|| directories.user.join(".config"));
            return home.join("opencode");
        }
        (Agent::Opencode, Scope::Project) => (None, ".opencode"),
    };
    match scope {
        Scope::User => variable
            .and_then(folder_from_env)
            .unwrap_or_else(|| directories.user.join(folder)),
        Scope::Project => directories.project.join(folder),
    }
}

/// A message to the user after the installation.
pub(crate) fn post_install_note(agent: Agent, scope: Scope) -> Option<&'static str> {
    match (agent, scope) {
        (Agent::Codex, _) => Some(
            "Codex does not run new hooks until you trust them: start `codex` and confirm (`codex exec` does not ask)",
        ),
        (Agent::Kimi, Scope::Project) => {
            Some("Kimi supports hooks in the user scope only: install them with `--scope user`")
        }
        (Agent::ClaudeCode | Agent::Gemini | Agent::Kimi | Agent::Cursor | Agent::Opencode, _) => {
            None
        }
    }
}

/// An absolute path from an environment variable.
fn folder_from_env(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.filter(|folder| folder.is_absolute())
}

fn json_file(path: PathBuf, entries: Vec<Entry>, syntax: Syntax) -> ConfigFile {
    ConfigFile {
        path,
        content: Content::Json { entries, syntax },
    }
}

pub(super) fn server(program: &Program) -> Entry {
    Entry::Member {
        path: vec!["mcpServers"],
        name: SERVER,
        value: json!({ "command": program.path, "args": program.arguments(&["mcp"]) }),
    }
}

/// The server in a plugin of Codex, with the same keys as in its configuration.
pub(super) fn codex_server(program: &Program) -> Entry {
    Entry::Member {
        path: vec!["mcpServers"],
        name: SERVER,
        value: json!({
            "command": program.path,
            "args": program.arguments(&["mcp"]),
            "env_vars": DATABASE_VARIABLES,
        }),
    }
}

fn toml_server(program: &Program) -> toml::Entry {
    toml::Entry::Table {
        parent: "mcp_servers",
        name: SERVER,
        keys: vec![
            ("command", program.path.as_str().into()),
            ("args", Array::from_iter(program.arguments(&["mcp"])).into()),
            ("env_vars", Array::from_iter(DATABASE_VARIABLES).into()),
        ],
    }
}

/// The hooks of Claude Code, Codex and Gemini CLI, whose files have the same structure. The others
/// have none.
pub(super) fn event_hooks(agent: Agent, program: &Program) -> Vec<Entry> {
    let events: &[&'static str] = match agent {
        Agent::ClaudeCode => &CLAUDE_CODE,
        Agent::Codex => &CODEX,
        Agent::Gemini => &GEMINI,
        Agent::Kimi | Agent::Cursor | Agent::Opencode => &[],
    };
    let entry = |event: &&'static str| {
        let timeout = match (agent, *event) {
            (Agent::Codex, "SessionEnd") => CODEX_SESSION_END_TIMEOUT,
            // In milliseconds.
            (Agent::Gemini, _) => TIMEOUT * 1_000,
            _ => TIMEOUT,
        };
        let hook = json!({ "type": "command", "command": program.hook(agent), "timeout": timeout });
        Entry::Element {
            path: vec!["hooks", event],
            value: json!({ "hooks": [hook] }),
            is_ours: is_our_element,
            suffix: command_suffix(agent),
        }
    };
    events.iter().map(entry).collect()
}

fn flat_hooks(program: &Program) -> Vec<Entry> {
    let hook = json!({ "command": program.hook(Agent::Cursor), "timeout": TIMEOUT });
    let mut entries = vec![Entry::Required {
        name: "version",
        value: 1.into(),
    }];
    entries.extend(CURSOR.iter().map(|event| Entry::Element {
        path: vec!["hooks", event],
        value: hook.clone(),
        is_ours: is_our_element,
        suffix: command_suffix(Agent::Cursor),
    }));
    entries
}

fn toml_hooks(program: &Program) -> Vec<toml::Entry> {
    let entry = |event: &&'static str| toml::Entry::Element {
        name: "hooks",
        keys: vec![
            ("event", (*event).into()),
            ("command", program.hook(Agent::Kimi).into()),
            ("timeout", TIMEOUT.into()),
        ],
        is_ours: is_our_command,
        suffix: command_suffix(Agent::Kimi),
        id: "event",
    };
    KIMI.iter().map(entry).collect()
}

fn opencode(user: bool, directories: &Directories, program: &Program) -> Vec<ConfigFile> {
    let config_home =
        folder_from_env("XDG_CONFIG_HOME").unwrap_or_else(|| directories.user.join(".config"));
    let (folder, plugins) = if user {
        let folder = config_home.join("opencode");
        (folder.clone(), folder.join("plugins"))
    } else {
        let project = &directories.project;
        (project.clone(), project.join(".opencode/plugins"))
    };
    let jsonc = folder.join("opencode.jsonc");
    let path = if jsonc.exists() {
        jsonc
    } else {
        folder.join("opencode.json")
    };
    let server = Entry::Member {
        path: vec!["mcp"],
        name: SERVER,
        value: json!({
            "type": "local",
            "command": program.arguments(&[program.path.as_str(), "mcp"]),
            "enabled": true,
        }),
    };
    let arguments = program.arguments(&["hook", Agent::Opencode.as_str()]);
    let plugin = PLUGIN
        .replace(
            "\"{program}\"",
            &Value::from(program.path.as_str()).to_string(),
        )
        .replace("[\"{arguments}\"]", &json!(arguments).to_string());
    vec![
        json_file(path, vec![server], Syntax::TrailingCommas),
        ConfigFile {
            path: plugins.join("onward.js"),
            content: Content::Whole(plugin),
        },
    ]
}
