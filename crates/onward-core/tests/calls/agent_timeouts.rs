//! The timeouts of each agent's tools: one case per row of its table, the environment and the
//! configuration.

use std::collections::BTreeSet;
use std::time::Duration;

use onward_core::call::agent::{table, waits_for_agent};
use onward_core::call::{CallTimeouts, Limit};
use serde_json::{Value, json};

const NEVER: Limit = Limit::Never;

fn after(seconds: u64) -> Limit {
    Limit::After(Duration::from_secs(seconds))
}

fn yields(seconds: u64) -> Limit {
    Limit::Yields(Duration::from_secs(seconds))
}

/// Checks an agent's table: every row, with and without a timeout in the input.
#[track_caller]
fn assert_table(agent: &str, cases: &[(&str, Value, Limit)]) {
    let mut tested = BTreeSet::new();
    for (row, input, limit) in cases {
        let tool = row.replace('*', "server__tool");
        assert_eq!(
            Limit::for_call(agent, &tool, input),
            *limit,
            "{tool} {input}"
        );
        tested.insert(*row);
    }
    let rows: BTreeSet<&str> = table(agent).iter().map(|row| row.tool).collect();
    assert_eq!(tested, rows);
}

#[test]
fn claude_code() {
    assert_table(
        "claude-code",
        &[
            ("Bash", json!({}), after(120)),
            ("Bash", json!({ "timeout": 300_000 }), after(300)),
            ("Bash", json!({ "timeout": 9_000_000 }), after(600)),
            ("PowerShell", json!({}), after(120)),
            ("TaskOutput", json!({}), after(30)),
            ("TaskOutput", json!({ "timeout": 60_000 }), after(60)),
            ("mcp__*", json!({}), after(100_000)),
            ("Agent", json!({}), NEVER),
            ("Task", json!({ "timeout": 5 }), NEVER),
            ("Workflow", json!({}), NEVER),
            ("Skill", json!({}), NEVER),
            ("AskUserQuestion", json!({}), NEVER),
            ("EnterPlanMode", json!({}), NEVER),
            ("ExitPlanMode", json!({}), NEVER),
        ],
    );
}

#[test]
fn codex() {
    assert_table(
        "codex",
        &[
            ("Bash", json!({ "command": "make" }), yields(10)),
            (
                "exec_command",
                json!({ "yield_time_ms": 30_000 }),
                yields(30),
            ),
            ("shell", json!({}), yields(10)),
            ("shell", json!({ "timeout_ms": 60_000 }), after(60)),
            ("shell_command", json!({}), yields(10)),
            ("local_shell", json!({}), yields(10)),
            ("exec", json!({}), yields(10)),
            ("write_stdin", json!({}), after(300)),
            ("write_stdin", json!({ "yield_time_ms": 1_000 }), after(1)),
            ("mcp__*", json!({}), after(300)),
            ("spawn_agent", json!({}), NEVER),
            ("spawn_agents_on_csv", json!({}), NEVER),
            ("wait_agent", json!({ "timeout_ms": 1 }), NEVER),
            ("wait", json!({}), NEVER),
            ("send_input", json!({}), NEVER),
            ("resume_agent", json!({}), NEVER),
            ("followup_task", json!({}), NEVER),
            ("request_user_input", json!({}), NEVER),
            ("request_permissions", json!({}), NEVER),
        ],
    );
}

#[test]
fn gemini() {
    assert_table(
        "gemini",
        &[
            (
                "run_shell_command",
                json!({ "command": "make" }),
                after(300),
            ),
            ("mcp_*", json!({}), after(600)),
            ("invoke_agent", json!({}), NEVER),
            ("delegate_to_agent", json!({}), NEVER),
            ("codebase_investigator", json!({}), NEVER),
            ("generalist", json!({}), NEVER),
            ("browser_agent", json!({}), NEVER),
            ("cli_help", json!({}), NEVER),
            ("ask_user", json!({}), NEVER),
            ("enter_plan_mode", json!({}), NEVER),
            ("exit_plan_mode", json!({}), NEVER),
        ],
    );
}

#[test]
fn kimi() {
    assert_table(
        "kimi",
        &[
            ("Bash", json!({}), after(60)),
            ("Bash", json!({ "timeout": 200 }), after(200)),
            ("Bash", json!({ "timeout": 3_600 }), after(300)),
            ("mcp__*", json!({}), after(60)),
            ("Agent", json!({}), NEVER),
            ("AgentSwarm", json!({}), NEVER),
            ("Workflow", json!({}), NEVER),
            ("Skill", json!({}), NEVER),
            ("WaitFor", json!({ "timeout": 600 }), NEVER),
            ("AskUserQuestion", json!({}), NEVER),
            ("EnterPlanMode", json!({}), NEVER),
            ("ExitPlanMode", json!({}), NEVER),
        ],
    );
}

#[test]
fn opencode() {
    assert_table(
        "opencode",
        &[
            ("bash", json!({}), after(120)),
            ("bash", json!({ "timeout": 3_600_000 }), after(3_600)),
            ("webfetch", json!({}), after(30)),
            ("webfetch", json!({ "timeout": 60 }), after(60)),
            ("webfetch", json!({ "timeout": 600 }), after(120)),
            ("task", json!({}), NEVER),
            ("question", json!({}), NEVER),
            ("plan_enter", json!({}), NEVER),
            ("plan_exit", json!({}), NEVER),
        ],
    );
}

#[test]
fn cursor() {
    let tools = ["Task", "AskQuestion", "SwitchMode", "CreatePlan"];
    assert_table("cursor", &tools.map(|tool| (tool, json!({}), NEVER)));
}

#[test]
fn other_agents() {
    let untimed = table("").iter().map(|row| row.tool);
    let timed = ["Bash", "bash", "TaskOutput", "run_shell_command", "mcp__*"];
    let mut cases: Vec<_> = untimed
        .filter(|tool| !timed.contains(tool))
        .map(|tool| (tool, json!({}), NEVER))
        .collect();
    cases.extend([
        ("Bash", json!({}), Limit::Unspecified),
        ("Bash", json!({ "timeout": 5_000 }), after(5)),
        ("bash", json!({ "timeout": 5_000 }), after(5)),
        ("TaskOutput", json!({ "timeout": 5_000 }), after(5)),
        ("run_shell_command", json!({}), after(300)),
        ("mcp__*", json!({}), after(100_000)),
    ]);
    assert_table("proxy", &cases);
}

fn with_variables(variables: &[(&str, &str)]) -> CallTimeouts {
    let variables = variables.iter();
    CallTimeouts {
        variables: variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..CallTimeouts::default()
    }
}

#[test]
fn the_agents_environment_sets_defaults_and_maxima() {
    let timeouts = with_variables(&[
        ("BASH_DEFAULT_TIMEOUT_MS", "900000"),
        ("MCP_TOOL_TIMEOUT", "5000"),
        ("OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS", "7000"),
    ]);
    let limit = |agent, tool, input| timeouts.limit(agent, tool, &input);
    assert_eq!(limit("claude-code", "Bash", json!({})), after(900));
    // The default raises the maximum of 600 s.
    let long = json!({ "timeout": 3_600_000 });
    assert_eq!(limit("claude-code", "Bash", long.clone()), after(900));
    assert_eq!(limit("claude-code", "mcp__a__b", json!({})), after(5));
    assert_eq!(limit("opencode", "bash", json!({})), after(7));
    assert_eq!(limit("kimi", "Bash", json!({})), after(60));
    let timeouts = with_variables(&[("BASH_MAX_TIMEOUT_MS", "1800000")]);
    assert_eq!(timeouts.limit("claude-code", "Bash", &long), after(1_800));
    for invalid in ["", "soon", "0", "-1"] {
        let timeouts = with_variables(&[("BASH_DEFAULT_TIMEOUT_MS", invalid)]);
        let limit = timeouts.limit("claude-code", "Bash", &json!({}));
        assert_eq!(limit, after(120), "{invalid}");
    }
}

#[test]
fn the_configuration_sets_timeouts_per_tool_and_agent() {
    let rules = [
        "kimi/Bash=90000",
        "Bash=600000",
        "mcp__slow__*=0",
        "codex/*=20000",
    ];
    let timeouts = CallTimeouts {
        default: Some(Duration::from_secs(45)),
        rules: rules.map(|rule| rule.parse().unwrap()).into(),
        ..CallTimeouts::default()
    };
    for (agent, tool, input, limit) in [
        ("kimi", "Bash", json!({}), after(90)),
        ("claude-code", "Bash", json!({}), after(600)),
        ("claude-code", "Bash", json!({ "timeout": 5_000 }), after(5)),
        ("claude-code", "mcp__slow__x", json!({}), NEVER),
        ("claude-code", "mcp__fast__x", json!({}), after(100_000)),
        ("codex", "apply_patch", json!({}), after(20)),
        ("gemini", "read_file", json!({}), after(45)),
        ("gemini", "ask_user", json!({}), NEVER),
    ] {
        assert_eq!(timeouts.limit(agent, tool, &input), limit, "{agent} {tool}");
    }
}

#[test]
fn rejects_an_invalid_rule() {
    use onward_core::call::TimeoutRule;
    for rule in [
        "", "Bash", "Bash=", "Bash=-1", "Bash=1s", "=5", "kimi/=5", "/Bash=5",
    ] {
        assert!(rule.parse::<TimeoutRule>().is_err(), "{rule}");
    }
}

#[test]
fn distinguishes_subagents_from_questions() {
    assert!(waits_for_agent("kimi", "AgentSwarm"));
    assert!(waits_for_agent("proxy", "Task"));
    assert!(!waits_for_agent("kimi", "AskUserQuestion"));
    assert!(!waits_for_agent("kimi", "Bash"));
}
