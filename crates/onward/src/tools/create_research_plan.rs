//! `create_research_plan`: creates a plan with its steps and branches in one transaction.

use onward_core::command::{CreatePlan, ForkPlan};
use onward_core::id::ReviewId;
use onward_core::plan::Origin;
use onward_core::policy::{
    MAX_BRANCHES, MAX_NAME, MAX_QUESTION, MAX_REMARK, MAX_SESSION_ID, MAX_STEPS,
    OnDependencyFailure, OnStall,
};
use onward_core::refusal::Issue;
use onward_core::routing::{
    DEFAULT_PRIORITY, MAX_LABEL, MAX_LABELS, MAX_PRIORITY, MAX_PROJECT_KEY, Routing,
};
use onward_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::budget::Budget;
use super::params::{self, Branch, MAX_KEY, MAX_THRESHOLD_MS, MIN_THRESHOLD_MS, NewIds, Step};
use super::{Hints, LazySchema, Spec, ToolContext, ToolError, input, schema};
use crate::wire::created::CreatedPlan;

pub(crate) const NAME: &str = "create_research_plan";

pub(super) struct CreateResearchPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Short title
    #[schemars(length(min = 1, max = MAX_NAME))]
    name: Option<String>,
    /// Question or goal
    #[schemars(length(min = 1, max = MAX_QUESTION))]
    research_question: Option<String>,
    /// Steps (tasks) in order
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Option<Vec<Step>>,
    /// Evaluated in order, at most 100 per step; the first true one applies
    #[schemars(length(max = MAX_BRANCHES))]
    branching_conditions: Option<Vec<Branch>>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Why these steps
    #[schemars(length(max = MAX_REMARK))]
    plan_design_rationale: Option<String>,
    /// Format of the final output
    #[schemars(length(max = MAX_REMARK))]
    output_formatting_notes: Option<String>,
    /// Inactivity until a step is stalled; default 30 min
    #[schemars(range(min = MIN_THRESHOLD_MS, max = MAX_THRESHOLD_MS))]
    stall_threshold_ms: Option<u64>,
    on_stall: Option<Policy>,
    /// After a failed dependency; default block
    on_dependency_failure: Option<DependencyPolicy>,
    /// A person approves the plan first
    requires_approval: Option<bool>,
    /// A retry with it returns the same plan
    #[schemars(length(min = 1, max = MAX_KEY))]
    idempotency_key: Option<String>,
    /// Fork an ended plan, with its results before `fromStepOrder`. Needs no other fields
    from_plan_id: Option<String>,
    /// First step to do
    #[schemars(range(min = 1, max = MAX_STEPS))]
    from_step_order: Option<u32>,
    /// Project, for filters and workers
    #[schemars(length(min = 1, max = MAX_PROJECT_KEY))]
    project_key: Option<String>,
    /// Labels, for filters
    #[schemars(length(max = MAX_LABELS), inner(length(min = 1, max = MAX_LABEL)))]
    labels: Option<Vec<String>>,
    /// Highest first; default 5
    #[schemars(range(max = MAX_PRIORITY))]
    priority: Option<u8>,
    /// `maxSteps`, `maxAttempts`, `maxDurationMs`, `maxTokens`; a person raises it
    budget: Option<Budget>,
}

/// mark (default): mark the plan as stalled and notify; requeue: new attempt; fail: fail the step;
/// ignore: no effect
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Mark,
    Requeue,
    Fail,
    Ignore,
}

impl From<Policy> for OnStall {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Mark => OnStall::Mark,
            Policy::Requeue => OnStall::Requeue,
            Policy::Fail => OnStall::Fail,
            Policy::Ignore => OnStall::Ignore,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DependencyPolicy {
    Block,
    Continue,
}

impl From<DependencyPolicy> for OnDependencyFailure {
    fn from(policy: DependencyPolicy) -> Self {
        match policy {
            DependencyPolicy::Block => OnDependencyFailure::Block,
            DependencyPolicy::Continue => OnDependencyFailure::Continue,
        }
    }
}

/// Before the plan is created, its steps have no ids.
const TARGET_ID: &str =
    "/properties/branchingConditions/items/properties/actionParams/properties/targetStepId";

impl Spec for CreateResearchPlan {
    type Input = Input;
    type Output = CreatedPlan;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Create a plan (task list, todos)";
    const DESCRIPTION: &'static str = "Create a durable plan (task list, todo) for long work that any \
        session can resume. Then repeat `get_next_step` and `submit_step_result`.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/planDesignRationale",
        "/properties/outputFormattingNotes",
        "/properties/steps/items/properties/stallThresholdMs",
        "/properties/steps/items/properties/resultSchema",
        "/properties/steps/items/properties/acceptanceCriteria",
        "/properties/steps/items/properties/reviewRequired",
        "/properties/steps/items/properties/reviewBy",
        "/properties/fromPlanId",
        "/properties/fromStepOrder",
        "/properties/requiresApproval",
        "/properties/projectKey",
        "/properties/labels",
        "/properties/priority",
        "/properties/budget",
        "/properties/steps/items/properties/labels",
        "/properties/steps/items/properties/priority",
    ];
    const REQUIRED_IN_CORE: &'static [&'static str] = &["name", "researchQuestion", "steps"];
    const UNLISTED: &'static [&'static str] = &[
        "/properties/onDependencyFailure",
        TARGET_ID,
        "/properties/branchingConditions/items/properties/actionParams/properties/steps",
        "/properties/budget/properties",
    ];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<CreatedPlan, ToolError> {
        let engine = &context.engine;
        let links = context.dashboard.review_links();
        if let Some(source) = &input.from_plan_id {
            let source = params::plan_id(source)?;
            let key = input.idempotency_key.clone();
            let command = fork(engine, input)?;
            let created = engine.fork_plan(caller, source, command, key);
            return Ok(CreatedPlan::new(&created.await?, &links));
        }
        let (command, key) = input.command(engine)?;
        let created = engine.create_plan(caller, command, key);
        Ok(CreatedPlan::new(&created.await?, &links))
    }
}

impl Input {
    /// The command, and the idempotency key.
    fn command(self, engine: &dyn NewIds) -> Result<(CreatePlan, Option<String>), ToolError> {
        check_fields(&self)?;
        let mut branches = Vec::new();
        for (index, branch) in self.branching_conditions.into_iter().flatten().enumerate() {
            branches.push(branch.spec(&format!("branchingConditions[{index}]"), engine)?);
        }
        let command = CreatePlan {
            plan: engine.new_plan_id(),
            name: self.name.unwrap_or_default(),
            research_question: self.research_question.unwrap_or_default(),
            steps: params::steps(self.steps.unwrap_or_default(), "steps", engine)?,
            branches,
            design_rationale: self.plan_design_rationale,
            output_formatting_notes: self.output_formatting_notes,
            stall_threshold: params::duration(self.stall_threshold_ms),
            on_stall: self.on_stall.map(OnStall::from).unwrap_or_default(),
            on_dependency_failure: self
                .on_dependency_failure
                .map(OnDependencyFailure::from)
                .unwrap_or_default(),
            session: params::session_id(self.session_id),
            origin: Origin::Caller,
            approval: approval(self.requires_approval, engine),
            routing: Routing {
                project_key: self.project_key,
                labels: self.labels.unwrap_or_default(),
                priority: self.priority.unwrap_or(DEFAULT_PRIORITY),
            },
            budget: self.budget.and_then(Budget::limits),
        };
        Ok((command, self.idempotency_key))
    }
}

/// Rejects a new plan without a required field.
fn check_fields(input: &Input) -> Result<(), ToolError> {
    let fields = [
        ("name", input.name.is_some(), true),
        ("researchQuestion", input.research_question.is_some(), true),
        ("steps", input.steps.is_some(), true),
        ("fromStepOrder", input.from_step_order.is_some(), false),
    ];
    let issues = fields.iter().filter_map(|(name, is_present, is_required)| {
        let message = match (is_present, is_required) {
            (false, true) => "is required unless `fromPlanId` is set",
            (true, false) => "requires `fromPlanId`",
            (true, true) | (false, false) => return None,
        };
        Some(issue(name, message))
    });
    from_issues(issues.collect())
}

/// The command that forks a plan.
fn fork(engine: &Engine, input: Input) -> Result<ForkPlan, ToolError> {
    let taken = [
        ("steps", input.steps.is_some()),
        ("branchingConditions", input.branching_conditions.is_some()),
        (
            "outputFormattingNotes",
            input.output_formatting_notes.is_some(),
        ),
        ("stallThresholdMs", input.stall_threshold_ms.is_some()),
        ("onStall", input.on_stall.is_some()),
        ("onDependencyFailure", input.on_dependency_failure.is_some()),
        ("projectKey", input.project_key.is_some()),
        ("labels", input.labels.is_some()),
        ("priority", input.priority.is_some()),
        ("budget", input.budget.is_some()),
    ];
    let taken = taken.iter().filter(|(_, is_present)| *is_present);
    let mut issues: Vec<Issue> = taken
        .map(|(name, _)| issue(name, "cannot be combined with `fromPlanId`"))
        .collect();
    if input.from_step_order.is_none() {
        issues.push(issue("fromStepOrder", "is required with `fromPlanId`"));
    }
    from_issues(issues)?;
    Ok(ForkPlan {
        plan: engine.new_plan_id(),
        from_order: input.from_step_order.unwrap_or_default(),
        name: input.name,
        research_question: input.research_question,
        design_rationale: input.plan_design_rationale,
        session: params::session_id(input.session_id),
        approval: approval(input.requires_approval, engine),
    })
}

/// The id of the review of the plan's start.
fn approval(is_required: Option<bool>, engine: &dyn NewIds) -> Option<ReviewId> {
    let is_required = is_required.unwrap_or(false);
    is_required.then(|| engine.new_review_id())
}

fn issue(path: &str, message: &str) -> Issue {
    Issue {
        path: path.to_owned(),
        message: message.to_owned(),
    }
}

fn from_issues(issues: Vec<Issue>) -> Result<(), ToolError> {
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ToolError::from_issues(issues))
    }
}

/// The fields of a new plan: those of the tool without those that every tool has and those of a
/// fork.
static OWN_FIELDS: LazySchema = LazySchema::new(|| {
    let mut schema = Value::Object(schema::own_schema::<Input>());
    schema::remove(
        &mut schema,
        &[
            "/properties/fromPlanId",
            "/properties/fromStepOrder",
            TARGET_ID,
        ],
    );
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    let required = CreateResearchPlan::REQUIRED_IN_CORE;
    schema.insert("required".to_owned(), required.into());
    schema
});

/// The schema of a plan that a user writes.
pub(crate) fn own_schema() -> &'static Map<String, Value> {
    OWN_FIELDS.get()
}

/// The command of arguments that a user wrote, in a file or a form, and the idempotency key.
pub(crate) fn command(
    mut arguments: Value,
    engine: &dyn NewIds,
) -> Result<(CreatePlan, Option<String>), ToolError> {
    let issues = input::validate(&mut arguments, OWN_FIELDS.get());
    if !issues.is_empty() {
        return Err(ToolError::from_issues(issues));
    }
    let input: Input = super::deserialize(&arguments, false)?;
    input.command(engine)
}
