//! A custom agent loop that ends a model's loop with a text answer:
//! `cargo run -p onward-core --example text_only_step`.
//!
//! The model and its tools are scripted. The loop passes each step to the detector and escalates: a
//! nudge at half the threshold, then the reminder and one step without tools. A test compares the
//! output with `text_only_step.txt`.

use std::io::{self, Write};

use onward_core::turn::{Call, ExternalChange, Observation, ProgressDetector, TurnPolicy, Verdict};
use serde_json::{Value, json};

/// A model response.
enum Reply {
    Call(&'static str, Value),
    Text(&'static str),
}

/// A model that reads one file and then makes no progress while it has tools.
struct Model {
    script: std::vec::IntoIter<(&'static str, Value)>,
}

impl Model {
    fn new() -> Self {
        let bash = |command: &str| ("Bash", json!({ "command": command }));
        let script = vec![
            ("Read", json!({ "file_path": "tides.md" })),
            bash("cat notes/moon.md"),
            bash("echo 'I am going to look into the second tide now.'"),
            bash("true"),
            ("Read", json!({ "file_path": "tides.md" })),
            bash("grep -rn 'second tide' notes/"),
            bash("git status --short"),
            bash("cat notes/moon.md"),
            bash("sleep 1"),
            bash("grep -rn 'two tides' notes/"),
            bash("true"),
            bash("true"),
            bash("true"),
        ];
        Model {
            script: script.into_iter(),
        }
    }

    fn step(&mut self, tools: bool) -> Reply {
        match self.script.next().filter(|_| tools) {
            Some((tool, input)) => Reply::Call(tool, input),
            None => Reply::Text(
                "Known: the Moon causes one tide. Tried: the notes, which do not mention a second \
                 one. Needed: a source, or permission to search the web.",
            ),
        }
    }
}

/// Runs a tool. Returns whether it succeeded, and the output.
fn run_tool(tool: &str, input: &Value) -> (bool, &'static str) {
    let command = input.get("command").and_then(Value::as_str).unwrap_or("");
    match (tool, command) {
        ("Read", _) => (
            true,
            "The Moon pulls at the sea, and the sea rises beneath it once a day.",
        ),
        (_, "cat notes/moon.md") => (false, "cat: notes/moon.md: No such file or directory"),
        (_, "git status --short") => (true, ""),
        (_, line) if line.starts_with("echo") => {
            (true, "I am going to look into the second tide now.")
        }
        _ => (true, ""),
    }
}

/// Runs one turn and prints each step.
pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    let mut model = Model::new();
    let mut detector = ProgressDetector::new(TurnPolicy::default());
    let (mut tools, mut nudged) = (true, false);
    for number in 1.. {
        let (tool, input) = match model.step(tools) {
            Reply::Call(tool, input) => (tool, input),
            Reply::Text(answer) => {
                let end = Observation {
                    calls: &[],
                    external: ExternalChange::Unchanged,
                    tree: None,
                    at: None,
                    background: false,
                };
                assert_eq!(detector.observe(&end), Verdict::Ended);
                return writeln!(out, "{number:>2}  {answer}");
            }
        };
        let (ok, output) = run_tool(tool, &input);
        let call = Call {
            tool,
            input: &input,
            ok: Some(ok),
            output,
        };
        let verdict = detector.observe(&Observation {
            calls: &[call],
            external: ExternalChange::Unchanged,
            tree: None,
            at: None,
            background: false,
        });
        let argument = input.as_object().and_then(|fields| fields.values().next());
        let argument = argument.and_then(Value::as_str).unwrap_or("");
        write!(out, "{number:>2}  {:<62}", format!("{tool}: {argument}"))?;
        match verdict {
            Verdict::Progress { reason } => writeln!(out, "progress: {reason}")?,
            Verdict::Idle { steps, threshold } => {
                writeln!(out, "idle, {steps} of {threshold}")?;
                if steps * 2 >= threshold && !nudged {
                    nudged = true;
                    writeln!(
                        out,
                        "    nudge: no file changed and nothing new was learned in {steps} responses"
                    )?;
                }
            }
            Verdict::Stalled { steps, evidence } => {
                writeln!(out, "stalled, {steps} idle responses")?;
                for call in evidence {
                    writeln!(out, "    {call}")?;
                }
                writeln!(
                    out,
                    "    reminder: answer in text: what is known, what was tried, what is needed"
                )?;
                tools = false;
            }
            Verdict::Unjudged { .. } | Verdict::Ended => writeln!(out)?,
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "an example prints its output")]
fn main() -> io::Result<()> {
    run(&mut io::stdout())
}
