//! Events of an agent's log, and the turns that they form.
//!
//! The readers of agents translate their records to these events. [`EventReader`] builds turns for
//! the detector; `repair::conversation` finds calls without a result.

use std::ops::ControlFlow;

use onward_core::Timestamp;
use serde_json::Value;

use super::external_change::AgentTools;
use super::lines::{Record, Records};
use super::turn_builder::TurnBuilder;
use super::{Error, Format, Lines, ReaderItem, Turn, Visitor};

/// An event of a log.
#[derive(Debug)]
pub(super) enum Event {
    /// A user prompt, which starts a turn.
    Prompt,
    /// The start of a model response.
    Step,
    /// Content of a model response, in formats that do not mark steps.
    Content,
    /// Text or reasoning of the current step.
    Text(String),
    Call {
        id: String,
        tool: String,
        input: Value,
    },
    Result {
        id: String,
        ok: Option<bool>,
        output: String,
    },
    /// The records before this one are no longer sent to the model.
    Reset,
}

/// A record of a log.
pub(super) struct Entry {
    pub(super) events: Vec<Event>,
    pub(super) at: Option<Timestamp>,
}

/// The format of an agent's records.
pub(super) struct AgentFormat {
    pub(super) format: Format,
    /// The content of a line, with an article, for errors.
    pub(super) expected: &'static str,
    pub(super) parse: fn(Value) -> Entry,
    pub(super) tools: AgentTools,
}

impl AgentFormat {
    /// Reads a log with one record per line.
    pub(super) fn read_lines(&self, lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
        let mut records = Records::new(lines, self.expected);
        let mut reader = EventReader::new(self, records.name().to_owned(), visit);
        while let Some(record) = records.next::<Value>()? {
            let next = match record {
                Record::Value { value, .. } => reader.push((self.parse)(value)),
                Record::Skipped(report) => reader.warn(report),
            };
            if next.is_break() {
                return Ok(());
            }
        }
        // This is the last turn, so the returned value does not matter.
        let _ = reader.end_turn();
        Ok(())
    }
}

/// Builds the turns of one conversation from its events.
pub(super) struct EventReader<'a, 'b> {
    agent: &'a AgentFormat,
    /// The ids of the turns without their numbers.
    name: String,
    visit: &'a mut Visitor<'b>,
    count: u32,
    builder: TurnBuilder,
}

impl<'a, 'b> EventReader<'a, 'b> {
    pub(super) fn new(agent: &'a AgentFormat, name: String, visit: &'a mut Visitor<'b>) -> Self {
        EventReader {
            agent,
            name,
            visit,
            count: 0,
            builder: TurnBuilder::default(),
        }
    }

    pub(super) fn warn(&mut self, report: String) -> ControlFlow<()> {
        (self.visit)(ReaderItem::Warning(report))
    }

    pub(super) fn push(&mut self, entry: Entry) -> ControlFlow<()> {
        for event in entry.events {
            if let Event::Prompt = event {
                self.end_turn()?;
            } else if let Some(step) = add_event(&mut self.builder, event)
                && let Some(step) = self.builder.steps.get_mut(step)
            {
                step.at = step.at.max(entry.at);
            }
        }
        ControlFlow::Continue(())
    }

    /// Starts another conversation of the same file.
    pub(super) fn start_conversation(&mut self, name: String) -> ControlFlow<()> {
        self.end_turn()?;
        self.name = name;
        self.count = 0;
        ControlFlow::Continue(())
    }

    /// Visits the turn read so far. A prompt without a response is not a turn.
    pub(super) fn end_turn(&mut self) -> ControlFlow<()> {
        let mut steps = std::mem::take(&mut self.builder).steps;
        if steps.is_empty() {
            return ControlFlow::Continue(());
        }
        self.agent.tools.set_effects(&mut steps);
        let turn = Turn {
            id: format!("{}#{}", self.name, self.count),
            source: self.agent.format.name().to_owned(),
            steps,
        };
        self.count += 1;
        (self.visit)(ReaderItem::Turn(turn))
    }
}

/// Adds an event to a turn and returns the step that it belongs to.
pub(super) fn add_event(builder: &mut TurnBuilder, event: Event) -> Option<usize> {
    match event {
        Event::Prompt | Event::Reset => None,
        Event::Step => Some(builder.begin_step()),
        Event::Content => Some(builder.current_step()),
        Event::Text(text) => {
            let step = builder.last_step();
            builder.add_text(step, &text);
            Some(step)
        }
        Event::Call { id, tool, input } => {
            let step = builder.last_step();
            builder.add_call(step, Some(&id), &tool, input);
            Some(step)
        }
        Event::Result { id, ok, output } => builder.add_result(&id, ok, output),
    }
}

/// A string field.
pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A time in milliseconds since 1970.
pub(super) fn millis(value: &Value) -> Option<Timestamp> {
    let millis = value
        .as_i64()
        .or_else(|| value.as_f64().map(|ms| ms as i64));
    millis.map(Timestamp::from_millis)
}
