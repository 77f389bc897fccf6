//! The actions of the screen: release stuck steps, approve a review, open a page.

use onward_core::command::{Modification, ModifyPlan};
use onward_core::event::Decision;
use onward_core::{PlanId, StepStatus};
use onward_engine::step::ReviewDecision;

use super::view::{Action, View};
use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::serve::open_browser;
use crate::cli::step::outlook;
use crate::failure::Result;
use crate::output::format;
use crate::serving;

/// Steps in progress that are read of a plan.
const MAX_STEPS: u32 = 10_000;

/// Performs an action, and returns a sentence about its outcome.
pub(super) async fn perform(
    action: &Action,
    view: &View,
    database: &Database,
    cx: &Context,
) -> Result<String> {
    match action {
        Action::Release(plan) => release(*plan, database).await,
        Action::Approve(plan) => approve(*plan, view, database).await,
        Action::Browse(plan) => Ok(browse(*plan, cx)),
        Action::None | Action::LoadSteps | Action::Quit => Ok(String::new()),
    }
}

async fn release(plan: PlanId, database: &Database) -> Result<String> {
    let Database { engine, caller, .. } = database;
    let in_progress = Some(StepStatus::InProgress);
    let page = engine.list_steps(caller, plan, in_progress, 0, MAX_STEPS);
    let now = engine.now();
    let mut released = 0u64;
    for line in page.await?.steps.iter().filter(|line| line.is_stalled(now)) {
        let command = ModifyPlan {
            resume: true,
            ..ModifyPlan::new(Modification::RequeueStep { step: line.id })
        };
        engine.modify_plan(caller, plan, command).await?;
        released += 1;
    }
    let released = format::count(released, "step", "steps");
    let next = outlook(database, plan).await?;
    Ok(format!("released {released}; {next}"))
}

async fn approve(plan: PlanId, view: &View, database: &Database) -> Result<String> {
    let Database { engine, caller, .. } = database;
    let mut reviews = view.reviews.iter();
    let Some((open, _)) = reviews.find(|(open, _)| open.plan == plan) else {
        return Ok("this plan has no pending review".to_owned());
    };
    let decision = ReviewDecision {
        review: Some(open.id),
        ..ReviewDecision::new(open.step, Decision::Approve, None)
    };
    engine.decide_review(caller, decision).await?;
    let next = outlook(database, plan).await?;
    Ok(format!("approved step {}; {next}", open.order))
}

fn browse(plan: PlanId, cx: &Context) -> String {
    let serve = &cx.config.serve;
    let running = || serving::find(&cx.config.database).map(|running| running.url());
    let base = serve.public_url.clone().or_else(running);
    let base = base.unwrap_or_else(|| format!("http://{}", serve.bind));
    let base = base.trim_end_matches('/');
    let url = format!("{base}/plans/{plan}");
    match open_browser(&url) {
        Ok(()) => format!("opened {url} (served by `onward serve`)"),
        Err(error) => format!("cannot open a browser: {error}; open {url}"),
    }
}
