//! What several tools are given: ids, steps, branches; and the way into the engine's own words.
//!
//! An id that is none at all names nothing, just as one that nobody ever made, and both are answered
//! in the same words.

use std::time::Duration;

use onward_core::command::{ActionSpec, BranchSpec, StepRef, StepSpec};
use onward_core::id::{ArtifactId, ClaimToken, SessionId};
use onward_core::{Code, PlanId, StepId, StepType, Timestamp};
use onward_engine::{Caller, Engine, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Desk, Refused, input, schema};

/// Longer names are not repeated in an answer.
const LONGEST_NAME: usize = 100;

/// The plan that is named.
pub(crate) fn plan(id: &str) -> Result<PlanId, Refused> {
    id.parse().map_err(|_| Error::PlanNotFound(cut(id)).into())
}

/// The step that is named.
pub(super) fn step(id: &str) -> Result<StepId, Refused> {
    id.parse().map_err(|_| no_step(id, None))
}

/// The step that is named by whoever brings work for it: the work is kept, also where nothing is
/// named.
pub(super) async fn step_of_work(
    desk: &Desk,
    caller: &Caller,
    id: &str,
    work: impl FnOnce() -> Value,
) -> Result<StepId, Refused> {
    match id.parse() {
        Ok(step) => Ok(step),
        Err(_) => {
            let named = cut(id);
            let kept = desk
                .engine
                .keep_unread(caller, &named, work(), Code::StepNotFound);
            Err(no_step(id, kept.await.ok()))
        }
    }
}

fn no_step(id: &str, kept: Option<ArtifactId>) -> Refused {
    let step = cut(id);
    Error::StepNotFound { step, kept }.into()
}

/// Keeps work that came with arguments that do not fit.
pub(super) async fn keep(desk: &Desk, caller: &Caller, arguments: &Value) -> Option<ArtifactId> {
    let mut work = arguments.as_object()?.clone();
    // Whoever reads it later must not be able to speak for the step.
    work.remove("claimToken");
    let step = work.remove("stepId");
    let named = cut(step.as_ref().and_then(Value::as_str).unwrap_or_default());
    if work.is_empty() {
        return None;
    }
    let kept = desk
        .engine
        .keep_unread(caller, &named, work.into(), Code::InvalidInput);
    // A refusal that cannot be kept is a refusal all the same.
    kept.await.ok()
}

/// As much of a name as is repeated in an answer.
pub(super) fn cut(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// The artifact that is named.
pub(super) fn artifact(id: &str) -> Result<ArtifactId, Refused> {
    id.parse().map_err(|_| {
        let (what, name) = ("artifact", cut(id));
        Error::NotFound { what, name }.into()
    })
}

pub(super) fn session(id: Option<String>) -> Option<SessionId> {
    id.map(SessionId::new)
}

pub(super) fn token(token: Option<String>) -> Option<ClaimToken> {
    token.map(ClaimToken::new)
}

/// An instant that is named.
pub(super) fn instant(text: Option<String>, path: &str) -> Result<Option<Timestamp>, Refused> {
    let Some(text) = text else { return Ok(None) };
    let at = text.parse().map(Some);
    at.map_err(|_| Refused::invalid(path, "must be an instant, like `2026-07-28T09:00:00Z`"))
}

pub(super) fn span(ms: Option<u64>) -> Option<Duration> {
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

// What agents read of it stands at its fields; bounds that nobody meets by chance are left to the
// core, for every word of a schema is paid for.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Step {
    step_type: StepKind,
    instructions: String,
    title: Option<String>,
    /// Orders (1-based) that must end first
    depends_on: Option<Vec<u32>>,
    stall_threshold_ms: Option<u64>,
    max_attempts: Option<u32>,
}

impl Step {
    pub(super) fn spec(self, engine: &Engine) -> StepSpec {
        StepSpec {
            id: engine.fresh_step(),
            step_type: self.step_type.into(),
            title: self.title,
            instructions: self.instructions,
            depends_on: self.depends_on.unwrap_or_default(),
            stall_threshold: span(self.stall_threshold_ms),
            max_attempts: self.max_attempts,
        }
    }
}

pub(super) fn steps(steps: Vec<Step>, engine: &Engine) -> Vec<StepSpec> {
    steps.into_iter().map(|step| step.spec(engine)).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Continue,
    SkipTo,
    AddSteps,
    Fail,
}

// What agents read of it stands at its fields.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Branch {
    after_step_order: u32,
    /// CEL over the result, e.g. `confidence < 0.5 || result.sources.size() < 3`
    condition_expression: String,
    if_true_action: Action,
    action_params: Option<ActionParams>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ActionParams {
    /// skip_to
    target_step_order: Option<u32>,
    target_step_id: Option<String>,
    /// add_steps: like `steps`
    steps: Option<Vec<Map<String, Value>>>,
    /// fail
    reason: Option<String>,
}

impl Branch {
    /// As the engine takes it; `path` is where it stands in the input.
    pub(super) fn spec(self, path: &str, engine: &Engine) -> Result<BranchSpec, Refused> {
        let path = format!("{path}.actionParams");
        let params = self.action_params.unwrap_or_default();
        let (by_order, by_id) = (params.target_step_order, params.target_step_id);
        let (steps, reason) = (params.steps, params.reason);
        // A parameter of another action was meant for something that will not happen.
        let fits: &[&str] = match self.if_true_action {
            Action::Continue => &[],
            Action::SkipTo => &["targetStepOrder", "targetStepId"],
            Action::AddSteps => &["steps"],
            Action::Fail => &["reason"],
        };
        let given = [
            ("targetStepOrder", by_order.is_some()),
            ("targetStepId", by_id.is_some()),
            ("steps", steps.is_some()),
            ("reason", reason.is_some()),
        ];
        let stray = given
            .iter()
            .find(|(name, given)| *given && !fits.contains(name));
        if let Some((name, _)) = stray {
            let message = "belongs to another `ifTrueAction`";
            return Err(Refused::invalid(format!("{path}.{name}"), message));
        }
        let action = match self.if_true_action {
            Action::Continue => ActionSpec::Continue,
            Action::SkipTo => ActionSpec::SkipTo(target(by_order, by_id, &path)?),
            Action::AddSteps => {
                let steps = steps.ok_or_else(|| {
                    Refused::invalid(format!("{path}.steps"), "is missing: `add_steps` needs it")
                })?;
                ActionSpec::AddSteps(loose_steps(steps, &format!("{path}.steps"), engine)?)
            }
            Action::Fail => ActionSpec::Fail { reason },
        };
        Ok(BranchSpec {
            id: engine.fresh_branch(),
            after_order: self.after_step_order,
            condition: self.condition_expression,
            action,
        })
    }
}

fn target(order: Option<u32>, id: Option<String>, path: &str) -> Result<StepRef, Refused> {
    match (order, id) {
        (Some(order), None) => Ok(StepRef::Order(order)),
        (None, Some(id)) => {
            let path = format!("{path}.targetStepId");
            let known = id.parse().map(StepRef::Id);
            known.map_err(|_| {
                let named = format!("`{}`", cut(&id));
                let expected = "the id of a step of this plan".to_owned();
                onward_core::Refusal::InvalidStepReference {
                    path,
                    named,
                    expected,
                }
                .into()
            })
        }
        (None, None) => Err(Refused::invalid(
            format!("{path}.targetStepOrder"),
            "is missing: `skip_to` needs it, or `targetStepId`",
        )),
        (Some(_), Some(_)) => Err(Refused::invalid(
            format!("{path}.targetStepId"),
            "is one too many beside `targetStepOrder`",
        )),
    }
}

/// A branch whose schema is shown elsewhere, at `create_research_plan`.
pub(super) fn loose_branch(
    branch: Map<String, Value>,
    path: &str,
    engine: &Engine,
) -> Result<BranchSpec, Refused> {
    let mut branch = Value::Object(branch);
    let issues = input::read_at(&mut branch, &schema::of_input::<Branch>(), path);
    if !issues.is_empty() {
        return Err(Refused::of_issues(issues));
    }
    let branch = Branch::deserialize(branch).map_err(|why| Refused::unread(&why))?;
    branch.spec(path, engine)
}

/// Steps whose schema is shown elsewhere, at `create_research_plan`.
pub(super) fn loose_steps(
    steps: Vec<Map<String, Value>>,
    path: &str,
    engine: &Engine,
) -> Result<Vec<StepSpec>, Refused> {
    let schema = schema::of_input::<Step>();
    let (mut specs, mut issues) = (Vec::with_capacity(steps.len()), Vec::new());
    for (place, step) in steps.into_iter().enumerate() {
        let mut step = Value::Object(step);
        let path = format!("{path}[{place}]");
        let found = input::read_at(&mut step, &schema, &path);
        if found.is_empty() {
            let step = Step::deserialize(step).map_err(|why| Refused::unread(&why))?;
            specs.push(step.spec(engine));
        }
        issues.extend(found);
    }
    match issues.is_empty() {
        true => Ok(specs),
        false => Err(Refused::of_issues(issues)),
    }
}
