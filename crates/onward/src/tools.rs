//! What agents and programs can ask for: the tools, apart from the protocol that carries them.
//!
//! One file per tool, named as the tool: what it takes, what it answers, and the one use case of the
//! engine that it is. MCP and HTTP both come through [`call`], so that a tool means the same on each:
//! the input is read with everything that is wrong about it, a panic is an answer, and every call but
//! `ping` is in the log. A tool that does not exist yet is not in the list.

mod create_research_plan;
pub(crate) mod error;
pub(crate) mod extract_data;
mod get_next_step;
mod get_plan_status;
mod get_research_context;
mod get_session_health;
mod get_step_context;
pub(crate) mod given;
mod input;
mod list_active_plans;
mod list_plan_steps;
mod log_skill_execution;
mod modify_plan;
mod ping;
mod report_step_progress;
pub(crate) mod request_user_review;
pub(crate) mod running;
mod schema;
mod search_sources;
mod store_research;
mod store_research_output;
mod submit_feedback;
mod submit_step_result;
pub(crate) mod submit_user_decision;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use onward_core::refusal::Issue;
use onward_engine::calls::Answered;
use onward_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::extraction::Extractor;

pub(crate) use error::Refused;

/// What the tools are done with.
#[derive(Clone)]
pub(crate) struct Desk {
    /// The database, open.
    pub(crate) engine: Engine,
    /// Where people find the dashboard, if there is one: reviews link there.
    pub(crate) base_url: Option<Arc<str>>,
    /// The model that says what stands in a text, if one is configured.
    pub(crate) extractor: Option<Arc<Extractor>>,
}

/// What is true of a tool, as MCP's annotations say it.
#[derive(Clone, Copy)]
pub(crate) struct Hints {
    /// It changes nothing.
    pub(crate) read_only: bool,
    /// Asked twice, it changes nothing the second time.
    pub(crate) idempotent: bool,
    /// It can undo or give up what was there.
    pub(crate) destructive: bool,
}

impl Hints {
    /// It looks.
    pub(crate) const READS: Hints = Hints {
        read_only: true,
        idempotent: true,
        destructive: false,
    };
    /// It adds, each time that it is asked.
    pub(crate) const ADDS: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: false,
    };
}

/// What a tool's file says about it.
pub(crate) trait Spec {
    /// What it takes.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What it answers.
    type Output: Serialize + JsonSchema;

    /// Its name, which is a contract.
    const NAME: &'static str;
    /// Its name for people.
    const TITLE: &'static str;
    /// For a model that has never heard of Onward: what it does, when to call it, what to call next.
    const DESCRIPTION: &'static str;
    /// What is true of it.
    const HINTS: Hints;
    /// The loop needs it.
    const IN_CORE: bool;
    /// Its input is work: where it is refused, it is kept.
    const BRINGS_WORK: bool = false;
    /// Its calls are in the log.
    const LOGGED: bool = true;
    /// It asks somebody outside of the database.
    const REACHES_OUT: bool = false;

    /// Does it.
    fn run(
        desk: &Desk,
        caller: &Caller,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Refused>> + Send;
}

type Running = Pin<Box<dyn Future<Output = Result<Value, Refused>> + Send>>;

/// A tool.
pub(crate) struct Tool {
    /// Its name, which is a contract.
    pub(crate) name: &'static str,
    /// Its name for people.
    pub(crate) title: &'static str,
    /// For a model.
    pub(crate) description: &'static str,
    /// What is true of it.
    pub(crate) hints: Hints,
    /// Whether the loop needs it.
    pub(crate) in_core: bool,
    /// Whether it asks somebody outside of the database.
    pub(crate) reaches_out: bool,
    brings_work: bool,
    logged: bool,
    input: Schema,
    output: Schema,
    run: fn(Desk, Caller, Arc<Value>) -> Running,
}

/// A JSON Schema that is made when it is first needed.
struct Schema {
    make: fn() -> Map<String, Value>,
    made: OnceLock<Arc<Map<String, Value>>>,
}

impl Schema {
    const fn new(make: fn() -> Map<String, Value>) -> Self {
        Self {
            make,
            made: OnceLock::new(),
        }
    }

    fn get(&self) -> &Arc<Map<String, Value>> {
        self.made.get_or_init(|| Arc::new((self.make)()))
    }
}

impl Tool {
    /// The tool that a file is about.
    pub(crate) const fn of<S: Spec>() -> Self {
        Self {
            name: S::NAME,
            title: S::TITLE,
            description: S::DESCRIPTION,
            hints: S::HINTS,
            in_core: S::IN_CORE,
            reaches_out: S::REACHES_OUT,
            brings_work: S::BRINGS_WORK,
            logged: S::LOGGED,
            input: Schema::new(schema::of_input::<S::Input>),
            output: Schema::new(schema::of_output::<S::Output>),
            run: run::<S>,
        }
    }

    /// What it takes, as JSON Schema.
    pub(crate) fn input_schema(&self) -> &Arc<Map<String, Value>> {
        self.input.get()
    }

    /// What it answers, as JSON Schema.
    pub(crate) fn output_schema(&self) -> &Arc<Map<String, Value>> {
        self.output.get()
    }
}

static TOOLS: [Tool; 20] = [
    Tool::of::<ping::Ping>(),
    Tool::of::<create_research_plan::CreateResearchPlan>(),
    Tool::of::<list_active_plans::ListActivePlans>(),
    Tool::of::<get_plan_status::GetPlanStatus>(),
    Tool::of::<modify_plan::ModifyPlan>(),
    Tool::of::<list_plan_steps::ListPlanSteps>(),
    Tool::of::<get_next_step::GetNextStep>(),
    Tool::of::<submit_step_result::SubmitStepResult>(),
    Tool::of::<report_step_progress::ReportStepProgress>(),
    Tool::of::<request_user_review::RequestUserReview>(),
    Tool::of::<submit_user_decision::SubmitUserDecision>(),
    Tool::of::<get_step_context::GetStepContext>(),
    Tool::of::<get_research_context::GetResearchContext>(),
    Tool::of::<store_research::StoreResearch>(),
    Tool::of::<store_research_output::StoreResearchOutput>(),
    Tool::of::<search_sources::SearchSources>(),
    Tool::of::<extract_data::ExtractData>(),
    Tool::of::<log_skill_execution::LogSkillExecution>(),
    Tool::of::<submit_feedback::SubmitFeedback>(),
    Tool::of::<get_session_health::GetSessionHealth>(),
];

/// Every tool, in the order in which they are listed.
pub(crate) fn all() -> &'static [Tool] {
    &TOOLS
}

/// The tool of this name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Calls a tool: reads its input, does it, and puts the call into the log.
pub(crate) async fn call(
    desk: &Desk,
    caller: &Caller,
    tool: &'static Tool,
    arguments: Value,
) -> Result<Value, Refused> {
    let call = Call::read(tool, arguments);
    let answer = call.answer(desk, caller).await;
    call.log(desk, caller, &answer);
    answer
}

/// So many tasks of one thread an answer goes through before it is written.
const HOPS: usize = 4;

/// One call of a tool, for whoever has more to do than [`call`] does.
pub(crate) struct Call {
    tool: &'static Tool,
    arguments: Arc<Value>,
    issues: Vec<Issue>,
    began: Instant,
}

impl Call {
    /// Reads the input.
    pub(crate) fn read(tool: &'static Tool, mut arguments: Value) -> Self {
        let began = Instant::now();
        let issues = input::read(&mut arguments, tool.input_schema());
        Self {
            tool,
            arguments: Arc::new(arguments),
            issues,
            began,
        }
    }

    /// What it was given, for whoever does it themselves.
    pub(crate) fn input<I: DeserializeOwned>(&self) -> Result<I, Refused> {
        if !self.issues.is_empty() {
            return Err(Refused::of_issues(self.issues.clone()));
        }
        I::deserialize(&*self.arguments).map_err(|why| Refused::unread(&why))
    }

    /// Does it. What has begun is finished, also where nobody waits for the answer any more.
    pub(crate) async fn answer(&self, desk: &Desk, caller: &Caller) -> Result<Value, Refused> {
        let done = tokio::spawn(done(
            desk.clone(),
            caller.clone(),
            self.tool,
            Arc::clone(&self.arguments),
            self.issues.clone(),
        ));
        // A task ends without an answer only where it panicked.
        done.await
            .unwrap_or_else(|_| Err(Refused::broken(self.tool.name)))
    }

    /// Counts it, and puts it into the log with what was answered. What goes into the log is made when the
    /// answer is on its way: nobody waits for it, except for the end of the process.
    pub(crate) fn log(self, desk: &Desk, caller: &Caller, answer: &Result<Value, Refused>) {
        let took = self.began.elapsed();
        running::count(self.tool.name, answer, took);
        if !self.tool.logged {
            return;
        }
        let (is_error, response) = match answer {
            Ok(answer) => (false, answer.clone()),
            Err(refused) => (true, refused.to_json()),
        };
        let (engine, caller, running) = (desk.engine.clone(), caller.clone(), running::begin());
        tokio::spawn(async move {
            for _ in 0..HOPS {
                tokio::task::yield_now().await;
            }
            let session = self.arguments.get("sessionId").and_then(Value::as_str);
            let answered = Answered {
                tool: self.tool.name.to_owned(),
                session: session.map(str::to_owned),
                request: Arc::unwrap_or_clone(self.arguments),
                response,
                took,
                is_error,
            };
            engine.log_call(&caller, answered);
            drop(running);
        });
    }
}

async fn done(
    desk: Desk,
    caller: Caller,
    tool: &'static Tool,
    arguments: Arc<Value>,
    issues: Vec<Issue>,
) -> Result<Value, Refused> {
    let _running = running::begin();
    if issues.is_empty() {
        return (tool.run)(desk, caller, arguments).await;
    }
    let refused = Refused::of_issues(issues);
    if !tool.brings_work {
        return Err(refused);
    }
    Err(refused.kept(given::keep(&desk, &caller, &arguments).await))
}

fn run<S: Spec>(desk: Desk, caller: Caller, arguments: Arc<Value>) -> Running {
    Box::pin(async move {
        let input = S::Input::deserialize(&*arguments).map_err(|why| Refused::unread(&why))?;
        let output = S::run(&desk, &caller, input).await?;
        serde_json::to_value(output).map_err(|_| Refused::broken(S::NAME))
    })
}

#[cfg(test)]
mod tests;
