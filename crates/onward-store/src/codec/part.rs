//! Mirrors of the parts of events: new steps, branches with their actions, verdicts and stalls.
//!
//! A condition is stored as written, and parsed again by the parser that accepted it. If the parser
//! no longer accepts it, the record is undecodable: a branch that silently evaluated to false would
//! change the course of a plan.

use onward_core::branch::{Action, Branch, BranchVerdict, NoEffect};
use onward_core::condition::Condition;
use onward_core::id::BranchId;
use onward_core::step::{NewStep, StepType};
use onward_core::{Stall, StepId, Timestamp};
use serde::{Deserialize, Serialize};

use super::scalar::{Millis, Text, optional, texts, values};
use super::{Undecodable, required, unknown};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewStepJson<T> {
    depends_on: Vec<Text<StepId>>,
    instructions: T,
    max_attempts: u32,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    stall_threshold_ms: Option<Millis>,
    step_id: Text<StepId>,
    step_type: Text<StepType>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    title: Option<T>,
}

impl<'e> From<&'e NewStep> for NewStepJson<&'e str> {
    fn from(step: &'e NewStep) -> Self {
        Self {
            depends_on: texts(&step.depends_on),
            instructions: &step.instructions,
            max_attempts: step.max_attempts,
            stall_threshold_ms: step.stall_threshold.map(Millis::from),
            step_id: Text(step.id),
            step_type: Text(step.step_type),
            title: step.title.as_deref(),
        }
    }
}

impl From<NewStepJson<String>> for NewStep {
    fn from(json: NewStepJson<String>) -> Self {
        Self {
            id: json.step_id.0,
            step_type: json.step_type.0,
            title: json.title,
            instructions: json.instructions,
            depends_on: values(json.depends_on),
            stall_threshold: json.stall_threshold_ms.map(Into::into),
            max_attempts: json.max_attempts,
        }
    }
}

/// Converts each item of a list.
pub(super) fn each<A: IntoIterator, B: From<A::Item>, L: FromIterator<B>>(list: A) -> L {
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
