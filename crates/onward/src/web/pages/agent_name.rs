//! Names of agents, people and directories for display.

use super::format::one_line;
use crate::output::format;

/// The product name of an agent.
pub(super) fn agent_name(agent: &str) -> String {
    match agent {
        "claude-code" => "Claude Code".to_owned(),
        "codex" => "Codex".to_owned(),
        "gemini" => "Gemini CLI".to_owned(),
        "kimi" => "Kimi Code".to_owned(),
        "cursor" => "Cursor".to_owned(),
        "opencode" => "OpenCode".to_owned(),
        "api" => "API client".to_owned(),
        "proxy" => "Proxy".to_owned(),
        other => one_line(other, 60),
    }
}

/// A caller name without the kind of its credential: `token:ben` is displayed as `ben`.
pub(super) fn person(name: &str) -> String {
    format::truncate(&format::person(name), 60)
}

/// A directory, with the home directory as `~`.
pub(super) fn directory(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let short = match parts.as_slice() {
        ["", "home" | "Users", _, rest @ ..] => format!("~/{}", rest.join("/")),
        ["", "root", rest @ ..] => format!("~/{}", rest.join("/")),
        _ => path.to_owned(),
    };
    one_line(short.trim_end_matches('/'), 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_relative_to_the_home_directory() {
        let home = ["", "home", "ana"].join("/");
        assert_eq!(directory(&format!("{home}/src/infra")), "~/src/infra");
        assert_eq!(directory(&home), "~");
        assert_eq!(directory("/srv/infra"), "/srv/infra");
    }

    #[test]
    fn people_are_displayed_without_the_kind_of_their_token() {
        assert_eq!(person("token:ben"), "ben");
        assert_eq!(person("user:ana"), "ana");
        assert_eq!(person("sweep"), "sweep");
    }
}
