//! The skill, the commands and the worker agent, and the block in AGENTS.md.

use crate::home::{AGENTS, Home};

/// The skill of each agent.
const SKILLS: [(&str, &str); 6] = [
    ("claude-code", ".claude/skills/onward-plans/SKILL.md"),
    ("codex", ".codex/skills/onward-plans/SKILL.md"),
    ("gemini", ".gemini/skills/onward-plans/SKILL.md"),
    ("kimi", ".kimi-code/skills/onward-plans/SKILL.md"),
    ("cursor", ".cursor/skills/onward-plans/SKILL.md"),
    ("opencode", ".config/opencode/skills/onward-plans/SKILL.md"),
];

#[test]
fn installs_the_same_skill_for_every_agent_and_removes_it() {
    let mut skills = Vec::new();
    for (agent, skill) in SKILLS {
        let home = Home::new("skill");
        home.install(&[agent, "--yes"]);
        skills.push(home.read(skill));
        let removed = home.run(&[agent, "--uninstall", "--yes"]);
        assert!(removed.status.success(), "{agent}");
        assert!(
            home.files().is_empty(),
            "{agent}: {:?}",
            home.files().keys()
        );
        assert!(!home.path(skill).parent().unwrap().exists(), "{agent}");
    }
    skills.dedup();
    assert_eq!(skills.len(), 1);
    assert!(skills[0].starts_with("---\nname: onward-plans\ndescription: "));
}

#[test]
fn keeps_a_skill_that_the_user_has_changed() {
    for (agent, skill) in SKILLS {
        let home = Home::new("skill-changed");
        home.install(&[agent]);
        let changed = home
            .read(skill)
            .replace("# Plans with Onward", "# Our plans");
        home.write(skill, &changed);
        home.install(&[agent]);
        assert_eq!(home.read(skill), changed, "{agent}");
        home.run(&[agent, "--uninstall"]);
        assert_eq!(home.read(skill), changed, "{agent}");
    }
}

#[test]
fn updates_a_skill_of_another_version_and_restores_a_missing_command() {
    let home = Home::new("skill-outdated");
    home.install(&["claude-code"]);
    let skill = ".claude/skills/onward-plans/SKILL.md";
    let current = home.read(skill);
    // A file that another version wrote has the digest of that text.
    let other = home.read(".claude/commands/onward/status.md");
    home.write(skill, &other);
    std::fs::remove_file(home.path(".claude/commands/onward/plan.md")).unwrap();
    home.install(&["claude-code"]);
    assert_eq!(home.read(skill), current);
    assert!(
        home.read(".claude/commands/onward/plan.md")
            .contains("$ARGUMENTS")
    );
}

#[test]
fn writes_commands_in_the_format_of_each_agent() {
    for (agent, file, arguments) in [
        (
            "claude-code",
            ".claude/commands/onward/resume.md",
            "$ARGUMENTS",
        ),
        ("codex", ".codex/prompts/onward-resume.md", "$ARGUMENTS"),
        ("gemini", ".gemini/commands/onward/resume.toml", "{{args}}"),
        (
            "opencode",
            ".config/opencode/commands/onward-resume.md",
            "$ARGUMENTS",
        ),
    ] {
        let home = Home::new("commands");
        home.install(&[agent]);
        assert!(home.read(file).contains(arguments), "{agent}");
    }
    let home = Home::new("worker");
    home.install(&["claude-code"]);
    let worker = home.read(".claude/agents/onward-worker.md");
    assert!(worker.starts_with("---\nname: onward-worker\n"), "{worker}");
}

#[test]
fn adds_a_block_to_agents_md_on_request_and_removes_it() {
    for agent in AGENTS {
        let home = Home::new("agents-md");
        home.write("project/AGENTS.md", "# Rules\n\nBe kind.\n");
        home.install(&[agent]);
        assert_eq!(home.read("project/AGENTS.md"), "# Rules\n\nBe kind.\n");
        home.install(&[agent, "--agents-md"]);
        let text = home.read("project/AGENTS.md");
        assert!(
            text.starts_with("# Rules\n\nBe kind.\n\n<!-- onward:start"),
            "{text}"
        );
        home.install(&[agent, "--agents-md"]);
        assert_eq!(home.read("project/AGENTS.md"), text);
        home.run(&[agent, "--uninstall"]);
        assert_eq!(
            home.read("project/AGENTS.md"),
            "# Rules\n\nBe kind.\n",
            "{agent}"
        );
    }
}
