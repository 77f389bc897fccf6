//! `modify_plan`: changes the list of steps and branches, or one step in it.
//!
//! Seven actions share one tool and its fields. A field that the action needs and one that it has no
//! use for are both refused by name; only `reason` is welcome everywhere, as why it was done.

use onward_core::command::Modification;
use onward_core::refusal::Issue;
use onward_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::modified::Modified;

pub(super) struct ModifyPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    action: Action,
    /// add_steps: as in `create_research_plan`
    steps: Option<Vec<Map<String, Value>>>,
    /// add_steps: 0 = first; default last
    insert_after_order: Option<u32>,
    step_id: Option<String>,
    /// reorder_steps: all ids
    step_ids: Option<Vec<String>>,
    /// update_step_instructions
    instructions: Option<String>,
    /// fail_step
    reason: Option<String>,
    /// add_branch: like one of `branchingConditions`
    branch: Option<Map<String, Value>>,
    modification_rationale: Option<String>,
    #[serde(rename = "sessionId")]
    _session_id: Option<String>,
    #[serde(rename = "claimToken")]
    _claim_token: Option<String>,
}

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
        }
    }

    /// The fields that it needs, and those that it can use.
    const fn fields(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Action::AddSteps => (&["steps"], &["insertAfterOrder"]),
            Action::RemoveStep | Action::FailStep | Action::RequeueStep => (&["stepId"], &[]),
            Action::ReorderSteps => (&["stepIds"], &[]),
            Action::UpdateStepInstructions => (&["stepId", "instructions"], &[]),
            Action::AddBranch => (&["branch"], &[]),
        }
    }
}

impl Spec for ModifyPlan {
    type Input = Input;
    type Output = Modified;

    const NAME: &'static str = "modify_plan";
    const TITLE: &'static str = "Modify a plan";
    const DESCRIPTION: &'static str = "Change a plan while it runs, when what you learned asks \
        for other steps. `requeue_step` gives a step back, `fail_step` gives it up.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Modified, Refused> {
        let (action, plan) = (input.action, given::plan(&input.plan_id)?);
        fitting(&input)?;
        let mut rationale = input.modification_rationale.clone();
        if !matches!(action, Action::FailStep) {
            rationale = rationale.or_else(|| input.reason.clone());
        }
        let modification = modification(input, &desk.engine)?;
        let modified = desk
            .engine
            .modify_plan(caller, plan, modification, rationale, false);
        Ok(Modified::of(action.as_str(), &modified.await?))
    }
}

/// Refuses what is missing for the action, and what does not belong to it.
fn fitting(input: &Input) -> Result<(), Refused> {
    let given = [
        ("steps", input.steps.is_some()),
        ("insertAfterOrder", input.insert_after_order.is_some()),
        ("stepId", input.step_id.is_some()),
        ("stepIds", input.step_ids.is_some()),
        ("instructions", input.instructions.is_some()),
        ("branch", input.branch.is_some()),
    ];
    let (needs, takes) = input.action.fields();
    let action = input.action.as_str();
    let issues = given.iter().filter_map(|(name, given)| {
        let needed = needs.contains(name);
        let message = match (*given, needed, takes.contains(name)) {
            (false, true, _) => format!("is missing: `{action}` needs it"),
            (true, false, false) => format!("does not belong to `{action}`"),
            (true, true, _) | (true, _, true) | (false, false, _) => return None,
        };
        Some(Issue {
            path: (*name).to_owned(),
            message,
        })
    });
    let issues: Vec<Issue> = issues.collect();
    match issues.is_empty() {
        true => Ok(()),
        false => Err(Refused::of_issues(issues)),
    }
}

fn modification(input: Input, engine: &Engine) -> Result<Modification, Refused> {
    let step = || given::step(input.step_id.as_deref().unwrap_or_default());
    Ok(match input.action {
        Action::AddSteps => Modification::AddSteps {
            steps: given::loose_steps(input.steps.unwrap_or_default(), "steps", engine)?,
            insert_after: input.insert_after_order,
        },
        Action::RemoveStep => Modification::RemoveStep { step: step()? },
        Action::ReorderSteps => {
            let ids = input.step_ids.iter().flatten().map(|id| given::step(id));
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
        Action::AddBranch => Modification::AddBranch {
            branch: given::loose_branch(input.branch.unwrap_or_default(), "branch", engine)?,
        },
    })
}
