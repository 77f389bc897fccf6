//! `modify_plan`: changes a plan's steps or branches.
//!
//! The actions share one tool and its fields. A missing field and a field of another action are
//! both rejected by name. Every action accepts `reason`.

use onward_core::command::{Modification, ModifyPlan as Command};
use onward_core::policy::{
    MAX_CLAIM_TOKEN, MAX_INSTRUCTIONS, MAX_REMARK, MAX_SESSION_ID, MAX_STEPS,
};
use onward_core::refusal::Issue;
use onward_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::Deserialize;

use super::params::{self, Branch, Step};
use super::{Hints, Spec, ToolContext, ToolError};
use crate::wire::modified::ModifiedPlan;

pub(super) struct ModifyPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    action: Action,
    /// As in `create_research_plan`
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Option<Vec<Step>>,
    /// Insert `steps` after this order; 0: first; default: last
    #[schemars(range(min = 0, max = MAX_STEPS))]
    insert_after_order: Option<u32>,
    /// Step to change
    step_id: Option<String>,
    /// All step ids in the new order
    #[schemars(length(max = MAX_STEPS))]
    step_ids: Option<Vec<String>>,
    /// New text
    #[schemars(length(min = 1, max = MAX_INSTRUCTIONS))]
    instructions: Option<String>,
    /// fail_step, redo_step: why
    #[schemars(length(max = MAX_REMARK))]
    reason: Option<String>,
    /// redo_step: also redo the completed steps that depend on it
    cascade: Option<bool>,
    /// Like an entry of `branchingConditions`
    branch: Option<Branch>,
    /// Why, for the audit trail
    #[schemars(length(max = MAX_REMARK))]
    modification_rationale: Option<String>,
    /// Session id, for the audit trail
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// From `get_next_step`; checked if `stepId` is given
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
}

/// add_steps: insert `steps`; remove_step: remove a pending step; reorder_steps: sort by `stepIds`;
/// update_step_instructions: set `instructions`; fail_step: fail a step, not the plan;
/// requeue_step: new attempt; add_branch: add `branch`; redo_step: repeat an ended step as a new step
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    AddSteps,
    RemoveStep,
    ReorderSteps,
    UpdateStepInstructions,
    FailStep,
    RequeueStep,
    AddBranch,
    RedoStep,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Action::AddSteps => "add_steps",
            Action::RemoveStep => "remove_step",
            Action::ReorderSteps => "reorder_steps",
            Action::UpdateStepInstructions => "update_step_instructions",
            Action::FailStep => "fail_step",
            Action::RequeueStep => "requeue_step",
            Action::AddBranch => "add_branch",
            Action::RedoStep => "redo_step",
        }
    }

    /// The required and the optional fields.
    const fn fields(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Action::AddSteps => (&["steps"], &["insertAfterOrder"]),
            Action::RemoveStep | Action::FailStep | Action::RequeueStep => (&["stepId"], &[]),
            Action::ReorderSteps => (&["stepIds"], &[]),
            Action::UpdateStepInstructions => (&["stepId", "instructions"], &[]),
            Action::AddBranch => (&["branch"], &[]),
            Action::RedoStep => (&["stepId", "reason"], &["cascade"]),
        }
    }
}

impl Spec for ModifyPlan {
    type Input = Input;
    type Output = ModifiedPlan;

    const NAME: &'static str = "modify_plan";
    const TITLE: &'static str = "Modify a plan: add, remove or reorder its steps (tasks)";
    const DESCRIPTION: &'static str = "Change the steps (todos) or branches of a plan in progress. \
        Then call `get_next_step`.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] =
        &["/properties/modificationRationale", "/properties/cascade"];
    const UNLISTED: &'static [&'static str] = &[
        "/properties/sessionId",
        "/properties/claimToken",
        "/properties/steps/items/properties/resultSchema",
        "/properties/steps/items/properties/acceptanceCriteria",
        "/properties/steps/items/properties/reviewRequired",
        "/properties/steps/items/properties/reviewBy",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/title",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/dependsOn",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/stallThresholdMs",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/maxAttempts",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/resultSchema",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/acceptanceCriteria",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/reviewRequired",
        "/properties/branch/properties/actionParams/properties/steps/items/properties/reviewBy",
    ];
    const REPEATED: &'static [&'static str] = &["/properties/steps", "/properties/branch"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<ModifiedPlan, ToolError> {
        let (action, plan) = (input.action, params::plan_id(&input.plan_id)?);
        check_fields(&input)?;
        let mut rationale = input.modification_rationale.clone();
        if !matches!(action, Action::FailStep | Action::RedoStep) {
            rationale = rationale.or_else(|| input.reason.clone());
        }
        let token = params::claim_token(input.claim_token.clone());
        let session = params::session_id(input.session_id.clone());
        let command = Command {
            rationale,
            token,
            session,
            ..Command::new(modification(input, &context.engine)?)
        };
        let modified = context.engine.modify_plan(caller, plan, command);
        Ok(ModifiedPlan::new(action.as_str(), &modified.await?))
    }
}

/// Rejects missing fields of the action and fields of other actions.
fn check_fields(input: &Input) -> Result<(), ToolError> {
    let present = [
        ("steps", input.steps.is_some()),
        ("insertAfterOrder", input.insert_after_order.is_some()),
        ("stepId", input.step_id.is_some()),
        ("stepIds", input.step_ids.is_some()),
        ("instructions", input.instructions.is_some()),
        ("branch", input.branch.is_some()),
        ("cascade", input.cascade.is_some()),
    ];
    // Every action accepts `reason`.
    let has_reason = input.reason.is_some();
    let reason = ("reason", has_reason);
    let (required, optional) = input.action.fields();
    let action = input.action.as_str();
    let reason = required.contains(&"reason").then_some(&reason);
    let issues = present.iter().chain(reason).filter_map(|(name, present)| {
        let is_required = required.contains(name);
        let message = match (*present, is_required, optional.contains(name)) {
            (false, true, _) => format!("is required for `{action}`"),
            (true, false, false) => format!("is not a field of `{action}`"),
            (true, true, _) | (true, _, true) | (false, false, _) => return None,
        };
        Some(Issue {
            path: (*name).to_owned(),
            message,
        })
    });
    let issues: Vec<Issue> = issues.collect();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ToolError::from_issues(issues))
    }
}

fn modification(input: Input, engine: &Engine) -> Result<Modification, ToolError> {
    let step = || params::step_id(input.step_id.as_deref().unwrap_or_default());
    Ok(match input.action {
        Action::AddSteps => Modification::AddSteps {
            steps: params::steps(input.steps.unwrap_or_default(), "steps", engine)?,
            insert_after: input.insert_after_order,
        },
        Action::RemoveStep => Modification::RemoveStep { step: step()? },
        Action::ReorderSteps => {
            let ids = input
                .step_ids
                .iter()
                .flatten()
                .map(|id| params::step_id(id));
            Modification::ReorderSteps {
                steps: ids.collect::<Result<_, _>>()?,
            }
        }
        Action::UpdateStepInstructions => Modification::UpdateInstructions {
            step: step()?,
            instructions: input.instructions.unwrap_or_default(),
        },
        Action::FailStep => Modification::FailStep {
            step: step()?,
            reason: input.reason,
        },
        Action::RequeueStep => Modification::RequeueStep { step: step()? },
        Action::RedoStep => Modification::RedoStep {
            step: step()?,
            reason: input.reason.unwrap_or_default(),
            cascade: input.cascade.unwrap_or(false),
            ids: Vec::new(),
        },
        Action::AddBranch => {
            let branch = input.branch;
            let branch = branch
                .ok_or_else(|| ToolError::invalid("branch", "is required for `add_branch`"))?;
            Modification::AddBranch {
                branch: branch.spec("branch", engine)?,
            }
        }
    })
}
