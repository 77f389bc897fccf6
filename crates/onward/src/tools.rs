//! The tools that agents and programs call, independent of the transport.
//!
//! One file per tool: its input, its output and its engine call. MCP and HTTP both use [`call`],
//! which validates the input and reports every issue, turns a panic into an error, and writes every
//! call except `ping` to the request log.

mod bound;
mod budget;
pub(crate) mod create_research_plan;
pub(crate) mod error;
pub(crate) mod extract_data;
pub(crate) mod get_artifact;
pub(crate) mod get_next_step;
mod get_plan_status;
mod get_research_context;
mod get_session_health;
mod get_step_context;
pub(crate) mod in_flight;
mod input;
mod list_active_plans;
mod list_plan_steps;
mod log_skill_execution;
pub(crate) mod modify_plan;
pub(crate) mod params;
mod ping;
pub(crate) mod raw;
mod report_step_progress;
pub(crate) mod request_user_review;
pub(crate) mod review_fields;
mod schema;
mod search_sources;
mod session;
mod store_research;
mod store_research_output;
mod submit_feedback;
mod submit_step_result;
pub(crate) mod submit_user_decision;
pub(crate) mod wait;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use onward_core::refusal::Issue;
use onward_core::{Code, PlanId, StepId};
use onward_engine::context::{DEFAULT_CHARS, MAX_CHARS};
use onward_engine::request_log::CompletedRequest;
use onward_engine::{Caller, Engine, with_current_permit};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Instrument;
use tracing::field::display;

use crate::extraction::Extractor;
use crate::hint::{self, Interface};
use crate::quota::Quota;
use crate::serving::Dashboard;
use crate::telemetry::REQUEST_LOG;
use crate::wire::notice;

#[cfg(test)]
pub(crate) use bound::MORE;
pub(crate) use error::ToolError;
use in_flight::InFlight;
pub(crate) use wait::{WaitPermit, wait_for_shutdown, waits};

/// The context of a tool call.
#[derive(Clone)]
pub(crate) struct ToolContext {
    /// The caller's interface, for hints.
    pub(crate) interface: Interface,
    pub(crate) engine: Engine,
    /// The dashboard, for links to reviews.
    pub(crate) dashboard: Dashboard,
    /// The configured extraction model.
    pub(crate) extractor: Option<Arc<Extractor>>,
    /// Whether all callers run on this machine.
    pub(crate) is_local: bool,
    /// The quota of stored bytes.
    pub(crate) quota: Option<Arc<Quota>>,
    /// Becomes true on shutdown; pending waits then end.
    pub(crate) closing: watch::Receiver<bool>,
}

impl ToolContext {
    /// Limits a response to this many characters, and renders its hint for the rest.
    fn limit(&self, response: &mut Value, max_chars: usize) {
        bound::fit(response, max_chars);
        if let Some(Value::String(more)) = response.get_mut("more") {
            *more = hint::render(more, self.interface, self.dashboard.base_url().as_deref());
        }
    }
}

/// The MCP annotations of a tool.
#[derive(Clone, Copy)]
pub(crate) struct Hints {
    /// The tool changes nothing.
    pub(crate) read_only: bool,
    /// Repeating the call changes nothing more.
    pub(crate) idempotent: bool,
    /// The tool can remove or fail existing work.
    pub(crate) destructive: bool,
}

impl Hints {
    pub(crate) const READ_ONLY: Hints = Hints {
        read_only: true,
        idempotent: true,
        destructive: false,
    };
    /// Every call adds something.
    pub(crate) const ADDITIVE: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: false,
    };
    /// A call can remove or fail existing work.
    pub(crate) const DESTRUCTIVE: Hints = Hints {
        destructive: true,
        ..Hints::ADDITIVE
    };
}

/// The definition of a tool.
pub(crate) trait Spec {
    /// The arguments.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The response.
    type Output: Serialize + JsonSchema;

    /// The stable name.
    const NAME: &'static str;
    /// The display name.
    const TITLE: &'static str;
    /// For a model without prior knowledge of Onward: the effect of the tool, when to call it, and
    /// the next call.
    const DESCRIPTION: &'static str;
    /// The annotations.
    const HINTS: Hints;
    /// Whether `--tools core` includes the tool.
    const IN_CORE: bool = false;
    /// Whether rejected input is stored as an artifact, because it contains an agent's work.
    const STORES_REJECTED_INPUT: bool = false;
    /// Whether calls are written to the request log.
    const LOGGED: bool = true;
    /// Whether responses contain texts of other agents or of sources, and therefore the notice.
    const HAS_NOTICE: bool = false;
    /// Whether the tool calls a service other than the database.
    const OPEN_WORLD: bool = false;
    /// Maximum characters of a response if the call does not set `maxChars`.
    const DEFAULT_CHARS: usize = DEFAULT_CHARS;
    /// Whether the input itself has `maxChars`, because the tool selects what fits.
    const HAS_MAX_CHARS: bool = false;
    /// JSON pointers to fields that are accepted but not in the MCP tool list, because a call never
    /// needs them.
    const UNLISTED: &'static [&'static str] = &[];
    /// JSON pointers to further fields that `--tools core` does not list, because the loop does not
    /// need them.
    const UNLISTED_IN_CORE: &'static [&'static str] = &[];
    /// The fields that `--tools core` lists as required: a call without them needs an unlisted field.
    const REQUIRED_IN_CORE: &'static [&'static str] = &[];
    /// JSON pointers to fields whose objects another core tool or field describes. `--tools core`
    /// lists them without properties and limits.
    const REPEATED: &'static [&'static str] = &[];

    /// Executes the call.
    fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

pub(crate) type RunFuture = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>>;

/// A [`Spec`] with its types erased.
pub(crate) struct Tool {
    /// [`Spec::NAME`].
    pub(crate) name: &'static str,
    /// [`Spec::TITLE`].
    pub(crate) title: &'static str,
    /// [`Spec::DESCRIPTION`].
    pub(crate) description: &'static str,
    /// [`Spec::HINTS`].
    pub(crate) hints: Hints,
    /// [`Spec::IN_CORE`].
    pub(crate) in_core: bool,
    /// [`Spec::OPEN_WORLD`].
    pub(crate) open_world: bool,
    stores_rejected_input: bool,
    logged: bool,
    input: LazySchema,
    listed: LazySchema,
    core: LazySchema,
    output: LazySchema,
    run: fn(ToolContext, Caller, Arc<Value>) -> RunFuture,
}

/// A JSON Schema that is generated on first use.
struct LazySchema {
    generate: fn() -> Map<String, Value>,
    schema: OnceLock<Arc<Map<String, Value>>>,
}

impl LazySchema {
    const fn new(generate: fn() -> Map<String, Value>) -> Self {
        Self {
            generate,
            schema: OnceLock::new(),
        }
    }

    fn get(&self) -> &Arc<Map<String, Value>> {
        self.schema.get_or_init(|| Arc::new((self.generate)()))
    }
}

impl Tool {
    pub(crate) const fn from_spec<S: Spec>() -> Self {
        Self {
            name: S::NAME,
            title: S::TITLE,
            description: S::DESCRIPTION,
            hints: S::HINTS,
            in_core: S::IN_CORE,
            open_world: S::OPEN_WORLD,
            stores_rejected_input: S::STORES_REJECTED_INPUT,
            logged: S::LOGGED,
            input: LazySchema::new(schema::input_schema::<S::Input>),
            listed: LazySchema::new(schema::listed_schema::<S>),
            core: LazySchema::new(schema::core_schema::<S>),
            output: LazySchema::new(schema::output_schema::<S>),
            run: run::<S>,
        }
    }

    /// The JSON Schema of all accepted arguments.
    pub(crate) fn input_schema(&self) -> &Arc<Map<String, Value>> {
        self.input.get()
    }

    /// The JSON Schema in the MCP list of all tools.
    pub(crate) fn listed_schema(&self) -> &Arc<Map<String, Value>> {
        self.listed.get()
    }

    /// The JSON Schema in the MCP list of the core tools.
    pub(crate) fn core_schema(&self) -> &Arc<Map<String, Value>> {
        self.core.get()
    }

    /// The JSON Schema of the response.
    pub(crate) fn output_schema(&self) -> &Arc<Map<String, Value>> {
        self.output.get()
    }
}

static TOOLS: [Tool; 21] = [
    Tool::from_spec::<ping::Ping>(),
    Tool::from_spec::<create_research_plan::CreateResearchPlan>(),
    Tool::from_spec::<list_active_plans::ListActivePlans>(),
    Tool::from_spec::<get_plan_status::GetPlanStatus>(),
    Tool::from_spec::<modify_plan::ModifyPlan>(),
    Tool::from_spec::<list_plan_steps::ListPlanSteps>(),
    Tool::from_spec::<get_next_step::GetNextStep>(),
    Tool::from_spec::<submit_step_result::SubmitStepResult>(),
    Tool::from_spec::<report_step_progress::ReportStepProgress>(),
    Tool::from_spec::<request_user_review::RequestUserReview>(),
    Tool::from_spec::<submit_user_decision::SubmitUserDecision>(),
    Tool::from_spec::<get_step_context::GetStepContext>(),
    Tool::from_spec::<get_research_context::GetResearchContext>(),
    Tool::from_spec::<store_research::StoreResearch>(),
    Tool::from_spec::<store_research_output::StoreResearchOutput>(),
    Tool::from_spec::<get_artifact::GetArtifact>(),
    Tool::from_spec::<search_sources::SearchSources>(),
    Tool::from_spec::<extract_data::ExtractData>(),
    Tool::from_spec::<log_skill_execution::LogSkillExecution>(),
    Tool::from_spec::<submit_feedback::SubmitFeedback>(),
    Tool::from_spec::<get_session_health::GetSessionHealth>(),
];

/// All tools in list order.
pub(crate) fn all() -> &'static [Tool] {
    &TOOLS
}

pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Calls a tool: validates the input, executes the call and logs it.
pub(crate) async fn call(
    context: &ToolContext,
    caller: &Caller,
    tool: &'static Tool,
    arguments: Value,
) -> Result<Value, ToolError> {
    call_within(context, caller, tool, arguments, None).await
}

/// [`call`] that may wait only with this permit.
pub(crate) async fn call_within(
    context: &ToolContext,
    caller: &Caller,
    tool: &'static Tool,
    arguments: Value,
    permit: Option<&WaitPermit>,
) -> Result<Value, ToolError> {
    let mut call = Call::parse(tool, arguments);
    let result = match wait::Wait::requested(&call) {
        None => call.run(context, caller).await,
        Some(wait) => Box::pin(wait.run(&mut call, context, caller, permit)).await,
    };
    call.log(context, caller, &result);
    result
}

/// [`call`] with arguments of which some fields could not be parsed.
pub(crate) async fn call_with_invalid_fields(
    context: &ToolContext,
    caller: &Caller,
    tool: &'static Tool,
    arguments: Value,
    invalid: Vec<Issue>,
) -> Result<Value, ToolError> {
    let mut call = Call::parse(tool, arguments);
    // The fields contain their source as text.
    let is_parsed = |issue: &Issue| invalid.iter().all(|invalid| invalid.path != issue.path);
    call.issues.retain(is_parsed);
    call.issues.extend(invalid);
    let result = call.run(context, caller).await;
    call.log(context, caller, &result);
    result
}

/// One call of a tool, for callers that do more than [`call`].
pub(crate) struct Call {
    tool: &'static Tool,
    arguments: Arc<Value>,
    issues: Vec<Issue>,
    started: Instant,
    /// Time spent waiting for a change of the plan.
    waited: Duration,
    /// Until the call is logged.
    _in_flight: InFlight,
}

impl Call {
    /// Validates the arguments. Issues are reported when the call runs.
    pub(crate) fn parse(tool: &'static Tool, mut arguments: Value) -> Self {
        let started = Instant::now();
        let issues = input::validate(&mut arguments, tool.input_schema());
        Self {
            tool,
            arguments: Arc::new(arguments),
            issues,
            started,
            waited: Duration::ZERO,
            _in_flight: in_flight::track(),
        }
    }

    /// The typed arguments.
    pub(crate) fn input<I: DeserializeOwned>(&self) -> Result<I, ToolError> {
        if !self.issues.is_empty() {
            return Err(ToolError::from_issues(self.issues.clone()));
        }
        deserialize(&self.arguments, false)
    }

    /// Limits the size of a response that another module built.
    pub(crate) fn bound(
        &self,
        context: &ToolContext,
        outcome: Result<Value, ToolError>,
    ) -> Result<Value, ToolError> {
        let mut response = outcome?;
        context.limit(&mut response, max_chars(&self.arguments, MAX_CHARS));
        Ok(response)
    }

    /// Executes the call in a separate task, so that it completes even if the client disconnects. A
    /// call that only reads is stopped then.
    pub(crate) async fn run(
        &self,
        context: &ToolContext,
        caller: &Caller,
    ) -> Result<Value, ToolError> {
        self.run_with(context, caller, self.tool.run).await
    }

    /// [`Self::run`] with another implementation of the tool.
    pub(crate) async fn run_with(
        &self,
        context: &ToolContext,
        caller: &Caller,
        run: impl FnOnce(ToolContext, Caller, Arc<Value>) -> RunFuture + Send + 'static,
    ) -> Result<Value, ToolError> {
        let call = execute(
            context.clone(),
            caller.clone(),
            self.tool,
            run,
            Arc::clone(&self.arguments),
            self.issues.clone(),
        );
        let call = with_current_permit(call.in_current_span());
        let outcome = if self.tool.hints.read_only {
            // Dropped with this future, which stops the call.
            JoinSet::from_iter([call]).join_next().await
        } else {
            Some(tokio::spawn(call).await)
        };
        // Joining fails only if the task panicked.
        outcome
            .and_then(Result::ok)
            .unwrap_or_else(|| Err(ToolError::internal(self.tool.name)))
    }

    /// Records metrics and queues the request log entry.
    pub(crate) fn log(
        self,
        context: &ToolContext,
        caller: &Caller,
        result: &Result<Value, ToolError>,
    ) {
        let took = self.started.elapsed().saturating_sub(self.waited);
        in_flight::record_metrics(self.tool.name, result, took);
        // The log line of a request to the API contains its status.
        if let (Err(error), Interface::Mcp(_)) = (result, context.interface) {
            self.log_rejection(caller, error.code);
        }
        if !self.tool.logged {
            return;
        }
        let response = match result {
            Ok(response) => Cow::Borrowed(response),
            Err(error) => Cow::Owned(error.to_json(context)),
        };
        let session = self.arguments.get(session::FIELD).and_then(Value::as_str);
        let request = CompletedRequest {
            tool: self.tool.name.to_owned(),
            session: session.map(str::to_owned),
            request: Cow::Borrowed(&self.arguments),
            response,
            duration: took,
            is_error: result.is_err(),
        };
        context.engine.log_request(caller, request);
    }
}

impl Call {
    /// Logs a call that failed because of the server or of the plan's state.
    fn log_rejection(&self, caller: &Caller, code: Code) {
        let (tool, tenant) = (self.tool.name, &*caller.tenant);
        let text = |field| self.arguments.get(field).and_then(Value::as_str);
        let plan: Option<PlanId> = text("planId").and_then(|id| id.parse().ok());
        let step: Option<StepId> = text("stepId").and_then(|id| id.parse().ok());
        let (plan, step) = (plan.map(display), step.map(display));
        let code_name = code.as_str();
        if code == Code::Unavailable {
            tracing::warn!(
                target: REQUEST_LOG, tool, code = code_name, tenant, plan, step, "tool call failed"
            );
        } else if code.is_conflict() {
            tracing::info!(
                target: REQUEST_LOG, tool, code = code_name, tenant, plan, step, "tool call rejected"
            );
        }
    }
}

async fn execute(
    context: ToolContext,
    caller: Caller,
    tool: &'static Tool,
    run: impl FnOnce(ToolContext, Caller, Arc<Value>) -> RunFuture,
    arguments: Arc<Value>,
    issues: Vec<Issue>,
) -> Result<Value, ToolError> {
    let _guard = in_flight::track();
    if let (Some(quota), false) = (&context.quota, tool.hints.read_only) {
        let exceeded = quota.exceeded(&context.engine, &caller, tool.name).await?;
        if let Some(usage) = exceeded {
            return Err(ToolError::over_quota(usage));
        }
    }
    if issues.is_empty() {
        let arguments = session::add(&context, &caller, tool, arguments).await?;
        return run(context, caller, arguments).await;
    }
    let error = ToolError::from_issues(issues);
    if !tool.stores_rejected_input {
        return Err(error);
    }
    Err(error.with_kept_artifact(params::store_rejected_input(&context, &caller, &arguments).await))
}

/// The arguments of a tool. Every tool accepts `maxChars`, and few inputs have it.
fn deserialize<I: DeserializeOwned>(
    arguments: &Value,
    has_max_chars: bool,
) -> Result<I, ToolError> {
    let mut without = None;
    if !has_max_chars
        && let Value::Object(fields) = arguments
        && fields.contains_key(schema::MAX_CHARS_FIELD)
    {
        let mut fields = fields.clone();
        fields.remove(schema::MAX_CHARS_FIELD);
        without = Some(Value::Object(fields));
    }
    let input = I::deserialize(without.as_ref().unwrap_or(arguments));
    input.map_err(|why| ToolError::undecodable(&why))
}

/// The maximum size of a response.
fn max_chars(arguments: &Value, default: usize) -> usize {
    let requested = arguments.get(schema::MAX_CHARS_FIELD);
    let requested = requested.and_then(Value::as_u64);
    let requested = requested.and_then(|chars| usize::try_from(chars).ok());
    requested.unwrap_or(default).min(MAX_CHARS)
}

fn run<S: Spec>(context: ToolContext, caller: Caller, arguments: Arc<Value>) -> RunFuture {
    Box::pin(async move {
        let input = deserialize(&arguments, S::HAS_MAX_CHARS)?;
        // A tool that has `maxChars` selects what fits; only the limit of all tools applies to it.
        let max_chars = if S::HAS_MAX_CHARS {
            MAX_CHARS
        } else {
            max_chars(&arguments, S::DEFAULT_CHARS)
        };
        let output = S::run(&context, &caller, input).await?;
        let output = serde_json::to_value(output);
        let mut output = output.map_err(|_| ToolError::internal(S::NAME))?;
        if S::HAS_NOTICE {
            notice::add(&mut output);
        }
        context.limit(&mut output, max_chars);
        Ok(output)
    })
}

#[cfg(test)]
mod tests;
