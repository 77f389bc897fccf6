//! A panic inside a tool, which no real tool produces, must become an error response and a log
//! entry.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a broken precondition fails the test"
)]

use onward_core::Code;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine};
use onward_testbed::TestDir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Hints, Spec, Tool, ToolContext, ToolError, call, in_flight};
use crate::hint::Interface;
use crate::serving::Dashboard;

struct Panics;

#[derive(Deserialize, JsonSchema)]
struct Input {}

#[derive(Serialize, JsonSchema)]
struct Output {}

impl Spec for Panics {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "panics";
    const TITLE: &'static str = "Panics";
    const DESCRIPTION: &'static str = "Panic.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(_: &ToolContext, _: &Caller, _: Input) -> Result<Output, ToolError> {
        panic!("on purpose");
    }
}

static PANICS: Tool = Tool::from_spec::<Panics>();

#[tokio::test]
async fn a_panic_in_a_tool_becomes_an_error_and_is_logged() {
    let dir = TestDir::new("panics");
    let file = dir.join("onward.db");
    let engine = Engine::open(&Address::File(file.clone()), Settings::default()).await;
    let engine = engine.expect("database opens");
    let context = ToolContext {
        interface: Interface::Api,
        engine: engine.clone(),
        dashboard: Dashboard::Fixed(None),
        extractor: None,
        is_local: true,
        quota: None,
        closing: tokio::sync::watch::channel(false).1,
    };
    let caller = Caller::local("test");
    for _ in 0..2 {
        let result = call(&context, &caller, &PANICS, json!({})).await;
        let error = result.expect_err("call fails");
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.message.contains("`panics`"), "{}", error.message);
    }
    in_flight::wait_until_idle().await;
    engine.clone().close().await;
    let reopened = Engine::open(&Address::File(file), Settings::default()).await;
    let reopened = reopened.expect("database opens");
    let calls = reopened
        .logged_requests(&caller, None, 10)
        .await
        .expect("log is readable");
    let logged: Vec<(&str, bool)> = calls
        .iter()
        .map(|call| (call.tool.as_str(), call.is_error))
        .collect();
    assert_eq!(logged, [("panics", true), ("panics", true)]);
    reopened.close().await;
}
