//! A turn on the page of a session: a ribbon of model responses, coloured by verdict, with markers
//! for the messages to the model and the rejected calls; the messages; and one line per call.

use std::fmt;

use askama::filters::HtmlSafe;
use onward_core::Timestamp;
use onward_core::call::{CallState, CallStatus};
use onward_core::turn::{Judgement, TurnEnd};
use onward_engine::{CallKey, CallLine, CallRecord, Turn, TurnStep};

use super::session_url;
use crate::output::call::{self, Description};
use crate::output::format;
use crate::web::pages::format::{Clock, RelativeTime, multiline, one_line};
use crate::web::pages::tag::Tag;

/// Width of a response in the ribbon.
const CELL: u32 = 14;
/// Rejected calls that the ribbon shows.
const MAX_REJECTIONS: u32 = 10;

pub(super) struct TurnView {
    /// Index on the page. Turn numbers are not unique, because subagents have their own.
    pub(super) index: usize,
    pub(super) number: u32,
    pub(super) subagent: Option<String>,
    pub(super) started: RelativeTime,
    /// Number of responses and the end of the turn.
    pub(super) summary: String,
    pub(super) idle: u32,
    pub(super) threshold: u32,
    pub(super) ribbon: Option<Ribbon>,
    pub(super) messages: Vec<MessageView>,
    pub(super) calls: Vec<CallView>,
    /// Number of earlier responses that are not displayed.
    pub(super) earlier: u32,
}

/// The responses as an image.
pub(super) struct Ribbon {
    pub(super) width: u32,
    pub(super) cells: Vec<Cell>,
    pub(super) markers: Vec<Marker>,
    /// The ribbon as text.
    pub(super) description: String,
}

pub(super) struct Cell {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) height: u32,
    pub(super) class: &'static str,
    pub(super) title: String,
}

pub(super) struct Marker {
    pub(super) x: u32,
    pub(super) class: &'static str,
    pub(super) symbol: char,
    pub(super) title: String,
}

/// A text that was sent to the model.
pub(super) struct MessageView {
    pub(super) title: String,
    pub(super) text: String,
}

/// A tool call.
pub(super) struct CallView {
    pub(super) id: String,
    /// Number of the response.
    pub(super) response: u32,
    pub(super) verdict: &'static str,
    pub(super) tag: Tag,
    pub(super) tool: String,
    pub(super) input: String,
    pub(super) state: CallStateText,
    /// Why the response counted as progress or not.
    pub(super) reason: String,
    pub(super) is_open: bool,
    /// URL of the form that marks the call as dead.
    pub(super) close_url: String,
    pub(super) subagent: String,
    /// Why Onward interrupted the call.
    pub(super) cause: Option<CauseText>,
    /// The result that the model received instead of a real one.
    pub(super) synthetic_result: Option<String>,
    pub(super) result: Option<String>,
}

/// The state of a call, with its time as an element.
pub(super) struct CallStateText {
    text: Description,
    now: Timestamp,
}

impl CallStateText {
    fn new(record: &CallRecord, now: Timestamp) -> Self {
        // The tag states the outcome.
        if let CallState::Completed(end) | CallState::Failed(end) = record.call.state
            && end.interruption.is_none()
            && !record.is_in_background()
        {
            return Self::ago(end.ended_at, now);
        }
        let text = call::describe(record, now);
        Self { text, now }
    }

    fn ago(at: Timestamp, now: Timestamp) -> Self {
        let text = Description {
            at: Some(at),
            ..Description::default()
        };
        Self { text, now }
    }
}

impl fmt::Display for CallStateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All texts are those of this program; a duration may contain `<`.
        f.write_str(&self.text.before.replace('<', "&lt;"))?;
        if let Some(at) = self.text.at {
            write!(f, "{}", RelativeTime::new(at, self.now))?;
        }
        f.write_str(&self.text.after.replace('<', "&lt;"))
    }
}

impl HtmlSafe for CallStateText {}

/// Why Onward interrupted a call, and its last activity.
pub(super) struct CauseText {
    pub(super) text: String,
    pub(super) activity: Option<(Clock, RelativeTime)>,
}

impl CauseText {
    fn new(record: &CallRecord, now: Timestamp) -> Option<Self> {
        let stored = &record.synthetic.as_ref()?.to_operator;
        let at = record.last_activity_at();
        Some(Self {
            text: multiline(stored, 1_000).replace('`', ""),
            activity: at.map(|at| (Clock::new(at, now), RelativeTime::new(at, now))),
        })
    }
}

impl TurnView {
    pub(super) fn new(
        index: usize,
        turn: &Turn,
        steps: &[TurnStep],
        records: &[&CallRecord],
        now: Timestamp,
    ) -> Self {
        let standing = &turn.standing;
        let end = match turn.ended {
            None => "in progress",
            Some((_, TurnEnd::Answered)) => "answered",
            Some((_, TurnEnd::NextPrompt)) => "ended by your next prompt",
            Some((_, TurnEnd::Stopped)) => "stopped by Onward",
            Some((_, TurnEnd::SessionEnded)) => "ended with the session",
        };
        let responses = format::count(standing.steps, "response", "responses");
        let shown = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        Self {
            index,
            number: turn.number,
            subagent: (!turn.agent.is_empty()).then(|| one_line(&turn.agent, 60)),
            started: RelativeTime::new(turn.began_at, now),
            summary: format!("{responses} · {end}"),
            idle: standing.idle_steps,
            threshold: turn.threshold,
            ribbon: (!steps.is_empty()).then(|| Ribbon::new(steps, standing.rejections)),
            messages: messages(steps, standing.rejections),
            calls: lines(steps, records, now),
            earlier: standing.steps.saturating_sub(shown),
        }
    }
}

const fn verdict_class(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Progress => "progress",
        Judgement::Idle => "idle",
        Judgement::Stalled => "stalled",
        Judgement::Unjudged => "unjudged",
    }
}

/// Why a response counted as progress or not.
fn reason(step: &TurnStep) -> String {
    let why = step.why.as_deref().map(|why| one_line(why, 200));
    match (step.judgement, why) {
        (Judgement::Progress, why) => why.unwrap_or_else(|| "progress".to_owned()),
        (Judgement::Idle | Judgement::Stalled, Some(why)) => {
            format!("{why} ({} in a row)", step.idle_steps)
        }
        (Judgement::Idle | Judgement::Stalled, None) => {
            format!("no progress ({} in a row)", step.idle_steps)
        }
        (Judgement::Unjudged, _) => "not judged".to_owned(),
    }
}

/// The name of the message after a response: a nudge before the limit, a reminder at it.
fn message_name(step: &TurnStep) -> &'static str {
    match step.judgement {
        Judgement::Idle => "nudge",
        Judgement::Stalled | Judgement::Progress | Judgement::Unjudged => "reminder",
    }
}

impl Ribbon {
    fn new(steps: &[TurnStep], rejections: u32) -> Self {
        let (mut cells, mut markers, mut x) = (Vec::new(), Vec::new(), 0);
        let mut parts = Vec::new();
        for step in steps {
            // The shape differs as well, so that the ribbon does not depend on colour.
            let (y, height) = match step.judgement {
                Judgement::Progress => (14, 14),
                Judgement::Idle | Judgement::Unjudged => (22, 6),
                Judgement::Stalled => (18, 10),
            };
            cells.push(Cell {
                x,
                y,
                height,
                class: verdict_class(step.judgement),
                title: format!("Response {}: {}", step.number, reason(step)),
            });
            if step.message.is_some() {
                let name = message_name(step);
                let title = format!("{name} after response {}", step.number);
                parts.push(title.clone());
                let symbol = if name == "nudge" { '▾' } else { '◆' };
                markers.push(Marker {
                    x: x + CELL / 2 - 1,
                    class: name,
                    symbol,
                    title,
                });
            }
            x += CELL;
        }
        for _ in 0..rejections.min(MAX_REJECTIONS) {
            markers.push(Marker {
                x: x + CELL / 2 - 1,
                class: "rejection",
                symbol: '✕',
                title: "Rejected call".to_owned(),
            });
            x += CELL;
        }
        let progress = steps
            .iter()
            .filter(|step| step.judgement == Judgement::Progress);
        let progress = progress.count();
        let mut description = format!(
            "{progress} of {} made progress",
            format::count(steps.len() as u64, "response", "responses")
        );
        if rejections > 0 {
            let calls = format::count(rejections, "call", "calls");
            parts.push(format!("{calls} rejected"));
        }
        for part in parts {
            description.push_str(", ");
            description.push_str(&part);
        }
        Self {
            width: x.max(CELL),
            cells,
            markers,
            description,
        }
    }
}

fn messages(steps: &[TurnStep], rejections: u32) -> Vec<MessageView> {
    let sent = steps.iter().filter_map(|step| {
        let text = step.message.as_deref()?;
        let (name, number) = (message_name(step), step.number);
        let name = if name == "nudge" { "Nudge" } else { "Reminder" };
        let repeated = match rejections {
            0 => String::new(),
            _ if name == "Nudge" => String::new(),
            many => format!(
                ", repeated with {}",
                format::count(many, "rejected call", "rejected calls")
            ),
        };
        Some(MessageView {
            title: format!("{name} sent to the model after response {number}{repeated}"),
            text: multiline(text, 2_000),
        })
    });
    sent.collect()
}

/// One line per call, in the order of the responses. The log of calls has more details than the
/// responses, but not every interface writes it.
fn lines(steps: &[TurnStep], records: &[&CallRecord], now: Timestamp) -> Vec<CallView> {
    let mut lines = Vec::new();
    for step in steps {
        let own = records.iter().filter(|record| record.batch == step.number);
        let mut own = own.peekable();
        if own.peek().is_some() {
            lines.extend(own.map(|record| CallView::new(record, Some(step), now)));
        } else {
            let calls = step.calls.iter().enumerate();
            lines.extend(calls.map(|(index, line)| CallView::from_step(step, index, line, now)));
        }
    }
    // Calls of a response that is not judged yet.
    let last = steps.last().map_or(0, |step| step.number);
    let rest = records
        .iter()
        .filter(|record| record.batch > last || steps.is_empty());
    lines.extend(rest.map(|record| CallView::new(record, None, now)));
    lines
}

impl CallView {
    pub(super) fn new(record: &CallRecord, step: Option<&TurnStep>, now: Timestamp) -> Self {
        let CallKey {
            session,
            agent,
            turn,
            position,
        } = &record.key;
        let synthetic = record.synthetic.as_ref();
        Self {
            id: format!("{turn}-{position}"),
            response: record.batch,
            verdict: step.map_or("open", |step| verdict_class(step.judgement)),
            tag: Tag::call(record),
            tool: one_line(&record.tool, 60),
            input: one_line(&record.input, 200),
            state: CallStateText::new(record, now),
            reason: if record.status() == CallStatus::Interrupted {
                String::new()
            } else {
                step.map_or_else(String::new, reason)
            },
            is_open: record.status().is_open(),
            close_url: format!("{}/calls/{turn}/{position}/close", session_url(session)),
            subagent: agent.clone(),
            cause: CauseText::new(record, now),
            synthetic_result: synthetic.map(|synthetic| multiline(&synthetic.to_model, 1_000)),
            result: call::result(record).map(|result| multiline(result, 1_000)),
        }
    }

    fn from_step(step: &TurnStep, index: usize, line: &CallLine, now: Timestamp) -> Self {
        let idle = line.idle.map(|idle| idle.to_string());
        Self {
            id: format!("{}-{index}", step.number),
            response: step.number,
            verdict: verdict_class(step.judgement),
            tag: Tag::outcome(line.ok),
            tool: one_line(&line.tool, 60),
            input: one_line(&line.input, 200),
            state: CallStateText::ago(step.at, now),
            reason: match (index, idle) {
                (0, _) => reason(step),
                (_, Some(idle)) => idle,
                (_, None) => String::new(),
            },
            is_open: false,
            close_url: String::new(),
            subagent: String::new(),
            cause: None,
            synthetic_result: None,
            result: (!line.output.is_empty()).then(|| multiline(&line.output, 1_000)),
        }
    }
}
