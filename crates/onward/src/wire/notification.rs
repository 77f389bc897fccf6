//! Notifications about stalls, reviews and failures, as sent to webhooks and to the dashboard's
//! script.

use onward_core::event::Decision;
use onward_core::finding::Kind;
use onward_core::policy::OnStall;
use onward_core::step::ReviewScope;
use onward_core::{PlanId, PlanStatus, Timestamp};
use onward_engine::Caller;
use onward_engine::notification::PlanNotification;
use serde::Serialize;

use crate::output::format;

/// Characters of a free text. The dashboard shows all of it.
const MAX_TEXT: usize = 500;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notification {
    /// Unique per finding and stable across delivery attempts.
    pub(crate) id: String,
    kind: &'static str,
    /// One sentence for the user.
    pub(crate) text: String,
    /// Whether the sentence contains the note.
    #[serde(skip)]
    pub(crate) includes_note: bool,
    tenant: String,
    /// When the condition began.
    since: String,
    found_at: String,
    plan: Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Step>,
    /// The summary under review, why the plan failed, or the exhausted limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The dashboard page, if the server's URL is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// The recipient of the decision links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recipient: Option<String>,
    /// The decision links, if the review is pending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) decisions: Vec<DecisionUrl>,
}

/// A link that opens the confirmation page of a decision.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionUrl {
    pub(crate) action: &'static str,
    pub(crate) title: &'static str,
    pub(crate) url: String,
    pub(crate) expires_at: String,
}

impl DecisionUrl {
    pub(crate) fn new(
        decision: Decision,
        scope: ReviewScope,
        url: String,
        expires_at: Timestamp,
    ) -> Self {
        Self {
            action: decision.as_str(),
            title: button_label(decision, scope),
            url,
            expires_at: super::at(expires_at),
        }
    }
}

/// The button of a decision, as on the review page.
pub(crate) fn button_label(decision: Decision, scope: ReviewScope) -> &'static str {
    match (decision, scope) {
        (Decision::Approve, ReviewScope::Start) => "Approve and start",
        (Decision::Approve, ReviewScope::Plan | ReviewScope::Step) => "Approve and continue",
        (Decision::Modify, _) => "Request changes",
        (Decision::Skip, _) => "Skip step",
        (Decision::Reject, _) => "Reject and fail plan",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    plan_id: String,
    name: String,
    status: &'static str,
    on_stall: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    step_id: String,
    order: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
}

impl Notification {
    pub(crate) fn new(source: &PlanNotification, tenant: &str, base_url: Option<&str>) -> Self {
        let (notification, finding) = (&source.notification, &source.notification.finding);
        let short = |text: &String| text.chars().take(MAX_TEXT).collect::<String>();
        let step = source.step.as_ref().map(|(id, order, title)| Step {
            step_id: id.to_string(),
            order: *order,
            title: title.as_ref().map(super::line),
            attempt: finding.attempt,
        });
        Self {
            id: format!("{}/{}", notification.plan, finding.key),
            kind: finding.kind.as_str(),
            text: sentence(source),
            includes_note: includes_note(finding.kind),
            tenant: tenant.to_owned(),
            since: super::at(finding.since),
            found_at: super::at(notification.found_at),
            plan: Plan {
                plan_id: notification.plan.to_string(),
                name: super::line(&source.plan_name),
                status: source.plan_status.as_str(),
                on_stall: source.on_stall.as_str(),
            },
            step,
            note: finding.note.as_ref().map(short),
            url: base_url.map(|base| format!("{base}{}", page(source))),
            recipient: None,
            decisions: Vec::new(),
        }
    }

    /// A test of the webhook, about no plan.
    pub(crate) fn test(tenant: &str, now: Timestamp) -> Self {
        Self {
            id: format!("test/{}", now.as_millis()),
            kind: "test",
            text: "Test notification from Onward".to_owned(),
            includes_note: false,
            tenant: tenant.to_owned(),
            since: super::at(now),
            found_at: super::at(now),
            plan: Plan {
                plan_id: PlanId::from_u128(0).to_string(),
                name: "Test".to_owned(),
                status: PlanStatus::Executing.as_str(),
                on_stall: OnStall::default().as_str(),
            },
            step: None,
            note: None,
            url: None,
            recipient: None,
            decisions: Vec::new(),
        }
    }

    /// With a relative link, for the server's own pages.
    pub(crate) fn for_page(source: &PlanNotification, caller: &Caller) -> Self {
        Self::new(source, &caller.tenant, Some(""))
    }
}

/// The path of the dashboard page.
fn page(source: &PlanNotification) -> String {
    let finding = &source.notification.finding;
    let plan = source.notification.plan;
    match (finding.kind, finding.review()) {
        (_, Some(review)) => format!("/reviews/{review}"),
        (Kind::Budget, None) => format!("/plans/{plan}?tab=about#budget"),
        (Kind::Stall | Kind::Review | Kind::Failure | Kind::NoAgent | Kind::Blocked, None) => {
            format!("/plans/{plan}")
        }
    }
}

/// Whether the [`sentence`] contains the note of the finding.
fn includes_note(kind: Kind) -> bool {
    match kind {
        Kind::Budget | Kind::Failure => true,
        Kind::Stall | Kind::Review | Kind::NoAgent | Kind::Blocked => false,
    }
}

/// One line of text, with control characters removed.
fn sentence(source: &PlanNotification) -> String {
    let finding = &source.notification.finding;
    let name = format::sanitize_line(&source.plan_name);
    let step = match &source.step {
        Some((_, order, Some(title))) => format!("step {order} ({})", format::sanitize_line(title)),
        Some((_, order, None)) => format!("step {order}"),
        None => "a step".to_owned(),
    };
    match finding.kind {
        Kind::Stall => {
            let since = format::timestamp(finding.since);
            format!("\u{201c}{name}\u{201d}: {step} has had no activity since {since}")
        }
        Kind::Review if finding.is_reminder() => {
            format!("\u{201c}{name}\u{201d}: your decision on {step} is due")
        }
        Kind::Review => format!("\u{201c}{name}\u{201d}: {step} is waiting for your decision"),
        Kind::NoAgent => {
            let since = format::timestamp(finding.since);
            format!("\u{201c}{name}\u{201d}: no agent has worked on it since {since}")
        }
        Kind::Blocked => {
            format!("\u{201c}{name}\u{201d}: the remaining steps wait for a step that failed")
        }
        Kind::Budget => {
            let limit = finding.note.as_deref().unwrap_or_default();
            let limit = format::sanitize_line(limit);
            format!("\u{201c}{name}\u{201d}: the budget is exhausted: {limit}")
        }
        Kind::Failure => {
            let why = finding.note.as_deref().unwrap_or_default();
            let why: String = format::sanitize_line(why).chars().take(MAX_TEXT).collect();
            format!("\u{201c}{name}\u{201d} failed: {why}")
        }
    }
}
