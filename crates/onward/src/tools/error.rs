//! Errors of tool calls: a code, a message, a hint with the next call, and details as data.
//!
//! MCP and HTTP return the same object and add only their envelope (`isError`, an HTTP status). The
//! command line's errors are in `failure.rs`.

use onward_core::id::ArtifactId;
use onward_core::refusal::{BadDependency, Issue, NotRedoable};
use onward_core::{Code, Refusal};
use onward_engine::Error;
use onward_engine::context::DEFAULT_CHARS;
use onward_engine::error::KEPT;
use serde_json::{Map, Value, json};

use super::ToolContext;
use crate::hint::{self, Interface};
use crate::quota::Usage;
use crate::wire::error::ErrorBody;
use crate::wire::excerpt;

/// Why a call failed or was rejected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolError {
    /// The stable code.
    pub(crate) code: Code,
    /// The problem.
    pub(crate) message: String,
    /// The next action, with the names of use cases in braces (`hint.rs`).
    pub(crate) hint: String,
    /// Whether only an operator can follow the hint.
    pub(crate) needs_operator: bool,
    /// Machine-readable details.
    pub(crate) details: Option<Value>,
    /// Something named in the call does not exist, and `code` does not state that.
    pub(crate) not_found: bool,
}

impl ToolError {
    /// Invalid input.
    pub(crate) fn from_issues(issues: Vec<Issue>) -> Self {
        Error::from(Refusal::InvalidInput(issues)).into()
    }

    /// Invalid input in one field.
    pub(crate) fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::from_issues(vec![Issue {
            path: path.into(),
            message: message.into(),
        }])
    }

    /// Input that passed the schema but cannot be deserialized.
    pub(super) fn undecodable(why: &serde_json::Error) -> Self {
        Self::invalid("arguments", format!("cannot be deserialized: {why}"))
    }

    /// The tenant has used up its quota.
    pub(super) fn over_quota(Usage { bytes, max_bytes }: Usage) -> Self {
        Self {
            code: Code::LimitExceeded,
            message: format!("the tenant stores {bytes} bytes of texts; its quota is {max_bytes}"),
            hint: "delete finished plans, or ask the operator of the server to raise \
                   `limits.tenant_stored_mib`"
                .to_owned(),
            needs_operator: false,
            details: None,
            not_found: false,
        }
    }

    /// The tool panicked. Committed changes stay; uncommitted ones are rolled back.
    pub(crate) fn internal(tool: &str) -> Self {
        Self {
            code: Code::Unavailable,
            message: format!("internal error in `{tool}`; this is a bug in Onward"),
            hint: "check the plan with {get_plan_status}, then retry".to_owned(),
            needs_operator: false,
            details: None,
            not_found: false,
        }
    }

    /// Adds the id of the artifact that holds the rejected work.
    pub(super) fn with_kept_artifact(mut self, kept: Option<ArtifactId>) -> Self {
        if let Some(kept) = kept {
            self.message.push_str(KEPT);
            let details = self
                .details
                .get_or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(details) = details {
                details.insert("keptArtifactId".to_owned(), kept.to_string().into());
            }
        }
        self
    }

    /// The hint in the terms of an interface. `base_url` is the dashboard's address.
    pub(crate) fn render_hint(&self, interface: Interface, base_url: Option<&str>) -> String {
        hint::render_error(&self.hint, self.needs_operator, interface, base_url)
    }

    /// `{"error": {code, message, hint, details?, requestId?}}`.
    pub(crate) fn to_json(&self, context: &ToolContext) -> Value {
        let hint = self.render_hint(context.interface, context.dashboard.base_url().as_deref());
        let body = ErrorBody::new(self.code, &self.message, &hint, self.details.as_ref());
        let mut json = serde_json::to_value(body).unwrap_or_default();
        if let Some(error) = json.get_mut("error") {
            context.limit(error, DEFAULT_CHARS);
        }
        json
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let mut details = Map::new();
        if let Error::Rejected { refusal, .. } = &error {
            details = refusal_details(refusal);
        }
        if let Some(kept) = error.kept() {
            details.insert("keptArtifactId".to_owned(), kept.to_string().into());
        }
        Self {
            code: error.code(),
            message: public_message(&error),
            hint: error.hint().to_owned(),
            needs_operator: error.needs_operator(),
            not_found: matches!(error, Error::NotFound { .. }),
            details: (!details.is_empty()).then_some(Value::Object(details)),
        }
    }
}

/// The message of an error for agents and API clients. Hosts, users and files of the database are
/// only logged.
pub(crate) fn public_message(error: &Error) -> String {
    let (message, public) = (error.to_string(), error.public_message());
    if public != message {
        tracing::warn!(error = message, "{public}");
    }
    public
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        Error::from(refusal).into()
    }
}

/// Orders of a dependency cycle that an error lists.
const MAX_CYCLE: usize = 50;

/// The details of a rejected command.
fn refusal_details(refusal: &Refusal) -> Map<String, Value> {
    let details = match refusal {
        Refusal::InvalidInput(issues) => {
            let issue = |issue: &Issue| json!({ "path": issue.path, "message": issue.message });
            json!({ "issues": issues.iter().map(issue).collect::<Vec<_>>() })
        }
        Refusal::InvalidCondition { path, .. } => json!({ "path": path }),
        Refusal::InvalidStepReference {
            path,
            actual: named,
            ..
        } => {
            json!({ "path": path, "named": named })
        }
        Refusal::IllegalStepTransition(illegal) => json!({ "stepStatus": illegal.from.as_str() }),
        Refusal::StepNotInProgress(status)
        | Refusal::StepNotPending(status)
        | Refusal::StepIsTerminal(status) => json!({ "stepStatus": status.as_str() }),
        Refusal::InvalidDependency(BadDependency::Cycle(orders)) => {
            let named = orders.len().min(MAX_CYCLE);
            json!({ "cycle": orders.get(..named) })
        }
        Refusal::NotReviewer(by) => json!({ "reviewBy": by.as_str() }),
        Refusal::ReviewNotPending(review) => json!({ "reviewId": review.to_string() }),
        Refusal::IllegalPlanTransition(illegal) => json!({ "planStatus": illegal.from.as_str() }),
        Refusal::PlanNotModifiable(status) | Refusal::PlanIsTerminal(status) => {
            json!({ "planStatus": status.as_str() })
        }
        Refusal::IncompleteStepList {
            missing,
            unknown,
            duplicates: doubled,
        } => {
            let mut details = Map::new();
            for (name, steps) in [
                ("missing", missing),
                ("unknown", unknown),
                ("doubled", doubled),
            ] {
                let (listed, omitted) = excerpt::ids(steps.iter());
                if !listed.is_empty() {
                    details.insert(name.to_owned(), listed.into());
                }
                if omitted > 0 {
                    details.insert(format!("{name}Omitted"), omitted.into());
                }
            }
            Value::Object(details)
        }
        Refusal::ClaimSuperseded { attempt, status } => {
            json!({ "attempt": attempt, "stepStatus": status.as_str() })
        }
        Refusal::DependenciesOpen(open) => {
            let steps = open.first.iter();
            let steps =
                steps.map(|(id, order)| json!({ "stepId": id.to_string(), "stepOrder": order }));
            let steps: Vec<Value> = steps.collect();
            json!({ "openDependencies": open.total, "steps": steps })
        }
        Refusal::LimitExceeded {
            limit,
            actual: asked,
            ..
        } => json!({ "limit": limit, "asked": asked }),
        Refusal::BudgetExhausted(exhausted) => json!({
            "exhausted": {
                "limit": exhausted.limit.as_str(),
                "max": exhausted.max,
                "used": exhausted.used,
            }
        }),
        Refusal::StepNotRedoable(NotRedoable::NotEnded(status)) => {
            json!({ "stepStatus": status.as_str() })
        }
        Refusal::StepNotRedoable(NotRedoable::Superseded(successor)) => {
            json!({ "supersededBy": successor.to_string() })
        }
        Refusal::InvalidDependency(BadDependency::Unknown { .. })
        | Refusal::IllegalSkillTransition(_)
        | Refusal::StepNotFound(_)
        | Refusal::StepNotRemovable(_)
        | Refusal::ClaimNotIssued
        | Refusal::FeedbackRequired
        | Refusal::BudgetRaised
        | Refusal::Forbidden(_) => return Map::new(),
    };
    if let Value::Object(details) = details {
        details
    } else {
        Map::new()
    }
}
