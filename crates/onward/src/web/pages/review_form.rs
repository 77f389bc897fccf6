//! The form of a pending review: the agent's summary and questions, the context of the step, and the
//! inputs. Displayed in the inbox, in the app and by decision links.

use askama::Template;
use onward_core::event::Decision;
use onward_core::role::Permission;
use onward_core::step::{Review, ReviewScope};
use onward_core::{Code, StepId};
use onward_engine::list::OpenReview;
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Engine, Error};

use super::Fields;
use super::approval::{self, StepInputs};
use super::evidence::{EvidenceRow, reviewer};
use super::fields::{self, FieldInput};
use super::format::{Clock, RelativeTime, multiline, one_line, sentence};
use super::layout::denial;
use super::markdown_html::MarkdownHtml;
use crate::output::format;
use crate::tools::submit_user_decision::{feedback_with_answers, question_line};
use crate::web::problem::Problem;

/// Maximum characters of the step's context.
const MAX_CONTEXT_CHARS: usize = 6_000;
const MAX_CHARS: usize = 20_000;
/// A longer summary is collapsed to its first lines.
const MAX_LINES: usize = 12;
/// A paragraph of this many characters counts as one more line.
const LINE_CHARS: usize = 90;

/// A pending review with its form, in the inbox and in the app.
#[derive(Template)]
#[template(path = "review.html")]
pub(super) struct ReviewForm {
    pub(super) row: ReviewView,
    /// None in the app, which decides through a tool.
    csrf_token: Option<String>,
    /// Why the caller may not decide.
    decide_denied: Option<String>,
    /// The review page, if the review is decided there.
    page: Option<String>,
}

/// A pending review.
pub(super) struct ReviewView {
    pub(super) id: String,
    pub(super) step: String,
    pub(super) step_link: String,
    pub(super) order: u32,
    pub(super) title: String,
    pub(super) plan_link: String,
    pub(super) plan_name: String,
    pub(super) requested: RelativeTime,
    pub(super) summary: MarkdownHtml,
    /// Whether only the first lines of the summary are visible at first.
    pub(super) is_long: bool,
    pub(super) questions: Vec<Question>,
    pub(super) fields: Vec<FieldInput>,
    pub(super) assignee: Option<String>,
    /// The deadline, and what happens then.
    pub(super) due: Option<(Clock, &'static str)>,
    /// Who must decide, if the step requires a review.
    pub(super) reviewer: Option<&'static str>,
    /// Whether only the step and those that depend on it wait.
    pub(super) is_step_only: bool,
    /// Whether the plan is approved before its start.
    pub(super) is_start: bool,
    /// Inputs for the steps of that plan.
    pub(super) steps: Vec<StepInputs>,
    /// Whether a result is under review, not only a summary.
    pub(super) is_result: bool,
    pub(super) data: Option<String>,
    pub(super) evidence: Vec<EvidenceRow>,
    pub(super) instructions: MarkdownHtml,
    pub(super) results: Vec<EarlierResult>,
    pub(super) error: Option<FormError>,
}

/// A question of the agent, with the entered answer.
pub(super) struct Question {
    pub(super) number: usize,
    /// "1. Red or blue?", as in the feedback.
    pub(super) line: String,
    pub(super) text: MarkdownHtml,
    pub(super) answer: String,
}

/// The result of an earlier step.
pub(super) struct EarlierResult {
    pub(super) order: u32,
    pub(super) name: String,
    pub(super) summary: MarkdownHtml,
}

/// A rejected decision.
#[derive(Clone)]
pub(super) struct FormError {
    pub(super) message: String,
    pub(super) feedback: String,
    /// Whether the message is about a typed question, which is marked.
    pub(super) is_marked: bool,
    answers: Vec<String>,
    /// The other inputs.
    fields: Fields,
    /// The paths and messages of invalid input.
    issues: Vec<(String, String)>,
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
            page: None,
            decide_denied: denial(caller, Permission::DecideReview),
        })
    }

    pub(super) fn with_token(mut self, token: String) -> Self {
        self.csrf_token = Some(token);
        self
    }

    /// The form in the app, whose decisions count as those of an agent. A review that a step requires
    /// is decided on the review page.
    pub(super) fn for_app(mut self, base_url: Option<&str>) -> Self {
        if self.row.reviewer.is_some() {
            self.decide_denied =
                Some("This review is decided on its page, not in a chat.".to_owned());
            self.page = base_url.map(|_| format!("/reviews/{}", self.row.id));
        }
        self
    }

    /// Restores the input of a rejected decision.
    pub(super) fn with_error(mut self, mut error: Option<FormError>) -> Self {
        if let Some(error) = &mut error {
            for (question, answer) in self.row.questions.iter_mut().zip(&error.answers) {
                question.answer.clone_from(answer);
            }
            approval::restore(&mut self.row.steps, &error.fields);
            fields::restore(&mut self.row.fields, &error.fields);
            let marked = fields::mark(&mut self.row.fields, &error.issues);
            if !marked.is_empty() {
                error.is_marked = true;
                error.message = format!("Correct the marked answers: {}.", marked.join(", "));
            }
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

/// The inputs of a submitted form.
pub(super) struct SubmittedForm {
    answers: Vec<String>,
    feedback: Option<String>,
    pub(super) fields: Fields,
}

impl SubmittedForm {
    /// `questions` is the number of questions without a type.
    pub(super) fn new(fields: Fields, questions: usize) -> Self {
        let text = |name: &str| Some(fields.get(name)?.replace("\r\n", "\n"));
        let answer = |number: usize| text(&format!("answer-{number}")).unwrap_or_default();
        Self {
            answers: (1..=questions).map(answer).collect(),
            feedback: text("feedback"),
            fields,
        }
    }

    /// The decision with these inputs. `review` is `None` if it is no longer pending.
    pub(super) fn decision(
        &self,
        step: StepId,
        decision: Decision,
        review: Option<&Review>,
    ) -> ReviewDecision {
        let (questions, asked) = review.map_or_else(Default::default, |review| {
            (
                review.questions.as_slice(),
                review.options.fields.as_slice(),
            )
        });
        let feedback = self.feedback.as_deref();
        let feedback = feedback_with_answers(questions, &self.answers, feedback);
        ReviewDecision {
            answers: fields::answers(asked, &self.fields),
            ..ReviewDecision::new(step, decision, feedback)
        }
    }

    /// The error to display with the form that is submitted again.
    pub(super) fn into_error(self, problem: &Problem) -> FormError {
        let (_, _, detail, _) = problem.page_text();
        FormError {
            message: if problem.code() == Code::FeedbackRequired {
                "Describe what the agent should change.".to_owned()
            } else {
                sentence(detail)
            },
            feedback: self.feedback.unwrap_or_default(),
            is_marked: false,
            answers: self.answers,
            fields: self.fields,
            issues: problem.invalid_input(),
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
