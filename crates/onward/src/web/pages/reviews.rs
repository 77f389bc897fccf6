//! `/reviews`: pending reviews, oldest first, with the agent's summary and questions, the context
//! of the step, and a decision form. `/reviews/{id}` displays one review; agents link to it.
//!
//! A rejected decision is displayed next to its form, which keeps the entered text.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use onward_core::event::Decision;
use onward_core::role::Permission;
use onward_core::{Code, StepId};
use onward_engine::list::OpenReview;
use onward_engine::step::ReviewDecision;

use super::actions::find_step;
use super::format::{RelativeTime, one_line, sentence};
use super::layout::{Layout, Section, render};
use super::markdown_html::MarkdownHtml;
use super::{FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::output::format;
use crate::web::problem::Problem;

const PAGE_SIZE: usize = 20;
/// Maximum number of pending reviews that are loaded.
const MAX_REVIEWS: u32 = 500;
/// Maximum characters of the step's context.
const MAX_CONTEXT_CHARS: usize = 6_000;
const MAX_CHARS: usize = 20_000;

#[derive(Template)]
#[template(path = "reviews.html")]
struct Reviews {
    layout: Layout,
    rows: Vec<Row>,
    /// Number of pending reviews that are not displayed.
    more: usize,
    /// Whether the page displays a single review.
    is_single: bool,
    denied: Option<String>,
}

struct Row {
    id: String,
    step: String,
    step_link: String,
    order: u32,
    title: String,
    plan_link: String,
    plan_name: String,
    requested: RelativeTime,
    summary: MarkdownHtml,
    questions: Vec<MarkdownHtml>,
    instructions: MarkdownHtml,
    results: Vec<EarlierResult>,
    error: Option<FormError>,
}

/// The result of an earlier step.
struct EarlierResult {
    order: u32,
    name: String,
    summary: MarkdownHtml,
}

/// A rejected decision.
#[derive(Clone)]
struct FormError {
    message: String,
    feedback: String,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let open = visit.site.engine.open_reviews(&visit.caller, MAX_REVIEWS);
    let open = open.await?;
    page(&visit, &open, false, None).await
}

pub(super) async fn show_one(visit: Visit, Path(id): Path<String>) -> PageResult {
    let open = visit.site.engine.open_reviews(&visit.caller, MAX_REVIEWS);
    let open = open.await?;
    let review: Vec<OpenReview> = open
        .into_iter()
        .filter(|open| open.id.to_string() == id)
        .collect();
    if review.is_empty() {
        return Err(not_pending().into());
    }
    page(&visit, &review, true, None).await
}

fn not_pending() -> Problem {
    Problem::new(
        Code::InvalidInput,
        "this review has already been decided, or it does not exist",
        "see Reviews for pending reviews, or the plan's page for decisions",
    )
    .status(StatusCode::NOT_FOUND)
}

async fn page(
    visit: &Visit,
    open: &[OpenReview],
    is_single: bool,
    error: Option<(StepId, FormError)>,
) -> PageResult {
    let mut rows = Vec::new();
    for review in open.iter().take(PAGE_SIZE) {
        let own_error = error.as_ref().filter(|(step, _)| *step == review.step);
        let own_error = own_error.map(|(_, error)| error.clone());
        rows.push(row(visit, review, own_error).await?);
    }
    let mut response = render(&Reviews {
        layout: visit.layout("Reviews", Section::Reviews).await?,
        more: open.len().saturating_sub(rows.len()),
        rows,
        is_single,
        denied: visit.denial(Permission::DecideReview),
    })?;
    if error.is_some() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

async fn row(visit: &Visit, open: &OpenReview, error: Option<FormError>) -> Result<Row, PageError> {
    let engine = &visit.site.engine;
    let context = engine.step_context(&visit.caller, open.step, Some(MAX_CONTEXT_CHARS));
    let context = context.await?;
    let results = context.results.iter().filter_map(|result| {
        let summary = result.summary.as_deref()?;
        let step = &result.step;
        Some(EarlierResult {
            order: step.order,
            name: one_line(step.title.as_deref().unwrap_or(step.step_type.as_str()), 80),
            summary: MarkdownHtml::render(summary, MAX_CHARS),
        })
    });
    Ok(Row {
        id: open.id.to_string(),
        step: open.step.to_string(),
        step_link: format!("/plans/{}/steps/{}", open.plan, open.step),
        order: open.order,
        title: one_line(open.title.as_deref().unwrap_or_default(), 120),
        plan_link: format!("/plans/{}", open.plan),
        plan_name: format::sanitize_line(&context.name),
        requested: RelativeTime::new(open.review.requested_at, engine.now()),
        summary: MarkdownHtml::render(&open.review.summary, MAX_CHARS),
        questions: open
            .review
            .questions
            .iter()
            .map(|question| MarkdownHtml::render(question, MAX_CHARS))
            .collect(),
        instructions: MarkdownHtml::render(&context.step.instructions, MAX_CHARS),
        results: results.collect(),
        error,
    })
}

pub(super) async fn decide(Path(id): Path<String>, post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let step = find_step(&visit, &id).await?;
    let name = fields.get("decision").unwrap_or_default();
    let decision = [
        Decision::Approve,
        Decision::Reject,
        Decision::Modify,
        Decision::Skip,
    ]
    .into_iter()
    .find(|decision| decision.to_string() == name);
    let Some(decision) = decision else {
        return Err(Problem::new(
            Code::InvalidInput,
            format!("invalid decision `{name}`"),
            "go back and use one of the buttons",
        )
        .into());
    };
    let feedback = fields
        .get("feedback")
        .map(|text| text.replace("\r\n", "\n"));
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let review = ReviewDecision::new(step, decision, feedback.clone());
    let decided = run_to_completion(async move { engine.decide_review(&caller, review).await });
    match decided.await {
        Ok(_) => Ok(redirect(&format!("/reviews?done={decision}"))),
        Err(PageError(problem)) => {
            let open = visit.site.engine.open_reviews(&visit.caller, MAX_REVIEWS);
            let open = open.await?;
            let is_open = open.iter().any(|open| open.step == step);
            let (status, _, detail, _) = problem.page_text();
            if !is_open || status != StatusCode::BAD_REQUEST {
                return Err(PageError(problem));
            }
            let error = FormError {
                message: if problem.code() == Code::FeedbackRequired {
                    "Describe what the agent should change.".to_owned()
                } else {
                    sentence(detail)
                },
                feedback: feedback.unwrap_or_default(),
            };
            page(&visit, &open, false, Some((step, error))).await
        }
    }
}
