//! `record_call`: a harness of one's own tells of a call before it makes it.
//!
//! The process that runs the tool is what makes a death certain: without it there is only the clock. A
//! process without a host is one of the machine that this server runs on.

use onward_core::call::{Limit, Owner as Runs};
use onward_engine::ledger::{Begins, NewCall};
use onward_engine::session::Heard;
use onward_engine::{Caller, machine};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools::{Desk, Hints, Refused, Spec};
use crate::wire::call::Call;

pub(super) struct RecordCall;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The session's id, which you give; it begins with its first call
    #[schemars(length(min = 1, max = 200))]
    session_id: String,
    /// Which agent; default `api`
    agent: Option<String>,
    /// Where it works
    directory: Option<String>,
    /// Which subagent; left out for the agent itself
    subagent: Option<String>,
    /// The turn, from 1; left out: the one that is going on. A turn that is not known begins
    #[schemars(range(min = 1, max = 1_000_000_000))]
    turn: Option<u32>,
    /// The model's id of the call; it may repeat
    call_id: Option<String>,
    /// Calls of one model response share this number; left out: it is alone
    #[schemars(range(min = 0, max = 1_000_000_000))]
    batch: Option<u32>,
    #[schemars(length(min = 1, max = 200))]
    tool: String,
    /// Only a digest and a short beginning without secrets are kept
    input: Option<Value>,
    /// How it stands; default `requested`
    status: Option<Status>,
    /// The timeout that applies to this very call; left out: told from tool and input, else 120 s
    #[schemars(range(min = 1, max = 31_536_000_000_u64))]
    timeout_ms: Option<u64>,
    /// It waits for a person or another agent, and has no timeout
    no_timeout: Option<bool>,
    /// The process that runs the tool
    owner: Option<Owner>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Requested,
    AwaitingApproval,
    Running,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Owner {
    /// Where the process id means something; left out: the machine of this server
    host: Option<String>,
    /// Which run of the host
    boot_id: Option<String>,
    process_id: u32,
    /// When the process started, as the host counts
    process_start: Option<u64>,
}

impl Spec for RecordCall {
    type Input = Input;
    type Output = Call;

    const NAME: &'static str = "record_call";
    const TITLE: &'static str = "Record a call";
    const DESCRIPTION: &'static str = "Tell of a tool call before its effect begins.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Call, Refused> {
        let tool_input = input.input.unwrap_or(Value::Null);
        let limit = match (input.no_timeout, input.timeout_ms) {
            (Some(true), Some(_)) => {
                let why = "does not go with `noTimeout`";
                return Err(Refused::invalid("timeoutMs", why));
            }
            (Some(true), None) => Limit::Never,
            (_, Some(millis)) => Limit::After(std::time::Duration::from_millis(millis)),
            (_, None) => Limit::of_call(&input.tool, &tool_input),
        };
        let heard = Heard {
            session: input.session_id,
            agent: input.agent.unwrap_or_else(|| "api".to_owned()),
            directory: input.directory,
            subagent: input.subagent.unwrap_or_default(),
            turn: None,
        };
        let call = NewCall {
            id: input.call_id,
            tool: input.tool,
            input: tool_input,
            limit,
            owner: input.owner.map(owner).transpose()?,
            batch: input.batch,
        };
        let begins = match input.status {
            Some(Status::Running) => Begins::Running,
            Some(Status::AwaitingApproval) => Begins::AwaitingApproval,
            Some(Status::Requested) | None => Begins::Requested,
        };
        let record = desk
            .engine
            .record_call(caller, heard, input.turn, call, begins)
            .await?;
        Ok(Call::of(&record, desk.engine.now()))
    }
}

fn owner(given: Owner) -> Result<Runs, Refused> {
    match given.host {
        Some(host) if host.is_empty() => Err(Refused::invalid("owner.host", "is empty")),
        Some(host) => Ok(Runs {
            host,
            boot: given.boot_id,
            process: given.process_id,
            process_started: given.process_start,
        }),
        None => machine::owner(given.process_id).ok_or_else(|| {
            let why = "is no process of this machine that lives; name its `host`, or no owner";
            Refused::invalid("owner.processId", why)
        }),
    }
}
