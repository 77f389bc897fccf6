//! Timeouts of the agents' tools: one table per agent. Each row names the source of its figures.
//!
//! A tool that is not in the table of its agent has the default timeout. A row that ends with `*`
//! applies to all tools with that beginning.

use std::time::Duration;

/// The timeout of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultTimeout {
    /// The default timeout.
    Unspecified,
    /// The agent stops waiting after this time.
    After(Duration),
    /// The agent answers the model after this time, and the tool continues in the background.
    Yields(Duration),
    /// None: another agent works on it.
    Subagent,
    /// None: a user answers it.
    Question,
}

/// A row of an agent's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToolTimeout {
    /// The name of the tool; `*` at the end matches any rest.
    pub tool: &'static str,
    /// The timeout if neither the input nor the environment has one.
    pub default: DefaultTimeout,
    /// The environment variable with the default in milliseconds.
    pub variable: Option<&'static str>,
    /// The field of the input with the timeout of a call, and its unit in milliseconds.
    pub field: Option<(&'static str, f64)>,
    /// The maximum of the field.
    pub max: Option<Duration>,
    /// The environment variable with the maximum in milliseconds.
    pub max_variable: Option<&'static str>,
}

const MILLISECONDS: f64 = 1.0;
const SECONDS: f64 = 1000.0;

const fn after(tool: &'static str, seconds: u64) -> ToolTimeout {
    row(tool, DefaultTimeout::After(Duration::from_secs(seconds)))
}

const fn yields(tool: &'static str, seconds: u64) -> ToolTimeout {
    row(tool, DefaultTimeout::Yields(Duration::from_secs(seconds)))
}

const fn subagent(tool: &'static str) -> ToolTimeout {
    row(tool, DefaultTimeout::Subagent)
}

const fn question(tool: &'static str) -> ToolTimeout {
    row(tool, DefaultTimeout::Question)
}

const fn row(tool: &'static str, default: DefaultTimeout) -> ToolTimeout {
    ToolTimeout {
        tool,
        default,
        variable: None,
        field: None,
        max: None,
        max_variable: None,
    }
}

impl ToolTimeout {
    const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    const fn field(mut self, name: &'static str, unit: f64) -> Self {
        self.field = Some((name, unit));
        self
    }

    const fn max(mut self, seconds: u64) -> Self {
        self.max = Some(Duration::from_secs(seconds));
        self
    }

    const fn max_variable(mut self, name: &'static str) -> Self {
        self.max_variable = Some(name);
        self
    }

    fn applies_to(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(beginning) => tool.starts_with(beginning),
            None => tool == self.tool,
        }
    }
}

/// Claude Code. Source: its documentation (settings reference, environment variables
/// `BASH_DEFAULT_TIMEOUT_MS`, `BASH_MAX_TIMEOUT_MS` and `MCP_TOOL_TIMEOUT`; tools reference).
const CLAUDE_CODE: &[ToolTimeout] = &[
    // 2 minutes, at most 10.
    claude_shell("Bash"),
    claude_shell("PowerShell"),
    // Waits for a background task: 30 s, at most 10 minutes.
    after("TaskOutput", 30)
        .field("timeout", MILLISECONDS)
        .max(600),
    // About 28 hours.
    after("mcp__*", 100_000).variable("MCP_TOOL_TIMEOUT"),
    subagent("Agent"),
    subagent("Task"),
    subagent("Workflow"),
    // A skill may run in a subagent.
    subagent("Skill"),
    question("AskUserQuestion"),
    question("EnterPlanMode"),
    question("ExitPlanMode"),
];

const fn claude_shell(tool: &'static str) -> ToolTimeout {
    after(tool, 120)
        .variable("BASH_DEFAULT_TIMEOUT_MS")
        .field("timeout", MILLISECONDS)
        .max(600)
        .max_variable("BASH_MAX_TIMEOUT_MS")
}

/// Codex CLI 0.166. Source: `codex-rs`, with the names of its hooks.
const CODEX: &[ToolTimeout] = &[
    // `core/src/tools/handlers/unified_exec`: the model is answered after `yield_time_ms`, 10 s by
    // default, and the command continues. Hooks call every shell tool `Bash`.
    codex_shell("Bash"),
    codex_shell("exec_command"),
    codex_shell("shell"),
    codex_shell("shell_command"),
    codex_shell("local_shell"),
    // `code-mode-protocol/src/runtime.rs`: `DEFAULT_EXEC_YIELD_TIME_MS`.
    codex_shell("exec"),
    // Configuration reference, `background_terminal_max_timeout`: 5 minutes.
    after("write_stdin", 300).field("yield_time_ms", MILLISECONDS),
    // `codex-mcp`: `DEFAULT_TOOL_TIMEOUT`.
    after("mcp__*", 300),
    // `core/src/tools/handlers/multi_agents*` and `agent_jobs`.
    subagent("spawn_agent"),
    subagent("spawn_agents_on_csv"),
    subagent("wait_agent"),
    subagent("wait"),
    subagent("send_input"),
    subagent("resume_agent"),
    subagent("followup_task"),
    // `core/src/tools/handlers/request_user_input.rs` and `request_permissions.rs`.
    question("request_user_input"),
    question("request_permissions"),
];

const fn codex_shell(tool: &'static str) -> ToolTimeout {
    yields(tool, 10).field("yield_time_ms", MILLISECONDS)
}

/// Gemini CLI 0.61. Source: `packages/core/src`.
const GEMINI: &[ToolTimeout] = &[
    // `config/config.ts`: `shellToolInactivityTimeout`, without output.
    after("run_shell_command", 300),
    // `tools/mcp-client.ts`: `MCP_DEFAULT_TIMEOUT_MSEC`.
    after("mcp_*", 600),
    // `tools/tool-names.ts`; the agents of `agents/registry.ts` are tools as well.
    subagent("invoke_agent"),
    subagent("delegate_to_agent"),
    subagent("codebase_investigator"),
    subagent("generalist"),
    subagent("browser_agent"),
    subagent("cli_help"),
    question("ask_user"),
    question("enter_plan_mode"),
    question("exit_plan_mode"),
];

/// Kimi Code 2.1. Source: `packages/agent-core-v2/src`.
const KIMI: &[ToolTimeout] = &[
    // `tools/shell/bash`: `DEFAULT_TIMEOUT_S` and `MAX_TIMEOUT_S`, in seconds.
    after("Bash", 60).field("timeout", SECONDS).max(300),
    // The default of the MCP SDK, unless `toolTimeoutMs` is configured; not tried.
    after("mcp__*", 60),
    subagent("Agent"),
    subagent("AgentSwarm"),
    subagent("Workflow"),
    subagent("Skill"),
    // Waits for background tasks and agents, up to 10 minutes at a time.
    subagent("WaitFor"),
    question("AskUserQuestion"),
    question("EnterPlanMode"),
    question("ExitPlanMode"),
];

/// opencode 1.18. Source: `packages/opencode/src/tool`. Its MCP tools have no common prefix.
const OPENCODE: &[ToolTimeout] = &[
    // `shell.ts`: 2 minutes, no maximum.
    after("bash", 120)
        .variable("OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS")
        .field("timeout", MILLISECONDS),
    // `webfetch.ts`: `MAX_TIMEOUT`, in seconds; the default was not checked.
    after("webfetch", 30).field("timeout", SECONDS).max(120),
    subagent("task"),
    question("question"),
    question("plan_enter"),
    question("plan_exit"),
];

/// Cursor. Source: the tool names of its hooks reference; it documents no timeouts.
const CURSOR: &[ToolTimeout] = &[
    subagent("Task"),
    question("AskQuestion"),
    question("SwitchMode"),
    question("CreatePlan"),
];

/// Agents without a table: a harness, or an agent behind the proxy that is not recognized. Only
/// names with one meaning in all agents.
const OTHERS: &[ToolTimeout] = &[
    // Milliseconds in every agent but Kimi, where an equal number is shorter.
    row("Bash", DefaultTimeout::Unspecified).field("timeout", MILLISECONDS),
    row("bash", DefaultTimeout::Unspecified).field("timeout", MILLISECONDS),
    row("TaskOutput", DefaultTimeout::Unspecified).field("timeout", MILLISECONDS),
    after("run_shell_command", 300),
    after("mcp__*", 100_000),
    subagent("Agent"),
    subagent("AgentSwarm"),
    subagent("Task"),
    subagent("WaitFor"),
    subagent("Workflow"),
    subagent("invoke_agent"),
    subagent("spawn_agent"),
    subagent("task"),
    subagent("wait_agent"),
    question("AskQuestion"),
    question("AskUserQuestion"),
    question("EnterPlanMode"),
    question("ExitPlanMode"),
    question("ask_question"),
    question("ask_user"),
    question("exit_plan_mode"),
    question("question"),
    question("request_user_input"),
];

/// The table of an agent.
pub fn table(agent: &str) -> &'static [ToolTimeout] {
    match agent {
        "claude-code" => CLAUDE_CODE,
        "codex" => CODEX,
        "gemini" => GEMINI,
        "kimi" => KIMI,
        "opencode" => OPENCODE,
        "cursor" => CURSOR,
        _ => OTHERS,
    }
}

/// The environment variables of all tables.
pub fn variables() -> impl Iterator<Item = &'static str> {
    let tables = [CLAUDE_CODE, CODEX, GEMINI, KIMI, OPENCODE, CURSOR, OTHERS];
    let rows = tables.into_iter().flatten();
    rows.flat_map(|row| [row.variable, row.max_variable])
        .flatten()
}

/// The row of a tool, if its agent's table has one.
pub fn tool_timeout(agent: &str, tool: &str) -> Option<&'static ToolTimeout> {
    table(agent).iter().find(|row| row.applies_to(tool))
}

/// Whether the tool waits for another agent.
pub fn waits_for_agent(agent: &str, tool: &str) -> bool {
    tool_timeout(agent, tool).is_some_and(|row| row.default == DefaultTimeout::Subagent)
}
