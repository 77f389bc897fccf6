//! What people are told of when nobody looks, as a webhook and the script of the pages get it.

use onward_core::finding::Kind;
use onward_engine::Caller;
use onward_engine::notice::Told;
use serde::Serialize;

use crate::output::words;

/// Characters of what somebody wrote: the rest is on the page.
const LONGEST: usize = 500;

/// A finding.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notice {
    /// The same for every try, and no other finding's.
    pub(crate) id: String,
    kind: &'static str,
    /// One sentence for people.
    text: String,
    tenant: String,
    /// Since when it is so.
    since: String,
    found_at: String,
    plan: Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Step>,
    /// The summary that a person must decide about, or why the plan failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The page, where it is known how people reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
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

impl Notice {
    pub(crate) fn of(told: &Told, tenant: &str, base_url: Option<&str>) -> Self {
        let (notice, finding) = (&told.notice, &told.notice.finding);
        let short = |text: &String| text.chars().take(LONGEST).collect::<String>();
        let step = told.step.as_ref().map(|(id, order, title)| Step {
            step_id: id.to_string(),
            order: *order,
            title: title.clone(),
            attempt: finding.attempt,
        });
        Self {
            id: format!("{}/{}", notice.plan, finding.key),
            kind: finding.kind.as_str(),
            text: sentence(told),
            tenant: tenant.to_owned(),
            since: super::at(finding.since),
            found_at: super::at(notice.found_at),
            plan: Plan {
                plan_id: notice.plan.to_string(),
                name: told.plan_name.clone(),
                status: told.plan_status.as_str(),
                on_stall: told.on_stall.as_str(),
            },
            step,
            note: finding.note.as_ref().map(short),
            url: base_url.map(|base| format!("{base}{}", page(told))),
        }
    }

    /// For a page of the server itself, which needs no more of its address.
    pub(crate) fn on_page(told: &Told, caller: &Caller) -> Self {
        Self::of(told, &caller.tenant, Some(""))
    }
}

/// Where the page of a finding is.
fn page(told: &Told) -> String {
    let finding = &told.notice.finding;
    match (finding.kind, finding.key.strip_prefix("review/")) {
        (Kind::Review, Some(review)) => format!("/reviews/{review}"),
        (Kind::Stall | Kind::Review | Kind::Failure, _) => format!("/plans/{}", told.notice.plan),
    }
}

/// What happened, in one harmless line.
fn sentence(told: &Told) -> String {
    let finding = &told.notice.finding;
    let name = words::line(&told.plan_name);
    let step = match &told.step {
        Some((_, order, Some(title))) => format!("step {order} ({})", words::line(title)),
        Some((_, order, None)) => format!("step {order}"),
        None => "a step".to_owned(),
    };
    match finding.kind {
        Kind::Stall => {
            let since = words::instant(finding.since);
            format!("\u{201c}{name}\u{201d}: {step} has been silent since {since}")
        }
        Kind::Review => format!("\u{201c}{name}\u{201d}: {step} waits for your decision"),
        Kind::Failure => {
            let why = finding.note.as_deref().unwrap_or_default();
            let why: String = words::line(why).chars().take(LONGEST).collect();
            format!("\u{201c}{name}\u{201d} failed: {why}")
        }
    }
}
