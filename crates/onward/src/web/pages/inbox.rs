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
use onward_core::role::Permission;
use onward_core::step::ReviewScope;
use onward_core::{Code, PlanId, StepId, StepStatus};
use onward_engine::list::OpenReview;
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Engine, Error};

use super::actions::find_step;
use super::approval::{self, StepInputs};
use super::evidence::{EvidenceRow, reviewer};
use super::fields::{self, FieldInput};
use super::format::{Age, Clock, RelativeTime, multiline, one_line, sentence};
use super::layout::{Layout, Section, denial, render};
use super::markdown_html::MarkdownHtml;
use super::plan::step_name;
use super::tag::Tag;
use super::{Fields, FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::output::{format, trail};
use crate::tools::submit_user_decision::{Edit, feedback_with_answers, question_line};
use crate::web::problem::Problem;

/// Maximum number of items in the list.
const PAGE_SIZE: usize = 100;
/// Maximum number of pending reviews that are loaded.
const MAX_REVIEWS: u32 = 500;
/// Maximum number of steps in progress that are loaded for a stuck plan.
const MAX_IN_PROGRESS: u32 = 200;
/// Maximum characters of the step's context.
const MAX_CONTEXT_CHARS: usize = 6_000;
const MAX_CHARS: usize = 20_000;
/// A longer summary is collapsed to its first lines.
const MAX_LINES: usize = 12;
/// A paragraph of this many characters counts as one more line.
const LINE_CHARS: usize = 90;

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
    modify_denied: Option<String>,
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

/// A pending review with its form, on this page and in the app.
#[derive(Template)]
#[template(path = "review.html")]
pub(super) struct ReviewForm {
    row: ReviewView,
    /// None in the app, which decides through a tool.
    csrf_token: Option<String>,
    /// Why the caller may not decide.
    decide_denied: Option<String>,
}

struct ReviewView {
    id: String,
    step: String,
    step_link: String,
    order: u32,
    title: String,
    plan_link: String,
    plan_name: String,
    requested: RelativeTime,
    summary: MarkdownHtml,
    /// Whether only the first lines of the summary are visible at first.
    is_long: bool,
    questions: Vec<Question>,
    fields: Vec<FieldInput>,
    assignee: Option<String>,
    /// The deadline, and what happens then.
    due: Option<(Clock, &'static str)>,
    /// Who must decide, if the step requires a review.
    reviewer: Option<&'static str>,
    /// Whether only the step and those that depend on it wait.
    is_step_only: bool,
    /// Whether the plan is approved before its start.
    is_start: bool,
    /// Inputs for the steps of that plan.
    steps: Vec<StepInputs>,
    /// Whether a result is under review, not only a summary.
    is_result: bool,
    data: Option<String>,
    evidence: Vec<EvidenceRow>,
    instructions: MarkdownHtml,
    results: Vec<EarlierResult>,
    error: Option<FormError>,
}

/// A question of the agent, with the entered answer.
struct Question {
    number: usize,
    /// "1. Red or blue?", as in the feedback.
    line: String,
    text: MarkdownHtml,
    answer: String,
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
    answers: Vec<String>,
    /// The other inputs.
    fields: Fields,
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
        author: one_line(&trail::author(&found.author.name, None), 60),
        decision: match found.decision {
            Decision::Approve => "approved it",
            Decision::Reject => "rejected it",
            Decision::Modify => "requested changes",
            Decision::Skip => "skipped the step",
        },
        at: RelativeTime::new(found.at, engine.now()),
        link: format!(
            "/plans/{}?tab=activity&from={}#event-{}",
            found.plan, found.seq, found.seq
        ),
    }))
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
        modify_denied: visit.denial(Permission::Intervene),
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

impl ReviewForm {
    pub(super) async fn load(
        engine: &Engine,
        caller: &Caller,
        open: &OpenReview,
    ) -> Result<Self, Error> {
        let context = engine.step_context(caller, open.step, Some(MAX_CONTEXT_CHARS));
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
        let questions = open.review.questions.iter().enumerate();
        let questions = questions.map(|(index, question)| Question {
            number: index + 1,
            line: question_line(index, question),
            text: MarkdownHtml::render(question, MAX_CHARS),
            answer: String::new(),
        });
        let result = open.review.result.as_deref();
        let is_start = open.review.scope == ReviewScope::Start;
        let steps = if is_start {
            approval::load(engine, caller, open.plan).await?
        } else {
            Vec::new()
        };
        let row = ReviewView {
            id: open.id.to_string(),
            step: open.step.to_string(),
            step_link: format!("/plans/{}/steps/{}", open.plan, open.step),
            order: open.order,
            title: one_line(open.title.as_deref().unwrap_or_default(), 120),
            plan_link: format!("/plans/{}", open.plan),
            plan_name: format::sanitize_line(&context.name),
            requested: RelativeTime::new(open.review.requested_at, engine.now()),
            summary: MarkdownHtml::render(&open.review.summary, MAX_CHARS),
            is_long: is_long(&open.review.summary),
            questions: questions.collect(),
            fields: FieldInput::list(&open.review.options.fields),
            assignee: (open.review.options.assignee.as_ref()).map(|name| one_line(name, 60)),
            due: (open.review.options.deadline).map(|deadline| {
                let clock = Clock::new(deadline.at, engine.now());
                (clock, deadline.action.as_str())
            }),
            reviewer: open.review.by.map(reviewer),
            is_step_only: open.review.scope == ReviewScope::Step,
            is_start,
            steps,
            is_result: result.is_some(),
            data: result
                .and_then(|result| result.data.as_ref())
                .map(|data| multiline(&format::pretty_json(&data.parse()), MAX_CHARS)),
            evidence: result.map_or_else(Vec::new, |result| EvidenceRow::list(&result.evidence)),
            instructions: MarkdownHtml::render(&context.step.instructions, MAX_CHARS),
            results: results.collect(),
            error: None,
        };
        Ok(Self {
            row,
            csrf_token: None,
            decide_denied: denial(caller, Permission::DecideReview),
        })
    }

    fn with_token(mut self, token: String) -> Self {
        self.csrf_token = Some(token);
        self
    }

    /// Restores the input of a rejected decision.
    fn with_error(mut self, error: Option<FormError>) -> Self {
        if let Some(error) = &error {
            for (question, answer) in self.row.questions.iter_mut().zip(&error.answers) {
                question.answer.clone_from(answer);
            }
            approval::restore(&mut self.row.steps, &error.fields);
            fields::restore(&mut self.row.fields, &error.fields);
        }
        self.row.error = error;
        self
    }
}

/// Whether a text has more than the visible lines.
fn is_long(text: &str) -> bool {
    let lines = text
        .lines()
        .map(|line| 1 + line.chars().count() / LINE_CHARS);
    lines.sum::<usize>() > MAX_LINES
}

/// The answers to the questions, one per question.
fn answers(fields: &Fields, questions: usize) -> Vec<String> {
    let answer = |number: usize| {
        let answer = fields.get(&format!("answer-{number}")).unwrap_or_default();
        answer.replace("\r\n", "\n")
    };
    (1..=questions).map(answer).collect()
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
    let (questions, asked) = open.map_or_else(Default::default, |open| {
        (open.review.questions, open.review.options.fields)
    });
    let answers = answers(&fields, questions.len());
    let feedback = fields
        .get("feedback")
        .map(|text| text.replace("\r\n", "\n"));
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let sent = feedback_with_answers(&questions, &answers, feedback.as_deref());
    let review = ReviewDecision {
        review: fields.parsed("review"),
        edits,
        answers: fields::answers(&asked, &fields),
        ..ReviewDecision::new(step, decision, sent)
    };
    let result = run_to_completion(async move { engine.decide_review(&caller, review).await });
    match result.await {
        Ok(_) => Ok(redirect(&format!("/inbox?done={decision}"))),
        Err(PageError(problem)) => {
            let open = open_reviews(&visit).await?;
            let is_open = open.iter().any(|open| open.step == step);
            if let Some(review) = fields.parsed("review").filter(|_| !is_open)
                && let Some(decided) = decided(&visit, review).await?
            {
                let mut response = page(&visit, None, None, Some(decided)).await?;
                *response.status_mut() = StatusCode::CONFLICT;
                return Ok(response);
            }
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
                answers,
                fields,
            };
            page(&visit, None, Some((step, error)), None).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_summaries_are_recognized_by_lines_and_length() {
        assert!(!is_long("one line"));
        assert!(is_long(&"line\n".repeat(MAX_LINES + 1)));
        assert!(is_long(&"x".repeat(LINE_CHARS * MAX_LINES)));
    }
}
