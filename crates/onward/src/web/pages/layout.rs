//! The page layout: navigation, signed-in user, number of pending reviews and flash message.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use onward_core::Code;
use onward_core::role::Permission;

use super::format::sentence;
use super::{PageError, Visit};
use crate::output::format;
use crate::web::problem::Problem;

/// Maximum number of pending reviews to count.
const MAX_COUNTED_REVIEWS: u32 = 100;

/// The current section in the navigation.
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

/// Data of the base template.
pub(super) struct Layout {
    pub(super) title: String,
    section: Section,
    /// The signed-in user, or none if no authentication is required.
    pub(super) user: Option<String>,
    pub(super) role: &'static str,
    pub(super) signed_in: bool,
    pub(super) csrf_token: String,
    pub(super) pending_reviews: usize,
    /// Message about the action that led here.
    pub(super) flash: Option<&'static str>,
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
            pending_reviews: 0,
            flash: None,
            live: false,
            has_navigation: true,
        }
    }

    pub(super) fn is_section(&self, section: &str) -> bool {
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

    /// The number of pending reviews, or "99+".
    pub(super) fn pending_reviews_label(&self) -> String {
        if self.pending_reviews >= usize::try_from(MAX_COUNTED_REVIEWS).unwrap_or(usize::MAX) {
            format!("{}+", self.pending_reviews - 1)
        } else {
            self.pending_reviews.to_string()
        }
    }
}

impl Visit {
    pub(super) async fn layout(&self, title: &str, section: Section) -> Result<Layout, PageError> {
        let reviews = self
            .site
            .engine
            .open_reviews(&self.caller, MAX_COUNTED_REVIEWS)
            .await?;
        let needs_authentication = self.site.auth.local_user.is_none();
        Ok(Layout {
            title: format::sanitize_line(title),
            section,
            user: needs_authentication.then(|| user_label(&self.caller.name)),
            role: self.caller.role.as_str(),
            signed_in: self.signed_in,
            csrf_token: self.site.auth.cookie_signer.csrf_token(&self.caller),
            pending_reviews: reviews.len(),
            flash: self.fields.get("done").and_then(flash),
            live: true,
            has_navigation: true,
        })
    }

    /// Why the caller lacks a permission, or none if the caller has it.
    pub(super) fn denial(&self, permission: Permission) -> Option<String> {
        let forbidden = self.caller.allow(permission).err()?;
        Some(sentence(&forbidden.to_string()))
    }
}

/// A caller name without its kind: `token:ben` is displayed as `ben`.
fn user_label(name: &str) -> String {
    let label = name
        .strip_prefix("token:")
        .or_else(|| name.strip_prefix("user:"));
    format::sanitize_line(label.unwrap_or(name))
}

/// The flash message for the query parameter `done`. Unknown values are ignored.
fn flash(outcome: &str) -> Option<&'static str> {
    Some(match outcome {
        "resumed" => "The plan's stuck status was cleared. Its steps were not changed.",
        "abandoned" => "The plan was cancelled.",
        "requeued" => "The step was released. The next agent that requests a step can claim it.",
        "failed" => "The step was marked as failed.",
        "instructed" => "The instructions were saved.",
        "added" => "The step was added.",
        "moved" => "The step was moved.",
        "approve" => "Approved. The agent's summary is the step's result.",
        "reject" => "Rejected. The step and its plan failed.",
        "modify" => "Changes requested. The agent receives your feedback.",
        "skip" => "The step was skipped.",
        "closed" => "The call was marked as interrupted. A late result will still be stored.",
        "revoked" => "The token was revoked.",
        "reviews" => "The setting was saved.",
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
