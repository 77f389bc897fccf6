//! What no tool of ours does, and the way through must stand all the same: a panic.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use onward_core::Code;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Desk, Hints, Refused, Spec, Tool, call, running};

struct Breaks;

#[derive(Deserialize, JsonSchema)]
struct Input {}

#[derive(Serialize, JsonSchema)]
struct Output {}

impl Spec for Breaks {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "breaks";
    const TITLE: &'static str = "Breaks";
    const DESCRIPTION: &'static str = "Break.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(_: &Desk, _: &Caller, _: Input) -> Result<Output, Refused> {
        panic!("on purpose");
    }
}

static BREAKS: Tool = Tool::of::<Breaks>();

#[tokio::test]
async fn a_tool_that_panics_is_an_answer_and_in_the_log() {
    let file = format!("onward-breaks-{}.db", std::process::id());
    let file = std::env::temp_dir().join(file);
    let engine = Engine::open(&Address::File(file.clone()), Settings::default()).await;
    let engine = engine.expect("the database opens");
    let desk = Desk {
        engine: engine.clone(),
        base_url: None,
        extractor: None,
    };
    let caller = Caller::local("test");
    for _ in 0..2 {
        let refused = call(&desk, &caller, &BREAKS, json!({})).await;
        let refused = refused.expect_err("it broke");
        assert_eq!(refused.code, Code::Unavailable);
        assert!(refused.message.contains("`breaks`"), "{}", refused.message);
    }
    running::none().await;
    engine.clone().close().await;
    let again = Engine::open(&Address::File(file.clone()), Settings::default()).await;
    let again = again.expect("the database opens");
    let calls = again.calls(&caller, 10).await.expect("a log");
    let logged: Vec<(&str, bool)> = calls
        .iter()
        .map(|call| (call.tool.as_str(), call.is_error))
        .collect();
    assert_eq!(logged, [("breaks", true), ("breaks", true)]);
    again.close().await;
    for end in ["", "-wal", "-shm"] {
        let mut path = file.clone().into_os_string();
        path.push(end);
        // Those that are not there need not be taken away.
        drop(std::fs::remove_file(path));
    }
}
