//! The page layout: navigation with the number of items that need a person, signed-in user and
//! flash message.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use onward_core::Code;
use onward_core::role::{Permission, Role};
use onward_engine::{Caller, session};

use super::agent_name::person;
use super::format::sentence;
use super::{PageError, Visit};
use crate::output::format;
use crate::output::time::Zone;
use crate::web::problem::Problem;

/// Maximum number of items to count in the navigation.
const MAX_COUNTED: u32 = 100;

/// The current section in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Plans,
    Inbox,
    Sessions,
    Library,
    Settings,
    None,
}

/// Data of the base template.
pub(super) struct Layout {
    pub(super) title: String,
    section: Section,
    /// The signed-in user, or none if no authentication is required.
    pub(super) user: Option<String>,
    pub(super) role: &'static str,
    pub(super) signed_in: bool,
    pub(super) csrf_token: String,
    /// Items in the inbox.
    pub(super) inbox: usize,
    /// Sessions in trouble.
    pub(super) troubled_sessions: usize,
    /// Message about the action that led here.
    pub(super) flash: Option<&'static str>,
    /// Why the user cannot change anything, or none if the user can.
    pub(super) read_only: Option<String>,
    /// The time zone of the displayed times, until the script replaces it with that of the browser.
    pub(super) zone: String,
    /// Whether the page updates itself.
    pub(super) live: bool,
    /// Whether the navigation is displayed. The sign-in page has none.
    pub(super) has_navigation: bool,
}

impl Layout {
    /// A layout without user data.
    pub(super) fn anonymous(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            section: Section::None,
            user: None,
            role: "",
            signed_in: false,
            csrf_token: String::new(),
            inbox: 0,
            troubled_sessions: 0,
            flash: None,
            read_only: None,
            zone: Zone::local().name(),
            live: false,
            has_navigation: true,
        }
    }

    pub(super) fn is_section(&self, section: &str) -> bool {
        match self.section {
            Section::Overview => section == "overview",
            Section::Plans => section == "plans",
            Section::Inbox => section == "inbox",
            Section::Sessions => section == "sessions",
            Section::Library => section == "library",
            Section::Settings => section == "settings",
            Section::None => false,
        }
    }

    /// A number of items, or "99+".
    pub(super) fn count_label(&self, count: &usize) -> String {
        if *count >= usize::try_from(MAX_COUNTED).unwrap_or(usize::MAX) {
            format!("{}+", MAX_COUNTED - 1)
        } else {
            count.to_string()
        }
    }
}

impl Visit {
    pub(super) async fn layout(&self, title: &str, section: Section) -> Result<Layout, PageError> {
        let engine = &self.site.engine;
        let reviews = engine.open_reviews(&self.caller, MAX_COUNTED).await?.len();
        let inbox = reviews + engine.count_stuck(&self.caller).await?;
        let sessions = engine.list_sessions(&self.caller, MAX_COUNTED).await?;
        let now = engine.now();
        let troubled = sessions
            .iter()
            .filter(|line| session::status(line, now).0.is_trouble());
        let needs_authentication = self.site.auth.local_user.is_none();
        Ok(Layout {
            title: format::sanitize_line(title),
            section,
            user: needs_authentication.then(|| person(&self.caller.name)),
            role: self.caller.role.as_str(),
            signed_in: self.signed_in,
            csrf_token: self.csrf_token(),
            inbox,
            troubled_sessions: troubled.count(),
            flash: self.fields.get("done").and_then(flash),
            read_only: read_only(&self.caller),
            zone: Zone::local().name(),
            live: !self.is_form,
            has_navigation: true,
        })
    }

    /// Why the caller lacks a permission, or none if the caller has it.
    pub(super) fn denial(&self, permission: Permission) -> Option<String> {
        denial(&self.caller, permission)
    }

    pub(super) fn csrf_token(&self) -> String {
        self.site.auth.cookie_signer.csrf_token(&self.caller)
    }
}

/// Why a caller lacks a permission.
pub(super) fn denial(caller: &Caller, permission: Permission) -> Option<String> {
    let forbidden = caller.allow(permission).err()?;
    Some(sentence(&forbidden.to_string()))
}

/// Why a caller cannot change anything, in one sentence for all pages.
fn read_only(caller: &Caller) -> Option<String> {
    let denied = denial(caller, Permission::Intervene)?;
    Some(
        match (caller.role, denial(caller, Permission::DecideReview)) {
            (Role::Viewer, _) => "Read-only: your role is viewer.".to_owned(),
            (role, Some(_)) => format!("The role {role} cannot change plans or decide reviews."),
            (_, None) => denied,
        },
    )
}

/// The flash message for the query parameter `done`. Unknown values are ignored.
pub(super) fn flash(outcome: &str) -> Option<&'static str> {
    Some(match outcome {
        "edited" => "The step was saved.",
        "saved" => "The plan was saved.",
        "added" => "The step was added.",
        "created" => "The plan was created. Copy the prompt and send it to an agent.",
        "moved" => "The step was moved.",
        "approve" => "Approved. The summary is the result of the step, and the plan continues.",
        "reject" => "Rejected. The step and the plan have failed.",
        "modify" => {
            "Changes requested. The agent gets your feedback with the next step that it requests."
        }
        "skip" => "The step was skipped without a result. The plan continues.",
        "closed" => "Marked as dead. A late result will still be stored.",
        "revoked" => "The token was revoked.",
        "reviews" => "The setting was saved.",
        "tested" => "The webhook accepted the test notification.",
        _ => return None,
    })
}

/// Renders a template.
pub(super) fn render(page: &impl Template) -> Result<Response, PageError> {
    match page.render() {
        Ok(text) => Ok(Html(text).into_response()),
        Err(error) => Err(Problem::new(
            Code::Unavailable,
            format!("cannot render the page: {error}"),
            "report this as a bug in Onward",
        )
        .into()),
    }
}
