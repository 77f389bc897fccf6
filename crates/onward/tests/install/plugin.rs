//! The plugin for opencode, run by Node where there is one: what its hooks do with our answers.

use std::process::Command;

use crate::home::Home;

/// Calls the plugin's hooks as opencode does, and prints what becomes of it.
const OPENCODE: &str = r#"
import { Onward } from "./onward.mjs"
const aborted = []
const shown = []
const client = {
  session: { abort: async (what) => { aborted.push(what.path.id) } },
  tui: { showToast: async (what) => { shown.push(what.body.message) } },
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
// A tool that throws is told of in an event, once as it fails and once before.
for (const status of ["running", "error"]) {
  const state = { status, input: { command: "true" }, error: "" }
  const part = { type: "tool", tool: "bash", callID: "thrown", sessionID, state }
  await hooks.event({ event: { type: "message.part.updated", properties: { sessionID, part } } })
}
// The tools of servers answer with parts.
const parts = []
for (let n = 5; n < 7; n++) {
  const input = { tool: "bash", sessionID, callID: `call_${n}`, args: { command: "true" } }
  const output = { content: [{ type: "text", text: "" }], isError: false }
  await hooks["tool.execute.after"](input, output)
  parts.push(output.content.map((part) => part.text))
}
const refused = []
for (let n = 0; n < 3; n++) {
  try {
    const input = { tool: "bash", sessionID, callID: `late_${n}` }
    await hooks["tool.execute.before"](input, { args: { command: "ls" } })
    refused.push(null)
  } catch (why) {
    refused.push(why.message)
  }
}
await hooks.event({ event: { type: "session.idle", properties: { sessionID } } })
console.log(JSON.stringify({ outputs, parts, refused, aborted, shown }))
"#;

#[test]
fn the_plugin_nudges_refuses_and_aborts() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let home = Home::new("plugin");
    home.done(&["opencode"]);
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
    let said: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(said["outputs"][0], "(no output)");
    assert!(
        said["outputs"][3]
            .as_str()
            .unwrap()
            .contains("In the last 4 steps")
    );
    assert_eq!(said["parts"][0], serde_json::json!([""]));
    assert!(
        said["parts"][1][1]
            .as_str()
            .unwrap()
            .contains("In the last 8 steps"),
        "{said}"
    );
    for refused in said["refused"].as_array().unwrap() {
        assert!(
            refused.as_str().unwrap().starts_with("Tools are closed"),
            "{refused}"
        );
    }
    assert_eq!(said["aborted"], serde_json::json!(["ses_1"]));
    let shown = said["shown"][0].as_str().unwrap();
    assert!(shown.starts_with("Onward stopped this turn"), "{shown}");
}

#[test]
fn a_binary_that_is_gone_holds_up_nobody() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let home = Home::new("plugin-alone");
    home.done(&["opencode"]);
    let plugin = home.read(".config/opencode/plugins/onward.js");
    let plugin = plugin.replace(env!("CARGO_BIN_EXE_onward"), "/nowhere/onward");
    assert!(plugin.contains("/nowhere/onward"));
    home.write("project/onward.mjs", &plugin);
    home.write("project/opencode.mjs", OPENCODE);
    let run = Command::new("node")
        .arg("opencode.mjs")
        .current_dir(home.path("project"))
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(said["refused"], serde_json::json!([null, null, null]));
    assert_eq!(said["outputs"][4], "(no output)");
}
