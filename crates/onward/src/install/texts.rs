//! The skill, the commands and the worker agent of each agent: which files it reads, and in which
//! format. The texts are in `instructions`.

use std::path::{Path, PathBuf};

use super::managed::Comment;
use super::{ConfigFile, Content, Scope};
use crate::hooks::Agent;
use crate::instructions::{self, COMMANDS, SKILL_NAME, WORKER_NAME};

/// The file of the skill in the folder of an agent.
pub(super) fn skill_file(folder: &Path) -> PathBuf {
    folder.join("skills").join(SKILL_NAME).join("SKILL.md")
}

/// The files of an agent in its folder.
pub(super) fn files(agent: Agent, scope: Scope, folder: &Path) -> Vec<ConfigFile> {
    let markdown = |path: PathBuf, text: String| ConfigFile {
        path,
        content: Content::Managed {
            text,
            comment: Comment::Html,
        },
    };
    let mut files = vec![markdown(skill_file(folder), instructions::skill())];
    match agent {
        Agent::ClaudeCode => {
            let commands = folder.join("commands/onward");
            files.extend(COMMANDS.iter().map(|command| {
                markdown(
                    commands.join(format!("{}.md", command.name)),
                    command.markdown(),
                )
            }));
            let worker = folder.join(format!("agents/{WORKER_NAME}.md"));
            files.push(markdown(worker, instructions::worker()));
        }
        // Codex reads prompts of the user only.
        Agent::Codex if scope == Scope::User => {
            files.extend(COMMANDS.iter().map(|command| {
                let name = format!("prompts/onward-{}.md", command.name);
                markdown(folder.join(name), command.markdown())
            }));
        }
        Agent::Gemini => {
            files.extend(COMMANDS.iter().map(|command| ConfigFile {
                path: folder.join(format!("commands/onward/{}.toml", command.name)),
                content: Content::Managed {
                    text: command.toml(),
                    comment: Comment::Hash,
                },
            }));
        }
        Agent::Opencode => {
            files.extend(COMMANDS.iter().map(|command| {
                let name = format!("commands/onward-{}.md", command.name);
                markdown(folder.join(name), command.markdown())
            }));
            let worker = folder.join(format!("agents/{WORKER_NAME}.md"));
            files.push(markdown(worker, instructions::opencode_worker()));
        }
        Agent::Cursor => {
            files.extend(COMMANDS.iter().map(|command| {
                let name = format!("commands/onward-{}.md", command.name);
                markdown(folder.join(name), command.plain_markdown())
            }));
            // Cursor reads rules of a project only.
            if scope == Scope::Project {
                let rule = folder.join(format!("rules/{SKILL_NAME}.mdc"));
                files.push(markdown(rule, instructions::cursor_rule()));
            }
        }
        Agent::Codex | Agent::Kimi => {}
    }
    files
}
