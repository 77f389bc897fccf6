//! Hints in the terms of the caller's interface.
//!
//! The core and the engine name a use case in braces: `{get_next_step}`. MCP names a tool that it
//! offers, the API a route, the command line a command, and the dashboard a page. One table for all.

use std::borrow::Cow;

/// The set of tools that an MCP server offers (`--tools`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolSet {
    All,
    /// The tools needed to work on plans.
    Core,
    /// The same tools under the names of [`ALIASES`], for coding agents.
    Plan,
}

/// Names without "research", and the tools that they call. `--tools plan` lists them.
pub(crate) static ALIASES: [(&str, &str); 3] = [
    ("create_plan", "create_research_plan"),
    ("get_plan_context", "get_research_context"),
    ("store_plan_output", "store_research_output"),
];

impl ToolSet {
    /// The name under which the set lists a tool.
    pub(crate) fn name_of(self, tool: &'static str) -> &'static str {
        let alias = ALIASES.iter().find(|(_, name)| *name == tool);
        match (self, alias) {
            (ToolSet::Plan, Some((alias, _))) => alias,
            (ToolSet::Plan, None) | (ToolSet::All | ToolSet::Core, _) => tool,
        }
    }

    /// The tool with this name in the set. The names of the other sets stay valid.
    pub(crate) fn resolve(self, name: &str) -> &str {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        match (self, alias) {
            (ToolSet::Plan, Some((_, tool))) => tool,
            (ToolSet::Plan, None) | (ToolSet::All | ToolSet::Core, _) => name,
        }
    }

    /// A text of the server with the set's names of the tools in backticks.
    pub(crate) fn rename(self, text: &str) -> Cow<'_, str> {
        let mut renamed = Cow::Borrowed(text);
        if self == ToolSet::Plan {
            for (alias, tool) in ALIASES {
                let quoted = format!("`{tool}`");
                if renamed.contains(&quoted) {
                    renamed = renamed.replace(&quoted, &format!("`{alias}`")).into();
                }
            }
        }
        renamed
    }
}

/// The interface of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    Mcp(ToolSet),
    Api,
    CommandLine,
    Page,
}

/// A use case that hints name. The tests compare the table with the tools, routes and commands.
struct UseCase {
    name: &'static str,
    /// In the set of all tools; empty for the tool of this name.
    all: &'static str,
    /// In the set of core tools; empty for the tool of this name.
    core: &'static str,
    route: &'static str,
    command: &'static str,
    page: &'static str,
}

const TOOL: &str = "";
const AGENT: &str = "an agent";
const HOOKS: &str = "the hooks of your agent";
const SHOW: &str = "`onward plan show PLAN`";
const PLAN_PAGE: &str = "the plan's page";

static USE_CASES: [UseCase; 12] = [
    UseCase {
        name: "get_plan_status",
        all: TOOL,
        core: TOOL,
        route: "`GET /api/v1/plans/{planId}`",
        command: SHOW,
        page: PLAN_PAGE,
    },
    UseCase {
        name: "list_plan_steps",
        all: TOOL,
        core: "`get_research_context`",
        route: "`GET /api/v1/plans/{planId}/steps`",
        command: SHOW,
        page: PLAN_PAGE,
    },
    UseCase {
        name: "get_next_step",
        all: TOOL,
        core: TOOL,
        route: "`POST /api/v1/plans/{planId}/next`",
        command: AGENT,
        page: AGENT,
    },
    UseCase {
        name: "report_step_progress",
        all: TOOL,
        core: TOOL,
        route: "`POST /api/v1/steps/{stepId}/progress`",
        command: AGENT,
        page: AGENT,
    },
    UseCase {
        name: "list_active_plans",
        all: TOOL,
        core: TOOL,
        route: "`GET /api/v1/plans`",
        command: "`onward plan list --all`",
        page: "the list of plans",
    },
    UseCase {
        name: "create_research_plan",
        all: TOOL,
        core: TOOL,
        route: "`POST /api/v1/plans`",
        command: "`onward plan create FILE`",
        page: "the New plan page",
    },
    UseCase {
        name: "modify_plan",
        all: TOOL,
        core: TOOL,
        route: "`POST /api/v1/plans/{planId}/modify`",
        command: "the dashboard",
        page: PLAN_PAGE,
    },
    UseCase {
        name: "set_budget",
        all: "`onward plan budget PLAN`, or the plan's page",
        core: "`onward plan budget PLAN`, or the plan's page",
        route: "`POST /api/v1/plans/{planId}/modify` with `set_budget`",
        command: "`onward plan budget PLAN`",
        page: PLAN_PAGE,
    },
    UseCase {
        name: "get_research_context",
        all: TOOL,
        core: TOOL,
        route: "`POST /api/v1/plans/{planId}/context`",
        command: SHOW,
        page: PLAN_PAGE,
    },
    UseCase {
        name: "get_artifact",
        all: TOOL,
        core: TOOL,
        route: "`GET /api/v1/artifacts/{artifactId}`",
        command: "`onward export PLAN`",
        page: "the artifact's page",
    },
    UseCase {
        name: "search_sources",
        all: TOOL,
        core: "`get_research_context`",
        route: "`GET /api/v1/search`",
        command: "`onward search WORDS`",
        page: "the Library page",
    },
    UseCase {
        name: "list_sessions",
        all: HOOKS,
        core: HOOKS,
        route: "`GET /api/v1/sessions`",
        command: "`onward session list`",
        page: "the Sessions page",
    },
];

/// The hint of an error for a caller of this interface. Only the command line runs on the server, so
/// on any other interface a hint with a command starts with `ask the operator:`.
pub(crate) fn render_error(
    hint: &str,
    needs_operator: bool,
    interface: Interface,
    base_url: Option<&str>,
) -> String {
    let rendered = render(hint, interface, base_url);
    if needs_operator && interface != Interface::CommandLine {
        format!("ask the operator: {rendered}")
    } else {
        rendered
    }
}

/// The hint for a caller of this interface. `base_url` is the dashboard's address.
pub(crate) fn render(hint: &str, interface: Interface, base_url: Option<&str>) -> String {
    let mut rendered = String::with_capacity(hint.len());
    let mut rest = hint;
    while let Some((before, after)) = rest.split_once('{') {
        rendered.push_str(before);
        let name = after.split_once('}');
        let replaced = name.and_then(|(name, after)| {
            let replacement = replacement(name, interface, base_url)?;
            Some((replacement, after))
        });
        match replaced {
            Some((replacement, after)) => {
                rendered.push_str(&replacement);
                rest = after;
            }
            None => {
                rendered.push('{');
                rest = after;
            }
        }
    }
    rendered.push_str(rest);
    match interface {
        Interface::Mcp(set) => set.rename(&rendered).into_owned(),
        Interface::Api | Interface::CommandLine | Interface::Page => rendered,
    }
}

fn replacement(
    name: &str,
    interface: Interface,
    base_url: Option<&str>,
) -> Option<Cow<'static, str>> {
    if name == "review" {
        return Some(review_page(interface, base_url));
    }
    let case = USE_CASES.iter().find(|case| case.name == name)?;
    let replacement = match interface {
        Interface::Mcp(ToolSet::All) => case.all,
        Interface::Mcp(ToolSet::Core | ToolSet::Plan) => case.core,
        Interface::Api => case.route,
        Interface::CommandLine => case.command,
        Interface::Page => case.page,
    };
    Some(if replacement.is_empty() {
        format!("`{name}`").into()
    } else {
        replacement.into()
    })
}

/// Where a user decides reviews.
fn review_page(interface: Interface, base_url: Option<&str>) -> Cow<'static, str> {
    match (interface, base_url) {
        (Interface::CommandLine, _) => "`onward review list`".into(),
        (Interface::Page, _) => "open Reviews".into(),
        (Interface::Mcp(_) | Interface::Api, Some(base)) => {
            format!("open {}/reviews", base.trim_end_matches('/')).into()
        }
        (Interface::Mcp(_), None) => "ask them, then call `submit_user_decision`".into(),
        (Interface::Api, None) => "open `/reviews` on the dashboard".into(),
    }
}

#[cfg(test)]
mod tests;
