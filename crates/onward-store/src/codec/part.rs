//! Mirrors of the parts of events: new steps, branches with their actions, verdicts and stalls.
//!
//! A condition is stored as written, and parsed again by the parser that accepted it. If the parser
//! no longer accepts it, the record is undecodable: a branch that silently evaluated to false would
//! change the course of a plan.

use std::sync::Arc;

use onward_core::branch::{Action, Branch, BranchVerdict, NoEffect};
use onward_core::condition::Condition;
use onward_core::event::Successor;
use onward_core::id::BranchId;
use onward_core::plan::ForkedFrom;
use onward_core::policy::OnDependencyFailure;
use onward_core::step::{Gates, NewStep, ReviewBy, StepType};
use onward_core::{Json, PlanId, Stall, StepId, StepStatus, Timestamp};
use serde::{Deserialize, Serialize};

use super::scalar::{Millis, Priority, Text, optional, texts, values};
use super::{Undecodable, required, unknown};

/// The gates are flat among the other keys, as in `create_research_plan`. A required review is stored
/// as its reviewer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(super) struct NewStepJson<T> {
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    acceptance_criteria: Option<Vec<T>>,
    depends_on: Vec<Text<StepId>>,
    instructions: T,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<T>>,
    max_attempts: u32,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    on_dependency_failure: Option<Text<OnDependencyFailure>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    priority: Option<Priority>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    result_schema: Option<Json>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    review_by: Option<Text<ReviewBy>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    stall_threshold_ms: Option<Millis>,
    step_id: Text<StepId>,
    step_type: Text<StepType>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    supersedes: Option<Text<StepId>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    title: Option<T>,
}

impl<'e> From<&'e NewStep> for NewStepJson<&'e str> {
    fn from(step: &'e NewStep) -> Self {
        let gates = step.gates.as_deref();
        let criteria = gates.map(|gates| &gates.acceptance_criteria);
        let criteria = criteria.filter(|criteria| !criteria.is_empty());
        Self {
            acceptance_criteria: criteria
                .map(|criteria| criteria.iter().map(String::as_str).collect()),
            depends_on: texts(&step.depends_on),
            instructions: &step.instructions,
            labels: some_labels(&step.labels),
            max_attempts: step.max_attempts,
            on_dependency_failure: unless_default(step.on_dependency_failure),
            priority: Priority::unless_default(step.priority),
            result_schema: gates.and_then(|gates| gates.result_schema.clone()),
            review_by: gates.and_then(|gates| gates.review_by.map(Text)),
            stall_threshold_ms: step.stall_threshold.map(Millis::from),
            step_id: Text(step.id),
            step_type: Text(step.step_type),
            supersedes: step.supersedes.map(Text),
            title: step.title.as_deref(),
        }
    }
}

impl From<NewStepJson<String>> for NewStep {
    fn from(json: NewStepJson<String>) -> Self {
        let gates = Gates {
            result_schema: json.result_schema,
            acceptance_criteria: json.acceptance_criteria.unwrap_or_default(),
            review_by: json.review_by.map(|by| by.0),
        };
        Self {
            id: json.step_id.0,
            step_type: json.step_type.0,
            title: json.title,
            instructions: json.instructions,
            depends_on: values(json.depends_on),
            stall_threshold: json.stall_threshold_ms.map(Into::into),
            max_attempts: json.max_attempts,
            gates: (!gates.is_empty()).then(|| Arc::new(gates)),
            supersedes: json.supersedes.map(|step| step.0),
            labels: json.labels.unwrap_or_default(),
            priority: Priority::or_default(json.priority),
            on_dependency_failure: json
                .on_dependency_failure
                .map_or(OnDependencyFailure::default(), |policy| policy.0),
        }
    }
}

/// The policy, if it is not the default.
pub(super) fn unless_default(policy: OnDependencyFailure) -> Option<Text<OnDependencyFailure>> {
    (policy != OnDependencyFailure::default()).then_some(Text(policy))
}

/// The labels, if there are any.
pub(super) fn some_labels(labels: &[String]) -> Option<Vec<&str>> {
    (!labels.is_empty()).then(|| labels.iter().map(String::as_str).collect())
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(deserialize = "T: Deserialize<'de> + Default"))]
pub(super) struct SuccessorJson<T> {
    branch_ids: Vec<Text<BranchId>>,
    from: Text<StepStatus>,
    order: u32,
    step: NewStepJson<T>,
}

impl<'e> From<&'e Successor> for SuccessorJson<&'e str> {
    fn from(successor: &'e Successor) -> Self {
        Self {
            branch_ids: texts(&successor.branches),
            from: Text(successor.from),
            order: successor.order,
            step: NewStepJson::from(&successor.step),
        }
    }
}

impl From<SuccessorJson<String>> for Successor {
    fn from(json: SuccessorJson<String>) -> Self {
        Self {
            step: json.step.into(),
            order: json.order,
            from: json.from.0,
            branches: values(json.branch_ids),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ForkedFromJson {
    plan_id: Text<PlanId>,
    step_order: u32,
}

impl From<&ForkedFrom> for ForkedFromJson {
    fn from(source: &ForkedFrom) -> Self {
        Self {
            plan_id: Text(source.plan),
            step_order: source.step_order,
        }
    }
}

impl From<ForkedFromJson> for ForkedFrom {
    fn from(json: ForkedFromJson) -> Self {
        Self {
            plan: json.plan_id.0,
            step_order: json.step_order,
        }
    }
}

/// Converts each item of a list.
pub(crate) fn each<A: IntoIterator, B: From<A::Item>, L: FromIterator<B>>(list: A) -> L {
    list.into_iter().map(B::from).collect()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(deserialize = "T: Deserialize<'de> + Default"))]
pub(super) struct BranchJson<T> {
    action_params: Params<T>,
    after_step_id: Text<StepId>,
    branch_id: Text<BranchId>,
    condition_expression: T,
    if_true_action: T,
}

impl<'e> From<&'e Branch> for BranchJson<&'e str> {
    fn from(branch: &'e Branch) -> Self {
        Self {
            action_params: Params::from(&branch.action),
            after_step_id: Text(branch.after),
            branch_id: Text(branch.id),
            condition_expression: branch.condition.source(),
            if_true_action: branch.action.as_str(),
        }
    }
}

impl BranchJson<String> {
    /// The branch at this path.
    pub(super) fn branch(self, path: &str) -> Result<Branch, Undecodable> {
        let action = self.action_params.action(&self.if_true_action);
        Ok(Branch {
            id: self.branch_id.0,
            after: self.after_step_id.0,
            condition: Condition::parse(&self.condition_expression)
                .map_err(|error| Undecodable::new(&format!("{path}.conditionExpression"), error))?,
            action: action
                .map_err(|error| Undecodable::new(&format!("{path}.actionParams"), error))?,
        })
    }
}

/// Names of all actions.
pub(super) const ACTIONS: [&str; 4] = ["continue", "skip_to", "add_steps", "fail"];

/// The parameters of all actions. Each action has at most one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(
    serialize = "T: Serialize",
    deserialize = "T: Deserialize<'de> + Default"
))]
pub(super) struct Params<T> {
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    reason: Option<T>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<NewStepJson<T>>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    target_step_id: Option<Text<StepId>>,
}

impl<'e> From<&'e Action> for Params<&'e str> {
    fn from(action: &'e Action) -> Self {
        let (mut reason, mut added, mut target_step_id) = (None, None, None);
        match action {
            Action::Continue => {}
            Action::SkipTo { target } => target_step_id = Some(Text(*target)),
            Action::AddSteps { steps } => added = Some(each(&**steps)),
            Action::Fail { reason: given } => reason = given.as_deref(),
        }
        Self {
            reason,
            steps: added,
            target_step_id,
        }
    }
}

impl Params<String> {
    /// The action with this name.
    pub(super) fn action(self, word: &str) -> Result<Action, Undecodable> {
        match word {
            "continue" => Ok(Action::Continue),
            "skip_to" => Ok(Action::SkipTo {
                target: required("targetStepId", self.target_step_id)?.0,
            }),
            "add_steps" => Ok(Action::AddSteps {
                steps: each(required("steps", self.steps)?),
            }),
            "fail" => Ok(Action::Fail {
                reason: self.reason,
            }),
            other => Err(unknown("", other, &ACTIONS)),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct NoEffectJson(#[serde(with = "NoEffectWord")] pub(super) NoEffect);

#[derive(Serialize, Deserialize)]
#[serde(remote = "NoEffect", rename_all = "snake_case")]
enum NoEffectWord {
    #[serde(rename = "target_gone")]
    TargetMissing,
    TargetNotPending,
    TargetNotAfter,
    PlanFull,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VerdictJson<T> {
    branch_id: Text<BranchId>,
    condition_expression: T,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    error: Option<T>,
    matched: bool,
}

impl<'e> From<&'e BranchVerdict> for VerdictJson<&'e str> {
    fn from(verdict: &'e BranchVerdict) -> Self {
        Self {
            branch_id: Text(verdict.branch),
            condition_expression: &verdict.condition,
            error: verdict.error.as_deref(),
            matched: verdict.matched,
        }
    }
}

impl From<VerdictJson<String>> for BranchVerdict {
    fn from(json: VerdictJson<String>) -> Self {
        Self {
            branch: json.branch_id.0,
            condition: json.condition_expression,
            matched: json.matched,
            error: json.error,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StallJson {
    attempt: u32,
    since: Text<Timestamp>,
    step_id: Text<StepId>,
}

impl From<&Stall> for StallJson {
    fn from(stall: &Stall) -> Self {
        Self {
            attempt: stall.attempt,
            since: Text(stall.since),
            step_id: Text(stall.step),
        }
    }
}

impl From<StallJson> for Stall {
    fn from(json: StallJson) -> Self {
        Self {
            step: json.step_id.0,
            attempt: json.attempt,
            since: json.since.0,
        }
    }
}
