//! Request log: asynchronous, truncated, and never a reason for a request to fail.

use std::borrow::Cow;
use std::time::Duration;

use onward_core::Role;
use onward_engine::engine::Settings;
use onward_engine::request_log::CompletedRequest;
use onward_engine::{Engine, Faults};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::environment::SimulatedEnvironment;
use crate::harness::Harness;
use crate::on_both_databases;

fn call(tool: &str, request: Value) -> CompletedRequest<'static> {
    CompletedRequest {
        tool: tool.to_owned(),
        session: Some("session".to_owned()),
        request: Cow::Owned(request),
        response: Cow::Owned(json!({ "ok": true })),
        duration: Duration::from_micros(1_234),
        is_error: false,
    }
}

async fn closing_the_engine_flushes_the_log(harness: &Harness) {
    let engine = harness.another_engine().await;
    for number in 0..5 {
        engine.log_request(
            &harness.me,
            call(&format!("tool {number}"), json!({ "n": number })),
        );
        harness.advance(Duration::from_millis(1));
    }
    let failed = CompletedRequest {
        is_error: true,
        session: None,
        ..call("last", json!({}))
    };
    engine.log_request(&harness.me, failed);
    engine.close().await;
    let calls = harness
        .engine
        .logged_requests(&harness.me, None, 4)
        .await
        .unwrap();
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(
        tools,
        ["last", "tool 4", "tool 3", "tool 2"],
        "newest first"
    );
    let times = calls[3].at..=calls[1].at;
    let between = harness.engine.logged_requests(&harness.me, Some(times), 9);
    assert_eq!(between.await.unwrap(), calls[1..]);
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
    assert_eq!(
        harness
            .engine
            .logged_requests(&harness.me, None, 100)
            .await
            .unwrap()
            .len(),
        6
    );
}

async fn lists_requests_of_the_same_millisecond_in_order(harness: &Harness) {
    let engine = harness.another_engine().await;
    for number in 0..20 {
        engine.log_request(&harness.me, call(&number.to_string(), json!({})));
    }
    engine.close().await;
    let calls = harness
        .engine
        .logged_requests(&harness.me, None, 100)
        .await
        .unwrap();
    let tools: Vec<String> = calls.into_iter().map(|call| call.tool).collect();
    let expected: Vec<String> = (0..20).rev().map(|number| number.to_string()).collect();
    assert_eq!(tools, expected);
}

async fn writes_more_requests_than_fit_into_one_batch(harness: &Harness) {
    let other = harness.create_tenant("other").await;
    let engine = harness.another_engine().await;
    for number in 0..600 {
        let caller = if number % 3 == 0 { &other } else { &harness.me };
        engine.log_request(caller, call("tool", json!({ "n": number })));
    }
    engine.close().await;
    assert_eq!(
        harness
            .engine
            .logged_requests(&harness.me, None, 1_000)
            .await
            .unwrap()
            .len(),
        400
    );
    assert_eq!(
        harness
            .engine
            .logged_requests(&other, None, 1_000)
            .await
            .unwrap()
            .len(),
        200
    );
}

async fn masks_secrets_in_requests_and_responses(harness: &Harness) {
    let engine = harness.another_engine().await;
    let long = "a".repeat(100);
    let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----";
    let data = json!({
        "note": "use sk-0123456789abcdefghij and Authorization: Bearer abc.def",
        "list": ["PASSWORD=hunter2", key],
        "sk-0123456789abcdefghij": 1,
        (format!("{long}_password")): "hunter2",
        (format!("{} sk-0123456789abcdefghij", &long[..90])): 2,
        "result": { "apiKey": "abc", "credentials": [{ "user": "me" }], "maxTokens": 5 },
    });
    let request = CompletedRequest {
        response: Cow::Owned(data.clone()),
        ..call("tool", data)
    };
    engine.log_request(&harness.me, request);
    engine.close().await;
    let logged = harness.engine.logged_requests(&harness.me, None, 1).await;
    let logged = logged.unwrap().remove(0);
    let masked = json!({
        "note": "use [secret] and Authorization: Bearer [secret]",
        "list": [
            "PASSWORD=[secret]",
            "-----BEGIN PRIVATE KEY-----[secret]-----END PRIVATE KEY-----",
        ],
        "[secret]": 1,
        (&long): "[secret]",
        (format!("{} [secret]", &long[..90])): 2,
        "result": {
            "apiKey": "[secret]",
            "credentials": [{ "user": "[secret]" }],
            "maxTokens": 5,
        },
    });
    assert_eq!(logged.request, masked);
    assert_eq!(logged.response, masked);
}

async fn truncates_long_and_deeply_nested_values_and_redacts_tokens(harness: &Harness) {
    let engine = harness.another_engine().await;
    let request = json!({
        "fits": "🌊".repeat(500),
        "long": "🌊".repeat(501),
        "ten": (0..10).collect::<Vec<_>>(),
        "eleven": (0..11).collect::<Vec<_>>(),
        "a": { "b": { "c": { "d": { "e": {}, "list": [1], "f": 1 } } } },
        "claimToken": "secret",
        "deep": [{ "claimToken": "secret" }],
    });
    engine.log_request(&harness.me, call("tool", request));
    engine.close().await;
    let logged = harness
        .engine
        .logged_requests(&harness.me, None, 1)
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

async fn an_unavailable_database_fails_no_request_and_does_not_block_close(harness: &Harness) {
    let faults = Faults::armed();
    let environment = Arc::new(SimulatedEnvironment::new("unavailable"));
    let settings = Settings {
        environment,
        faults: faults.clone(),
        ..Settings::default()
    };
    let engine = Engine::open(&harness.database.address(), settings)
        .await
        .unwrap();
    faults.fail_after(0);
    engine.log_request(&harness.me, call("lost", json!({})));
    engine.clone().close().await;
    assert!(!faults.is_pending(), "the log write did not hit the fault");
    let plan = harness.plan(1).await;
    engine
        .sheet(&harness.me, plan.id)
        .await
        .expect("other calls succeed");
    // The log writer has stopped; logging is still not an error.
    engine.log_request(&harness.me, call("late", json!({})));
    engine.close().await;
    assert_eq!(
        harness
            .engine
            .logged_requests(&harness.me, None, 9)
            .await
            .unwrap(),
        []
    );
}

async fn truncates_objects_with_many_fields(harness: &Harness) {
    let engine = harness.another_engine().await;
    let fields = (0..10_000).map(|number| (format!("{number}{}", "x".repeat(1_000)), json!(1)));
    let request = Value::Object(fields.collect());
    engine.log_request(&harness.me, call("wide", request));
    engine.close().await;
    let calls = harness.engine.logged_requests(&harness.me, None, 1).await;
    let request = calls.unwrap()[0].request.clone();
    assert_eq!(request["...more"], 9_950);
    assert!(request.to_string().len() < 10_000);
}

async fn logs_requests_of_viewers(harness: &Harness) {
    let engine = harness.another_engine().await;
    engine.log_request(
        &harness.caller_with_role(Role::Viewer),
        call("rejected", json!({})),
    );
    engine.close().await;
    let calls = harness
        .engine
        .logged_requests(&harness.caller_with_role(Role::Viewer), None, 1)
        .await
        .unwrap();
    assert_eq!(calls[0].actor, "some viewer");
}

on_both_databases![
    closing_the_engine_flushes_the_log,
    lists_requests_of_the_same_millisecond_in_order,
    writes_more_requests_than_fit_into_one_batch,
    masks_secrets_in_requests_and_responses,
    truncates_long_and_deeply_nested_values_and_redacts_tokens,
    an_unavailable_database_fails_no_request_and_does_not_block_close,
    logs_requests_of_viewers,
    truncates_objects_with_many_fields,
];
