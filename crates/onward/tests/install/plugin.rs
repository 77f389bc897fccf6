//! The plugin for opencode, run by Node where there is one: what its hooks do with our answers.

use std::process::Command;

use crate::home::Home;

/// Calls the plugin's hooks as opencode does, and prints what becomes of it.
const OPENCODE: &str = r#"
import { Onward } from "./onward.mjs"
const aborted = []
const client = { session: { abort: async (what) => { aborted.push(what.path.id) } } }
const hooks = await Onward({ client, directory: process.cwd() })
const sessionID = "ses_1"
await hooks.event({ event: { type: "session.created", properties: { info: { id: sessionID } } } })
await hooks["chat.message"]({ sessionID }, {})
const outputs = []
for (let n = 0; n < 8; n++) {
  const input = { tool: "bash", sessionID, callID: `call_${n}`, args: { command: "true" } }
  const output = { title: "", output: "(no output)", metadata: { exit: 0 } }
  await hooks["tool.execute.after"](input, output)
  outputs.push(output.output)
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
console.log(JSON.stringify({ outputs, refused, aborted }))
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
    for refused in said["refused"].as_array().unwrap() {
        assert!(
            refused.as_str().unwrap().starts_with("Tools are closed"),
            "{refused}"
        );
    }
    assert_eq!(said["aborted"], serde_json::json!(["ses_1"]));
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
    assert_eq!(said["outputs"][7], "(no output)");
}
