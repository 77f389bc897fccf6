//! `record_call`: records a tool call of a custom harness before it runs.
//!
//! With an owner process, Onward can detect that the process has exited; without one, only the
//! timeout applies. A process without a host runs on the machine of this server. Only callers on this
//! machine can name its processes: the owner of a remote call is stored under a host that matches
//! none, so that neither the response nor an interruption reveals a process of a server.

use onward_core::call::{Limit, Owner as CallOwner};
use onward_core::policy::MAX_SESSION_ID;
use onward_engine::session::HookSource;
use onward_engine::tool_calls::{CallRef, InitialState, NewCall};
use onward_engine::{Caller, machine};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::call::Call;

/// The start of the host of a remote owner. No host name contains a slash.
const REMOTE_HOST: &str = "remote/";

pub(super) struct RecordCall;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Session id, chosen by the caller. The first call creates the session
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: String,
    /// Agent name; default: `api`
    agent: Option<String>,
    /// Working directory
    directory: Option<String>,
    /// Subagent; omit for the main agent
    subagent: Option<String>,
    /// Turn number, from 1; default: the current turn. A new number starts a turn
    #[schemars(range(min = 1, max = 1_000_000_000))]
    turn: Option<u32>,
    /// The model's id of the call; not necessarily unique
    call_id: Option<String>,
    /// Number shared by all calls of one model response; default: a separate batch
    #[schemars(range(min = 0, max = 1_000_000_000))]
    batch: Option<u32>,
    #[schemars(length(min = 1, max = 200))]
    tool: String,
    /// Tool input. Only a digest and a redacted prefix are stored
    input: Option<Value>,
    /// Initial state; default: `requested`
    status: Option<Status>,
    /// Timeout of this call; default: derived from tool and input, otherwise 120 s
    #[schemars(range(min = 1, max = 31_536_000_000_u64))]
    timeout_ms: Option<u64>,
    /// The call waits for a user or another agent and has no timeout
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
    /// Host of the process; default: the machine of this server. If the server requires
    /// authentication, the process is not checked
    host: Option<String>,
    /// Boot id of the host
    boot_id: Option<String>,
    process_id: u32,
    /// Start time of the process, in the host's units
    process_start: Option<u64>,
}

impl Spec for RecordCall {
    type Input = Input;
    type Output = Call;

    const NAME: &'static str = "record_call";
    const TITLE: &'static str = "Record a tool call";
    const DESCRIPTION: &'static str = "Record a tool call before it runs.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Call, ToolError> {
        let tool_input = input.input.unwrap_or(Value::Null);
        let limit = match (input.no_timeout, input.timeout_ms) {
            (Some(true), Some(_)) => {
                let message = "cannot be combined with `noTimeout`";
                return Err(ToolError::invalid("timeoutMs", message));
            }
            (Some(true), None) => Some(Limit::Never),
            (_, Some(millis)) => Some(Limit::After(std::time::Duration::from_millis(millis))),
            (_, None) => None,
        };
        let source = HookSource {
            session: input.session_id,
            agent: input.agent.unwrap_or_else(|| "api".to_owned()),
            directory: input.directory,
            subagent: input.subagent.unwrap_or_default(),
            ..HookSource::default()
        };
        let call = CallRef {
            id: input.call_id,
            tool: input.tool,
            input: tool_input,
        };
        let owner = owner(input.owner, context.is_local)?;
        let call = context.engine.new_call(&source.agent, call, owner);
        let call = NewCall {
            limit: limit.unwrap_or(call.limit),
            batch: input.batch,
            ..call
        };
        let initial = match input.status {
            Some(Status::Running) => InitialState::Running,
            Some(Status::AwaitingApproval) => InitialState::AwaitingApproval,
            Some(Status::Requested) | None => InitialState::Requested,
        };
        let record = context
            .engine
            .record_call(caller, source, input.turn, call, initial)
            .await?;
        Ok(Call::new(&record, context.engine.now()))
    }
}

fn owner(owner: Option<Owner>, is_local: bool) -> Result<Option<CallOwner>, ToolError> {
    let Some(owner) = owner else {
        return Ok(None);
    };
    let host = match owner.host {
        Some(host) if host.is_empty() => {
            return Err(ToolError::invalid("owner.host", "must not be empty"));
        }
        Some(host) if is_local => host,
        None if is_local => {
            let owner = machine::owner(owner.process_id).ok_or_else(|| {
                let message =
                    "is not a running process on this machine; set `host` or omit `owner`";
                ToolError::invalid("owner.processId", message)
            })?;
            return Ok(Some(owner));
        }
        host => format!("{REMOTE_HOST}{}", host.unwrap_or_default()),
    };
    Ok(Some(CallOwner {
        host,
        boot: owner.boot_id,
        process: owner.process_id,
        process_started: owner.process_start,
    }))
}
