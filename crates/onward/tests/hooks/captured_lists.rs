//! Task lists of several sessions in one directory: which of them are one plan.

use onward_testbed::Cluster;
use serde_json::{Value, json};

use crate::capture::{assert_steps, plans};
use crate::harness::Harness;

type List<'a> = &'a [(&'a str, &'a str)];

/// Sends the payload of a fixture as another session of Claude Code.
fn send_as(harness: &Harness, session: &str, fixture: &str, fields: &[(&str, Value)]) {
    let mut payload: Value = serde_json::from_str(&harness.payload(fixture)).unwrap();
    payload["session_id"] = session.into();
    for (path, value) in fields {
        *payload.pointer_mut(path).unwrap() = value.clone();
    }
    let reply = harness.send_payload(&payload.to_string());
    assert_eq!(
        (reply.code, reply.stderr.as_str()),
        (Some(0), ""),
        "{reply:?}"
    );
}

fn begin(harness: &Harness, session: &str, prompt: &str) {
    send_as(harness, session, "session_start", &[]);
    send_as(harness, session, "prompt", &[("/prompt", prompt.into())]);
}

fn report(harness: &Harness, session: &str, list: List<'_>) {
    let list = list.iter();
    let list: Vec<Value> = list
        .map(|(title, status)| json!({ "content": title, "status": status }))
        .collect();
    let fields = [("/tool_input/todos", list.into())];
    send_as(harness, session, "task_list", &fields);
}

fn end(harness: &Harness, session: &str) {
    send_as(harness, session, "stop", &[]);
    send_as(harness, session, "session_end", &[]);
}

/// A result of one of Onward's tools.
fn call_onward(harness: &Harness, session: &str, tool: &str, plan: &Value) {
    let fields = [
        ("/tool_name", format!("mcp__onward__{tool}").into()),
        ("/tool_input", json!({ "planId": plan })),
        ("/tool_response", "{}".into()),
    ];
    send_as(harness, session, "task_list", &fields);
}

/// The plans by name, each with its number of steps.
fn names(harness: &Harness) -> Vec<(String, u64)> {
    let mut names: Vec<(String, u64)> = plans(harness)
        .iter()
        .map(|plan| {
            let name = plan["name"].as_str().unwrap().to_owned();
            (name, plan["totalSteps"].as_u64().unwrap())
        })
        .collect();
    names.sort();
    names
}

fn plan(harness: &Harness, name: &str) -> Value {
    let mut plans = plans(harness).into_iter();
    plans.find(|plan| plan["name"] == name).unwrap()
}

const FEATURES: [(&str, &str); 3] = [
    ("Add dark mode", "Add dark mode"),
    ("Add CSV export", "Export to CSV"),
    ("Add a rate limit", "Rate-limit the API"),
];

fn assert_three_plans(harness: &Harness) {
    assert_eq!(names(harness).len(), 3, "{:?}", names(harness));
    for (prompt, feature) in FEATURES {
        assert_steps(
            harness,
            &plan(harness, prompt),
            &[
                ("Explore the code", "completed"),
                (feature, "in_progress"),
                ("Run the tests", "pending"),
            ],
        );
    }
}

fn keeps_three_lists_apart(harness: &Harness) {
    for (session, (prompt, feature)) in ["s1", "s2", "s3"].into_iter().zip(FEATURES) {
        begin(harness, session, prompt);
        report(
            harness,
            session,
            &[
                ("Explore the code", "completed"),
                (feature, "in_progress"),
                ("Run the tests", "pending"),
            ],
        );
        end(harness, session);
    }
    assert_three_plans(harness);
}

#[test]
fn lists_of_different_tasks_with_common_words_are_different_plans() {
    keeps_three_lists_apart(&Harness::new("lists-apart", "claude-code"));
}

#[test]
fn lists_of_different_tasks_are_different_plans_on_postgresql() {
    let database = Cluster::shared().database();
    let harness = Harness::new("lists-postgres", "claude-code").with_database(database);
    keeps_three_lists_apart(&harness);
}

#[test]
fn tasks_that_are_reported_one_at_a_time_are_kept_apart() {
    let harness = Harness::new("lists-tasks", "claude-code");
    for (session, (prompt, feature)) in ["s1", "s2", "s3"].into_iter().zip(FEATURES) {
        begin(&harness, session, prompt);
        for (id, subject) in ["Explore the code", feature, "Run the tests"]
            .iter()
            .enumerate()
        {
            let id = (id + 1).to_string();
            let fields = [
                ("/tool_input/subject", (*subject).into()),
                ("/tool_response/task/subject", (*subject).into()),
                ("/tool_response/task/id", id.into()),
            ];
            send_as(&harness, session, "task_create", &fields);
        }
        for (id, status) in [("1", "completed"), ("2", "in_progress")] {
            let fields = [
                ("/tool_input/taskId", id.into()),
                ("/tool_input/status", status.into()),
            ];
            send_as(&harness, session, "task_update", &fields);
        }
        end(&harness, session);
    }
    assert_three_plans(&harness);
}

#[test]
fn lists_that_differ_in_numbers_and_letters_are_different_plans() {
    let harness = Harness::new("lists-numbers", "claude-code");
    for (number, letter) in ["A", "B", "C", "D", "E", "F"].into_iter().enumerate() {
        let session = format!("s{number}");
        begin(&harness, &session, &format!("Do part {letter}"));
        let titles = [
            format!("Read module {letter}"),
            format!("Fix bug {number}"),
            format!("Run tests {number}"),
        ];
        let statuses = ["completed", "in_progress", "pending"];
        let list: Vec<(&str, &str)> = titles.iter().map(String::as_str).zip(statuses).collect();
        report(&harness, &session, &list);
        end(&harness, &session);
    }
    let expected: Vec<(String, u64)> = ["A", "B", "C", "D", "E", "F"]
        .map(|letter| (format!("Do part {letter}"), 3))
        .to_vec();
    assert_eq!(names(&harness), expected);
    for plan in plans(&harness) {
        assert_eq!(plan["failed"].as_u64().unwrap_or_default(), 0, "{plan}");
    }
}

#[test]
fn a_later_session_changes_no_step_of_the_plan_that_it_continues() {
    let harness = Harness::new("lists-continued", "claude-code");
    begin(&harness, "s1", "Report about tides");
    report(
        &harness,
        "s1",
        &[
            ("Collect the tables", "completed"),
            ("Compare the phases of the moon", "in_progress"),
            ("Draw a chart of the harbour", "pending"),
            ("Run the tests", "pending"),
        ],
    );
    end(&harness, "s1");
    begin(&harness, "s2", "resume");
    report(
        &harness,
        "s2",
        &[
            ("Finish comparing the moon phases", "in_progress"),
            ("Publish", "pending"),
        ],
    );
    assert_eq!(names(&harness).len(), 1);
    let tides = plan(&harness, "Report about tides");
    let expected = [
        ("Collect the tables", "completed"),
        ("Compare the phases of the moon", "in_progress"),
        ("Draw a chart of the harbour", "pending"),
        ("Run the tests", "pending"),
        ("Publish", "pending"),
    ];
    assert_steps(&harness, &tides, &expected);
    // The first session has ended, so the second one holds the step now.
    let sessions = harness.run_json(&["session", "list", "--json"]);
    let sessions = sessions["sessions"].as_array().unwrap();
    let current = sessions.iter().find(|session| session["sessionId"] == "s2");
    assert_eq!(current.unwrap()["planId"], tides["planId"], "{sessions:?}");
    // The second session renames and removes its own step.
    report(
        &harness,
        "s2",
        &[("Finish comparing the moon phases", "completed")],
    );
    let expected = [
        ("Collect the tables", "completed"),
        ("Compare the phases of the moon", "completed"),
        ("Draw a chart of the harbour", "pending"),
        ("Run the tests", "pending"),
    ];
    assert_steps(&harness, &tides, &expected);
}

const OPEN: List<'static> = &[
    ("Collect the tables", "completed"),
    ("Compare the phases of the moon", "in_progress"),
    ("Run the tests", "pending"),
];
const REWRITTEN: List<'static> = &[
    ("Lunar cycles", "pending"),
    ("Harbour charts", "pending"),
    ("Summary", "pending"),
];

#[test]
fn a_session_that_took_up_the_offer_continues_the_plan() {
    for (tool, continues) in [
        ("get_research_context", true),
        ("get_next_step", true),
        ("get_plan_status", false),
    ] {
        let harness = Harness::new("lists-taken-up", "claude-code");
        begin(&harness, "s1", "Report about tides");
        report(&harness, "s1", OPEN);
        end(&harness, "s1");
        let tides = plan(&harness, "Report about tides");
        begin(&harness, "s2", "What is open?");
        call_onward(&harness, "s2", tool, &tides["planId"]);
        report(&harness, "s2", REWRITTEN);
        assert_eq!(names(&harness).len() == 1, continues, "{tool}");
        let mut expected = OPEN.to_vec();
        if continues {
            expected.extend(REWRITTEN);
        }
        assert_steps(&harness, &tides, &expected);
        // Another task in a later turn is another plan.
        send_as(&harness, "s2", "stop", &[]);
        send_as(
            &harness,
            "s2",
            "prompt",
            &[("/prompt", "Add a rate limit".into())],
        );
        let other = [
            ("Rate-limit the API", "in_progress"),
            ("Run the tests", "pending"),
            ("Document the headers", "pending"),
        ];
        report(&harness, "s2", &other);
        let before = if continues { 1 } else { 2 };
        assert_eq!(names(&harness).len(), before + 1, "{tool}");
        assert_steps(&harness, &plan(&harness, "Add a rate limit"), &other);
    }
}

#[test]
fn a_prompt_that_names_the_plan_continues_it() {
    let harness = Harness::new("lists-named", "claude-code");
    begin(&harness, "s1", "Report about tides");
    report(&harness, "s1", OPEN);
    begin(&harness, "s2", "Please continue the report about tides");
    report(&harness, "s2", REWRITTEN);
    let expected = [OPEN, REWRITTEN].concat();
    assert_eq!(names(&harness).len(), 1);
    assert_steps(&harness, &plan(&harness, "Report about tides"), &expected);
}

#[test]
fn starting_and_stopping_a_task_never_fails_its_step() {
    let harness = Harness::new("lists-toggled", "claude-code");
    begin(&harness, "s1", "Report about tides");
    for _ in 0..6 {
        for status in ["in_progress", "pending"] {
            let list = [
                ("Compare the phases", status),
                ("Collect", "pending"),
                ("Write", "pending"),
            ];
            report(&harness, "s1", &list);
            assert_steps(&harness, &plan(&harness, "Report about tides"), &list);
        }
    }
}

#[test]
fn another_list_of_the_same_session_removes_no_step() {
    let harness = Harness::new("lists-same-session", "claude-code");
    for (prompt, feature) in FEATURES {
        send_as(&harness, "s1", "prompt", &[("/prompt", prompt.into())]);
        report(
            &harness,
            "s1",
            &[
                ("Explore the code", "pending"),
                (feature, "in_progress"),
                ("Run the tests", "pending"),
            ],
        );
        send_as(&harness, "s1", "stop", &[]);
    }
    assert_eq!(names(&harness).len(), 3);
    for (prompt, feature) in FEATURES {
        let steps = crate::capture::steps(&harness, &plan(&harness, prompt));
        assert!(steps.iter().any(|(title, _)| title == feature), "{steps:?}");
    }
}
