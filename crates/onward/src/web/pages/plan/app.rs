//! The plan as HTML for the MCP app: its state, the pending review with its form, and the rail, from
//! the templates of the dashboard. Also the document that displays them.
//!
//! `mcp/app.rs` serves both. Links are those of the dashboard; the script opens them through the
//! host.

use std::sync::LazyLock;

use askama::Template;
use onward_core::PlanId;
use onward_engine::{Caller, Error};

use super::branches::Branches;
use super::rail::{self, Rail, Selection};
use super::verdict::{Part, Verdict};
use super::{open_review, verdict};
use crate::mcp::{App, RenderedPlan};
use crate::output::format;
use crate::tools::ToolContext;
use crate::web::pages::format::{Badge, RelativeTime};
use crate::web::pages::layout::flash;
use crate::web::pages::review_form::ReviewForm;

/// The document of the app, without data.
#[derive(Template)]
#[template(path = "app.html")]
struct Document {
    styles: [&'static str; 2],
    script: &'static str,
}

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let document = Document {
        styles: [
            include_str!("../../../../assets/onward.css"),
            include_str!("../../../../assets/app.css"),
        ],
        script: include_str!("../../../../assets/app.js"),
    };
    // Without dynamic values, rendering cannot fail.
    document.render().unwrap_or_default()
});

/// The app that MCP servers offer.
pub(crate) const APP: App = App {
    document: || &DOCUMENT,
    render: |context, caller, plan, decision| Box::pin(render(context, caller, plan, decision)),
};

#[derive(Template)]
#[template(path = "app_plan.html")]
struct AppPlan {
    id: String,
    name: String,
    badge: Badge,
    done: u32,
    total: u32,
    failed: u32,
    acted: RelativeTime,
    /// Message about the decision that led here.
    flash: Option<&'static str>,
    verdict: Verdict,
    review: Option<ReviewForm>,
    rail: Rail,
    base_url: Option<String>,
}

/// Renders a plan. `decision` is the decision that the user has just made in the app.
async fn render(
    context: &ToolContext,
    caller: &Caller,
    plan: PlanId,
    decision: Option<&str>,
) -> Result<Option<RenderedPlan>, Error> {
    let (engine, base_url) = (&context.engine, context.dashboard.base_url());
    let status = engine.status(caller, plan, None).await?;
    let (sheet, head) = (&status.sheet, &status.sheet.head);
    let branches = Branches::load(engine, caller, plan).await?;
    let rail = rail::load(engine, caller, &status, &branches, &Selection::app()).await?;
    let open = open_review(&status);
    let blocked = rail.blocked_by_stuck;
    let verdict = verdict(engine, caller, &status, open, blocked).await?;
    let review = match &open {
        Some(open) => {
            let form = ReviewForm::load(engine, caller, open).await?;
            Some(form.for_app(base_url.as_deref()))
        }
        None => None,
    };
    let tally = rail.tally.clone();
    let page = AppPlan {
        id: plan.to_string(),
        name: format::sanitize_line(&sheet.brief.name),
        badge: Badge::attention(status.attention.word),
        done: head.counts.completed.saturating_add(head.counts.skipped),
        total: head.counts.total(),
        failed: head.counts.failed,
        acted: RelativeTime::new(sheet.acted_at, engine.now()),
        flash: decision.and_then(flash),
        verdict,
        review,
        rail,
        base_url: base_url.as_deref().map(str::to_owned),
    };
    Ok(page.render().ok().map(|html| RenderedPlan {
        html,
        tally,
        has_ended: head.ended_at().is_some(),
    }))
}
