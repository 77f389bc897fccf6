//! Hints in the terms of the caller's interface.
//!
//! The core and the engine name a use case in braces: `{get_next_step}`. MCP names a tool that it
//! offers, the API a route, the command line a command, and the dashboard a page. One table for all.

use std::borrow::Cow;

use crate::mcp::ToolSet;
use crate::{tools, web};

/// The interface of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    Mcp(ToolSet),
    Api,
    CommandLine,
    Page,
}

/// A use case that hints name.
struct UseCase {
    /// The name of its tool.
    name: &'static str,
    /// The replacement where MCP does not offer the tool.
    without_tool: &'static str,
    command: &'static str,
    page: &'static str,
}

const fn use_case(
    name: &'static str,
    without_tool: &'static str,
    command: &'static str,
    page: &'static str,
) -> UseCase {
    UseCase {
        name,
        without_tool,
        command,
        page,
    }
}

const AGENT: &str = "an agent";
const SHOW: &str = "`onward plan show PLAN`";
const PLAN_PAGE: &str = "the plan's page";

static USE_CASES: [UseCase; 10] = [
    use_case("get_plan_status", "", SHOW, PLAN_PAGE),
    use_case("list_plan_steps", "`get_plan_status`", SHOW, PLAN_PAGE),
    use_case("get_next_step", "", AGENT, AGENT),
    use_case("report_step_progress", "", AGENT, AGENT),
    use_case(
        "list_active_plans",
        "",
        "`onward plan list --all`",
        "the list of plans",
    ),
    use_case("create_research_plan", "", AGENT, AGENT),
    use_case("modify_plan", "", "the dashboard", PLAN_PAGE),
    use_case("get_research_context", "", SHOW, PLAN_PAGE),
    use_case(
        "search_sources",
        "`get_research_context`",
        "`onward search WORDS`",
        "the Search page",
    ),
    use_case(
        "list_sessions",
        "the hooks of your agent",
        "`onward session list`",
        "the Sessions page",
    ),
];

/// The hint for a caller of this interface. `base_url` is the dashboard's address.
pub(crate) fn render(hint: &str, interface: Interface, base_url: Option<&str>) -> String {
    let mut rendered = String::with_capacity(hint.len());
    // Only an operator can run commands on the server.
    if interface != Interface::CommandLine && hint.contains("`onward ") {
        rendered.push_str("ask the operator: ");
    }
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
    rendered
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
    Some(match interface {
        Interface::Mcp(offered) => {
            let tool = tools::find(name).filter(|tool| offered.contains(tool));
            tool.map_or(case.without_tool.into(), |tool| {
                format!("`{}`", tool.name).into()
            })
        }
        Interface::Api => format!("`{}`", web::route_of(name)?).into(),
        Interface::CommandLine => case.command.into(),
        Interface::Page => case.page.into(),
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
