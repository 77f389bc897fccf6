//! The log of tool calls: written after the answer, cut short, and no reason for anything to fail.

use std::time::Duration;

use onward_core::Role;
use onward_engine::calls::Answered;
use onward_engine::engine::Settings;
use onward_engine::{Engine, Faults};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::world::Simulated;

fn call(tool: &str, request: Value) -> Answered {
    Answered {
        tool: tool.to_owned(),
        session: Some("session".to_owned()),
        request,
        response: json!({ "ok": true }),
        took: Duration::from_micros(1_234),
        is_error: false,
    }
}

async fn what_was_logged_is_there_once_the_engine_is_closed(desk: &Desk) {
    let engine = desk.another_engine().await;
    for number in 0..5 {
        engine.log_call(
            &desk.me,
            call(&format!("tool {number}"), json!({ "n": number })),
        );
        desk.advance(Duration::from_millis(1));
    }
    let failed = Answered {
        is_error: true,
        session: None,
        ..call("last", json!({}))
    };
    engine.log_call(&desk.me, failed);
    engine.close().await;
    let calls = desk.engine.calls(&desk.me, 4).await.unwrap();
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(
        tools,
        ["last", "tool 4", "tool 3", "tool 2"],
        "newest first"
    );
    assert_eq!(
        (calls[0].is_error, calls[0].session.as_deref()),
        (true, None)
    );
    assert_eq!(
        (calls[1].is_error, calls[1].session.as_deref()),
        (false, Some("session"))
    );
    assert_eq!(calls[1].request, json!({ "n": 4 }));
    assert_eq!(calls[1].response, json!({ "ok": true }));
    assert_eq!(
        (calls[1].duration_us, calls[1].actor.as_str()),
        (1_234, "me")
    );
    assert_eq!(desk.engine.calls(&desk.me, 100).await.unwrap().len(), 6);
}

async fn calls_of_one_millisecond_come_back_in_their_order(desk: &Desk) {
    let engine = desk.another_engine().await;
    for number in 0..20 {
        engine.log_call(&desk.me, call(&number.to_string(), json!({})));
    }
    engine.close().await;
    let calls = desk.engine.calls(&desk.me, 100).await.unwrap();
    let tools: Vec<String> = calls.into_iter().map(|call| call.tool).collect();
    let expected: Vec<String> = (0..20).rev().map(|number| number.to_string()).collect();
    assert_eq!(tools, expected);
}

async fn more_calls_than_are_written_at_once_are_all_written(desk: &Desk) {
    let other = desk.tenant("other").await;
    let engine = desk.another_engine().await;
    for number in 0..600 {
        let caller = if number % 3 == 0 { &other } else { &desk.me };
        engine.log_call(caller, call("tool", json!({ "n": number })));
    }
    engine.close().await;
    assert_eq!(desk.engine.calls(&desk.me, 1_000).await.unwrap().len(), 400);
    assert_eq!(desk.engine.calls(&other, 1_000).await.unwrap().len(), 200);
}

async fn long_and_deep_data_is_cut(desk: &Desk) {
    let engine = desk.another_engine().await;
    let request = json!({
        "fits": "🌊".repeat(500),
        "long": "🌊".repeat(501),
        "ten": (0..10).collect::<Vec<_>>(),
        "eleven": (0..11).collect::<Vec<_>>(),
        "a": { "b": { "c": { "d": { "e": {}, "list": [1], "f": 1 } } } },
        "claimToken": "secret",
        "deep": [{ "claimToken": "secret" }],
    });
    engine.log_call(&desk.me, call("tool", request));
    engine.close().await;
    let logged = desk
        .engine
        .calls(&desk.me, 1)
        .await
        .unwrap()
        .remove(0)
        .request;
    let expected = json!({
        "fits": "🌊".repeat(500),
        "long": "[501 chars]",
        "ten": (0..10).collect::<Vec<_>>(),
        "eleven": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "...[1 more]"],
        "a": { "b": { "c": { "d": { "e": "{...}", "list": "[...]", "f": 1 } } } },
        "claimToken": "[token]",
        "deep": [{ "claimToken": "[token]" }],
    });
    assert_eq!(logged, expected);
}

async fn a_database_that_is_away_fails_no_call_and_closing_ends(desk: &Desk) {
    let faults = Faults::armed();
    let world = Arc::new(Simulated::of("away"));
    let settings = Settings {
        world,
        faults: faults.clone(),
        ..Settings::default()
    };
    let engine = Engine::open(&desk.place.address(), settings).await.unwrap();
    faults.strike_after(0);
    engine.log_call(&desk.me, call("lost", json!({})));
    engine.clone().close().await;
    assert!(!faults.is_pending(), "the log met the fault");
    let plan = desk.plan(1).await;
    engine
        .sheet(&desk.me, plan.id)
        .await
        .expect("other calls go well");
    // Nothing writes any more; that fails nobody either.
    engine.log_call(&desk.me, call("late", json!({})));
    engine.close().await;
    assert_eq!(desk.engine.calls(&desk.me, 9).await.unwrap(), []);
}

async fn a_call_of_a_role_that_may_do_nothing_is_logged_too(desk: &Desk) {
    let engine = desk.another_engine().await;
    engine.log_call(&desk.role(Role::Viewer), call("refused", json!({})));
    engine.close().await;
    let calls = desk
        .engine
        .calls(&desk.role(Role::Viewer), 1)
        .await
        .unwrap();
    assert_eq!(calls[0].actor, "some viewer");
}

on_both_databases![
    what_was_logged_is_there_once_the_engine_is_closed,
    calls_of_one_millisecond_come_back_in_their_order,
    more_calls_than_are_written_at_once_are_all_written,
    long_and_deep_data_is_cut,
    a_database_that_is_away_fails_no_call_and_closing_ends,
    a_call_of_a_role_that_may_do_nothing_is_logged_too,
];
