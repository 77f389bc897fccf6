//! `modify_plan`: changes a plan's steps or branches.
//!
//! The actions share one tool and its fields. A missing field and a field of another action are
//! both rejected by name. Every action accepts `reason`.

use onward_core::command::{Modification, ModifyPlan as Command, PlanUpdate, StepRef, StepUpdate};
use onward_core::policy::{
    MAX_CLAIM_TOKEN, MAX_CRITERIA, MAX_CRITERION, MAX_INSTRUCTIONS, MAX_REMARK, MAX_SESSION_ID,
    MAX_STEPS, MAX_TITLE,
};
use onward_core::refusal::Issue;
use onward_core::routing::{MAX_LABEL, MAX_LABELS, MAX_PRIORITY, MAX_PROJECT_KEY};
use onward_core::step::ReviewBy as CoreReviewBy;
use onward_core::{Refusal, StepId, StepType};
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::budget::Budget;
use super::params::{self, Branch, Dependency, MAX_THRESHOLD_MS, ReviewBy, Step, StepKind};
use super::{Hints, LazySchema, Spec, ToolContext, ToolError, input, schema};
use crate::hint::Interface;
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
    /// Order before `steps`; 0: first; default: last
    #[schemars(range(min = 0, max = MAX_STEPS))]
    insert_after_order: Option<u32>,
    /// Step to change
    step_id: Option<String>,
    /// All ids in the new order
    #[schemars(length(max = MAX_STEPS))]
    step_ids: Option<Vec<String>>,
    /// New text
    #[schemars(length(min = 1, max = MAX_INSTRUCTIONS))]
    instructions: Option<String>,
    /// As in `steps`
    #[schemars(length(max = MAX_STEPS))]
    depends_on: Option<Vec<Dependency>>,
    /// New title; empty: none
    #[schemars(length(max = MAX_TITLE))]
    title: Option<String>,
    step_type: Option<StepKind>,
    /// New threshold; 0: that of the plan
    #[schemars(range(min = 0, max = MAX_THRESHOLD_MS))]
    stall_threshold_ms: Option<u64>,
    /// New schema; empty: none
    result_schema: Option<Map<String, Value>>,
    /// New criteria; empty: none
    #[schemars(length(max = MAX_CRITERIA), inner(length(min = 1, max = MAX_CRITERION)))]
    acceptance_criteria: Option<Vec<String>>,
    /// Whether the result waits for a review
    review_required: Option<bool>,
    review_by: Option<ReviewBy>,
    /// New labels; empty: none
    #[schemars(length(max = MAX_LABELS), inner(length(min = 1, max = MAX_LABEL)))]
    labels: Option<Vec<String>>,
    /// New priority
    #[schemars(range(max = MAX_PRIORITY))]
    priority: Option<u8>,
    /// New project; empty: none
    #[schemars(length(max = MAX_PROJECT_KEY))]
    project_key: Option<String>,
    /// New limits; empty: none
    budget: Option<Budget>,
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
/// update_step_instructions: set `instructions`; if pending, also fields of `steps`;
/// set_dependencies: set `dependsOn` if pending; update_plan: set `projectKey`, `labels`, `priority`; set_budget: set `budget`;
/// fail_step: fail a step, not the plan;
/// requeue_step: new attempt; add_branch: add `branch`; redo_step: repeat an ended step
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    AddSteps,
    RemoveStep,
    ReorderSteps,
    UpdateStepInstructions,
    SetDependencies,
    UpdatePlan,
    SetBudget,
    FailStep,
    RequeueStep,
    AddBranch,
    RedoStep,
}

/// The fields that `update_step_instructions` can set. At least one is required.
const UPDATED: [&str; 10] = [
    "instructions",
    "title",
    "stepType",
    "stallThresholdMs",
    "resultSchema",
    "acceptanceCriteria",
    "reviewRequired",
    "reviewBy",
    "labels",
    "priority",
];

/// The fields that `update_plan` can set. At least one is required.
const ROUTED: [&str; 3] = ["projectKey", "labels", "priority"];

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Action::AddSteps => "add_steps",
            Action::RemoveStep => "remove_step",
            Action::ReorderSteps => "reorder_steps",
            Action::UpdateStepInstructions => "update_step_instructions",
            Action::SetDependencies => "set_dependencies",
            Action::UpdatePlan => "update_plan",
            Action::SetBudget => "set_budget",
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
            Action::UpdateStepInstructions => (&["stepId"], &UPDATED),
            Action::SetDependencies => (&["stepId", "dependsOn"], &[]),
            Action::UpdatePlan => (&[], &ROUTED),
            Action::SetBudget => (&["budget"], &[]),
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
    const DESCRIPTION: &'static str = "Change the steps (todos) or branches of a plan in progress.";
    const HINTS: Hints = Hints::DESTRUCTIVE;
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/modificationRationale",
        "/properties/cascade",
        "/properties/dependsOn",
    ];
    const UNLISTED: &'static [&'static str] = &[
        "/properties/sessionId",
        "/properties/claimToken",
        "/properties/title",
        "/properties/stepType",
        "/properties/stallThresholdMs",
        "/properties/resultSchema",
        "/properties/acceptanceCriteria",
        "/properties/reviewRequired",
        "/properties/reviewBy",
        "/properties/labels",
        "/properties/priority",
        "/properties/projectKey",
        "/properties/budget",
        "/properties/steps/items/properties/title",
        "/properties/steps/items/properties/stallThresholdMs",
        "/properties/steps/items/properties/maxAttempts",
        "/properties/steps/items/properties/resultSchema",
        "/properties/steps/items/properties/acceptanceCriteria",
        "/properties/steps/items/properties/reviewRequired",
        "/properties/steps/items/properties/reviewBy",
        "/properties/steps/items/properties/labels",
        "/properties/steps/items/properties/priority",
        // `branchingConditions` of `create_research_plan` describes it.
        "/properties/branch/properties",
        "/properties/branch/required",
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
            ..Command::new(modification(input, context)?)
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
        ("dependsOn", input.depends_on.is_some()),
        ("title", input.title.is_some()),
        ("stepType", input.step_type.is_some()),
        ("stallThresholdMs", input.stall_threshold_ms.is_some()),
        ("resultSchema", input.result_schema.is_some()),
        ("acceptanceCriteria", input.acceptance_criteria.is_some()),
        ("reviewRequired", input.review_required.is_some()),
        ("reviewBy", input.review_by.is_some()),
        ("labels", input.labels.is_some()),
        ("priority", input.priority.is_some()),
        ("projectKey", input.project_key.is_some()),
        ("budget", input.budget.is_some()),
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
    let mut issues: Vec<Issue> = issues.collect();
    // The optional fields of some actions: at least one is required.
    let alternatives: &[&str] = match input.action {
        Action::UpdateStepInstructions => &UPDATED,
        Action::UpdatePlan => &ROUTED,
        Action::AddSteps
        | Action::RemoveStep
        | Action::ReorderSteps
        | Action::SetDependencies
        | Action::SetBudget
        | Action::FailStep
        | Action::RequeueStep
        | Action::AddBranch
        | Action::RedoStep => &[],
    };
    let is_set = |(name, present): &(&str, bool)| *present && alternatives.contains(name);
    if let Some(first) = alternatives.first()
        && !present.iter().any(is_set)
    {
        issues.push(Issue {
            path: (*first).to_owned(),
            message: format!("is required for `{action}` unless another field is set"),
        });
    }
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ToolError::from_issues(issues))
    }
}

impl Input {
    /// The new values of a step.
    fn step_update(self) -> Result<StepUpdate, Refusal> {
        let depends_on = self.depends_on.map(|needed| {
            let refs = needed.into_iter().enumerate();
            let refs = refs.map(|(index, needed)| needed.step(&format!("dependsOn[{index}]")));
            refs.collect::<Result<Vec<StepRef>, Refusal>>()
        });
        let review_by = match (self.review_required, self.review_by) {
            (None | Some(true), Some(by)) => Some(Some(by.into())),
            (Some(true), None) => Some(Some(CoreReviewBy::default())),
            (Some(false), None) => Some(None),
            (None, None) => None,
            (Some(false), Some(_)) => {
                return Err(invalid("reviewBy", "requires `reviewRequired: true`"));
            }
        };
        let threshold = params::duration(self.stall_threshold_ms);
        Ok(StepUpdate {
            step_type: self.step_type.map(StepType::from),
            title: self.title,
            instructions: self.instructions,
            depends_on: depends_on.transpose()?,
            stall_threshold: threshold.map(|span| Some(span).filter(|span| !span.is_zero())),
            result_schema: self
                .result_schema
                .map(|schema| (!schema.is_empty()).then(|| Value::Object(schema).into())),
            acceptance_criteria: self.acceptance_criteria,
            review_by,
            labels: self.labels,
            priority: self.priority,
            on_dependency_failure: None,
        })
    }

    /// The new values of the plan.
    fn plan_update(self) -> PlanUpdate {
        PlanUpdate {
            project_key: self.project_key,
            labels: self.labels,
            priority: self.priority,
        }
    }
}

fn invalid(path: &str, message: impl Into<String>) -> Refusal {
    let (path, message) = (path.to_owned(), message.into());
    Refusal::InvalidInput(vec![Issue { path, message }])
}

/// The new values of a step from the fields of the tool that a user wrote, in a form or on the
/// command line.
pub(crate) fn step_update(fields: Map<String, Value>) -> Result<StepUpdate, Refusal> {
    let known: Vec<&str> = ["dependsOn"].into_iter().chain(UPDATED).collect();
    parse(fields, Action::UpdateStepInstructions, &known)?.step_update()
}

/// The new values of a plan, from the same source.
pub(crate) fn plan_update(fields: Map<String, Value>) -> Result<PlanUpdate, Refusal> {
    Ok(parse(fields, Action::UpdatePlan, &ROUTED)?.plan_update())
}

fn parse(mut fields: Map<String, Value>, action: Action, known: &[&str]) -> Result<Input, Refusal> {
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        let known = known.join("`, `");
        return Err(invalid(name, format!("is not one of `{known}`")));
    }
    fields.insert("planId".to_owned(), "".into());
    fields.insert("action".to_owned(), action.as_str().into());
    let mut arguments = Value::Object(fields);
    let issues = input::validate(&mut arguments, FIELDS.get());
    if !issues.is_empty() {
        return Err(Refusal::InvalidInput(issues));
    }
    serde_json::from_value(arguments).map_err(|error| invalid("fields", error.to_string()))
}

/// The modification that sets these values. Instructions alone can be set in any status.
pub(crate) fn of_step(step: StepId, mut update: StepUpdate) -> Modification {
    let instructions = update.instructions.take();
    match instructions {
        Some(instructions) if update == StepUpdate::default() => {
            Modification::UpdateInstructions { step, instructions }
        }
        instructions => {
            update.instructions = instructions;
            Modification::UpdateStep { step, update }
        }
    }
}

static FIELDS: LazySchema = LazySchema::new(schema::own_schema::<Input>);

fn modification(input: Input, context: &ToolContext) -> Result<Modification, ToolError> {
    let engine = &context.engine;
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
        Action::UpdateStepInstructions | Action::SetDependencies => {
            let step = step()?;
            of_step(step, input.step_update()?)
        }
        Action::UpdatePlan => Modification::UpdatePlan {
            update: input.plan_update(),
        },
        Action::SetBudget => Modification::SetBudget {
            budget: input.budget.and_then(Budget::limits),
            by_person: !matches!(context.interface, Interface::Mcp(_)),
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
