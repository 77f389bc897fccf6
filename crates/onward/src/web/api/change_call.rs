//! `change_call`: a harness of one's own tells what became of a call.
//!
//! A result is taken also after the call was given up: it is kept and shown in place of what the model
//! was told, and is no second answer to it.

use onward_engine::ledger::Change;
use onward_engine::{CallKey, Caller};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Desk, Hints, Refused, Spec};
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
    /// Which subagent; left out for the agent itself
    subagent: Option<String>,
    /// What happened
    change: Kind,
    /// The result or the error; only a short beginning without secrets is kept
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
    const TITLE: &'static str = "Change a call";
    const DESCRIPTION: &'static str = "Tell what became of a call: it began, a person is asked, it gave a sign of life, it ended.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Call, Refused> {
        let ends = matches!(input.change, Kind::Complete | Kind::Fail);
        if input.result.is_some() && !ends {
            let why = "goes with `complete` and `fail` alone";
            return Err(Refused::invalid("result", why));
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
        let record = desk.engine.change_call(caller, key, change).await?;
        Ok(Call::of(&record, desk.engine.now()))
    }
}
