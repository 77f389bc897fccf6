//! What stands around every page: where one is, who one is, what waits, and what was just done.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use onward_core::Code;
use onward_core::role::Permission;

use super::{Failed, Visit};
use crate::output::words;
use crate::web::problem::Problem;

/// How many open reviews are counted.
const COUNTED: u32 = 100;

/// The page that one is on, in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Plans,
    Reviews,
    Sessions,
    Search,
    Skills,
    Settings,
    None,
}

/// What stands around a page.
pub(super) struct Frame {
    pub(super) title: String,
    section: Section,
    /// Who looks; nobody where nobody has to say who they are.
    pub(super) who: Option<String>,
    pub(super) role: &'static str,
    pub(super) signed_in: bool,
    pub(super) mark: String,
    pub(super) waiting: usize,
    pub(super) notice: Option<&'static str>,
    /// Whether the page shows what changes.
    pub(super) live: bool,
    /// Whether the other pages are offered: to whoever has yet to sign in they are not.
    pub(super) leads_on: bool,
}

impl Frame {
    /// Around a page that shows nothing of anybody.
    pub(super) fn bare(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            section: Section::None,
            who: None,
            role: "",
            signed_in: false,
            mark: String::new(),
            waiting: 0,
            notice: None,
            live: false,
            leads_on: true,
        }
    }

    pub(super) fn is(&self, section: &str) -> bool {
        match self.section {
            Section::Plans => section == "plans",
            Section::Reviews => section == "reviews",
            Section::Sessions => section == "sessions",
            Section::Search => section == "search",
            Section::Skills => section == "skills",
            Section::Settings => section == "settings",
            Section::None => false,
        }
    }

    /// How many reviews wait, as far as they are counted.
    pub(super) fn waiting_words(&self) -> String {
        match self.waiting >= usize::try_from(COUNTED).unwrap_or(usize::MAX) {
            true => format!("{}+", self.waiting - 1),
            false => self.waiting.to_string(),
        }
    }
}

impl Visit {
    /// What stands around a page of this name.
    pub(super) async fn frame(&self, title: &str, section: Section) -> Result<Frame, Failed> {
        let open = self.site.engine.open_reviews(&self.caller, COUNTED).await?;
        let guarded = self.site.gate.open.is_none();
        Ok(Frame {
            title: words::line(title),
            section,
            who: guarded.then(|| words::line(&self.caller.name)),
            role: self.caller.role.as_str(),
            signed_in: self.signed_in,
            mark: self.site.gate.seal.mark(&self.caller),
            waiting: open.len(),
            notice: self.fields.get("done").and_then(notice),
            live: true,
            leads_on: true,
        })
    }

    /// Why the caller may not, if they may not.
    pub(super) fn why_not(&self, permission: Permission) -> Option<String> {
        let forbidden = self.caller.allow(permission).err()?;
        Some(forbidden.to_string().replace('`', ""))
    }
}

/// What is said about what was just done. The word comes from the address, the sentence from here.
fn notice(word: &str) -> Option<&'static str> {
    Some(match word {
        "resumed" => "The plan goes on.",
        "abandoned" => "The plan was abandoned.",
        "requeued" => "The step will be handed out again.",
        "failed" => "The step was failed.",
        "instructed" => "The instructions were changed.",
        "added" => "The step was added.",
        "moved" => "The step was moved.",
        "approve" => "Approved: the summary is the step's result.",
        "reject" => "Rejected: the step and its plan have failed.",
        "modify" => "Sent back to the agent, with your feedback.",
        "skip" => "The step was skipped.",
        "closed" => "The call was given up; its own result is still kept, should it come.",
        "revoked" => "The token was revoked.",
        _ => return None,
    })
}

/// The page itself.
pub(super) fn render(page: &impl Template) -> Result<Response, Failed> {
    match page.render() {
        Ok(text) => Ok(Html(text).into_response()),
        Err(why) => Err(Problem::new(
            Code::Unavailable,
            format!("the page cannot be shown: {why}"),
            "this is a bug of Onward",
        )
        .into()),
    }
}
