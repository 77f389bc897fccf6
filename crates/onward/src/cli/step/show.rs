//! `onward step show`: one step with its instructions, its result, and the commands that repair it.

use std::fmt::Write;

use clap::Args;
use onward_core::policy::stall_threshold;
use onward_core::routing::DEFAULT_PRIORITY;
use onward_core::step::{ReviewBy, StepResult, StepState};
use onward_core::{Step, StepStatus};
use onward_engine::{Sheet, StepLine};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::evidence::{evidence_list, numbered};
use crate::output::status::{StepMark, plan_label};
use crate::output::{Tone, budget, format, markdown};
use crate::wire::step::StepDetails;

/// Show a step: instructions, agent, result
#[derive(Args)]
pub(crate) struct Show {
    /// PLAN/ORDER (such as `5fa2/6`) or a step id
    #[arg(value_name = "STEP")]
    step: String,
}

pub(super) async fn run(args: &Show, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let id = database.find_step(&args.step).await?;
    let (sheet, step) = engine.step(caller, id).await?;
    let after = step.order.saturating_sub(1);
    let page = engine
        .list_steps(caller, sheet.head.id, None, after, 1)
        .await?;
    // Another process may remove the step between the two queries.
    let Some(line) = page.steps.first().filter(|line| line.id == id) else {
        let step = args.step.clone();
        return Err(onward_engine::Error::StepNotFound { step, kept: None }.into());
    };
    let depends_on = page.depends_on.get(&id).cloned().unwrap_or_default();
    let tokens = engine.step_tokens(caller, id).await?;
    if cx.output.json {
        let now = database.now;
        let details = StepDetails::new(&sheet, &step, line, &depends_on, tokens, now);
        cx.output.print_json(&details)?;
        return Ok(Exit::Done);
    }
    let plan = database.short_plan(sheet.head.id).await?;
    let text = Page {
        cx,
        database: &database,
        sheet: &sheet,
        step: &step,
        line,
        depends_on: &depends_on,
        id: format!("{plan}/{}", step.order),
        tokens,
    };
    cx.output.print(&text.render())?;
    Ok(Exit::Done)
}

fn reviewer(by: ReviewBy) -> &'static str {
    match by {
        ReviewBy::Person => "a person",
        ReviewBy::OtherSession => "a person or another session",
    }
}

struct Page<'a> {
    cx: &'a Context,
    database: &'a Database,
    sheet: &'a Sheet,
    step: &'a Step,
    line: &'a StepLine,
    depends_on: &'a [u32],
    /// PLAN/ORDER.
    tokens: Option<u64>,
    id: String,
}

impl Page<'_> {
    fn render(&self) -> String {
        let (output, now) = (self.cx.output, self.database.now);
        let spec = &self.step.spec;
        let mark = StepMark::new(self.line, self.sheet.head.origin, now);
        let title = spec.title.as_deref().unwrap_or(spec.step_type.as_str());
        let title = format!("Step {}, {}", self.step.order, format::sanitize_line(title));
        let mut text = crate::output::heading(output, &title, &mark.to_string(), mark.tone);
        let mut field = |name: &str, value: &str| {
            let _ = writeln!(text, "  {name:<12}  {value}");
        };
        let plan = format::sanitize_line(&self.sheet.brief.name);
        let plan_state = plan_label(self.sheet.head.status());
        field("plan", &format!("{plan} ({plan_state})"));
        field("step", &format!("{} · {}", self.id, self.step.id()));
        field("type", spec.step_type.as_str());
        field("attempt", &self.attempt());
        if self.tokens.is_some() || self.line.started_at.is_some() {
            field("tokens", &budget::tokens_text(self.tokens));
        }
        if let Some(session) = &self.line.session {
            field("session", &format::sanitize_line(session.as_str()));
        }
        for (name, value) in self.times() {
            field(name, &value);
        }
        if let Some(by) = spec.gates.as_ref().and_then(|gates| gates.review_by) {
            field("reviewed by", reviewer(by));
        }
        if spec.priority != DEFAULT_PRIORITY {
            field("priority", &spec.priority.to_string());
        }
        if !spec.labels.is_empty() {
            field("labels", &format::sanitize_line(&spec.labels.join(", ")));
        }
        if !self.depends_on.is_empty() {
            let orders: Vec<String> = self.depends_on.iter().map(u32::to_string).collect();
            field("depends on", &orders.join(", "));
        }
        if let Some(step) = self.line.supersedes {
            field("redoes", &format!("step {step}"));
        }
        if let Some(step) = self.line.superseded_by {
            field("redone by", &format!("step {step}"));
        }
        self.texts(&mut text);
        let commands = self.commands();
        if !commands.is_empty() {
            text.push('\n');
        }
        for (name, command) in commands {
            let _ = writeln!(text, "  {name:<12}  {command}");
        }
        text
    }

    fn attempt(&self) -> String {
        let max = self.step.spec.max_attempts;
        format!("{} of {max}", self.step.attempt())
    }

    fn times(&self) -> Vec<(&'static str, String)> {
        let (zone, now) = (self.cx.output.zone(), self.database.now);
        let at = |at| format!("{} ({})", zone.time(at, now), format::ago(now, at));
        let mut times = Vec::new();
        if let Some(started) = self.line.started_at {
            times.push(("started", at(started)));
        }
        if self.line.status == StepStatus::InProgress {
            let updated = self.line.last_progress_at.or(self.line.started_at);
            let updated = updated.unwrap_or(self.line.updated_at);
            let limit = stall_threshold(
                None,
                self.line.stall_threshold,
                self.sheet.head.stall_threshold,
            );
            let limit = format::duration(limit);
            times.push(("last update", format!("{}, limit {limit}", at(updated))));
        }
        if let Some(ended) = self.line.ended_at {
            times.push(("ended", at(ended)));
        }
        times
    }

    fn texts(&self, text: &mut String) {
        let output = self.cx.output;
        let mut section = |name: &str, body: &str| {
            let _ = write!(text, "\n{}\n", output.paint(Some(Tone::Heading), name));
            text.push_str(&markdown::render(body, output, "  "));
        };
        section("Instructions", &self.step.spec.instructions);
        if let Some(gates) = self.step.spec.gates.as_deref() {
            if !gates.acceptance_criteria.is_empty() {
                section("Acceptance criteria", &numbered(&gates.acceptance_criteria));
            }
            if let Some(schema) = &gates.result_schema {
                let schema = format::pretty_json(&schema.parse());
                section("Result schema", &format!("```\n{schema}\n```"));
            }
        }
        let mut result = |heading: &str, result: &StepResult| {
            section(heading, &result.summary);
            if !result.evidence.is_empty() {
                section("Evidence", &evidence_list(&result.evidence));
            }
            if let Some(data) = &result.data {
                let data = format::pretty_json(&data.parse());
                section("Result data", &format!("```\n{data}\n```"));
            }
        };
        match &self.step.state {
            StepState::Completed { result: done, .. } => result("Result", done),
            StepState::AwaitingInput { review, .. } => match &review.result {
                Some(submitted) => result("Result under review", submitted),
                None => section("Review request", &review.summary),
            },
            StepState::Failed { reason, .. } => section("Failure reason", &reason.to_string()),
            StepState::Pending { .. } | StepState::InProgress(_) | StepState::Skipped { .. } => {}
        }
    }

    /// The commands that apply in the state of the step.
    fn commands(&self) -> Vec<(&'static str, String)> {
        let id = &self.id;
        if self.sheet.head.status().is_terminal() {
            return Vec::new();
        }
        let can_stall = self.sheet.head.origin.reports_inactivity();
        match self.line.status {
            StepStatus::InProgress if can_stall && self.line.is_stalled(self.database.now) => vec![
                ("release", format!("onward step release {id}")),
                ("fail", format!("onward step fail {id}")),
            ],
            StepStatus::Failed if self.line.superseded_by.is_none() => {
                vec![("retry", format!("onward step retry {id} --reason TEXT"))]
            }
            StepStatus::AwaitingInput => vec![("decide", format!("onward review show {id}"))],
            StepStatus::InProgress
            | StepStatus::Pending
            | StepStatus::Completed
            | StepStatus::Skipped
            | StepStatus::Failed => Vec::new(),
        }
    }
}
