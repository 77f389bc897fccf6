//! The plugin for opencode, run by Node if it is installed.

use std::process::Command;

use onward_core::turn::ExternalChange;
use onward_core::turn::escalation::{self, EscalationState, REJECTION_PREFIX, TextOnlyReason};
use serde_json::{Value, json};

use crate::home::Home;

/// Calls the plugin's hooks as opencode does, and prints the effects as JSON.
const OPENCODE: &str = r#"
import { Onward } from "./onward.mjs"
const aborted = []
const toasts = []
const client = {
  session: { abort: async (request) => { aborted.push(request.path.id) } },
  tui: { showToast: async (request) => { toasts.push(request.body.message) } },
}
const hooks = await Onward({ client, directory: process.cwd() })
const sessionID = "ses_1"
await hooks.event({ event: { type: "session.created", properties: { info: { id: sessionID } } } })
await hooks["chat.message"]({ sessionID }, {})
const outputs = []
for (let n = 0; n < 5; n++) {
  const input = { tool: "bash", sessionID, callID: `call_${n}`, args: { command: "true" } }
  const output = { title: "", output: "(no output)", metadata: { exit: 0 } }
  await hooks["tool.execute.after"](input, output)
  outputs.push(output.output)
}
// A tool that throws is reported by events only: one while it runs, one when it fails.
for (const status of ["running", "error"]) {
  const state = { status, input: { command: "true" }, error: "" }
  const part = { type: "tool", tool: "bash", callID: "thrown", sessionID, state }
  await hooks.event({ event: { type: "message.part.updated", properties: { sessionID, part } } })
}
// Tools of MCP servers return parts.
const parts = []
for (let n = 5; n < 7; n++) {
  const input = { tool: "bash", sessionID, callID: `call_${n}`, args: { command: "true" } }
  const output = { content: [{ type: "text", text: "" }], isError: false }
  await hooks["tool.execute.after"](input, output)
  parts.push(output.content.map((part) => part.text))
}
const errors = []
for (let n = 0; n < 3; n++) {
  try {
    const input = { tool: "bash", sessionID, callID: `late_${n}` }
    await hooks["tool.execute.before"](input, { args: { command: "ls" } })
    errors.push(null)
  } catch (error) {
    errors.push(error.message)
  }
}
await hooks.event({ event: { type: "session.idle", properties: { sessionID } } })
console.log(JSON.stringify({ outputs, parts, errors, aborted, toasts }))
"#;

#[test]
fn nudges_rejects_calls_and_aborts_the_session() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let home = Home::new("plugin");
    home.install(&["opencode"]);
    let plugin = home.read(".config/opencode/plugins/onward.js");
    home.write("project/onward.mjs", &plugin);
    home.write("project/opencode.mjs", OPENCODE);
    let run = Command::new("node")
        .arg("opencode.mjs")
        .current_dir(home.path("project"))
        .env("HOME", home.path(""))
        .env("ONWARD_DATABASE", home.path("onward.db"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let effects: Value = serde_json::from_slice(&run.stdout).unwrap();
    let state = |idle_steps, text_only| EscalationState {
        idle_steps,
        text_only,
        ..EscalationState::default()
    };
    let nudge = escalation::nudge(&state(4, None), ExternalChange::Unknown);
    assert_eq!(
        effects["outputs"].as_array().unwrap()[..4],
        [
            json!("(no output)"),
            json!("(no output)"),
            json!("(no output)"),
            json!(format!("(no output)\n\n{nudge}"))
        ]
    );
    let stalled = state(8, Some(TextOnlyReason::Stalled));
    assert_eq!(effects["parts"][0], json!([""]));
    assert!(effects["parts"][1][1].is_string(), "{effects}");
    for error in effects["errors"].as_array().unwrap() {
        let error = error.as_str().unwrap();
        assert!(error.starts_with(REJECTION_PREFIX), "{error}");
    }
    assert_eq!(effects["aborted"], json!(["ses_1"]));
    let toast = effects["toasts"][0].as_str().unwrap();
    assert!(toast.contains(&escalation::for_user(&stalled)), "{toast}");
}

#[test]
fn a_missing_binary_has_no_effect_on_the_agent() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let home = Home::new("plugin-without-binary");
    home.install(&["opencode"]);
    let plugin = home.read(".config/opencode/plugins/onward.js");
    let plugin = plugin.replace(env!("CARGO_BIN_EXE_onward"), "/missing/onward");
    assert!(plugin.contains("/missing/onward"));
    home.write("project/onward.mjs", &plugin);
    home.write("project/opencode.mjs", OPENCODE);
    let run = Command::new("node")
        .arg("opencode.mjs")
        .current_dir(home.path("project"))
        .output()
        .unwrap();
    let effects: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(effects["errors"], json!([null, null, null]));
    assert_eq!(effects["outputs"][4], "(no output)");
}

/// Resumes a session as opencode does: without creating it, in a separate process.
const RESUMED: &str = r#"
import { Onward } from "./onward.mjs"
const hooks = await Onward({ client: {}, directory: process.cwd() })
const parts = []
for (let n = 0; n < 2; n++) {
  const output = { message: {}, parts: [{ type: "text", text: "continue" }] }
  await hooks["chat.message"]({ sessionID: "ses_1" }, output)
  parts.push(output.parts[0].text)
}
console.log(JSON.stringify(parts))
"#;

#[test]
fn reports_interrupted_calls_to_the_model_of_a_resumed_session() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let home = Home::new("plugin-resumed");
    let database = home.path("fixed.db");
    home.install(&["opencode", "--database", database.to_str().unwrap()]);
    let plugin = home.read(".config/opencode/plugins/onward.js");
    home.write("project/onward.mjs", &plugin);
    home.write(
        "project/first.mjs",
        r#"
import { Onward } from "./onward.mjs"
const hooks = await Onward({ client: {}, directory: process.cwd() })
const sessionID = "ses_1"
await hooks["chat.message"]({ sessionID }, { parts: [{ type: "text", text: "deploy" }] })
const input = { tool: "bash", sessionID, callID: "call_1" }
await hooks["tool.execute.before"](input, { args: { command: "make deploy" } })
"#,
    );
    home.write("project/resumed.mjs", RESUMED);
    let run = |script: &str| {
        let run = Command::new("node")
            .arg(script)
            .current_dir(home.path("project"))
            .env("HOME", home.path(""))
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        run.stdout
    };
    run("first.mjs");
    let prompts: Vec<String> = serde_json::from_slice(&run("resumed.mjs")).unwrap();
    assert!(prompts[0].starts_with("continue\n\n"), "{prompts:?}");
    assert!(prompts[0].contains("make deploy"), "{prompts:?}");
    assert_eq!(prompts[1], "continue");
}
