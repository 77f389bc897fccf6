//! An unavailable database: a PostgreSQL server that is started after `onward mcp`, and an SQLite
//! file that is deleted or restored while the server runs.

use std::time::{Duration, Instant};

use onward_testbed::Cluster;
use onward_testbed::TIMEOUT;
use onward_testbed::mcp_client::{Client, ERAS, Era};
use serde_json::{Value, json};

use crate::program;

fn plan() -> Value {
    json!({
        "name": "Tides",
        "researchQuestion": "Why are there two a day?",
        "steps": [{ "stepType": "search", "instructions": "Find sources." }],
    })
}

/// Repeats a call until the database is available.
fn until_available(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let params = json!({ "name": tool, "arguments": arguments });
        let response = client.request("tools/call", params);
        if response["result"]["isError"] != true {
            return response["result"]["structuredContent"].clone();
        }
        assert!(Instant::now() < deadline, "{response}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn starts_while_postgres_is_down_and_works_once_it_is_up() {
    let cluster = Cluster::start();
    for era in ERAS {
        let dir = program().with_database(cluster.database());
        cluster.stop();
        let mut client = Client::start(&dir, era);
        assert!(!client.tools().is_empty());
        for (tool, arguments) in [
            ("create_research_plan", plan()),
            ("list_active_plans", json!({})),
        ] {
            assert_eq!(client.call_rejected(tool, arguments).code, "unavailable");
        }
        cluster.restart();
        let created = until_available(&mut client, "create_research_plan", &plan());
        assert!(created["planId"].is_string(), "{created}");
        assert!(client.close().success());
    }
}

#[test]
fn reports_a_deleted_file_and_continues_after_a_restore() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let created = client.call("create_research_plan", plan());
    let id = json!({ "planId": created["planId"] });
    let copy = dir.dir.join("copy.db").display().to_string();
    assert_eq!(dir.run(&["backup", &copy]).code, Some(0));
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(dir.dir.join(format!("onward.db{suffix}"))).expect("file deleted");
    }
    for _ in 0..2 {
        for (tool, arguments) in [
            ("create_research_plan", plan()),
            ("get_next_step", id.clone()),
            ("get_plan_status", id.clone()),
        ] {
            assert_eq!(client.call_rejected(tool, arguments).code, "unavailable");
        }
    }
    assert!(!dir.dir.join("onward.db").exists());
    assert_eq!(dir.run(&["restore", &copy]).code, Some(0));
    let next = until_available(&mut client, "get_next_step", &id);
    assert!(next["claimToken"].is_string(), "{next}");
}
