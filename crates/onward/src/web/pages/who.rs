//! The owner of a plan for display: person, agent with its version, host and directory.

use onward_engine::Owner;

use super::agent_name::{agent_name, directory};
use super::format::one_line;

/// The owner of a plan.
pub(super) struct Who {
    pub(super) person: String,
    pub(super) agent: Option<String>,
    pub(super) host: Option<String>,
    pub(super) directory: Option<String>,
}

impl Who {
    pub(super) fn new(owner: &Owner) -> Self {
        let origin = &owner.origin;
        Self {
            person: one_line(&owner.person, 40),
            agent: origin.client.as_deref().map(client),
            host: origin.host.as_deref().map(|host| one_line(host, 40)),
            directory: origin.directory.as_deref().map(directory),
        }
    }

    /// "ana · Claude Code".
    pub(super) fn short(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{} · {agent}", self.person),
            None => self.person.clone(),
        }
    }
}

/// The product name of a client, with its version: "Claude Code 2.1".
fn client(client: &str) -> String {
    match client.split_once(' ') {
        Some((name, version)) => one_line(&format!("{} {version}", agent_name(name)), 60),
        None => agent_name(client),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_client_has_its_product_name() {
        assert_eq!(client("claude-code 2.1.0"), "Claude Code 2.1.0");
        assert_eq!(client("my agent 3"), "my agent 3");
        assert_eq!(client("codex"), "Codex");
    }
}
