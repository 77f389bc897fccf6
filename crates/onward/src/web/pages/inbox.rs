//! `/inbox`: the decisions that wait for a person, as a list next to the selected one. Reviews have
//! the agent's summary and questions, the context of the step and a decision form; stuck plans have
//! their steps with the action that releases them. `/reviews/{id}` selects a review; agents link to
//! it.
//!
//! A rejected decision is displayed next to its form, which keeps the entered text.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use onward_core::attention::Word;
use onward_core::event::Decision;
use onward_core::id::ReviewId;
use onward_core::step::ReviewScope;
use onward_core::{Code, PlanId, StepId, StepStatus};
use onward_engine::list::OpenReview;
use onward_engine::step::ReviewDecision;

use super::actions::find_step;
use super::approval;
use super::format::{Age, RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::plan::step_name;
use super::review_form::{FormError, ReviewForm, SubmittedForm};
use super::tag::Tag;
use super::{FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::output::{format, trail};
use crate::tools::submit_user_decision::Edit;
use crate::web::problem::Problem;

/// Maximum number of items in the list.
const PAGE_SIZE: usize = 100;
/// Maximum number of pending reviews that are loaded.
const MAX_REVIEWS: u32 = 500;
/// Maximum number of steps in progress that are loaded for a stuck plan.
const MAX_IN_PROGRESS: u32 = 200;

/// Stuck steps that are displayed without expanding the list.
const VISIBLE_STEPS: usize = 5;

const REVIEW: Tag = Tag::new("awaiting_review", '◆', "review");
const STUCK: Tag = Tag::new("stalled", '▲', "stuck");

#[derive(Template)]
#[template(path = "inbox.html")]
struct Inbox {
    layout: Layout,
    items: Vec<Item>,
    /// Number of items that are not displayed.
    more: usize,
    /// Number of reviews that are assigned to the visitor.
    own: usize,
    /// Whether only those are displayed.
    is_filtered: bool,
    /// Whether the visitor selected the item, and did not just open the inbox.
    is_selected: bool,
    selected: Option<Selected>,
    /// The visitor asked for a review that is no longer pending.
    decided: Option<Decided>,
}

/// A review that is no longer pending.
struct Decided {
    author: String,
    decision: &'static str,
    at: RelativeTime,
    /// The decision in the activity of the plan.
    link: String,
}

/// An entry of the list.
struct Item {
    key: Key,
    link: String,
    is_selected: bool,
    tag: Tag,
    name: String,
    detail: String,
    since: Age,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Plan(PlanId),
    Review(StepId),
}

/// The selected entry.
enum Selected {
    Review(Box<ReviewForm>),
    Stuck(StuckView),
}

struct StuckView {
    plan: String,
    plan_link: String,
    plan_name: String,
    steps: Vec<StuckStep>,
}

struct StuckStep {
    id: String,
    order: u32,
    name: String,
    elapsed: String,
    limit: String,
    session: Option<(String, String)>,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let selected = visit.fields.parsed::<PlanId>("plan").map(Key::Plan);
    page(&visit, selected, None, None).await
}

pub(super) async fn show_review(visit: Visit, Path(id): Path<String>) -> PageResult {
    let open = open_reviews(&visit).await?;
    if let Some(review) = open.iter().find(|open| open.id.to_string() == id) {
        return page(&visit, Some(Key::Review(review.step)), None, None).await;
    }
    let decided = match id.parse() {
        Ok(review) => decided(&visit, review).await?,
        Err(_) => None,
    };
    let decided = decided.ok_or_else(not_found)?;
    page(&visit, None, None, Some(decided)).await
}

fn not_found() -> Problem {
    Problem::new(
        Code::InvalidInput,
        "this review does not exist",
        "see Inbox for pending reviews; the plan may have been deleted",
    )
    .status(StatusCode::NOT_FOUND)
}

/// The decision of a review that is no longer pending.
async fn decided(visit: &Visit, review: ReviewId) -> Result<Option<Decided>, PageError> {
    let engine = &visit.site.engine;
    let found = engine.review_decision(&visit.caller, review).await?;
    Ok(found.map(|found| Decided {
        author: one_line(&trail::decider(&found.author.name, &found.by), 90),
        decision: decided_text(found.decision),
        at: RelativeTime::new(found.at, engine.now()),
        link: format!(
            "/plans/{}?tab=activity&from={}#event-{}",
            found.plan, found.seq, found.seq
        ),
    }))
}

/// What the author of a decision did.
pub(super) fn decided_text(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approved it",
        Decision::Reject => "rejected it",
        Decision::Modify => "requested changes",
        Decision::Skip => "skipped the step",
    }
}

async fn open_reviews(visit: &Visit) -> Result<Vec<OpenReview>, PageError> {
    let open = visit.site.engine.open_reviews(&visit.caller, MAX_REVIEWS);
    Ok(open.await?)
}

async fn page(
    visit: &Visit,
    wanted: Option<Key>,
    error: Option<(StepId, FormError)>,
    decided: Option<Decided>,
) -> PageResult {
    let open = open_reviews(visit).await?;
    let is_own = |open: &&OpenReview| open.is_assigned_to(&visit.caller.name);
    let own: Vec<Key> = (open.iter().filter(is_own))
        .map(|open| Key::Review(open.step))
        .collect();
    let is_filtered = visit.fields.get("mine").is_some();
    let mut items = items(visit, &open).await?;
    items.retain(|item| !is_filtered || own.contains(&item.key));
    let wanted = error
        .as_ref()
        .map(|(step, _)| Key::Review(*step))
        .or(wanted);
    let found = items.iter().find(|item| Some(item.key) == wanted);
    let is_selected = found.is_some();
    let selected = found.or(items.first()).map(|item| item.key);
    for item in &mut items {
        item.is_selected = Some(item.key) == selected;
    }
    let name = |plan: PlanId| {
        let item = items.iter().find(|item| item.key == Key::Plan(plan));
        item.map_or_else(String::new, |item| item.name.clone())
    };
    let is_error = error.is_some();
    let selected = match selected {
        Some(Key::Review(step)) => {
            let review = open.iter().find(|open| open.step == step);
            let error = error.map(|(_, error)| error);
            match review {
                Some(open) => {
                    let token = visit.csrf_token();
                    let form = ReviewForm::load(&visit.site.engine, &visit.caller, open);
                    let form = form.await?.with_token(token).with_error(error);
                    Some(Selected::Review(Box::new(form)))
                }
                None => None,
            }
        }
        Some(Key::Plan(plan)) => {
            let name = name(plan);
            Some(Selected::Stuck(stuck_view(visit, plan, name).await?))
        }
        None => None,
    };
    let more = items.len().saturating_sub(PAGE_SIZE);
    items.truncate(PAGE_SIZE);
    let mut response = render(&Inbox {
        layout: visit.layout("Inbox", Section::Inbox).await?,
        items,
        more,
        own: own.len(),
        is_filtered,
        is_selected,
        selected,
        decided,
    })?;
    if is_error {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

/// Stuck plans, then reviews; the longest waiting first.
async fn items(visit: &Visit, open: &[OpenReview]) -> Result<Vec<Item>, PageError> {
    let engine = &visit.site.engine;
    let now = engine.now();
    let plans = engine.open_plans(&visit.caller).await?;
    let names: BTreeMap<PlanId, (String, String)> = plans
        .iter()
        .map(|(plan, _)| {
            let name = one_line(&plan.name, 100);
            let client = plan.owner.origin.client.as_deref();
            let client = client.map_or_else(String::new, |client| format!(" · {client}"));
            let person = one_line(&format!("{}{client}", plan.owner.person), 60);
            (plan.head.id, (name, person))
        })
        .collect();
    let named = |plan: &PlanId| names.get(plan).cloned().unwrap_or_default();
    let stuck = plans
        .iter()
        .filter(|(_, attention)| attention.word == Word::Stuck);
    let stuck = stuck.map(|(plan, attention)| {
        let id = plan.head.id;
        let (name, person) = named(&id);
        Item {
            key: Key::Plan(id),
            link: format!("/inbox?plan={id}"),
            is_selected: false,
            tag: STUCK,
            name,
            detail: person,
            since: Age::new(attention.since, now),
        }
    });
    let reviews = open.iter().map(|review| {
        let (name, person) = named(&review.plan);
        let questions = match review.review.asked().count() {
            0 if review.review.scope == ReviewScope::Start => {
                "waits for the approval of the plan".to_owned()
            }
            0 if review.review.result.is_some() => "submitted a result".to_owned(),
            0 => "asks for a review".to_owned(),
            many => format!(
                "asks {}",
                format::count(many as u64, "question", "questions")
            ),
        };
        let person = (!person.is_empty()).then(|| format!("{person} · "));
        Item {
            key: Key::Review(review.step),
            link: format!("/reviews/{}", review.id),
            is_selected: false,
            tag: REVIEW,
            name,
            detail: format!(
                "{}step {} {questions}",
                person.unwrap_or_default(),
                review.order
            ),
            since: Age::new(review.review.requested_at, now),
        }
    });
    Ok(stuck.chain(reviews).collect())
}

async fn stuck_view(visit: &Visit, plan: PlanId, name: String) -> Result<StuckView, PageError> {
    let engine = &visit.site.engine;
    let status = engine.status(&visit.caller, plan, None).await?;
    let in_progress = Some(StepStatus::InProgress);
    let working = engine.list_steps(&visit.caller, plan, in_progress, 0, MAX_IN_PROGRESS);
    let working = working.await?.steps;
    let steps = status.stalled.iter().map(|stalled| {
        let line = working.iter().find(|line| line.id == stalled.step);
        let session = line.and_then(|line| line.session.as_ref());
        StuckStep {
            id: stalled.step.to_string(),
            order: stalled.order,
            name: line.map_or_else(String::new, step_name),
            elapsed: format::duration(stalled.elapsed),
            limit: format::duration(stalled.threshold),
            session: session.map(|session| {
                let url = super::sessions::session_url(session.as_str());
                (url, format::session_id(session.as_str()))
            }),
        }
    });
    Ok(StuckView {
        plan: plan.to_string(),
        plan_link: format!("/plans/{plan}"),
        plan_name: name,
        steps: steps.collect(),
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
    let open = open_reviews(&visit).await?;
    let open = open.into_iter().find(|open| open.step == step);
    let edits = match &open {
        Some(open) if decision == Decision::Approve && open.review.scope == ReviewScope::Start => {
            let rows = approval::load(&visit.site.engine, &visit.caller, open.plan).await?;
            approval::edits(&rows, &fields)
        }
        Some(_) | None => Vec::new(),
    };
    let edits = Edit::modifications(edits, &visit.site.engine).map_err(Problem::from)?;
    let review = open.map(|open| open.review);
    let questions = review.as_ref().map_or(0, |review| review.questions.len());
    let form = SubmittedForm::new(fields, questions);
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let named = form.fields.parsed("review");
    let review = ReviewDecision {
        review: named,
        edits,
        ..form.decision(step, decision, review.as_ref())
    };
    let result = run_to_completion(async move { engine.decide_review(&caller, review).await });
    match result.await {
        Ok(_) => Ok(redirect(&format!("/inbox?done={decision}"))),
        Err(PageError(problem)) => {
            let open = open_reviews(&visit).await?;
            let is_open = open.iter().any(|open| open.step == step);
            if let Some(review) = named.filter(|_| !is_open)
                && let Some(decided) = decided(&visit, review).await?
            {
                let mut response = page(&visit, None, None, Some(decided)).await?;
                *response.status_mut() = StatusCode::CONFLICT;
                return Ok(response);
            }
            let (status, ..) = problem.page_text();
            if !is_open || status != StatusCode::BAD_REQUEST {
                return Err(PageError(problem));
            }
            let error = form.into_error(&problem);
            page(&visit, None, Some((step, error)), None).await
        }
    }
}
