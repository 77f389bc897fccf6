//! `change_call`: records a state change of a tool call, reported by a custom harness.
//!
//! A result is accepted even after the call was interrupted. It is stored and displayed instead of
//! the synthetic result, but is not sent to the model again.

use onward_engine::tool_calls::Change;
use onward_engine::{CallKey, Caller};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::call::Call;

pub(super) struct ChangeCall;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    session_id: String,
    #[schemars(range(min = 1))]
    turn: u32,
    #[schemars(range(min = 1))]
    position: u32,
    /// Subagent; omit for the main agent
    subagent: Option<String>,
    /// What happened
    change: Kind,
    /// Result or error. Only a redacted prefix is stored
    result: Option<String>,
}

#[derive(Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Start,
    AskApproval,
    Approve,
    Deny,
    Cancel,
    Progress,
    Complete,
    Fail,
}

impl Spec for ChangeCall {
    type Input = Input;
    type Output = Call;

    const NAME: &'static str = "change_call";
    const TITLE: &'static str = "Update a tool call";
    const DESCRIPTION: &'static str = "Record a state change of a tool call: started, approval \
        requested, approved, denied, cancelled, progress, completed or failed.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Call, ToolError> {
        let has_result = matches!(input.change, Kind::Complete | Kind::Fail);
        if input.result.is_some() && !has_result {
            let message = "is only valid with `complete` and `fail`";
            return Err(ToolError::invalid("result", message));
        }
        let result = input.result.unwrap_or_default();
        let change = match input.change {
            Kind::Start | Kind::Approve => Change::Start,
            Kind::AskApproval => Change::AskApproval,
            Kind::Deny => Change::Deny,
            Kind::Cancel => Change::Cancel,
            Kind::Progress => Change::Progress,
            Kind::Complete => Change::Complete(result),
            Kind::Fail => Change::Fail(result),
        };
        let key = CallKey {
            session: input.session_id,
            agent: input.subagent.unwrap_or_default(),
            turn: input.turn,
            position: input.position,
        };
        let record = context.engine.change_call(caller, key, change).await?;
        Ok(Call::new(&record, context.engine.now()))
    }
}
