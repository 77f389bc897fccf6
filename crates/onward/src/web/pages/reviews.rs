//! `/reviews`: what waits for a person, the longest waiting first, each with what the agent says, what
//! it asks, and what the step is about; and the person's decision.
//!
//! `/reviews/{id}` is one of them: where the link leads that an agent shows. A decision that is refused
//! is told beside its form, with what was written still in it.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use onward_core::event::Decision;
use onward_core::role::Permission;
use onward_core::{Code, StepId};
use onward_engine::list::OpenReview;

use super::acts::step_of;
use super::frame::{Frame, Section, render};
use super::problem::sentence;
use super::prose::Prose;
use super::show::{When, gist};
use super::{Failed, Page, Posted, Visit, done, to};
use crate::output::words;
use crate::web::problem::Problem;

/// How many are shown.
const SHOWN: usize = 20;
/// How many are looked through.
const LOOKED_AT: u32 = 500;
/// How much of the step's context is shown, in characters.
const CONTEXT: usize = 6_000;
/// How much of a text is shown.
const LONGEST: usize = 20_000;

#[derive(Template)]
#[template(path = "reviews.html")]
struct Reviews {
    frame: Frame,
    rows: Vec<Row>,
    /// How many wait that are not shown.
    more: usize,
    is_one: bool,
    why_not: Option<String>,
}

struct Row {
    id: String,
    step: String,
    step_link: String,
    order: u32,
    title: String,
    plan_link: String,
    plan_name: String,
    asked: When,
    summary: Prose,
    questions: Vec<Prose>,
    instructions: Prose,
    results: Vec<Earlier>,
    refused: Option<Refused>,
}

/// What came out of a step before.
struct Earlier {
    order: u32,
    name: String,
    summary: Prose,
}

/// A decision that was not accepted.
#[derive(Clone)]
struct Refused {
    why: String,
    feedback: String,
}

pub(super) async fn show(visit: Visit) -> Page {
    let open = visit.site.engine.open_reviews(&visit.caller, LOOKED_AT);
    let open = open.await?;
    page(&visit, &open, false, None).await
}

pub(super) async fn show_one(visit: Visit, Path(id): Path<String>) -> Page {
    let open = visit.site.engine.open_reviews(&visit.caller, LOOKED_AT);
    let open = open.await?;
    let one: Vec<OpenReview> = open
        .into_iter()
        .filter(|open| open.id.to_string() == id)
        .collect();
    if one.is_empty() {
        return Err(decided().into());
    }
    page(&visit, &one, true, None).await
}

fn decided() -> Problem {
    Problem::new(
        Code::InvalidInput,
        "this review does not wait any more, or there never was one",
        "all that wait are under Reviews; what was decided is on the plan's page",
    )
    .status(StatusCode::NOT_FOUND)
}

async fn page(
    visit: &Visit,
    open: &[OpenReview],
    is_one: bool,
    refused: Option<(StepId, Refused)>,
) -> Page {
    let mut rows = Vec::new();
    for review in open.iter().take(SHOWN) {
        let of_this = refused.as_ref().filter(|(step, _)| *step == review.step);
        let of_this = of_this.map(|(_, refused)| refused.clone());
        rows.push(row(visit, review, of_this).await?);
    }
    let is_refused = refused.is_some();
    let mut response = render(&Reviews {
        frame: visit.frame("Reviews", Section::Reviews).await?,
        more: open.len().saturating_sub(rows.len()),
        rows,
        is_one,
        why_not: visit.why_not(Permission::DecideReview),
    })?;
    if is_refused {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

async fn row(visit: &Visit, open: &OpenReview, refused: Option<Refused>) -> Result<Row, Failed> {
    let engine = &visit.site.engine;
    let context = engine.step_context(&visit.caller, open.step, Some(CONTEXT));
    let context = context.await?;
    let results = context.results.iter().filter_map(|told| {
        let summary = told.summary.as_deref()?;
        let step = &told.step;
        Some(Earlier {
            order: step.order,
            name: gist(step.title.as_deref().unwrap_or(step.step_type.as_str()), 80),
            summary: Prose::of(summary, LONGEST),
        })
    });
    Ok(Row {
        id: open.id.to_string(),
        step: open.step.to_string(),
        step_link: format!("/plans/{}/steps/{}", open.plan, open.step),
        order: open.order,
        title: gist(open.title.as_deref().unwrap_or_default(), 120),
        plan_link: format!("/plans/{}", open.plan),
        plan_name: words::line(&context.name),
        asked: When::new(open.review.requested_at, engine.now()),
        summary: Prose::of(&open.review.summary, LONGEST),
        questions: open
            .review
            .questions
            .iter()
            .map(|question| Prose::of(question, LONGEST))
            .collect(),
        instructions: Prose::of(&context.step.instructions, LONGEST),
        results: results.collect(),
        refused,
    })
}

pub(super) async fn decide(Path(id): Path<String>, posted: Posted) -> Page {
    let Posted { visit, fields } = posted;
    let step = step_of(&visit, &id).await?;
    let word = fields.get("decision").unwrap_or_default();
    let decision = [
        Decision::Approve,
        Decision::Reject,
        Decision::Modify,
        Decision::Skip,
    ]
    .into_iter()
    .find(|decision| decision.to_string() == word);
    let Some(decision) = decision else {
        return Err(Problem::new(
            Code::InvalidInput,
            format!("`{word}` is no decision"),
            "go back, and choose one of the buttons",
        )
        .into());
    };
    let feedback = fields
        .get("feedback")
        .map(|text| text.replace("\r\n", "\n"));
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let said = feedback.clone();
    let answer = done(async move { engine.decide_review(&caller, step, decision, said).await });
    match answer.await {
        Ok(_) => Ok(to(&format!("/reviews?done={decision}"))),
        Err(Failed(problem)) => {
            let open = visit.site.engine.open_reviews(&visit.caller, LOOKED_AT);
            let open = open.await?;
            let is_open = open.iter().any(|open| open.step == step);
            let (status, _, why, _) = problem.told();
            if !is_open || status != StatusCode::BAD_REQUEST {
                return Err(Failed(problem));
            }
            let refused = Refused {
                why: match problem.code() == Code::FeedbackRequired {
                    true => "Say what should be different.".to_owned(),
                    false => sentence(why),
                },
                feedback: feedback.unwrap_or_default(),
            };
            page(&visit, &open, false, Some((step, refused))).await
        }
    }
}
