//! The content of each agent's configuration files after the installation.

use serde_json::Value;

use crate::home::Home;

fn binary() -> String {
    let binary = std::fs::canonicalize(env!("CARGO_BIN_EXE_onward")).unwrap();
    binary.display().to_string()
}

fn hook(agent: &str) -> String {
    format!("{} hook {agent}", binary())
}

/// Asserts hooks in the format of Claude Code, Codex and Gemini.
#[track_caller]
fn assert_nested_hooks(hooks: &Value, agent: &str, events: &[&str], timeout: u64) {
    let mut found: Vec<&str> = hooks
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut events = events.to_vec();
    events.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, events);
    for event in events {
        let [entry] = hooks[event].as_array().unwrap().as_slice() else {
            panic!("`{event}` does not have exactly one entry")
        };
        let hook = &entry["hooks"][0];
        assert_eq!(hook["type"], "command");
        assert_eq!(hook["command"], self::hook(agent));
        let timeout = match (agent, event) {
            ("codex", "SessionEnd") => 3,
            _ => timeout,
        };
        assert_eq!(hook["timeout"], timeout, "{event}");
    }
}

#[test]
fn writes_the_configuration_of_claude_code() {
    let home = Home::new("claude");
    home.install(&["claude-code"]);
    let server = &home.json(".claude.json")["mcpServers"]["onward"];
    assert_eq!(server["command"], binary());
    assert_eq!(server["args"], serde_json::json!(["mcp"]));
    let settings = home.json(".claude/settings.json");
    let events = [
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
    assert_nested_hooks(&settings["hooks"], "claude-code", &events, 10);
    home.install(&["claude-code", "--scope", "project"]);
    assert!(home.json("project/.mcp.json")["mcpServers"]["onward"].is_object());
    assert!(home.json("project/.claude/settings.json")["hooks"].is_object());
}

#[test]
fn writes_the_configuration_of_codex() {
    let home = Home::new("codex");
    let output = home.install(&["codex"]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("codex exec"),
        "{output:?}"
    );
    let config: toml::Table = home.read(".codex/config.toml").parse().unwrap();
    let server = &config["mcp_servers"]["onward"];
    assert_eq!(server["command"].as_str(), Some(binary().as_str()));
    // Codex passes only these variables to the server, but all of them to the hooks.
    let variables = server["env_vars"].as_array().unwrap();
    for name in ["XDG_DATA_HOME", "ONWARD_DATABASE", "DATABASE_URL"] {
        assert!(
            variables
                .iter()
                .any(|variable| variable.as_str() == Some(name))
        );
    }
    let file = home.json(".codex/hooks.json");
    assert_eq!(
        file.as_object().unwrap().len(),
        1,
        "Codex supports no other keys"
    );
    let events = [
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
    assert_nested_hooks(&file["hooks"], "codex", &events, 10);
}

#[test]
fn writes_the_configuration_of_gemini() {
    let home = Home::new("gemini");
    home.install(&["gemini"]);
    let settings = home.json(".gemini/settings.json");
    assert_eq!(settings["mcpServers"]["onward"]["command"], binary());
    let events = [
        "SessionStart",
        "BeforeAgent",
        "BeforeToolSelection",
        "BeforeTool",
        "AfterTool",
        "AfterAgent",
        "PreCompress",
        "SessionEnd",
    ];
    assert_nested_hooks(&settings["hooks"], "gemini", &events, 10_000);
}

#[test]
fn writes_the_configuration_of_kimi() {
    let home = Home::new("kimi");
    home.install(&["kimi"]);
    assert_eq!(
        home.json(".kimi-code/mcp.json")["mcpServers"]["onward"]["command"],
        binary()
    );
    let config: toml::Table = home.read(".kimi-code/config.toml").parse().unwrap();
    let hooks = config["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 12);
    for table in hooks {
        let table = table.as_table().unwrap();
        let keys: Vec<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["command", "event", "timeout"],
            "Kimi rejects other keys"
        );
        assert_eq!(table["command"].as_str(), Some(hook("kimi").as_str()));
    }
    let output = home.install(&["kimi", "--scope", "project"]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--scope user"),
        "{output:?}"
    );
}

#[test]
fn writes_the_configuration_of_cursor() {
    let home = Home::new("cursor");
    home.install(&["cursor"]);
    assert_eq!(
        home.json(".cursor/mcp.json")["mcpServers"]["onward"]["command"],
        binary()
    );
    let file = home.json(".cursor/hooks.json");
    assert_eq!(file["version"], 1);
    assert_eq!(file["hooks"].as_object().unwrap().len(), 7);
    assert_eq!(file["hooks"]["preToolUse"][0]["command"], hook("cursor"));
    assert!(
        !home.read(".cursor/hooks.json").contains("//"),
        "Cursor parses `//` as a comment"
    );
}

#[test]
fn writes_the_configuration_of_opencode() {
    let home = Home::new("opencode");
    home.install(&["opencode"]);
    let server = &home.json(".config/opencode/opencode.json")["mcp"]["onward"];
    assert_eq!(server["type"], "local");
    assert_eq!(server["command"], serde_json::json!([binary(), "mcp"]));
    assert_eq!(server["enabled"], true);
    let plugin = home.read(".config/opencode/plugins/onward.js");
    assert!(
        plugin.contains(&format!("const program = \"{}\"\n", binary())),
        "{plugin}"
    );
    home.install(&["opencode", "--scope", "project"]);
    assert!(home.path("project/.opencode/plugins/onward.js").exists());
    assert!(home.path("project/opencode.json").exists());
}

#[test]
fn preserves_comments_and_layout() {
    let home = Home::new("layout");
    let settings = "{\n\t// mine\n\t\"theme\": \"dark\", /* dark */\n\t\"hooks\": {\n\t\t\"AfterTool\": []\n\t}\n}\n";
    home.write(".gemini/settings.json", settings);
    home.write(
        ".codex/config.toml",
        "# first\nmodel   = 'x'   # irregular spaces\n",
    );
    home.install(&["gemini"]);
    home.install(&["codex"]);
    let after = home.read(".gemini/settings.json");
    assert!(
        after.starts_with("{\n\t// mine\n\t\"theme\": \"dark\", /* dark */\n\t\"hooks\": {\n"),
        "{after}"
    );
    assert!(
        home.read(".codex/config.toml")
            .starts_with("# first\nmodel   = 'x'   # irregular spaces\n")
    );
}
