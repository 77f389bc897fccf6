//! `onward transcript judge`: would the detector have stopped these turns, and where?
//!
//! Each turn is judged from its beginning, step by step, as it would have been live, up to the
//! first stall. Files are read one after the other; one that cannot be read is complained about
//! and does not keep the others from being judged. With labels the table takes the place of the
//! lines, and is not printed where a file is missing from it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onward_core::turn::{self, Observation, ProgressDetector, Rule, TurnPolicy, Verdict};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Output, Tone, complain};
use crate::transcript::score::{self, Judged, Kind, Label, Outcome, Table};
use crate::transcript::{self, Format, Found, Turn};

/// How wide the id of a turn is shown to a person.
const ID: usize = 44;
/// How much of the reason is shown to a person.
const WHY: usize = 100;

/// Judge the turns of saved sessions: does each get anywhere, or is it stuck?
///
/// Prints one line per turn, and the sum on standard error. Steps count from 0.
#[derive(Args)]
pub(crate) struct Judge {
    /// Saved sessions, plain or packed with gzip
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The format of the files, if it shall not be told from what is inside
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The rule to judge by
    #[arg(long, value_name = "RULE", default_value = "default")]
    rule: RuleName,
    /// How many idle steps in a row are a stall
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threshold: Option<u32>,
    /// What a person says about the turns, as JSON lines: print how well the verdicts agree, by
    /// source, instead of the verdicts; with `--json` the verdicts carry it, and the table is talk
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RuleName {
    /// The plain rule and everything that goes beyond it
    Default,
    /// Something changed outside, or a long successful output is new
    Plain,
}

impl Judge {
    fn policy(&self) -> TurnPolicy {
        let default = TurnPolicy::default();
        TurnPolicy {
            stall_threshold: self.threshold.unwrap_or(default.stall_threshold),
            rule: match self.rule {
                RuleName::Default => default.rule,
                RuleName::Plain => Rule::Plain,
            },
            ..default
        }
    }
}

pub(super) fn run(args: &Judge, output: Output) -> Exit {
    let labels = match args.labels.as_deref().map(score::read_labels).transpose() {
        Ok(labels) => labels,
        Err(error) => {
            complain(&error.to_string(), &error.hint());
            return Exit::from(&error);
        }
    };
    let mut bench = Bench {
        policy: args.policy(),
        output,
        data: output.data(),
        kinds: labels
            .iter()
            .flatten()
            .map(|l| (l.id.clone(), l.kind))
            .collect(),
        has_labels: labels.is_some(),
        judged: HashMap::new(),
        sum: Sum::default(),
        written: Ok(()),
    };
    let mut exit = Exit::Done;
    for path in &args.files {
        let read = transcript::read(path, args.format, &mut |found| bench.take(found));
        if let Err(error) = read {
            complain(&error.to_string(), &error.hint());
            if matches!(exit, Exit::Done) {
                exit = Exit::from(&error);
            }
        }
        if bench.written.is_err() {
            break;
        }
    }
    if let Some(labels) = labels.filter(|_| matches!(exit, Exit::Done)) {
        bench.print_table(&labels);
    }
    bench.end(exit)
}

/// Where turns are judged and verdicts are printed.
struct Bench {
    policy: TurnPolicy,
    output: Output,
    data: Box<dyn Write>,
    kinds: HashMap<String, Kind>,
    has_labels: bool,
    /// By id; only where there are labels.
    judged: HashMap<String, Judged>,
    sum: Sum,
    written: io::Result<()>,
}

#[derive(Default)]
struct Sum {
    turns: usize,
    steps: usize,
    stalled: usize,
}

/// What is printed about a turn with `--json`.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    steps: usize,
    stalled_at: Option<usize>,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

impl Bench {
    fn take(&mut self, found: Found) -> ControlFlow<()> {
        match found {
            Found::Warning(text) => self.output.warn(&text),
            Found::Turn(turn) => self.turn(turn),
        }
        match self.written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn turn(&mut self, turn: Turn) {
        let (stalled_at, why) = judge(&turn, self.policy);
        self.sum.turns += 1;
        self.sum.steps += turn.steps.len();
        self.sum.stalled += usize::from(stalled_at.is_some());
        if self.output.json {
            let kind = self.kinds.get(&turn.id);
            self.written = self.print_json(&Line {
                id: &turn.id,
                steps: turn.steps.len(),
                stalled_at,
                why: &why,
                outcome: kind.map(|kind| kind.outcome(stalled_at)),
            });
        } else if !self.has_labels {
            self.written = self.print_text(&turn, stalled_at, &why);
        }
        if self.has_labels {
            let Turn { id, source, .. } = turn;
            self.judged.insert(id, Judged { source, stalled_at });
        }
    }

    fn print_json(&mut self, line: &Line<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.data, line)?;
        self.data.write_all(b"\n")
    }

    fn print_text(&mut self, turn: &Turn, stalled_at: Option<usize>, why: &str) -> io::Result<()> {
        let (tone, verdict) = match stalled_at {
            Some(step) => (Tone::Bad, format!("stalled at step {step}")),
            None => (Tone::Good, "ok".to_owned()),
        };
        let mut verdict = format!("{verdict:<20}");
        if self.output.is_coloured() {
            verdict = tone.paint(&verdict);
        }
        let steps = turn.steps.len();
        let unit = if steps == 1 { "step " } else { "steps" };
        let id = the_end_of(&turn.id, ID);
        let why = the_beginning_of(why, WHY);
        writeln!(self.data, "{id:<ID$}  {steps:>4} {unit}  {verdict}  {why}")
    }

    fn print_table(&mut self, labels: &[Label]) {
        let table = Table::of(labels, &self.judged);
        let text = table.render();
        if self.output.json {
            self.output.say(text.trim_end());
        } else if self.written.is_ok() {
            self.written = self.data.write_all(text.as_bytes());
        }
        if table.without_turn > 0 {
            let number = table.without_turn;
            self.output.warn(&format!(
                "labels of turns that are in none of the files: {number}"
            ));
        }
    }

    /// Says the sum, and how it all ended.
    fn end(mut self, exit: Exit) -> Exit {
        let flushed = self.data.flush();
        match self.written.and(flushed) {
            Ok(()) => {
                let Sum {
                    turns,
                    steps,
                    stalled,
                } = self.sum;
                self.output.say(&format!(
                    "turns: {turns}, steps: {steps}, stalled: {stalled}"
                ));
                exit
            }
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
            Err(error) => {
                complain(
                    &format!("standard output cannot be written: {error}"),
                    "check where it leads",
                );
                Exit::Failed
            }
        }
    }
}

/// The step at which the detector says that the turn is stalled, the first time, and what it goes
/// by: of a turn that is not, how near it came.
fn judge(turn: &Turn, policy: TurnPolicy) -> (Option<usize>, String) {
    let mut detector = ProgressDetector::new(policy);
    let mut longest = 0;
    for (index, step) in turn.steps.iter().enumerate() {
        let calls: Vec<turn::Call<'_>> = step
            .calls
            .iter()
            .map(|call| turn::Call {
                tool: &call.tool,
                input: &call.input,
                ok: call.ok,
                output: &call.output,
            })
            .collect();
        for ended in &step.told {
            detector.hear_of_task(ended.as_deref(), step.at);
        }
        let verdict = detector.observe(&Observation {
            calls: &calls,
            outside: step.outside,
            at: step.at,
            background: false,
        });
        match verdict {
            Verdict::Stalled { steps, evidence } => return (Some(index), reason(steps, &evidence)),
            Verdict::Idle { steps, .. } => longest = longest.max(steps),
            Verdict::Progress { .. } | Verdict::Unjudged { .. } | Verdict::Ended => {}
        }
    }
    let why = match longest {
        0 => "no idle step".to_owned(),
        1 => "never two idle steps in a row".to_owned(),
        _ => format!("at most {longest} idle steps in a row"),
    };
    (None, why)
}

/// How many idle steps, and why the last of the calls counted for nothing.
fn reason(steps: u32, evidence: &[turn::Evidence]) -> String {
    let Some(last) = evidence.last() else {
        return format!("{steps} idle steps in a row");
    };
    format!(
        "{steps} idle steps in a row; the last call: {} ({} {})",
        last.why, last.tool, last.input
    )
}

/// The end of a text, which is what tells ids apart.
fn the_end_of(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length + 1 - width).collect();
    format!("…{kept}")
}

fn the_beginning_of(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width - 1).collect();
    format!("{kept}…")
}
