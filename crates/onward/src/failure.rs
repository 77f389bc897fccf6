//! Why a command was not done, as a person at a terminal is told: what is wrong, and what to type
//! next.
//!
//! The engine's hints name the calls of agents; here they become commands where there is one. With
//! `--json` the same goes to standard error as one object, in the form that every surface shares.

use onward_core::plan::IllegalPlanMove;
use onward_core::refusal::Issue;
use onward_core::{Code, PlanStatus, Refusal};
use onward_engine::Error;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{complain, tell, words};
use crate::wire;

/// What a command answers.
pub(crate) type Result<T = Exit> = std::result::Result<T, Failure>;

/// Why it was not done.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the run ends.
    pub(crate) exit: Exit,
    /// The stable name.
    pub(crate) code: Code,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: String,
    /// What a program may want to know beyond the message.
    pub(crate) details: Option<Value>,
}

impl Failure {
    /// The command line, or the configuration, makes no sense.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Usage, Code::InvalidInput, message, hint)
    }

    /// It was attempted, and failed.
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

    /// Tells about it on standard error.
    pub(crate) fn tell(&self, as_json: bool) {
        if as_json {
            tell(&format!(
                "{}\n",
                words::json(&wire::error::Answer::of(self))
            ));
        } else {
            complain(&words::lines(&self.message), &words::lines(&self.hint));
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let issues = issues(&error);
        let mut message = error.to_string();
        // One issue is the message already; of several it says only how many.
        if let Some(issues) = issues.filter(|issues| issues.len() > 1) {
            for Issue { path, message: why } in issues {
                message.push_str(&format!("\n  `{path}` {why}"));
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
    if let Error::Refused {
        refusal: Refusal::InvalidInput(issues),
        ..
    } = error
    {
        Some(issues)
    } else {
        None
    }
}

/// What to type next.
fn hint(error: &Error) -> String {
    match error {
        Error::PlanNotFound(_) => "`onward plan list --all` shows the plans that there are",
        Error::StepNotFound { .. } => {
            "`onward plan show PLAN` shows the steps of a plan, `onward review list` those that \
             wait for a decision"
        }
        Error::NotFound { what: "tenant", .. } => "`onward tenant list` shows the tenants",
        Error::NotFound {
            what: "session", ..
        } => "`onward session list` shows the sessions",
        Error::NotFound { what: "token", .. } => "`onward token list` shows the tokens",
        Error::Refused { refusal, .. } => return refused(refusal).to_owned(),
        Error::Ambiguous(_)
        | Error::NotFound { .. }
        | Error::Conflict { .. }
        | Error::Unauthorized(_)
        | Error::Store(_)
        | _ => error.hint(),
    }
    .to_owned()
}

fn refused(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::InvalidInput(_) => "correct it, and run the command again",
        Refusal::StepNotFound(_) => "`onward plan show PLAN` shows the steps of a plan",
        Refusal::IllegalStepMove(_) => "`onward review list` shows what waits for a decision",
        Refusal::IllegalPlanMove(IllegalPlanMove { from, .. })
        | Refusal::PlanNotModifiable(from)
        | Refusal::PlanIsTerminal(from) => match from {
            PlanStatus::Stalled => "`onward plan resume PLAN` goes on with it",
            PlanStatus::AwaitingReview => "a person decides first: `onward review list`",
            PlanStatus::Planning | PlanStatus::Executing => {
                "`onward plan show PLAN` shows where the plan stands"
            }
            PlanStatus::Completed | PlanStatus::Failed => {
                "`onward plan show PLAN` shows how the plan ended"
            }
        },
        Refusal::FeedbackRequired => "say what should be different: `--feedback TEXT`",
        Refusal::InvalidCondition { .. }
        | Refusal::InvalidDependency(_)
        | Refusal::InvalidStepReference { .. }
        | Refusal::StepNotInProgress(_)
        | Refusal::StepIsTerminal(_)
        | Refusal::IllegalSkillMove(_)
        | Refusal::StepNotRemovable(_)
        | Refusal::IncompleteStepList { .. }
        | Refusal::ClaimSuperseded { .. }
        | Refusal::LimitExceeded { .. }
        | Refusal::Forbidden(_) => refusal.hint(),
    }
}
