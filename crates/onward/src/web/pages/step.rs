//! `/plans/{id}/steps/{id}`: one step with its instructions, result and actions.

use askama::Template;
use axum::extract::Path;
use onward_core::StepStatus;
use onward_core::step::StepState;
use onward_engine::Error;

use super::actions::find_step;
use super::format::{Badge, RelativeTime, multiline, one_line};
use super::layout::{Layout, Section, render};
use super::markdown_html::MarkdownHtml;
use super::plan::{PlanActions, find_plan};
use super::{PageResult, Visit};
use crate::output::format;

const MAX_CHARS: usize = 100_000;

#[derive(Template)]
#[template(path = "step.html")]
struct StepPage {
    layout: Layout,
    plan: String,
    plan_name: String,
    id: String,
    order: u32,
    name: String,
    kind: &'static str,
    badge: Badge,
    attempt: u32,
    session: Option<String>,
    started: Option<RelativeTime>,
    ended: Option<RelativeTime>,
    /// Rendered instructions.
    instructions: MarkdownHtml,
    /// Unmodified instructions, for the form.
    instructions_source: String,
    summary: Option<MarkdownHtml>,
    data: Option<String>,
    /// How the agent worked.
    report: Option<String>,
    confidence: Option<f64>,
    reason: Option<String>,
    review: Option<String>,
    /// The caller may not modify the plan: no buttons.
    denied: Option<String>,
    /// The plan's state allows no modification: all buttons are disabled.
    blocked: Option<String>,
    release_blocked: Option<String>,
    fail_blocked: Option<String>,
    move_blocked: Option<String>,
    total: u32,
}

pub(super) async fn show(visit: Visit, Path((plan, step)): Path<(String, String)>) -> PageResult {
    let engine = &visit.site.engine;
    let plan = find_plan(&visit, &plan).await?;
    let id = find_step(&visit, &step).await?;
    let (sheet, step) = engine.step(&visit.caller, id).await?;
    if sheet.head.id != plan {
        let step = id.to_string();
        return Err(Error::StepNotFound { step, kept: None }.into());
    }
    let now = engine.now();
    let spec = &step.spec;
    let name = spec.title.as_deref().unwrap_or(spec.step_type.as_str());
    let name = one_line(name, 200);
    let actions = PlanActions::new(&visit, &sheet.head);
    let (status, total) = (step.status(), sheet.head.counts.total());
    let unless = |allowed: bool, reason: &str| (!allowed).then(|| reason.to_owned());
    let mut page = StepPage {
        layout: visit.layout(&name, Section::Plans).await?,
        plan: plan.to_string(),
        plan_name: format::sanitize_line(&sheet.brief.name),
        id: id.to_string(),
        order: step.order,
        name,
        kind: spec.step_type.as_str(),
        badge: Badge::step(status),
        attempt: step.attempt(),
        session: None,
        started: None,
        ended: None,
        instructions: MarkdownHtml::render(&spec.instructions, MAX_CHARS),
        instructions_source: spec.instructions.clone(),
        summary: None,
        data: None,
        report: None,
        confidence: None,
        reason: None,
        review: None,
        denied: actions.modify_denied,
        blocked: actions.modify_blocked,
        release_blocked: unless(
            status == StepStatus::InProgress,
            "Only a step in progress can be released.",
        ),
        fail_blocked: unless(
            matches!(status, StepStatus::InProgress | StepStatus::Pending),
            "Only a pending step or a step in progress can be failed.",
        ),
        move_blocked: unless(total > 1, "The plan has only one step."),
        total,
    };
    let when = |at| Some(RelativeTime::new(at, now));
    match &step.state {
        StepState::Pending { .. } => {}
        StepState::InProgress(work) | StepState::AwaitingInput { work, .. } => {
            page.started = when(work.started_at);
            let session = work.claim.session.as_ref();
            page.session = session.map(|id| one_line(id.as_str(), 100));
        }
        StepState::Completed {
            claim,
            started_at,
            ended_at,
            result,
        } => {
            (page.started, page.ended) = (when(*started_at), when(*ended_at));
            page.session = claim.session.as_ref().map(|id| one_line(id.as_str(), 100));
            page.summary = Some(MarkdownHtml::render(&result.summary, MAX_CHARS));
            let data = result.data.as_ref();
            page.data = data.map(|data| multiline(&format::pretty_json(&data.parse()), MAX_CHARS));
            let report = result.report.as_ref();
            page.report =
                report.map(|report| multiline(&format::pretty_json(&report.parse()), MAX_CHARS));
            page.confidence = result.confidence;
        }
        StepState::Skipped { ended_at, .. } => page.ended = when(*ended_at),
        StepState::Failed {
            reason, ended_at, ..
        } => {
            page.ended = when(*ended_at);
            page.reason = Some(multiline(&reason.to_string(), MAX_CHARS));
        }
    }
    if let StepState::AwaitingInput { review, .. } = &step.state {
        page.review = Some(review.id.to_string());
    }
    render(&page)
}
