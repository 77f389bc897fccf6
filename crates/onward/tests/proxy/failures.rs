//! Failures of the API, of the database and of the command line.

use onward_testbed::mock_server::{MockServer, Reply};

use crate::conversation::{ALL_APIS, Api, Conversation};
use crate::program;

#[tokio::test]
async fn reports_an_unreachable_api_in_the_error_format_of_the_api() {
    let proxy = program("unreachable").proxy("http://127.0.0.1:1");
    for api in ALL_APIS {
        let response = Conversation::new(api, true, "s").send(&proxy).await;
        assert_eq!(response.status.as_u16(), 502);
        assert_eq!(response.headers["content-type"], "application/json");
        let error = response.json();
        if api == Api::Anthropic {
            assert_eq!(error["type"], "error");
            assert_eq!(error["error"]["type"], "api_error");
        } else {
            assert_eq!(error["error"]["type"], "server_error");
        }
        let message = error["error"]["message"].as_str().expect("message present");
        assert!(message.contains("--upstream"), "{message}");
    }
    let models = proxy.client.get(format!("{}/v1/models", proxy.url)).send();
    assert_eq!(
        models.await.expect("response received").status().as_u16(),
        502
    );
}

#[tokio::test]
async fn relays_an_invalid_response_unchanged() {
    let upstream = MockServer::start();
    let proxy = program("invalid").proxy(&upstream.url);
    for api in ALL_APIS {
        for (number, (kind, invalid)) in [
            ("application/json", "not JSON"),
            ("application/json", "{\"a\":1}"),
            (
                "text/event-stream",
                "no: event\n\ndata: {\n\ndata: [1]\n\nrest",
            ),
            ("text/html", "<p>Bad gateway"),
        ]
        .into_iter()
        .enumerate()
        {
            for idle in [0, 8] {
                let name = format!("{api:?}-{number}-{idle}");
                let mut conversation = Conversation::new(api, kind == "text/event-stream", &name);
                conversation.run_idle_steps(&proxy, &upstream, idle).await;
                upstream.enqueue(Reply::new(kind, invalid));
                let response = conversation.send(&proxy).await;
                assert_eq!(response.body, invalid.as_bytes(), "{name}");
                assert_eq!(response.headers["content-type"], kind);
            }
        }
    }
}

#[tokio::test]
async fn forwards_requests_without_a_database_and_warns_once() {
    let upstream = MockServer::start();
    for (name, database) in [
        ("no-directory", "/dev/null/onward.db".to_owned()),
        ("no-server", "postgres://user@127.0.0.1:1/none".to_owned()),
    ] {
        let proxy = program(name).with_database(database).proxy(&upstream.url);
        let mut conversation = Conversation::new(Api::Anthropic, true, "s");
        for _ in 0..10 {
            upstream.enqueue(conversation.call_reply());
            conversation.send(&proxy).await;
            assert_eq!(
                upstream.last_request().body,
                conversation.request().to_string().as_bytes()
            );
            conversation.add_step("true", "");
        }
        // Repairs need no database.
        conversation.rows.pop();
        conversation.add_user_message("Well?");
        conversation.send(&proxy).await;
        assert_ne!(
            upstream.last_request().body,
            conversation.request().to_string().as_bytes()
        );
        let log = proxy.stop().log();
        let warnings = log.lines().filter(|line| line.starts_with("warning: "));
        assert_eq!(warnings.count(), 1, "{log}");
    }
}

#[tokio::test]
async fn forwards_requests_after_the_database_fails() {
    let upstream = MockServer::start();
    let proxy = program("database-fails").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Chat, false, "s");
    conversation.run_idle_steps(&proxy, &upstream, 3).await;
    let file = proxy.program().dir.join("onward.db");
    let database = rusqlite::Connection::open(&file).expect("database opened");
    database
        .execute_batch("DROP TABLE turn_steps; DROP TABLE session_agents;")
        .expect("tables dropped");
    for _ in 0..10 {
        upstream.enqueue(conversation.call_reply());
        let response = conversation.send(&proxy).await;
        assert!(response.status.is_success());
        assert_eq!(
            upstream.last_request().body,
            conversation.request().to_string().as_bytes()
        );
        conversation.add_step("true", "");
    }
    let log = proxy.stop().log();
    assert!(log.contains("WARN onward::proxy::recorder"), "{log}");
}

#[tokio::test]
async fn rejects_invalid_flags_with_a_hint() {
    let dir = program("usage");
    for (arguments, code) in [
        (["proxy", "--bind", "7172"], 2),
        (["proxy", "--bind", "0.0.0.0:0"], 4),
        (["proxy", "--upstream", "example.com"], 2),
        (["proxy", "--upstream", "ftp://a"], 2),
        (["proxy", "--upstream", "http://me:secret@a"], 2),
    ] {
        let run = dir.run(&arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}");
        let stderr = run.stderr;
        assert!(stderr.contains("hint: "), "{stderr}");
        assert!(run.stdout.is_empty());
    }
}
