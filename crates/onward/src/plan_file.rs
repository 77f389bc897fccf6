//! Plan files: the arguments of `create_research_plan`, written by a user as Markdown or JSON.
//!
//! A file is read into the arguments of the tool and the line of each field. The tool's own input
//! type validates them, so a new field of the tool is a field of the file. Every issue has the line
//! that it refers to. `write` turns arguments into a file, `from_plan` a stored plan into
//! arguments. The format is described in `docs/plans.md`.

mod from_plan;
mod json;
mod lines;
mod markdown;
mod toml;
mod write;

use std::cell::Cell;

use onward_core::command::CreatePlan;
use onward_core::id::{BranchId, ReviewId, StepRef};
use onward_core::refusal::BadDependency;
use onward_core::{Code, PlanId, Refusal, StepId, decide};
use onward_engine::{Engine, Error};
use serde_json::{Map, Value};

use crate::tools::ToolError;
use crate::tools::create_research_plan;
use crate::tools::params::NewIds;
pub(crate) use from_plan::arguments as arguments_of_plan;
use lines::Lines;
pub(crate) use write::markdown as to_markdown;

/// Maximum size of a file.
pub(crate) const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of reported issues.
const MAX_ISSUES: usize = 20;
const CORRECT_FILE: &str =
    "correct the file and run the command again; `onward plan create --help` has an example";

/// A file that was read.
#[derive(Debug)]
pub(crate) struct PlanFile {
    /// The arguments of `create_research_plan`.
    pub(crate) arguments: Map<String, Value>,
    lines: Lines,
}

/// Why a file was rejected.
#[derive(Debug)]
pub(crate) struct InvalidFile {
    pub(crate) code: Code,
    pub(crate) issues: Vec<FileIssue>,
    /// The next action, with the names of use cases in braces (`hint.rs`).
    pub(crate) hint: String,
}

/// One problem of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileIssue {
    /// Counted from 1. `None` if the arguments are not from a file.
    pub(crate) line: Option<usize>,
    /// The field.
    pub(crate) path: Option<String>,
    pub(crate) message: String,
}

impl FileIssue {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            path: None,
            message: message.into(),
        }
    }
}

impl InvalidFile {
    /// A file that cannot be read into arguments.
    fn syntax(mut issues: Vec<FileIssue>) -> Self {
        issues.sort_by_key(|issue| issue.line);
        issues.truncate(MAX_ISSUES);
        Self {
            code: Code::InvalidInput,
            issues,
            hint: CORRECT_FILE.to_owned(),
        }
    }
}

/// Ids for a plan that is only checked.
#[derive(Default)]
struct PreviewIds(Cell<u128>);

impl PreviewIds {
    fn next(&self) -> u128 {
        self.0.replace(self.0.get() + 1)
    }
}

impl NewIds for PreviewIds {
    fn new_plan_id(&self) -> PlanId {
        PlanId::from_u128(self.next())
    }

    fn new_review_id(&self) -> ReviewId {
        ReviewId::from_u128(self.next())
    }

    fn new_step_id(&self) -> StepId {
        StepId::from_u128(self.next())
    }

    fn new_branch_id(&self) -> BranchId {
        BranchId::from_u128(self.next())
    }
}

impl PlanFile {
    /// Reads a file: JSON if it begins with a brace, otherwise Markdown.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidFile> {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        let file = if start.starts_with('{') {
            json::parse(text)
        } else {
            markdown::parse(text)
        };
        file.map_err(InvalidFile::syntax)
    }

    /// Arguments that are not from a file.
    pub(crate) fn from_arguments(arguments: Map<String, Value>) -> Self {
        Self {
            arguments,
            lines: Lines::default(),
        }
    }

    /// Sets a field of the plan that the file may also set.
    pub(crate) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.arguments.insert(field.to_owned(), value.into());
    }

    /// Checks the whole plan. No database is needed.
    pub(crate) fn check(&self) -> Result<CreatePlan, InvalidFile> {
        let (command, _) = self.command_with(&PreviewIds::default())?;
        match decide::create::decide(&command) {
            Ok(_) => Ok(command),
            Err(refusal) => Err(self.refused(refusal)),
        }
    }

    /// The command that creates the plan, and its idempotency key.
    pub(crate) fn command(
        &self,
        engine: &Engine,
    ) -> Result<(CreatePlan, Option<String>), InvalidFile> {
        self.command_with(engine)
    }

    fn command_with(&self, ids: &dyn NewIds) -> Result<(CreatePlan, Option<String>), InvalidFile> {
        let arguments = Value::Object(self.arguments.clone());
        create_research_plan::command(arguments, ids).map_err(|error| self.invalid(&error, None))
    }

    fn refused(&self, refusal: Refusal) -> InvalidFile {
        let path = if let Refusal::InvalidDependency(dependency) = &refusal {
            self.dependency_path(dependency)
        } else if let Refusal::LimitExceeded { what, .. } = refusal {
            // The other limits of a new plan concern its branches.
            let is_of_steps = what == "dependencies";
            Some(
                if is_of_steps {
                    "steps"
                } else {
                    "branchingConditions"
                }
                .to_owned(),
            )
        } else {
            None
        };
        self.invalid(&ToolError::from(Error::from(refusal)), path)
    }

    /// The rejected fields with their lines. `path` is the field of an error that names none.
    fn invalid(&self, error: &ToolError, path: Option<String>) -> InvalidFile {
        let detail = |name: &str| error.details.as_ref()?.get(name);
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let located = |path: Option<String>, message: String| FileIssue {
            line: self.lines.get(path.as_deref().unwrap_or_default()),
            path,
            message,
        };
        let mut issues = Vec::new();
        for issue in detail("issues")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let (Some(path), Some(message)) = (text(issue, "path"), text(issue, "message")) {
                let message = format!("`{path}` {message}");
                issues.push(located(Some(path), message));
            }
        }
        if issues.is_empty() {
            let path = path.or_else(|| Some(detail("path")?.as_str()?.to_owned()));
            issues.push(located(path, error.message.clone()));
        }
        issues.sort_by_key(|issue| issue.line);
        let hint = if error.code == Code::InvalidInput {
            CORRECT_FILE.to_owned()
        } else {
            error.hint.clone()
        };
        InvalidFile {
            code: error.code,
            issues,
            hint,
        }
    }

    /// The field with an invalid dependency. New steps of a branch are numbered after the last step
    /// of the plan.
    fn dependency_path(&self, dependency: &BadDependency) -> Option<String> {
        let (order, needed) = match dependency {
            BadDependency::Unknown { step, needed } => (*step, Some(*needed)),
            BadDependency::Cycle(orders) => {
                (*orders.first()?, orders.get(1).copied().map(StepRef::Order))
            }
        };
        let list = |path: String, value: Option<&Value>| Some((path, value?.as_array()?.clone()));
        let steps = list("steps".to_owned(), self.arguments.get("steps"));
        let total = steps.as_ref().map_or(0, |(_, steps)| steps.len());
        let mut lists: Vec<(String, Vec<Value>, usize)> = steps
            .into_iter()
            .map(|(path, steps)| (path, steps, 0))
            .collect();
        let branches = self.arguments.get("branchingConditions");
        for (index, branch) in branches
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let path = format!("branchingConditions[{index}].actionParams.steps");
            let added = list(path, branch.pointer("/actionParams/steps"));
            lists.extend(added.map(|(path, steps)| (path, steps, total)));
        }
        let order = usize::try_from(order).ok()?;
        let is_needed = |value: &Value| match needed {
            Some(StepRef::Order(needed)) => value.as_u64() == Some(needed.into()),
            Some(StepRef::Id(needed)) => {
                let id = value.as_str().and_then(|id| id.parse::<StepId>().ok());
                id == Some(needed)
            }
            None => true,
        };
        lists.into_iter().find_map(|(path, steps, before)| {
            let index = order.checked_sub(before + 1)?;
            let needed = steps.get(index)?.get("dependsOn")?.as_array()?;
            let at = needed.iter().position(is_needed)?;
            Some(format!("{path}[{index}].dependsOn[{at}]"))
        })
    }
}

#[cfg(test)]
mod tests;
