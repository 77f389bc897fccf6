//! Plugins for Claude Code, Codex and Gemini CLI: the same entries and texts as `onward install`
//! writes, in one directory per agent, with the catalogs from which the agents install them.
//!
//! The files are in the repository. They start `onward` from the search path, because a plugin does
//! not know where the program is.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::agents::{self, Program};
use super::json::{self as json_text, Syntax};
use super::{Content, Scope, texts};
use crate::failure::{Failure, Result};
use crate::hooks::Agent;

/// The name of the plugin and of its catalogs.
const NAME: &str = "onward";
const DESCRIPTION: &str =
    "Durable plans for AI agents, with detection and recovery of stalled work";
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// A file of a plugin or a catalog.
pub(crate) struct PluginFile {
    /// The path, relative to the root of the repository.
    pub(crate) path: PathBuf,
    /// The content.
    pub(crate) text: String,
}

/// All files of the plugins.
pub(crate) fn plugin_files() -> Result<Vec<PluginFile>> {
    let mut files = vec![
        manifest(".claude-plugin/marketplace.json", &claude_catalog()),
        manifest(".agents/plugins/marketplace.json", &codex_catalog()),
    ];
    files.extend(claude_code()?);
    files.extend(codex()?);
    files.extend(gemini()?);
    Ok(files)
}

fn claude_code() -> Result<Vec<PluginFile>> {
    let (agent, root) = (Agent::ClaudeCode, Path::new("plugins/claude-code"));
    let program = Program::in_search_path();
    let mut files = vec![
        manifest(root.join(".claude-plugin/plugin.json"), &metadata()),
        entries(root.join(".mcp.json"), &[agents::server(&program)])?,
        entries(
            root.join("hooks/hooks.json"),
            &agents::event_hooks(agent, &program),
        )?,
    ];
    // The name of the plugin is the prefix of its commands: `/onward:plan`.
    files.extend(written_texts(agent, root).map(|mut file| {
        if let Ok(name) = file.path.strip_prefix(root.join("commands/onward")) {
            file.path = root.join("commands").join(name);
        }
        file
    }));
    Ok(files)
}

fn codex() -> Result<Vec<PluginFile>> {
    let (agent, root) = (Agent::Codex, Path::new("plugins/codex"));
    let program = Program::in_search_path();
    let mut plugin = metadata();
    plugin["skills"] = "./skills/".into();
    plugin["mcpServers"] = "./.mcp.json".into();
    plugin["hooks"] = "./hooks/hooks.json".into();
    plugin["interface"] = json!({
        "displayName": "Onward",
        "shortDescription": DESCRIPTION,
        "developerName": "Onward",
        "category": "Productivity",
        "websiteURL": REPOSITORY,
    });
    let mut files = vec![
        manifest(root.join(".codex-plugin/plugin.json"), &plugin),
        entries(root.join(".mcp.json"), &[agents::codex_server(&program)])?,
        entries(
            root.join("hooks/hooks.json"),
            &agents::event_hooks(agent, &program),
        )?,
    ];
    // A plugin of Codex has no prompts.
    let prompts = root.join("prompts");
    let texts = written_texts(agent, root);
    files.extend(texts.filter(|file| !file.path.starts_with(&prompts)));
    Ok(files)
}

fn gemini() -> Result<Vec<PluginFile>> {
    let (agent, root) = (Agent::Gemini, Path::new("plugins/gemini"));
    let program = Program::in_search_path();
    let extension = json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
    });
    let mut files = vec![
        edited(
            root.join("gemini-extension.json"),
            &pretty(&extension),
            &[agents::server(&program)],
        )?,
        entries(
            root.join("hooks/hooks.json"),
            &agents::event_hooks(agent, &program),
        )?,
    ];
    files.extend(written_texts(agent, root));
    Ok(files)
}

/// The metadata of a plugin of Claude Code, which Codex shares.
fn metadata() -> Value {
    json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "author": { "name": "Onward", "url": REPOSITORY },
        "homepage": REPOSITORY,
        "repository": REPOSITORY,
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["planning", "agents", "durable-execution"],
    })
}

fn claude_catalog() -> Value {
    json!({
        "name": NAME,
        "owner": { "name": "Onward", "url": REPOSITORY },
        "metadata": { "description": DESCRIPTION },
        "plugins": [{
            "name": NAME,
            "source": "./plugins/claude-code",
            "description": DESCRIPTION,
            "category": "productivity",
        }],
    })
}

fn codex_catalog() -> Value {
    json!({
        "name": NAME,
        "interface": { "displayName": "Onward" },
        "plugins": [{
            "name": NAME,
            "source": { "source": "local", "path": "./plugins/codex" },
            "policy": { "installation": "AVAILABLE", "authentication": "ON_INSTALL" },
            "category": "Productivity",
        }],
    })
}

/// The skill, the commands and the worker, without the digests: a plugin is not edited in place.
fn written_texts(agent: Agent, root: &Path) -> impl Iterator<Item = PluginFile> {
    let files = texts::files(agent, Scope::User, root).into_iter();
    files.filter_map(|file| match file.content {
        Content::Managed { text, .. } => Some(PluginFile {
            path: file.path,
            text,
        }),
        Content::Whole(_) | Content::Json { .. } | Content::Toml(_) | Content::Block => None,
    })
}

fn entries(path: PathBuf, entries: &[json_text::Entry]) -> Result<PluginFile> {
    edited(path, "", entries)
}

fn edited(path: PathBuf, text: &str, entries: &[json_text::Entry]) -> Result<PluginFile> {
    let text = json_text::add(text, entries, Syntax::Strict).map_err(|error| {
        Failure::failed(
            format!("cannot generate `{}`: {error}", path.display()),
            "report this error",
        )
    })?;
    Ok(PluginFile { path, text })
}

fn manifest(path: impl Into<PathBuf>, value: &Value) -> PluginFile {
    PluginFile {
        path: path.into(),
        text: pretty(value),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
