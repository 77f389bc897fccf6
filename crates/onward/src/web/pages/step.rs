//! `/plans/{id}/steps/{id}`: one step: what is to do, what came out, and what can be done about it.

use askama::Template;
use axum::extract::Path;
use onward_core::StepStatus;
use onward_core::step::StepState;
use onward_engine::Error;

use super::acts::step_of;
use super::frame::{Frame, Section, render};
use super::plan::{Acts, named};
use super::prose::Prose;
use super::show::{Badge, When, gist, text};
use super::{Page, Visit};
use crate::output::words;

/// How much of a text is shown.
const LONGEST: usize = 100_000;

#[derive(Template)]
#[template(path = "step.html")]
struct Shown {
    frame: Frame,
    plan: String,
    plan_name: String,
    id: String,
    order: u32,
    name: String,
    kind: &'static str,
    badge: Badge,
    attempt: u32,
    session: Option<String>,
    started: Option<When>,
    ended: Option<When>,
    /// As it is shown.
    instructions: Prose,
    /// As it is changed: to the letter.
    draft: String,
    summary: Option<Prose>,
    data: Option<String>,
    confidence: Option<f64>,
    reason: Option<String>,
    review: Option<String>,
    /// Why this reader can do nothing about it.
    may_not: Option<String>,
    /// Why nothing can be done; else why not this or that.
    why_not: Option<String>,
    why_not_requeue: Option<String>,
    why_not_fail: Option<String>,
    why_not_move: Option<String>,
    total: u32,
}

pub(super) async fn show(visit: Visit, Path((plan, step)): Path<(String, String)>) -> Page {
    let engine = &visit.site.engine;
    let plan = named(&visit, &plan).await?;
    let id = step_of(&visit, &step).await?;
    let (sheet, step) = engine.step(&visit.caller, id).await?;
    if sheet.head.id != plan {
        let step = id.to_string();
        return Err(Error::StepNotFound { step, kept: None }.into());
    }
    let now = engine.now();
    let spec = &step.spec;
    let name = spec.title.as_deref().unwrap_or(spec.step_type.as_str());
    let name = gist(name, 200);
    let acts = Acts::of(&visit, &sheet.head);
    let (status, total) = (step.status(), sheet.head.counts.total());
    let unless = |fits: bool, why: &str| (!fits).then(|| why.to_owned());
    let mut shown = Shown {
        frame: visit.frame(&name, Section::Plans).await?,
        plan: plan.to_string(),
        plan_name: words::line(&sheet.brief.name),
        id: id.to_string(),
        order: step.order,
        name,
        kind: spec.step_type.as_str(),
        badge: Badge::step(status),
        attempt: step.attempt(),
        session: None,
        started: None,
        ended: None,
        instructions: Prose::of(&spec.instructions, LONGEST),
        draft: spec.instructions.clone(),
        summary: None,
        data: None,
        confidence: None,
        reason: None,
        review: None,
        may_not: acts.may_not_modify,
        why_not: acts.why_not_modify,
        why_not_requeue: unless(
            status == StepStatus::InProgress,
            "only a step in progress can be handed out again",
        ),
        why_not_fail: unless(
            matches!(status, StepStatus::InProgress | StepStatus::Pending),
            "only a step that is pending or in progress can be failed",
        ),
        why_not_move: unless(total > 1, "there is no other step"),
        total,
    };
    let when = |at| Some(When::new(at, now));
    match &step.state {
        StepState::Pending { .. } => {}
        StepState::InProgress(work) | StepState::AwaitingInput { work, .. } => {
            shown.started = when(work.started_at);
            let session = work.claim.session.as_ref();
            shown.session = session.map(|id| gist(id.as_str(), 100));
        }
        StepState::Completed {
            claim,
            started_at,
            ended_at,
            result,
        } => {
            (shown.started, shown.ended) = (when(*started_at), when(*ended_at));
            shown.session = claim.session.as_ref().map(|id| gist(id.as_str(), 100));
            shown.summary = Some(Prose::of(&result.summary, LONGEST));
            let data = result.data.as_ref();
            shown.data = data.map(|data| text(&words::pretty_json(data), LONGEST));
            shown.confidence = result.confidence;
        }
        StepState::Skipped { ended_at, .. } => shown.ended = when(*ended_at),
        StepState::Failed {
            reason, ended_at, ..
        } => {
            shown.ended = when(*ended_at);
            shown.reason = Some(text(&reason.to_string(), LONGEST));
        }
    }
    if let StepState::AwaitingInput { review, .. } = &step.state {
        shown.review = Some(review.id.to_string());
    }
    render(&shown)
}
