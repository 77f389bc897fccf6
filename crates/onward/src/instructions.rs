//! The instructions for agents: one source text, from which the skill, the commands and the worker
//! agent of each agent, the MCP prompt and `onward instructions` are rendered.
//!
//! `install` writes the files. This module knows the formats, not the paths.

/// The name of the skill.
pub(crate) const SKILL_NAME: &str = "onward-plans";
/// The name of the agent that works on one step.
pub(crate) const WORKER_NAME: &str = "onward-worker";
/// The URI of the skill as an MCP resource.
pub(crate) const SKILL_URI: &str = "skill://onward-plans/SKILL.md";
/// By this description, agents decide whether to use the skill.
pub(crate) const SKILL_DESCRIPTION: &str = "Durable multi-step plans with the MCP server `onward`. \
     Use for work of more than about ten steps, for work that spans sessions or agents, if a person \
     must decide before work continues, or to resume, review or report on an Onward plan.";
const WORKER_DESCRIPTION: &str = "Works on one step of an Onward plan and submits its result. \
     Delegate a step to it with the planId.";
const SKILL: &str = include_str!("instructions/skill.md");
const WORKER: &str = include_str!("instructions/worker.md");
/// The place of the user's arguments in a command.
const ARGUMENTS: &str = "{arguments}";

/// A command that users call.
pub(crate) struct Command {
    /// The name without the prefix `onward`.
    pub(crate) name: &'static str,
    description: &'static str,
    hint: &'static str,
    body: &'static str,
}

/// All commands.
pub(crate) const COMMANDS: [Command; 4] = [
    Command {
        name: "plan",
        description: "Design an Onward plan and store it",
        hint: "[goal]",
        body: include_str!("instructions/plan.md"),
    },
    Command {
        name: "resume",
        description: "Resume an unfinished Onward plan of this project",
        hint: "[plan]",
        body: include_str!("instructions/resume.md"),
    },
    Command {
        name: "review",
        description: "Show and decide the reviews of Onward plans",
        hint: "[plan]",
        body: include_str!("instructions/review.md"),
    },
    Command {
        name: "status",
        description: "Report the state of Onward plans",
        hint: "[plan]",
        body: include_str!("instructions/status.md"),
    },
];

/// The text of the skill, without the header.
pub(crate) fn text() -> &'static str {
    SKILL
}

/// The skill, in the format that Claude Code, Codex, Gemini, opencode, Cursor and Kimi read.
pub(crate) fn skill() -> String {
    let header = format!("---\nname: {SKILL_NAME}\ndescription: {SKILL_DESCRIPTION}\n---\n\n");
    header + SKILL
}

/// The skill as a rule of Cursor, which its model selects by the description.
pub(crate) fn cursor_rule() -> String {
    format!("---\ndescription: {SKILL_DESCRIPTION}\nalwaysApply: false\n---\n\n{SKILL}")
}

impl Command {
    /// A Markdown file with the arguments as `$ARGUMENTS`.
    pub(crate) fn markdown(&self) -> String {
        let Self {
            description, hint, ..
        } = self;
        let body = self.body.replace(ARGUMENTS, "$ARGUMENTS");
        format!("---\ndescription: {description}\nargument-hint: \"{hint}\"\n---\n\n{body}")
    }

    /// A Markdown file without a header, for an agent that appends the arguments.
    pub(crate) fn plain_markdown(&self) -> String {
        self.body.replace(ARGUMENTS, "").replace(" \n", "\n")
    }

    /// A TOML file with the arguments as `{{args}}`.
    pub(crate) fn toml(&self) -> String {
        let mut table = toml_edit::DocumentMut::new();
        table["description"] = toml_edit::value(self.description);
        table["prompt"] = toml_edit::value(self.body.replace(ARGUMENTS, "{{args}}"));
        table.to_string()
    }
}

/// The worker of Claude Code.
pub(crate) fn worker() -> String {
    format!("---\nname: {WORKER_NAME}\ndescription: {WORKER_DESCRIPTION}\n---\n\n{WORKER}")
}

/// The worker of opencode.
pub(crate) fn opencode_worker() -> String {
    format!("---\ndescription: {WORKER_DESCRIPTION}\nmode: subagent\n---\n\n{WORKER}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime;

    #[test]
    fn the_skill_contains_the_advice_of_the_summary() {
        for condition in ["more than about ten steps", "your own todo list"] {
            assert!(SKILL.contains(condition), "{condition}");
            let advice = prime::WHEN_TO_USE.split_whitespace().collect::<Vec<_>>();
            assert!(advice.join(" ").contains(condition), "{condition}");
        }
    }

    #[test]
    fn headers_are_one_line_per_key() {
        let mut texts = vec![skill(), worker(), opencode_worker(), cursor_rule()];
        texts.extend(COMMANDS.iter().map(Command::markdown));
        for text in texts {
            let (header, _) = text[4..].split_once("\n---\n").expect("a header");
            assert!(header.lines().all(|line| line.contains(": ")), "{header}");
            // A colon after the first one would need quotes in YAML.
            assert!(
                header.lines().all(|line| line.matches(": ").count() == 1),
                "{header}"
            );
        }
        for command in &COMMANDS {
            let toml: toml_edit::DocumentMut = command.toml().parse().expect("valid TOML");
            assert!(
                toml["prompt"]
                    .as_str()
                    .is_some_and(|text| text.contains("{{args}}"))
            );
        }
    }
}
