//! Errors of the command line: a message, and a hint with the next command.
//!
//! The hints of the engine name use cases, which become commands (`hint.rs`). Some errors have
//! another hint on the command line. `cli::print_failure` prints them.

use onward_core::plan::IllegalPlanTransition;
use onward_core::refusal::Issue;
use onward_core::{Code, PlanStatus, Refusal};
use onward_engine::{Error, ObjectKind};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::hint::{self, Interface};

pub(crate) type Result<T = Exit> = std::result::Result<T, Failure>;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// The error code of the API.
    pub(crate) code: Code,
    pub(crate) message: String,
    /// The next action.
    pub(crate) hint: String,
    /// Further data for programs.
    pub(crate) details: Option<Value>,
}

impl Failure {
    /// Invalid arguments or configuration.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Usage, Code::InvalidInput, message, hint)
    }

    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Failed, Code::InvalidInput, message, hint)
    }

    pub(crate) fn new(
        exit: Exit,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            hint: hint.into(),
            details: None,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let issues = issues(&error);
        let mut message = error.to_string();
        // The message contains a single issue, but only the number of several.
        if let Some(issues) = issues.filter(|issues| issues.len() > 1) {
            for Issue {
                path,
                message: issue,
            } in issues
            {
                message.push_str(&format!("\n  `{path}` {issue}"));
            }
        }
        let mut details = serde_json::Map::new();
        if let Some(issues) = issues {
            let issue = |issue: &Issue| json!({ "path": issue.path, "message": issue.message });
            let issues: Vec<Value> = issues.iter().map(issue).collect();
            details.insert("issues".to_owned(), issues.into());
        }
        if let Some(kept) = error.kept() {
            details.insert("keptArtifactId".to_owned(), kept.to_string().into());
        }
        Self {
            exit: Exit::from(&error),
            code: error.code(),
            message,
            hint: hint(&error),
            details: (!details.is_empty()).then_some(Value::Object(details)),
        }
    }
}

fn issues(error: &Error) -> Option<&[Issue]> {
    if let Error::Rejected {
        refusal: Refusal::InvalidInput(issues),
        ..
    } = error
    {
        Some(issues)
    } else {
        None
    }
}

fn hint(error: &Error) -> String {
    let hint = match error {
        Error::PlanNotFound(_) => "list the plans with `onward plan list --all`",
        Error::StepNotFound { .. } => {
            "list the steps of a plan with `onward plan show PLAN`, or the pending reviews with \
             `onward review list`"
        }
        Error::NotFound { kind, .. } => match kind {
            ObjectKind::Tenant => "list the tenants with `onward tenant list`",
            ObjectKind::Session => "list the sessions with `onward session list`",
            ObjectKind::Token => "list the tokens with `onward token list`",
            ObjectKind::Artifact
            | ObjectKind::Call
            | ObjectKind::Output
            | ObjectKind::Review
            | ObjectKind::SkillExecution
            | ObjectKind::SkillRun
            | ObjectKind::Task => error.hint(),
        },
        Error::Rejected { refusal, .. } => refusal_hint(refusal),
        Error::Ambiguous { .. }
        | Error::Conflict { .. }
        | Error::Unauthorized(_)
        | Error::Store(_)
        | _ => error.hint(),
    };
    hint::render(hint, Interface::CommandLine, None)
}

fn refusal_hint(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::InvalidInput(_) => "correct the value and run the command again",
        Refusal::StepNotFound(_) => "list the steps of a plan with `onward plan show PLAN`",
        Refusal::IllegalStepTransition(_) | Refusal::ReviewNotPending(_) => {
            "list the pending reviews with `onward review list`"
        }
        Refusal::IllegalPlanTransition(IllegalPlanTransition { from, .. })
        | Refusal::PlanNotModifiable(from)
        | Refusal::PlanIsTerminal(from) => match from {
            PlanStatus::Stalled => "resume it with `onward plan resume PLAN`",
            PlanStatus::AwaitingReview => "decide the pending review first: `onward review list`",
            PlanStatus::Planning | PlanStatus::Executing => {
                "see the state of its steps with `onward plan show PLAN`"
            }
            PlanStatus::Completed | PlanStatus::Failed => {
                "see its result with `onward plan show PLAN`"
            }
        },
        Refusal::FeedbackRequired => "describe what the agent should change with `--feedback TEXT`",
        Refusal::InvalidCondition { .. }
        | Refusal::InvalidDependency(_)
        | Refusal::InvalidStepReference { .. }
        | Refusal::StepNotInProgress(_)
        | Refusal::StepNotPending(_)
        | Refusal::StepIsTerminal(_)
        | Refusal::IllegalSkillTransition(_)
        | Refusal::NotReviewer(_)
        | Refusal::StepNotRemovable(_)
        | Refusal::StepNotRedoable(_)
        | Refusal::IncompleteStepList { .. }
        | Refusal::ClaimSuperseded { .. }
        | Refusal::ClaimNotIssued
        | Refusal::DependenciesOpen(_)
        | Refusal::LimitExceeded { .. }
        | Refusal::BudgetExhausted(_)
        | Refusal::BudgetRaised
        | Refusal::Forbidden(_) => refusal.hint(),
    }
}
