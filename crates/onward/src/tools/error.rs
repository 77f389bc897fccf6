//! Why a tool was not done, as a program is told: a code, what is wrong, what to call next, and what
//! can be read out of it.
//!
//! The same object on every surface; a surface adds only how it carries it (MCP's `isError`, an HTTP
//! status). What people at a terminal are told stands in `failure.rs`.

use onward_core::id::{ArtifactId, StepId};
use onward_core::refusal::Issue;
use onward_core::{Code, Refusal};
use onward_engine::Error;
use serde_json::{Map, Value, json};

use crate::wire::error::Answer;

/// Why not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refused {
    /// The stable name.
    pub(crate) code: Code,
    /// What is wrong.
    pub(crate) message: String,
    /// What to call next.
    pub(crate) hint: String,
    /// What a program may want to know beyond the message.
    pub(crate) details: Option<Value>,
    /// What was named is not there, and its code is not about that alone.
    pub(crate) missing: bool,
}

impl Refused {
    /// The input does not fit.
    pub(crate) fn of_issues(issues: Vec<Issue>) -> Self {
        Error::from(Refusal::InvalidInput(issues)).into()
    }

    /// One field of the input does not fit.
    pub(crate) fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of_issues(vec![Issue {
            path: path.into(),
            message: message.into(),
        }])
    }

    /// The input passed its schema, and cannot be read all the same.
    pub(super) fn unread(why: &serde_json::Error) -> Self {
        Self::invalid("arguments", format!("cannot be read: {why}"))
    }

    /// A tool that broke. What it had committed stays, what it had not is not there.
    pub(crate) fn broken(tool: &str) -> Self {
        Self {
            code: Code::Unavailable,
            message: format!("`{tool}` broke off: this is a bug of Onward"),
            hint: "`get_plan_status` shows what was done; then try again, or another way"
                .to_owned(),
            details: None,
            missing: false,
        }
    }

    /// The same, with where the work is kept that came with it.
    pub(super) fn kept(mut self, kept: Option<ArtifactId>) -> Self {
        if let Some(kept) = kept {
            let details = self
                .details
                .get_or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(details) = details {
                details.insert("keptArtifactId".to_owned(), kept.to_string().into());
            }
        }
        self
    }

    /// `{"error": {code, message, hint, details?}}`.
    pub(crate) fn to_json(&self) -> Value {
        let answer = Answer::new(self.code, &self.message, &self.hint, self.details.as_ref());
        serde_json::to_value(answer).unwrap_or_default()
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let mut details = Map::new();
        if let Error::Refused { refusal, .. } = &error {
            details = of_refusal(refusal);
        }
        if let Some(kept) = error.kept() {
            details.insert("keptArtifactId".to_owned(), kept.to_string().into());
        }
        Self {
            code: error.code(),
            message: error.to_string(),
            hint: error.hint().to_owned(),
            missing: matches!(error, Error::NotFound { .. }),
            details: (!details.is_empty()).then_some(Value::Object(details)),
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Error::from(refusal).into()
    }
}

/// What can be read out of a refusal beyond its words.
fn of_refusal(refusal: &Refusal) -> Map<String, Value> {
    let details = match refusal {
        Refusal::InvalidInput(issues) => {
            let issue = |issue: &Issue| json!({ "path": issue.path, "message": issue.message });
            json!({ "issues": issues.iter().map(issue).collect::<Vec<_>>() })
        }
        Refusal::InvalidCondition { path, .. } => json!({ "path": path }),
        Refusal::InvalidStepReference { path, named, .. } => {
            json!({ "path": path, "named": named })
        }
        Refusal::IllegalStepMove(illegal) => json!({ "stepStatus": illegal.from.as_str() }),
        Refusal::StepNotInProgress(status) | Refusal::StepIsTerminal(status) => {
            json!({ "stepStatus": status.as_str() })
        }
        Refusal::IllegalPlanMove(illegal) => json!({ "planStatus": illegal.from.as_str() }),
        Refusal::PlanNotModifiable(status) | Refusal::PlanIsTerminal(status) => {
            json!({ "planStatus": status.as_str() })
        }
        Refusal::IncompleteStepList {
            missing,
            unknown,
            doubled,
        } => {
            let ids = |ids: &[StepId]| ids.iter().map(StepId::to_string).collect::<Vec<_>>();
            json!({
                "missing": ids(missing),
                "unknown": ids(unknown),
                "doubled": ids(doubled),
            })
        }
        Refusal::ClaimSuperseded { attempt, status } => {
            json!({ "attempt": attempt, "stepStatus": status.as_str() })
        }
        Refusal::LimitExceeded { limit, asked, .. } => json!({ "limit": limit, "asked": asked }),
        Refusal::InvalidDependency(_)
        | Refusal::IllegalSkillMove(_)
        | Refusal::StepNotFound(_)
        | Refusal::StepNotRemovable(_)
        | Refusal::FeedbackRequired
        | Refusal::Forbidden(_) => return Map::new(),
    };
    if let Value::Object(details) = details {
        details
    } else {
        Map::new()
    }
}
