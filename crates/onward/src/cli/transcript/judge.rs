//! `onward transcript judge`: runs the loop detector on saved turns.
//!
//! Each turn is replayed step by step up to the first stall. A file that cannot be read is reported
//! and does not stop the run. With labels, a table of scores replaces the lines; it is not printed
//! if a file could not be read.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use onward_core::turn::{
    self, Evidence, Observation, Parts, ProgressDetector, Rule, TextMonitor, TurnPolicy, Verdict,
};
use serde::Serialize;

use crate::cli::print_failure;
use crate::exit::Exit;
use crate::output::{Output, Tone, format, print_error, stdout_failure};
use crate::transcript::score::{self, Kind, Label, Outcome, Table, TurnVerdict};
use crate::transcript::{self, Format, ReaderItem, Turn};

/// The width of the column with the turn id.
const ID_WIDTH: usize = 28;

/// Run the loop detector on the turns of saved sessions
///
/// Prints the verdict of each turn, then the totals. A response is one answer of the model with its
/// tool calls, counted from 1; the fields of `--json` are counted from 0.
#[derive(Args)]
pub(crate) struct Judge {
    /// Saved sessions, plain or gzip
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the files [default: detected from the content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Rule of the detector
    #[arg(long, value_name = "RULE", default_value = "default")]
    rule: RuleName,
    /// Number of responses in a row without progress that count as a loop [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threshold: Option<u32>,
    /// Part of the default rule to switch off. May be repeated
    #[arg(long, value_name = "PART", value_parser = part_names())]
    without: Vec<String>,
    /// Minutes of waiting without a change that count as a loop [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    wait_minutes: Option<u32>,
    /// Labels of the turns as JSON lines. Prints precision and recall by source instead of the
    /// verdicts. With `--json`, adds the outcome to each verdict and prints the table on standard
    /// error
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RuleName {
    /// The plain rule and all refinements
    Default,
    /// Progress is an external change, or a successful output that is long and new
    Plain,
}

impl Judge {
    fn policy(&self) -> TurnPolicy {
        let default = TurnPolicy::default();
        let mut parts = Parts::ALL;
        for part in &self.without {
            parts.switch_off(part);
        }
        let minutes = |minutes: u32| Duration::from_secs(60 * u64::from(minutes));
        TurnPolicy {
            stall_threshold: self.threshold.unwrap_or(default.stall_threshold),
            stall_wait: self.wait_minutes.map_or(default.stall_wait, minutes),
            rule: match self.rule {
                RuleName::Default => Rule::Default(parts),
                RuleName::Plain => Rule::Plain,
            },
            ..default
        }
    }
}

/// The names of the parts.
fn part_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Parts::SWITCHES.map(|(name, _)| name))
}

pub(super) fn run(args: &Judge, output: Output) -> Exit {
    let labels = match args.labels.as_deref().map(score::read_labels).transpose() {
        Ok(labels) => labels,
        Err(error) => {
            print_error(&error.to_string(), &error.hint());
            return Exit::from(&error);
        }
    };
    let mut run = Run {
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
        totals: Totals::default(),
        written: Ok(()),
    };
    let mut exit = Exit::Done;
    for path in &args.files {
        let read = transcript::read(path, args.format, &mut |found| run.take(found));
        if let Err(error) = read {
            print_error(&error.to_string(), &error.hint());
            if matches!(exit, Exit::Done) {
                exit = Exit::from(&error);
            }
        }
        if run.written.is_err() {
            break;
        }
    }
    if let Some(labels) = labels.filter(|_| matches!(exit, Exit::Done)) {
        run.print_table(&labels);
    }
    run.end(exit)
}

/// A run of the detector over all files.
struct Run {
    policy: TurnPolicy,
    output: Output,
    data: Box<dyn Write>,
    kinds: HashMap<String, Kind>,
    has_labels: bool,
    /// By turn id; empty without labels.
    judged: HashMap<String, TurnVerdict>,
    totals: Totals,
    written: io::Result<()>,
}

#[derive(Default)]
struct Totals {
    turns: usize,
    steps: usize,
    stalled: usize,
}

/// The JSON of a turn.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    steps: usize,
    stalled_at: Option<usize>,
    why: &'a str,
    /// The idle calls before the verdict, or of the longest run of idle steps.
    evidence: Vec<IdleCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_loop: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

/// An idle call in the JSON of a turn. Steps are counted from 0.
#[derive(Serialize)]
struct IdleCall<'a> {
    step: u32,
    tool: &'a str,
    input: &'a str,
    reason: &'static str,
}

impl<'a> From<&'a Evidence> for IdleCall<'a> {
    fn from(evidence: &'a Evidence) -> Self {
        Self {
            step: evidence.step.saturating_sub(1),
            tool: &evidence.tool,
            input: &evidence.input,
            reason: evidence.reason.as_str(),
        }
    }
}

impl Run {
    fn take(&mut self, found: ReaderItem) -> ControlFlow<()> {
        match found {
            ReaderItem::Warning(text) => self.output.warn(&text),
            ReaderItem::Turn(turn) => self.turn(turn),
        }
        match self.written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn turn(&mut self, turn: Turn) {
        let Judged {
            stalled_at,
            reason,
            evidence,
            text_loop,
        } = judge(&turn, self.policy);
        self.totals.turns += 1;
        self.totals.steps += turn.steps.len();
        self.totals.stalled += usize::from(stalled_at.is_some());
        if self.output.json {
            let kind = self.kinds.get(&turn.id);
            self.written = self.print_json(&Line {
                id: &turn.id,
                steps: turn.steps.len(),
                stalled_at,
                why: &reason,
                evidence: evidence.iter().map(IdleCall::from).collect(),
                text_loop: text_loop.as_deref(),
                outcome: kind.map(|kind| kind.outcome(stalled_at)),
            });
        } else if !self.has_labels {
            self.written = self.print_text(&turn, stalled_at, &reason);
            if let Some(text_loop) = &text_loop {
                let id = &turn.id;
                self.output.note(&format!("text loop in {id}: {text_loop}"));
            }
        }
        if self.has_labels {
            let Turn { id, source, .. } = turn;
            self.judged.insert(id, TurnVerdict { source, stalled_at });
        }
    }

    fn print_json(&mut self, line: &Line<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.data, line)?;
        self.data.write_all(b"\n")
    }

    fn print_text(
        &mut self,
        turn: &Turn,
        stalled_at: Option<usize>,
        reason: &str,
    ) -> io::Result<()> {
        let responses = format::count(turn.steps.len() as u64, "response", "responses");
        let reason = format::sanitize_line(reason);
        let (tone, verdict, rest) = match stalled_at {
            Some(index) => {
                let rest = format!(
                    " since response {} of {}: {reason}",
                    index + 1,
                    turn.steps.len()
                );
                (Tone::Alert, "looping", rest)
            }
            None => (Tone::Good, "ok", format!(", {responses}, {reason}")),
        };
        let id = keep_end(&turn.id, ID_WIDTH);
        let Some(width) = self.output.width() else {
            let verdict = self.output.paint(Some(tone), verdict);
            return writeln!(self.data, "{id:<ID_WIDTH$}  {verdict}{rest}");
        };
        let columns = width.saturating_sub(ID_WIDTH + 2);
        let words = rest.split(' ').map(|word| format::truncate(word, columns));
        let rest = words.collect::<Vec<_>>().join(" ");
        let lines = format::wrapped(&format!("{verdict}{rest}"), columns);
        for (number, line) in lines.iter().enumerate() {
            match line.strip_prefix(verdict).filter(|_| number == 0) {
                Some(rest) => {
                    let verdict = self.output.paint(Some(tone), verdict);
                    writeln!(self.data, "{id:<ID_WIDTH$}  {verdict}{rest}")?;
                }
                None => writeln!(self.data, "{:<ID_WIDTH$}  {line}", "")?,
            }
        }
        Ok(())
    }

    fn print_table(&mut self, labels: &[Label]) {
        let table = Table::new(labels, &self.judged);
        let text = table.render();
        if self.output.json {
            self.output.note(text.trim_end());
        } else if self.written.is_ok() {
            self.written = self.data.write_all(text.as_bytes());
        }
        if table.unmatched_labels > 0 {
            let number = table.unmatched_labels;
            self.output.warn(&format!(
                "ignored labels of turns that are not in the files: {number}"
            ));
        }
    }

    /// Prints the totals, and returns the exit code.
    fn end(mut self, exit: Exit) -> Exit {
        let Totals {
            turns,
            steps,
            stalled,
        } = self.totals;
        // The totals follow the verdicts; without verdicts on standard output, they are a message.
        let is_data = !self.output.json && !self.has_labels && turns > 0;
        let turns = format::count(turns as u64, "turn", "turns");
        let responses = format::count(steps as u64, "response", "responses");
        let totals = format!("{turns}, {responses}, {stalled} looping\n");
        if is_data && self.written.is_ok() {
            self.written = self.data.write_all(totals.as_bytes());
        }
        let flushed = self.data.flush();
        match self.written.and(flushed) {
            Ok(()) => {
                if !is_data {
                    self.output.note(totals.trim_end());
                }
                exit
            }
            // The reader closed the pipe, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
            Err(error) => {
                print_failure(&stdout_failure(&error), false);
                Exit::Failed
            }
        }
    }
}

/// The judgement of a turn.
struct Judged {
    /// The index of the first step at which the turn is stalled.
    stalled_at: Option<usize>,
    /// The last idle call, or the longest run of idle steps.
    reason: String,
    /// The idle calls before the verdict, or of the longest run.
    evidence: Vec<Evidence>,
    /// The first text that repeats itself.
    text_loop: Option<String>,
}

fn judge(turn: &Turn, policy: TurnPolicy) -> Judged {
    let text_loop = find_text_loop(turn);
    let mut detector = ProgressDetector::new(policy);
    let (mut longest, mut longest_evidence) = (0, Vec::new());
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
        for ended in &step.task_notifications {
            detector.record_task_notification(ended.as_deref(), step.at);
        }
        let verdict = detector.observe(&Observation {
            calls: &calls,
            external: step.external_change,
            tree: None,
            at: step.at,
            background: false,
        });
        match verdict {
            Verdict::Stalled { steps, evidence } => {
                return Judged {
                    stalled_at: Some(index),
                    reason: describe(steps, &evidence),
                    evidence,
                    text_loop,
                };
            }
            Verdict::Idle { steps, .. } if steps > longest => {
                longest = steps;
                longest_evidence = detector.state().evidence;
            }
            Verdict::Idle { .. }
            | Verdict::Progress { .. }
            | Verdict::Unjudged { .. }
            | Verdict::Ended => {}
        }
    }
    let reason = match longest {
        0 => "all with progress".to_owned(),
        _ => format!("at most {longest} in a row without progress"),
    };
    Judged {
        stalled_at: None,
        reason,
        evidence: longest_evidence,
        text_loop,
    }
}

/// The first text of a turn that repeats itself.
fn find_text_loop(turn: &Turn) -> Option<String> {
    let mut monitor = TextMonitor::default();
    let mut found = turn
        .steps
        .iter()
        .filter_map(|step| monitor.observe(&step.text, !step.calls.is_empty()));
    found.next().map(|text_loop| text_loop.to_string())
}

/// The number of responses without progress, and why the last call was none.
fn describe(steps: u32, evidence: &[turn::Evidence]) -> String {
    let responses = format::count(steps, "response", "responses");
    let text = format!("{responses} in a row without progress");
    match evidence.last() {
        Some(last) => format!("{text} ({} `{}`, {})", last.tool, last.input, last.reason),
        None => text,
    }
}

/// The end of a text, which distinguishes ids.
fn keep_end(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length + 1 - width).collect();
    format!("…{kept}")
}
