//! Agents' own plans and task lists, mirrored into plans.

use std::fs;

use onward_testbed::Cluster;
use serde_json::{Value, json};

use crate::harness::{Harness, compare_golden};

/// The name of the title of a task and the word for a completed one, per agent.
const AGENTS: [(&str, &str, &str); 5] = [
    ("claude-code", "content", "completed"),
    ("codex", "step", "completed"),
    ("gemini", "description", "completed"),
    ("kimi", "title", "done"),
    ("opencode", "content", "completed"),
];

/// Reports a whole list: titles, each with a status.
fn report_list(harness: &Harness, agent: &str, tasks: &[(&str, &str)]) {
    let (_, title, done) = AGENTS
        .into_iter()
        .find(|(name, ..)| *name == agent)
        .unwrap();
    let list: Vec<Value> = tasks
        .iter()
        .map(|(text, status)| {
            let status = if *status == "completed" { done } else { status };
            json!({ title: text, "status": status })
        })
        .collect();
    let list = Value::from(list).to_string();
    let payload = harness.payload("task_list").replace("\"{list}\"", &list);
    let reply = harness.send_payload(&payload);
    assert_eq!(
        (reply.code, reply.stderr.as_str()),
        (Some(0), ""),
        "{reply:?}"
    );
}

pub(crate) fn plans(harness: &Harness) -> Vec<Value> {
    let list = harness.run_json(&["plan", "list", "--all", "--json"]);
    let of = |key: &str| list[key].as_array().unwrap().clone();
    [of("plans"), of("unfinishedLists")].concat()
}

/// The steps of a plan in order: title and status.
pub(crate) fn steps(harness: &Harness, plan: &Value) -> Vec<(String, String)> {
    let id = plan["planId"].as_str().unwrap();
    let details = harness.run_json(&["plan", "show", id, "--json"]);
    let mut steps: Vec<(u64, String, String)> = Vec::new();
    let lists = [
        "completedSteps",
        "pendingSteps",
        "failedSteps",
        "inProgressSteps",
    ];
    for list in lists {
        for step in details[list].as_array().into_iter().flatten() {
            let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
            let order = step["stepOrder"].as_u64().unwrap();
            steps.push((order, text("title"), text("status")));
        }
    }
    let current = &details["currentStep"];
    if let Some(order) = current["stepOrder"].as_u64() {
        let text = |key: &str| current[key].as_str().unwrap_or_default().to_owned();
        steps.push((order, text("title"), text("status")));
    }
    steps.sort();
    steps.dedup();
    steps
        .into_iter()
        .map(|(_, title, status)| (title, status))
        .collect()
}

#[track_caller]
pub(crate) fn assert_steps(harness: &Harness, plan: &Value, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(title, status)| ((*title).to_owned(), (*status).to_owned()))
        .collect();
    assert_eq!(steps(harness, plan), expected);
}

fn mirrors_a_list(harness: &Harness, agent: &str) {
    harness.send("prompt");
    report_list(
        harness,
        agent,
        &[("Collect tables", "in_progress"), ("Compare", "pending")],
    );
    assert!(plans(harness).is_empty(), "{agent}: two tasks are no plan");
    report_list(
        harness,
        agent,
        &[
            ("Collect tables", "in_progress"),
            ("Compare the phases", "pending"),
            ("Write the report", "pending"),
        ],
    );
    let plan = plans(harness).pop().unwrap();
    assert_eq!(plan["origin"], "agent", "{agent}");
    assert_eq!(plan["status"], "executing", "{agent}");
    // Completed, renamed, added, removed and moved.
    report_list(
        harness,
        agent,
        &[
            ("Collect tables", "completed"),
            ("Check the data", "pending"),
            ("Compare all the phases", "in_progress"),
        ],
    );
    assert_eq!(plans(harness).len(), 1, "{agent}: the same plan");
    assert_steps(
        harness,
        &plan,
        &[
            ("Collect tables", "completed"),
            ("Check the data", "pending"),
            ("Compare all the phases", "in_progress"),
        ],
    );
    // A repeated and an empty list change nothing.
    let seq = |harness: &Harness| {
        let id = plan["planId"].as_str().unwrap();
        let audit = harness.run_json(&["plan", "log", id, "--json"]);
        audit["events"].as_array().unwrap().len()
    };
    let before = seq(harness);
    report_list(harness, agent, &[]);
    assert_eq!(seq(harness), before, "{agent}");
    report_list(
        harness,
        agent,
        &[
            ("Collect tables", "completed"),
            ("Check the data", "completed"),
            ("Compare all the phases", "completed"),
        ],
    );
    let finished = plans(harness).pop().unwrap();
    assert_eq!(finished["status"], "completed", "{agent}");
}

#[test]
fn mirrors_the_list_of_every_agent() {
    for (agent, ..) in AGENTS {
        mirrors_a_list(&Harness::new("capture-list", agent), agent);
    }
}

#[test]
fn mirrors_a_list_on_postgresql() {
    let database = Cluster::shared().database();
    let harness = Harness::new("capture-postgres", "claude-code").with_database(database);
    mirrors_a_list(&harness, "claude-code");
}

fn create_task(harness: &Harness, id: u32, subject: &str) {
    let payload = harness.payload("task_create");
    let payload = payload
        .replace("{task}", &id.to_string())
        .replace("{subject}", subject)
        .replace("{description}", "More about it");
    // The hooks of the user and of the project run for the same call.
    for _ in 0..2 {
        harness.send_payload(&payload).assert_empty();
    }
}

fn update_task(harness: &Harness, id: u32, status: &str) {
    let payload = harness.payload("task_update");
    let payload = payload
        .replace("{task}", &id.to_string())
        .replace("{status}", status);
    harness.send_payload(&payload).assert_empty();
}

#[test]
fn mirrors_the_task_tools_of_claude_code() {
    let harness = Harness::new("capture-tasks", "claude-code");
    harness.send("prompt").assert_empty();
    for (id, subject) in [(1, "Collect"), (2, "Compare"), (3, "Write"), (4, "Publish")] {
        create_task(&harness, id, subject);
    }
    update_task(&harness, 1, "in_progress");
    update_task(&harness, 1, "completed");
    update_task(&harness, 2, "deleted");
    update_task(&harness, 3, "in_progress");
    let plans = plans(&harness);
    assert_eq!(plans.len(), 1);
    assert_steps(
        &harness,
        &plans[0],
        &[
            ("Collect", "completed"),
            ("Write", "in_progress"),
            ("Publish", "pending"),
        ],
    );
    let id = plans[0]["planId"].as_str().unwrap();
    let golden = harness.run(&["plan", "show", id], b"").stdout;
    assert!(golden.contains("Collect"), "{golden}");
    // The step is held by the session, so its activity keeps the step alive.
    let session = harness.session();
    assert_eq!(session["sessionId"].as_str().map(str::len), Some(36));
}

#[test]
fn an_approved_plan_is_named_after_its_heading_and_followed_by_the_list() {
    let harness = Harness::new("capture-approved", "claude-code")
        .with_env("ONWARD_CAPTURE__PLANS", "approved");
    harness.send("prompt").assert_empty();
    report_list(
        &harness,
        "claude-code",
        &[("a", "pending"), ("b", "pending"), ("c", "pending")],
    );
    assert!(plans(&harness).is_empty(), "only approved plans");
    let plan = "# Tide tables\\n\\nWhy.\\n\\n1. **Collect** tables\\n   - nested\\n2. Compare\\n3. Write\\n";
    let payload = harness.payload("exit_plan_mode").replace("{plan}", plan);
    harness.send_payload(&payload).assert_empty();
    let approved = plans(&harness).pop().unwrap();
    assert_eq!(approved["name"], "Tide tables");
    assert_steps(
        &harness,
        &approved,
        &[
            ("Collect tables", "pending"),
            ("Compare", "pending"),
            ("Write", "pending"),
        ],
    );
    report_list(
        &harness,
        "claude-code",
        &[
            ("Collect tables", "in_progress"),
            ("Compare", "pending"),
            ("Write it down", "pending"),
            ("Publish", "pending"),
        ],
    );
    assert_eq!(plans(&harness).len(), 1);
    assert_steps(
        &harness,
        &approved,
        &[
            ("Collect tables", "in_progress"),
            ("Compare", "pending"),
            ("Write it down", "pending"),
            ("Publish", "pending"),
        ],
    );
}

#[test]
fn captures_nothing_if_it_is_off_and_nothing_in_subagents() {
    let tasks = [("a", "pending"), ("b", "pending"), ("c", "pending")];
    let off = Harness::new("capture-off", "claude-code").with_env("ONWARD_CAPTURE__PLANS", "off");
    off.send("prompt").assert_empty();
    report_list(&off, "claude-code", &tasks);
    assert!(plans(&off).is_empty());

    let switched = Harness::new("capture-switched", "claude-code");
    switched.send("prompt").assert_empty();
    let session = switched.session()["sessionId"].as_str().unwrap().to_owned();
    switched.run(&["session", "off", &session], b"");
    report_list(&switched, "claude-code", &tasks);
    assert!(plans(&switched).is_empty());

    let subagent = Harness::new("capture-subagent", "claude-code");
    subagent.send("prompt").assert_empty();
    let list = json!([
        { "content": "a", "status": "pending" },
        { "content": "b", "status": "pending" },
        { "content": "c", "status": "pending" },
    ]);
    let payload = subagent.payload("task_list");
    let payload = payload.replace("\"{list}\"", &list.to_string());
    let mut payload: Value = serde_json::from_str(&payload).unwrap();
    payload["agent_id"] = "agent-1".into();
    subagent.send_payload(&payload.to_string());
    assert!(plans(&subagent).is_empty());
}

#[test]
fn a_later_session_of_another_agent_continues_the_captured_plan() {
    let harness = Harness::new("capture-resume", "claude-code");
    harness.send("prompt").assert_empty();
    report_list(
        &harness,
        "claude-code",
        &[
            ("Collect tables", "completed"),
            ("Compare the phases", "in_progress"),
            ("Write the report", "pending"),
        ],
    );
    harness.send("session_end");
    let codex = Harness::new("capture-resume-codex", "codex");
    let here = |payload: String| {
        payload.replace(
            &codex.work_dir().display().to_string(),
            &harness.work_dir().display().to_string(),
        )
    };
    fs::create_dir_all(harness.program.dir.join("home/.codex/skills/onward-plans")).unwrap();
    let start = here(codex.payload("session_start"));
    let offer = harness.run(&["hook", "codex"], start.as_bytes());
    let plan = plans(&harness).pop().unwrap();
    let id = plan["planId"].as_str().unwrap();
    assert!(offer.stdout.contains(id), "{offer:?}");
    assert!(offer.stdout.contains("Collect tables"), "{offer:?}");
    let list = json!([
        { "step": "Compare the phases", "status": "in_progress" },
        { "step": "Write the report", "status": "pending" },
    ]);
    let report = here(codex.payload("task_list")).replace("\"{list}\"", &list.to_string());
    harness.run(&["hook", "codex"], report.as_bytes());
    assert_eq!(plans(&harness).len(), 1);
    assert_steps(
        &harness,
        &plan,
        &[
            ("Collect tables", "completed"),
            ("Compare the phases", "in_progress"),
            ("Write the report", "pending"),
        ],
    );
}

#[test]
fn another_list_in_a_later_turn_is_another_plan() {
    let harness = Harness::new("capture-other", "claude-code");
    harness.send("prompt").assert_empty();
    report_list(
        &harness,
        "claude-code",
        &[("a", "in_progress"), ("b", "pending"), ("c", "pending")],
    );
    harness.send("stop");
    harness.send("prompt").assert_empty();
    report_list(
        &harness,
        "claude-code",
        &[("x", "in_progress"), ("y", "pending"), ("z", "pending")],
    );
    assert_eq!(plans(&harness).len(), 2);
}

/// The audit trail of a captured plan, without ids and times.
#[test]
fn the_audit_trail_records_every_change_of_the_list() {
    let harness = Harness::new("capture-audit", "claude-code");
    harness.send("prompt").assert_empty();
    let lists: [&[(&str, &str)]; 3] = [
        &[
            ("Collect tables", "in_progress"),
            ("Compare the phases", "pending"),
            ("Write", "pending"),
        ],
        &[
            ("Collect tables", "completed"),
            ("Write", "pending"),
            ("Compare all the phases", "in_progress"),
        ],
        &[("Compare all the phases", "completed")],
    ];
    let mut golden = String::new();
    let mut known = 0;
    for list in lists {
        report_list(&harness, "claude-code", list);
        golden.push_str(&format!("$ {list:?}\n"));
        let plan = plans(&harness).pop().unwrap();
        let id = plan["planId"].as_str().unwrap();
        let audit = harness.run_json(&["plan", "log", id, "--json"]);
        let events = audit["events"].as_array().unwrap();
        for event in events.iter().skip(known) {
            let action = event["details"]["action"].as_str().unwrap_or_default();
            let line = format!("{} {action}", event["eventType"].as_str().unwrap());
            golden.push_str(&format!("{}\n", line.trim_end()));
        }
        known = events.len();
        golden.push_str(&format!("plan: {}\n\n", plan["status"].as_str().unwrap()));
    }
    compare_golden("capture", &golden);
}

#[test]
fn the_list_of_an_ended_session_is_unfinished_and_can_be_dropped() {
    let harness = Harness::new("capture-unfinished", "claude-code");
    let tasks = [
        ("Read the orders", "completed"),
        ("Export to CSV", "in_progress"),
        ("Stream large files", "pending"),
    ];
    report_list(&harness, "claude-code", &tasks);
    let listed = || harness.run_json(&["plan", "list", "--json"]);
    assert_eq!(listed()["plans"][0]["attention"], "working");
    harness.send("session_end");
    assert_eq!(listed()["plans"], json!([]));
    let list = &listed()["unfinishedLists"][0];
    assert_eq!(list["attention"], "unfinished_list");
    let id = list["planId"].as_str().unwrap();
    let status = harness.run_json(&["status", "--json"]);
    assert_eq!(status["needsYou"], json!([]));
    assert_eq!(status["unfinishedLists"][0]["planId"], id);
    assert_eq!(status["attention"]["unfinished_list"], 1);
    let directory = harness.work_dir().display().to_string();
    let journal = harness.run_json(&["plan", "journal", &directory, "--json"]);
    let day = &journal["days"][0]["plans"][0];
    assert_eq!((&day["planId"], &day["done"]), (&json!(id), &json!(1)));
    assert_eq!(day["completed"][0]["title"], "Read the orders");
    harness.run_json(&["plan", "abandon", id, "--json"]);
    assert_eq!(listed()["unfinishedLists"], json!([]));
    let status = harness.run_json(&["status", "--json"]);
    assert_eq!(status["attention"]["cancelled"], 1);
}
