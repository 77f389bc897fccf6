//! Parameters shared by several tools (ids, steps, branches) and their conversion to engine types.
//!
//! A malformed id and an id that does not exist get the same error.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{ActionSpec, BranchSpec, StepRef, StepSpec};
use onward_core::condition::MAX_SOURCE_BYTES;
use onward_core::id::{ArtifactId, BranchId, ClaimToken, ReviewId, SessionId};
use onward_core::policy::{
    MAX_CRITERIA, MAX_CRITERION, MAX_INSTRUCTIONS, MAX_MAX_ATTEMPTS, MAX_REMARK, MAX_STEPS,
    MAX_THRESHOLD, MAX_TITLE, MIN_THRESHOLD,
};
use onward_core::routing::{DEFAULT_PRIORITY, MAX_LABEL, MAX_LABELS, MAX_PRIORITY};
use onward_core::step::{Gates, ReviewBy as CoreReviewBy};
use onward_core::{Code, PlanId, Refusal, StepId, StepType, Timestamp};
use onward_engine::{Caller, Engine, Error, ObjectKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ToolContext, ToolError};

/// Characters of an invalid id that an error message repeats.
const MAX_QUOTED: usize = 100;
/// Characters of an idempotency key. Checked by the engine as well.
pub(super) const MAX_KEY: usize = 200;
/// The bounds of a stall threshold in milliseconds.
pub(super) const MIN_THRESHOLD_MS: u32 = MIN_THRESHOLD.subsec_millis();
pub(super) const MAX_THRESHOLD_MS: u64 = MAX_THRESHOLD.as_secs() * 1_000;

/// Generates the ids of new plans, steps, branches and reviews.
pub(crate) trait NewIds {
    fn new_plan_id(&self) -> PlanId;
    fn new_review_id(&self) -> ReviewId;
    fn new_step_id(&self) -> StepId;
    fn new_branch_id(&self) -> BranchId;
}

impl NewIds for Engine {
    fn new_plan_id(&self) -> PlanId {
        Engine::new_plan_id(self)
    }

    fn new_review_id(&self) -> ReviewId {
        Engine::new_review_id(self)
    }

    fn new_step_id(&self) -> StepId {
        Engine::new_step_id(self)
    }

    fn new_branch_id(&self) -> BranchId {
        Engine::new_branch_id(self)
    }
}

pub(crate) fn plan_id(id: &str) -> Result<PlanId, ToolError> {
    id.parse()
        .map_err(|_| Error::PlanNotFound(truncated(id)).into())
}

pub(crate) fn step_id(id: &str) -> Result<StepId, ToolError> {
    id.parse().map_err(|_| step_not_found(id, None))
}

/// Parses a step id. If it is malformed, stores the submitted work as an artifact first.
pub(super) async fn step_id_or_store(
    context: &ToolContext,
    caller: &Caller,
    id: &str,
    work: impl FnOnce() -> Value,
) -> Result<StepId, ToolError> {
    match id.parse() {
        Ok(step) => Ok(step),
        Err(_) => {
            let named = truncated(id);
            let artifact = context.engine.store_unparsed_result(
                caller,
                &named,
                None,
                work(),
                Code::StepNotFound,
            );
            Err(step_not_found(id, artifact.await.ok()))
        }
    }
}

fn step_not_found(id: &str, kept: Option<ArtifactId>) -> ToolError {
    let step = truncated(id);
    Error::StepNotFound { step, kept }.into()
}

/// Stores the work in arguments that failed validation as an artifact.
pub(super) async fn store_rejected_input(
    context: &ToolContext,
    caller: &Caller,
    arguments: &Value,
) -> Option<ArtifactId> {
    let mut work = arguments.as_object()?.clone();
    // A reader of the artifact must not be able to act on the claim.
    let token = work.remove("claimToken");
    let token = token.as_ref().and_then(Value::as_str).map(ClaimToken::new);
    let step = work.remove("stepId");
    let named = truncated(step.as_ref().and_then(Value::as_str).unwrap_or_default());
    if work.is_empty() {
        return None;
    }
    let artifact = context.engine.store_unparsed_result(
        caller,
        &named,
        token,
        work.into(),
        Code::InvalidInput,
    );
    // The call is rejected whether or not the work could be stored.
    artifact.await.ok()
}

/// The part of an id that an error message repeats.
pub(super) fn truncated(id: &str) -> String {
    id.chars().take(MAX_QUOTED).collect()
}

pub(super) fn review_id(id: &str) -> Result<ReviewId, ToolError> {
    id.parse().map_err(|_| {
        let name = truncated(id);
        Error::NotFound {
            kind: ObjectKind::Review,
            name,
        }
        .into()
    })
}

pub(super) fn artifact_id(id: &str) -> Result<ArtifactId, ToolError> {
    id.parse().map_err(|_| {
        let name = truncated(id);
        Error::NotFound {
            kind: ObjectKind::Artifact,
            name,
        }
        .into()
    })
}

pub(crate) fn session_id(id: Option<String>) -> Option<SessionId> {
    id.map(SessionId::new)
}

pub(super) fn claim_token(token: Option<String>) -> Option<ClaimToken> {
    token.map(ClaimToken::new)
}

pub(super) fn timestamp(text: Option<String>, path: &str) -> Result<Option<Timestamp>, ToolError> {
    let Some(text) = text else { return Ok(None) };
    let at = text.parse().map(Some);
    at.map_err(|_| {
        ToolError::invalid(
            path,
            "must be an RFC 3339 time such as `2026-07-28T09:00:00Z`",
        )
    })
}

pub(super) fn duration(ms: Option<u64>) -> Option<Duration> {
    ms.map(Duration::from_millis)
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ArtifactKind {
    Note,
    Source,
    Data,
    Finding,
    Quote,
    LateResult,
    Other,
}

impl ArtifactKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            ArtifactKind::Note => "note",
            ArtifactKind::Source => "source",
            ArtifactKind::Data => "data",
            ArtifactKind::Finding => "finding",
            ArtifactKind::Quote => "quote",
            ArtifactKind::LateResult => "late_result",
            ArtifactKind::Other => "other",
        }
    }
}

/// search: find sources; extract: collect data; analyze: interpret; critique: find errors;
/// synthesize: write up; checkpoint: pause for user review; custom: other
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepKind {
    Search,
    Extract,
    Analyze,
    Critique,
    Synthesize,
    Checkpoint,
    Custom,
}

impl From<StepKind> for StepType {
    fn from(kind: StepKind) -> Self {
        match kind {
            StepKind::Search => StepType::Search,
            StepKind::Extract => StepType::Extract,
            StepKind::Analyze => StepType::Analyze,
            StepKind::Critique => StepType::Critique,
            StepKind::Synthesize => StepType::Synthesize,
            StepKind::Checkpoint => StepType::Checkpoint,
            StepKind::Custom => StepType::Custom,
        }
    }
}

// No doc comment: it would become a description of the array items in the schema.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Step {
    step_type: StepKind,
    /// What to do and return, self-contained
    #[schemars(length(min = 1, max = MAX_INSTRUCTIONS))]
    instructions: String,
    /// Short label
    #[schemars(length(max = MAX_TITLE))]
    title: Option<String>,
    /// Orders (from 1) or ids of steps that must end first. Orders are those before an insertion;
    /// new steps follow the last
    #[schemars(length(max = MAX_STEPS))]
    depends_on: Option<Vec<Dependency>>,
    /// Overrides the plan's threshold
    #[schemars(range(min = MIN_THRESHOLD_MS, max = MAX_THRESHOLD_MS))]
    stall_threshold_ms: Option<u64>,
    /// Attempts before it fails; default 3
    #[schemars(range(min = 1, max = MAX_MAX_ATTEMPTS))]
    max_attempts: Option<u32>,
    /// JSON Schema that `result` must match
    result_schema: Option<Map<String, Value>>,
    /// Sentences that the result's `evidence` must answer
    #[schemars(length(max = MAX_CRITERIA), inner(length(min = 1, max = MAX_CRITERION)))]
    acceptance_criteria: Option<Vec<String>>,
    /// The result waits for a review
    review_required: Option<bool>,
    review_by: Option<ReviewBy>,
    /// Labels that a worker must offer
    #[schemars(length(max = MAX_LABELS), inner(length(min = 1, max = MAX_LABEL)))]
    labels: Option<Vec<String>>,
    /// Highest first; default 5
    #[schemars(range(max = MAX_PRIORITY))]
    priority: Option<u8>,
}

/// person (default): a user; other_session: a session that did not do the work
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReviewBy {
    Person,
    OtherSession,
}

impl From<ReviewBy> for CoreReviewBy {
    fn from(by: ReviewBy) -> Self {
        match by {
            ReviewBy::Person => CoreReviewBy::Person,
            ReviewBy::OtherSession => CoreReviewBy::OtherSession,
        }
    }
}

/// A reference to a step, by order or by id.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Dependency {
    Order(u32),
    Id(String),
}

impl Dependency {
    pub(super) fn step(self, path: &str) -> Result<StepRef, Refusal> {
        match self {
            Dependency::Order(order) => Ok(StepRef::Order(order)),
            Dependency::Id(id) => referenced_step(&id, path.to_owned()).map(StepRef::Id),
        }
    }
}

impl JsonSchema for Dependency {
    fn schema_name() -> Cow<'static, str> {
        "Dependency".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["integer", "string"] })
    }
}

impl Step {
    /// Converts to the engine's type. `path` is the position in the input.
    fn spec(self, path: &str, engine: &dyn NewIds) -> Result<StepSpec, ToolError> {
        let (mut depends_on, mut depends_on_ids) = (Vec::new(), Vec::new());
        for (index, needed) in self.depends_on.into_iter().flatten().enumerate() {
            match needed {
                Dependency::Order(order) => depends_on.push(order),
                Dependency::Id(id) => {
                    let path = format!("{path}.dependsOn[{index}]");
                    depends_on_ids.push(referenced_step(&id, path)?);
                }
            }
        }
        let review_by = match (self.review_required.unwrap_or(false), self.review_by) {
            (true, by) => Some(by.map_or(CoreReviewBy::default(), CoreReviewBy::from)),
            (false, None) => None,
            (false, Some(_)) => {
                let message = "requires `reviewRequired: true`";
                return Err(ToolError::invalid(format!("{path}.reviewBy"), message));
            }
        };
        let gates = Gates {
            result_schema: self
                .result_schema
                .map(|schema| Value::Object(schema).into()),
            acceptance_criteria: self.acceptance_criteria.unwrap_or_default(),
            review_by,
        };
        Ok(StepSpec {
            id: engine.new_step_id(),
            step_type: self.step_type.into(),
            title: self.title,
            instructions: self.instructions,
            depends_on,
            depends_on_ids,
            stall_threshold: duration(self.stall_threshold_ms),
            max_attempts: self.max_attempts,
            gates: (!gates.is_empty()).then(|| Arc::new(gates)),
            labels: self.labels.unwrap_or_default(),
            priority: self.priority.unwrap_or(DEFAULT_PRIORITY),
        })
    }
}

pub(super) fn steps(
    steps: Vec<Step>,
    path: &str,
    engine: &dyn NewIds,
) -> Result<Vec<StepSpec>, ToolError> {
    let steps = steps.into_iter().enumerate();
    let specs = steps.map(|(index, step)| step.spec(&format!("{path}[{index}]"), engine));
    specs.collect()
}

/// The id of a step that another step or a branch refers to.
fn referenced_step(id: &str, path: String) -> Result<StepId, Refusal> {
    id.parse().map_err(|_| {
        let actual = format!("`{}`", truncated(id));
        let expected = "the id of a step in this plan".to_owned();
        Refusal::InvalidStepReference {
            path,
            actual,
            expected,
        }
    })
}

/// continue: no effect; skip_to: skip to the target; add_steps: insert steps here; fail: fail the
/// plan
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Continue,
    SkipTo,
    AddSteps,
    Fail,
}

// No doc comment, as for `Step`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Branch {
    /// Order of the tested step
    #[schemars(range(min = 1, max = MAX_STEPS))]
    after_step_order: u32,
    /// CEL over `confidence`, `resultSummary`, `result`, `step`, `plan`, e.g.
    /// `result.sources.size() < 3`
    #[schemars(length(max = MAX_SOURCE_BYTES))]
    condition_expression: String,
    if_true_action: Action,
    /// For `ifTrueAction`; add_steps: `steps`
    action_params: Option<ActionParams>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ActionParams {
    /// skip_to: target
    #[schemars(range(min = 1, max = MAX_STEPS))]
    target_step_order: Option<u32>,
    /// skip_to: target by id
    target_step_id: Option<String>,
    /// add_steps: like `steps`
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Option<Vec<Step>>,
    /// fail: why
    #[schemars(length(max = MAX_REMARK))]
    reason: Option<String>,
}

impl Branch {
    /// Converts to the engine's type. `path` is the position in the input.
    pub(super) fn spec(self, path: &str, engine: &dyn NewIds) -> Result<BranchSpec, ToolError> {
        let path = format!("{path}.actionParams");
        let params = self.action_params.unwrap_or_default();
        let (by_order, by_id) = (params.target_step_order, params.target_step_id);
        let (steps, reason) = (params.steps, params.reason);
        let allowed: &[&str] = match self.if_true_action {
            Action::Continue => &[],
            Action::SkipTo => &["targetStepOrder", "targetStepId"],
            Action::AddSteps => &["steps"],
            Action::Fail => &["reason"],
        };
        let present = [
            ("targetStepOrder", by_order.is_some()),
            ("targetStepId", by_id.is_some()),
            ("steps", steps.is_some()),
            ("reason", reason.is_some()),
        ];
        let misplaced = present
            .iter()
            .find(|(name, present)| *present && !allowed.contains(name));
        if let Some((name, _)) = misplaced {
            let message = "is a parameter of another `ifTrueAction`";
            return Err(ToolError::invalid(format!("{path}.{name}"), message));
        }
        let action = match self.if_true_action {
            Action::Continue => ActionSpec::Continue,
            Action::SkipTo => ActionSpec::SkipTo(target(by_order, by_id, &path)?),
            Action::AddSteps => {
                let steps = steps.ok_or_else(|| {
                    ToolError::invalid(format!("{path}.steps"), "is required for `add_steps`")
                })?;
                ActionSpec::AddSteps(self::steps(steps, &format!("{path}.steps"), engine)?)
            }
            Action::Fail => ActionSpec::Fail { reason },
        };
        Ok(BranchSpec {
            id: engine.new_branch_id(),
            after_order: self.after_step_order,
            condition: self.condition_expression,
            action,
        })
    }
}

fn target(order: Option<u32>, id: Option<String>, path: &str) -> Result<StepRef, ToolError> {
    match (order, id) {
        (Some(order), None) => Ok(StepRef::Order(order)),
        (None, Some(id)) => {
            let path = format!("{path}.targetStepId");
            Ok(StepRef::Id(referenced_step(&id, path)?))
        }
        (None, None) => Err(ToolError::invalid(
            format!("{path}.targetStepOrder"),
            "is required for `skip_to` unless `targetStepId` is set",
        )),
        (Some(_), Some(_)) => Err(ToolError::invalid(
            format!("{path}.targetStepId"),
            "cannot be combined with `targetStepOrder`; send only one of them",
        )),
    }
}
