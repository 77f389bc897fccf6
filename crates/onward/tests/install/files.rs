//! Effects on files that are the same for all agents.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value;

use crate::home::{AGENTS, Home};

const SETTINGS: &str = r#"{
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            { "matcher": "Bash", "hooks": [ { "type": "command", "command": "mine hook claude-code" } ] }
        ]
    },
    "env": { "A": "1" }
}"#;

/// Writes existing configuration files of all agents, in various layouts.
fn write_configs(home: &Home) {
    home.write(".claude/settings.json", SETTINGS);
    home.write(
        ".claude.json",
        "{\"numStartups\":7,\"mcpServers\":{\"other\":{\"command\":\"x\"}}}",
    );
    home.write(
        ".codex/config.toml",
        "model = \"gpt\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[tui]\nx = 1\n",
    );
    home.write(".codex/hooks.json", "{\n  \"hooks\": {}\n}\n");
    home.write(
        ".gemini/settings.json",
        "{\n\t// mine\n\t\"theme\": \"dark\" /* dark */\n}\n",
    );
    home.write(
        ".kimi-code/config.toml",
        "# mine\n[[hooks]]\nevent = \"Stop\"\ncommand = \"notify-send done\"\n",
    );
    home.write(".kimi-code/mcp.json", "{}");
    home.write(
        ".cursor/hooks.json",
        "{\"version\":1,\"hooks\":{\"stop\":[{\"command\":\"x\"}]}}\n",
    );
    home.write(
        ".config/opencode/opencode.jsonc",
        "{\n  \"theme\": \"x\", // mine\n}\n",
    );
}

#[test]
fn creates_missing_files_and_deletes_them_on_uninstall() {
    for agent in AGENTS {
        for scope in ["user", "project"] {
            let home = Home::new(&format!("empty-{agent}-{scope}"));
            let output = home.install(&[agent, "--scope", scope]);
            assert!(!output.stdout.is_empty(), "{agent}: prints the diff");
            assert!(!home.files().is_empty(), "{agent}");
            for path in home.files().keys() {
                let in_project = path.starts_with(home.path("project"));
                assert_eq!(in_project, scope == "project", "{}", path.display());
            }
            home.install(&[agent, "--scope", scope, "--uninstall"]);
            assert_eq!(
                home.files().into_keys().collect::<Vec<_>>(),
                Vec::<std::path::PathBuf>::new()
            );
        }
    }
}

#[test]
fn preserves_existing_content_and_restores_it_byte_for_byte() {
    for agent in AGENTS {
        let home = Home::new(&format!("full-{agent}"));
        write_configs(&home);
        let before = home.files();
        home.install(&[agent]);
        let after = home.files();
        assert_ne!(after, before, "{agent}");
        for (path, text) in &before {
            let backup = format!("{}.onward-backup", path.display());
            if after[path] != *text {
                assert_eq!(
                    after.get(std::path::Path::new(&backup)),
                    Some(text),
                    "{backup}"
                );
            }
        }
        home.install(&[agent, "--uninstall"]);
        assert_eq!(home.files(), before, "{agent}");
    }
}

#[test]
fn repeating_the_command_changes_nothing() {
    for agent in AGENTS {
        let home = Home::new(&format!("twice-{agent}"));
        write_configs(&home);
        home.install(&[agent]);
        let installed = home.files();
        let again = home.install(&[agent]);
        assert!(again.stdout.is_empty(), "{agent}: {again:?}");
        assert_unchanged(&home.install(&[agent, "--json"]));
        assert_eq!(home.files(), installed, "{agent}");
        home.install(&[agent, "--uninstall"]);
        let uninstalled = home.files();
        assert_unchanged(&home.install(&[agent, "--uninstall", "--json"]));
        assert_eq!(home.files(), uninstalled, "{agent}");
    }
}

/// Asserts that the JSON output reports no change.
#[track_caller]
fn assert_unchanged(output: &Output) {
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["written"], false, "{json}");
    for file in json["files"].as_array().unwrap() {
        assert_eq!(file["change"], "unchanged", "{json}");
    }
}

#[test]
fn preserves_changes_made_after_the_installation() {
    let home = Home::new("meanwhile");
    write_configs(&home);
    home.install(&["claude-code"]);
    let changed = home.read(".claude/settings.json").replace("opus", "sonnet");
    home.write(".claude/settings.json", &changed);
    home.install(&["claude-code", "--uninstall"]);
    let left = home.json(".claude/settings.json");
    assert_eq!(left["model"], "sonnet");
    let hooks = left["hooks"].as_object().unwrap();
    assert_eq!(hooks.keys().collect::<Vec<_>>(), ["PreToolUse"]);
    assert_eq!(
        hooks["PreToolUse"].as_array().unwrap().len(),
        1,
        "the user's hook is kept"
    );
}

#[test]
fn dry_run_prints_the_diff_and_writes_nothing() {
    for agent in AGENTS {
        let home = Home::new(&format!("dry-{agent}"));
        write_configs(&home);
        let before = home.files();
        let output = home.install(&[agent, "--dry-run"]);
        let diff = String::from_utf8(output.stdout).unwrap();
        assert!(diff.contains("\n@@ "), "{agent}: {diff}");
        assert!(
            diff.lines()
                .any(|line| line.starts_with('+') && line.contains("onward"))
        );
        assert_eq!(home.files(), before, "{agent}");
    }
}

#[test]
fn rejects_an_invalid_file_and_writes_nothing() {
    for (agent, file, text) in [
        ("claude-code", ".claude/settings.json", "{ \"hooks\": [ }"),
        ("claude-code", ".claude/settings.json", "{ // a comment\n}"),
        ("claude-code", ".claude/settings.json", "[]"),
        (
            "claude-code",
            ".claude/settings.json",
            "{\"hooks\": {\"Stop\": 1}}",
        ),
        ("claude-code", ".claude/settings.json", "{\"hooks\": []}"),
        ("codex", ".codex/hooks.json", "{"),
        ("codex", ".codex/config.toml", "model = "),
        ("codex", ".codex/config.toml", "mcp_servers = 1\n"),
        ("gemini", ".gemini/settings.json", "{ 'a': 1 }"),
        ("kimi", ".kimi-code/config.toml", "hooks = 3\n"),
        ("cursor", ".cursor/hooks.json", "{\"hooks\": 1}"),
        ("opencode", ".config/opencode/opencode.json", "{\"mcp\":"),
    ] {
        let home = Home::new(&format!("broken-{agent}"));
        home.write(file, text);
        let before = home.files();
        for arguments in [vec![agent], vec![agent, "--dry-run"]] {
            let output = home.run(&arguments);
            assert_eq!(output.status.code(), Some(1), "{text}: {output:?}");
            assert!(output.stdout.is_empty(), "{text}: {output:?}");
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(
                stderr.starts_with("error: ") && stderr.contains(file),
                "{stderr}"
            );
            assert!(stderr.contains("hint: "), "{stderr}");
            assert_eq!(home.files(), before, "{text}");
        }
    }
}

#[test]
fn follows_and_preserves_symbolic_links() {
    let home = Home::new("link");
    home.write("dotfiles/claude.json", SETTINGS);
    std::fs::create_dir_all(home.path(".claude")).unwrap();
    let link = home.path(".claude/settings.json");
    std::os::unix::fs::symlink(home.path("dotfiles/claude.json"), &link).unwrap();
    home.install(&["claude-code"]);
    assert!(link.is_symlink());
    assert!(
        home.read("dotfiles/claude.json")
            .contains("hook claude-code\",")
    );
    home.install(&["claude-code", "--uninstall"]);
    assert!(link.is_symlink());
    assert_eq!(home.read("dotfiles/claude.json"), SETTINGS);

    let home = Home::new("broken-link");
    std::fs::create_dir_all(home.path(".claude")).unwrap();
    let link = home.path(".claude/settings.json");
    std::os::unix::fs::symlink(home.path("missing"), &link).unwrap();
    assert_eq!(home.run(&["claude-code"]).status.code(), Some(1));
    assert!(link.is_symlink() && !home.path(".claude.json").exists());
}

#[test]
fn rejects_a_pipe() {
    let home = Home::new("pipe");
    std::fs::create_dir_all(home.path(".claude")).unwrap();
    let pipe = home.path(".claude/settings.json");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is installed").success());
    assert_eq!(home.run(&["claude-code"]).status.code(), Some(1));
}

#[test]
fn rejects_a_read_only_file_and_preserves_the_mode() {
    let home = Home::new("read-only");
    write_configs(&home);
    let file = home.path(".claude/settings.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    let before = home.files();
    let output = home.run(&["claude-code"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let path = file.display().to_string();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains(&path),
        "{output:?}"
    );
    assert_eq!(home.files(), before);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    home.install(&["claude-code"]);
    for name in [
        ".claude/settings.json",
        ".claude/settings.json.onward-backup",
    ] {
        let mode = std::fs::metadata(home.path(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn replaces_the_entries_of_another_copy_of_the_binary() {
    let home = Home::new("moved");
    write_configs(&home);
    let before = home.files();
    let copy = home.copy_binary("a folder's/onward");
    for agent in AGENTS {
        assert_eq!(
            home.run_with(&copy, &[agent]).status.code(),
            Some(0),
            "{agent}"
        );
        home.install(&[agent]);
        home.install(&[agent, "--uninstall"]);
    }
    std::fs::remove_dir_all(copy.parent().unwrap()).unwrap();
    assert_eq!(home.files(), before);
}

#[test]
fn prints_the_changes_as_json() {
    let home = Home::new("json");
    let output = home.install(&["cursor", "--json", "--dry-run"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["written"], false);
    assert_eq!(json["files"][1]["change"], "created");
    let path = home.path(".cursor/hooks.json").display().to_string();
    assert_eq!(json["files"][1]["path"], path);
    assert_eq!(home.run(&["emacs"]).status.code(), Some(2));
}

#[test]
fn writes_the_database_into_every_entry() {
    for agent in AGENTS {
        let home = Home::new(&format!("database-{agent}"));
        let database = home.path("project/my plans.db");
        let database = database.to_str().unwrap();
        home.install(&[agent, "--database", "my plans.db"]);
        let files = home.files();
        // The other files are texts for the agent.
        let has_entries = |path: &std::path::Path| {
            let name = path.extension().and_then(|name| name.to_str());
            let is_command = path.components().any(|part| part.as_os_str() == "commands");
            name != Some("md") && !is_command
        };
        for (path, text) in files.iter().filter(|(path, _)| has_entries(path)) {
            let text = String::from_utf8_lossy(text);
            let entries = text.matches("--database").count();
            assert!(entries > 0, "{}", path.display());
            assert_eq!(text.matches(database).count(), entries, "{text}");
        }
        // The entries are recognized: they are replaced, and removed.
        home.install(&[agent, "--database", "my plans.db"]);
        assert_eq!(home.files(), files, "{agent}");
        home.install(&[agent]);
        let all = home.files();
        let written = all
            .iter()
            .filter(|(path, _)| !path.ends_with("onward-backup"));
        for (path, text) in written.filter(|(path, _)| files.contains_key(*path)) {
            let text = String::from_utf8_lossy(text);
            assert!(!text.contains("--database"), "{}: {text}", path.display());
        }
        home.install(&[agent, "--database", "my plans.db"]);
        home.install(&[agent, "--uninstall"]);
        let left = home.files();
        for (path, text) in left.iter().filter(|(path, _)| files.contains_key(*path)) {
            let text = String::from_utf8_lossy(text);
            assert!(!text.contains("onward"), "{}: {text}", path.display());
        }
    }
}
