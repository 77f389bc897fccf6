//! What becomes of the files, whichever agent they are of.

use std::os::unix::fs::PermissionsExt;

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

/// What each agent might hold before, with its ways to write.
fn furnish(home: &Home) {
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
fn where_nothing_was_all_is_made_and_all_is_gone_again() {
    for agent in AGENTS {
        for scope in ["user", "project"] {
            let home = Home::new(&format!("empty-{agent}-{scope}"));
            let said = home.done(&[agent, "--scope", scope]);
            assert!(!said.stdout.is_empty(), "{agent}: the difference is shown");
            assert!(!home.all().is_empty(), "{agent}");
            for path in home.all().keys() {
                let in_project = path.starts_with(home.path("project"));
                assert_eq!(in_project, scope == "project", "{}", path.display());
            }
            home.done(&[agent, "--scope", scope, "--uninstall"]);
            assert_eq!(
                home.all().into_keys().collect::<Vec<_>>(),
                Vec::<std::path::PathBuf>::new()
            );
        }
    }
}

#[test]
fn what_was_there_stays_and_comes_back_byte_for_byte() {
    for agent in AGENTS {
        let home = Home::new(&format!("full-{agent}"));
        furnish(&home);
        let before = home.all();
        home.done(&[agent]);
        let after = home.all();
        assert_ne!(after, before, "{agent}");
        for (path, text) in &before {
            let kept = format!("{}.onward-backup", path.display());
            if after[path] != *text {
                assert_eq!(after.get(std::path::Path::new(&kept)), Some(text), "{kept}");
            }
        }
        home.done(&[agent, "--uninstall"]);
        assert_eq!(home.all(), before, "{agent}");
    }
}

#[test]
fn twice_is_once() {
    for agent in AGENTS {
        let home = Home::new(&format!("twice-{agent}"));
        furnish(&home);
        home.done(&[agent]);
        let once = home.all();
        let again = home.done(&[agent]);
        assert_eq!(home.all(), once, "{agent}");
        assert!(again.stdout.is_empty(), "{agent}: {again:?}");
        assert!(
            String::from_utf8_lossy(&again.stderr).contains("nothing to do"),
            "{again:?}"
        );
        home.done(&[agent, "--uninstall"]);
        let gone = home.all();
        let again = home.done(&[agent, "--uninstall"]);
        assert_eq!(home.all(), gone, "{agent}");
        assert!(
            String::from_utf8_lossy(&again.stderr).contains("nothing to do"),
            "{again:?}"
        );
    }
}

#[test]
fn what_people_change_meanwhile_stays() {
    let home = Home::new("meanwhile");
    furnish(&home);
    home.done(&["claude-code"]);
    let changed = home.read(".claude/settings.json").replace("opus", "sonnet");
    home.write(".claude/settings.json", &changed);
    home.done(&["claude-code", "--uninstall"]);
    let left = home.json(".claude/settings.json");
    assert_eq!(left["model"], "sonnet");
    let hooks = left["hooks"].as_object().unwrap();
    assert_eq!(hooks.keys().collect::<Vec<_>>(), ["PreToolUse"]);
    assert_eq!(
        hooks["PreToolUse"].as_array().unwrap().len(),
        1,
        "mine is left"
    );
}

#[test]
fn a_dry_run_shows_the_difference_and_writes_nothing() {
    for agent in AGENTS {
        let home = Home::new(&format!("dry-{agent}"));
        furnish(&home);
        let before = home.all();
        let shown = home.done(&[agent, "--dry-run"]);
        let difference = String::from_utf8(shown.stdout).unwrap();
        assert!(difference.contains("\n@@ "), "{agent}: {difference}");
        assert!(
            difference
                .lines()
                .any(|line| line.starts_with('+') && line.contains("onward"))
        );
        assert_eq!(home.all(), before, "{agent}");
    }
}

#[test]
fn a_file_that_cannot_be_parsed_is_refused_and_nothing_is_written() {
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
        let before = home.all();
        for arguments in [vec![agent], vec![agent, "--dry-run"]] {
            let refused = home.run(&arguments);
            assert_eq!(refused.status.code(), Some(1), "{text}: {refused:?}");
            assert!(refused.stdout.is_empty(), "{text}: {refused:?}");
            let said = String::from_utf8(refused.stderr).unwrap();
            assert!(said.starts_with("error: ") && said.contains(file), "{said}");
            assert!(said.contains("hint: nothing was changed"), "{said}");
            assert_eq!(home.all(), before, "{text}");
        }
    }
}

#[test]
fn a_link_stays_a_link() {
    let home = Home::new("link");
    home.write("dotfiles/claude.json", SETTINGS);
    std::fs::create_dir_all(home.path(".claude")).unwrap();
    let link = home.path(".claude/settings.json");
    std::os::unix::fs::symlink(home.path("dotfiles/claude.json"), &link).unwrap();
    home.done(&["claude-code"]);
    assert!(link.is_symlink());
    assert!(
        home.read("dotfiles/claude.json")
            .contains("hook claude-code\",")
    );
    home.done(&["claude-code", "--uninstall"]);
    assert!(link.is_symlink());
    assert_eq!(home.read("dotfiles/claude.json"), SETTINGS);

    let home = Home::new("lost-link");
    std::fs::create_dir_all(home.path(".claude")).unwrap();
    let link = home.path(".claude/settings.json");
    std::os::unix::fs::symlink(home.path("nowhere"), &link).unwrap();
    assert_eq!(home.run(&["claude-code"]).status.code(), Some(1));
    assert!(link.is_symlink() && !home.path(".claude.json").exists());
}

#[test]
fn a_read_only_file_is_left_as_it_is_and_rights_are_kept() {
    let home = Home::new("read-only");
    furnish(&home);
    let file = home.path(".claude/settings.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    let before = home.all();
    let refused = home.run(&["claude-code"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("is read-only"),
        "{refused:?}"
    );
    assert_eq!(home.all(), before);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    home.done(&["claude-code"]);
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
fn another_copy_of_the_binary_takes_the_place_of_the_first() {
    let home = Home::new("moved");
    furnish(&home);
    let before = home.all();
    let copy = home.copy_binary("a folder's/onward");
    for agent in AGENTS {
        assert_eq!(
            home.run_as(&copy, &[agent]).status.code(),
            Some(0),
            "{agent}"
        );
        home.done(&[agent]);
        home.done(&[agent, "--uninstall"]);
    }
    std::fs::remove_dir_all(copy.parent().unwrap()).unwrap();
    assert_eq!(home.all(), before);
}

#[test]
fn programs_read_what_happened() {
    let home = Home::new("json");
    let said = home.done(&["cursor", "--json", "--dry-run"]);
    let answer: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(answer["written"], false);
    assert_eq!(answer["files"][1]["change"], "created");
    let path = home.path(".cursor/hooks.json").display().to_string();
    assert_eq!(answer["files"][1]["path"], path);
    assert_eq!(home.run(&["emacs"]).status.code(), Some(2));
}
