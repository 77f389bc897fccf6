//! A plan that a user wrote: read, check, show and create it. Common to `onward plan create`,
//! `onward plan new` and `onward plan template use`.

use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use onward_core::Code;
use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::routing::DEFAULT_PRIORITY;
use onward_engine::RequestOrigin;
use onward_engine::machine::host_name;
use serde_json::json;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::step::resume_command;
use crate::config::location;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::hint::{self, Interface};
use crate::output::table::{Cell, Table};
use crate::output::{budget, format};
use crate::plan_file::{FileIssue, InvalidFile, MAX_BYTES, PlanFile};
use crate::wire::created::CreatedPlan;
use crate::wire::review::ReviewLinks;

/// The name of standard input in messages.
const STDIN: &str = "stdin";

/// A plan and the file that it is from.
pub(super) struct Definition {
    pub(super) file: PlanFile,
    /// The file, for messages.
    source: String,
}

impl Definition {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let (text, source) = read_text(path)?;
        let file = PlanFile::parse(&text).map_err(|invalid| failure(invalid, &source))?;
        Ok(Self { file, source })
    }

    /// A plan from the answers to questions.
    pub(super) fn from_answers(file: PlanFile) -> Self {
        Self {
            file,
            source: String::new(),
        }
    }

    /// Checks the plan without a database.
    pub(super) fn check(&self) -> Result<CreatePlan> {
        let checked = self.file.check();
        checked.map_err(|invalid| failure(invalid, &self.source))
    }

    /// The plan as text.
    pub(super) fn describe(&self, cx: &Context) -> Result<String> {
        Ok(describe(&self.check()?, cx))
    }

    /// Prints the plan without creating it; as JSON, the arguments of the tool.
    pub(super) fn show(&self, cx: &Context) -> Result {
        let text = self.describe(cx)?;
        if cx.output.json {
            cx.output.print_json(&self.file.arguments)?;
        } else {
            cx.output.print(&text)?;
        }
        cx.output.note("valid; nothing was created");
        Ok(Exit::Done)
    }

    /// Creates the plan and prints its id.
    pub(super) async fn create(&self, cx: &Context) -> Result {
        self.check()?;
        let mut database = Database::open_or_create(cx).await?;
        database.caller.origin = RequestOrigin {
            client: None,
            host: host_name(),
            directory: std::env::current_dir()
                .ok()
                .map(|path| location::display(&path)),
        };
        let Database { engine, caller, .. } = &database;
        let command = self.file.command(engine);
        let (command, key) = command.map_err(|invalid| failure(invalid, &self.source))?;
        let plan = engine.create_plan(caller, command, key).await?;
        let created = &plan.created;
        let name = format::sanitize_line(&created.brief.name);
        let steps = count(created.steps.len(), "step", "steps");
        let short = database.short_plan(created.plan).await?;
        cx.output.note(&format!("`{name}` created: {steps}"));
        if plan.approval.is_some() {
            cx.output.note(&format!(
                "approve it before an agent can start:\n  onward review show {short}"
            ));
        }
        cx.output.note(&format!(
            "continue it with an agent:\n  {}",
            resume_command(&short)
        ));
        for similar in &plan.similar {
            let short = database.short_plan(similar.plan).await?;
            let results = format::count(similar.results, "result", "results");
            cx.output.note(&format!(
                "a similar plan has ended: {} ({results})\n  onward plan show {short}",
                format::quoted_name(&similar.name)
            ));
        }
        if cx.output.json {
            cx.output
                .print_json(&CreatedPlan::new(&plan, &ReviewLinks::None))?;
        } else {
            cx.output.print(&format!("{}\n", created.plan))?;
        }
        Ok(Exit::Done)
    }
}

/// The text of a file that a user wrote, and the name of the file in messages. `-` is standard input.
pub(in crate::cli) fn read_text(path: &Path) -> Result<(String, String)> {
    let is_stdin = path == Path::new("-");
    let source = if is_stdin {
        STDIN.to_owned()
    } else {
        path.display().to_string()
    };
    let mut bytes = Vec::new();
    let limit = MAX_BYTES + 1;
    let read = if is_stdin {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    let size = read.map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let exit = if is_missing {
            Exit::NotFound
        } else {
            Exit::Failed
        };
        Failure::new(
            exit,
            Code::InvalidInput,
            format!("cannot read `{source}`: {error}"),
            "check the path and the file's permissions",
        )
    })?;
    if u64::try_from(size).is_ok_and(|size| size > MAX_BYTES) {
        return Err(Failure::failed(
            format!("`{source}` is larger than {} MiB", MAX_BYTES >> 20),
            "split the work into several plans",
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Failure::failed(
            format!("{source}:{line}: the text is not UTF-8"),
            "save the file as UTF-8",
        )
    })?;
    Ok((text, source))
}

/// The error of an invalid file, with one line per issue.
fn failure(invalid: InvalidFile, source: &str) -> Failure {
    let located = |issue: &FileIssue| match issue.line {
        Some(line) => format!("{source}:{line}: {}", issue.message),
        None => issue.message.clone(),
    };
    let message = match invalid.issues.as_slice() {
        [only] => located(only),
        several => {
            let mut message = format!("{} problems", several.len());
            for issue in several {
                let _ = write!(message, "\n  {}", located(issue));
            }
            message
        }
    };
    let issues = invalid
        .issues
        .iter()
        .map(|issue| json!({ "line": issue.line, "path": issue.path, "message": issue.message }));
    let issues: Vec<_> = issues.collect();
    Failure {
        details: Some(json!({ "issues": issues })),
        ..Failure::new(
            Exit::Failed,
            invalid.code,
            message,
            hint::render(&invalid.hint, Interface::CommandLine, None),
        )
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format::count(u64::try_from(number).unwrap_or(u64::MAX), one, many)
}

fn describe(plan: &CreatePlan, cx: &Context) -> String {
    let width = cx.output.text_width().saturating_sub(2);
    let mut text = format!("{}\n", format::sanitize_line(&plan.name));
    for line in format::wrapped(&format::sanitize_line(&plan.research_question), width) {
        let _ = writeln!(text, "  {line}");
    }
    let mut facts = vec![count(plan.steps.len(), "step", "steps")];
    if !plan.branches.is_empty() {
        facts.push(count(plan.branches.len(), "branch", "branches"));
    }
    if let Some(threshold) = plan.stall_threshold {
        facts.push(format!("stuck after {}", format::duration(threshold)));
    }
    if plan.on_stall != OnStall::default() {
        facts.push(format!("then {}", plan.on_stall.as_str()));
    }
    if plan.on_dependency_failure != OnDependencyFailure::default() {
        facts.push("continues after failed dependencies".to_owned());
    }
    if plan.approval.is_some() {
        facts.push("requires approval".to_owned());
    }
    if let Some(key) = &plan.routing.project_key {
        facts.push(format!("project {}", format::sanitize_line(key)));
    }
    if !plan.routing.labels.is_empty() {
        let labels = plan.routing.labels.join(", ");
        facts.push(format!("labels {}", format::sanitize_line(&labels)));
    }
    if plan.routing.priority != DEFAULT_PRIORITY {
        facts.push(format!("priority {}", plan.routing.priority));
    }
    if let Some(limits) = &plan.budget {
        facts.push(format!("budget {}", budget::limits_text(limits)));
    }
    let _ = writeln!(text, "  {}\n", facts.join(", "));
    text.push_str(&steps(&plan.steps, 1).render(cx.output, "  "));
    let total = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
    for branch in &plan.branches {
        let condition = format::sanitize_line(&branch.condition);
        let (action, added) = action(branch);
        let after = branch.after_order;
        let _ = writeln!(text, "\n  after step {after}, if {condition}: {action}");
        if !added.is_empty() {
            text.push_str(&steps(added, total.saturating_add(1)).render(cx.output, "    "));
        }
    }
    text
}

fn steps(steps: &[StepSpec], first: u32) -> Table {
    let mut table = Table::new(&["", "", "", ""]).with_flexible(&[1]);
    for (order, step) in (first..).zip(steps) {
        let needed: Vec<String> = step.depends_on.iter().map(u32::to_string).collect();
        let needed = if needed.is_empty() {
            String::new()
        } else {
            format!("after {}", needed.join(", "))
        };
        let title = step.title.as_deref().unwrap_or(&step.instructions);
        table.row([
            Cell::number(order),
            Cell::summary(title),
            step.step_type.as_str().into(),
            needed.into(),
        ]);
    }
    table
}

/// The action of a branch, and the steps that it adds.
fn action(branch: &BranchSpec) -> (String, &[StepSpec]) {
    match &branch.action {
        ActionSpec::Continue => ("continue".to_owned(), &[]),
        ActionSpec::SkipTo(StepRef::Order(order)) => (format!("skip to step {order}"), &[]),
        ActionSpec::SkipTo(StepRef::Id(id)) => (format!("skip to step {id}"), &[]),
        ActionSpec::AddSteps(steps) => ("add steps".to_owned(), steps),
        ActionSpec::Fail { reason: None } => ("fail the plan".to_owned(), &[]),
        ActionSpec::Fail {
            reason: Some(reason),
        } => {
            let reason = format::sanitize_line(reason);
            (format!("fail the plan: {reason}"), &[])
        }
    }
}
