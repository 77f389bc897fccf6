//! Finds calls without a result in the events of an agent's log.
//!
//! `onward_core::transcript` decides which calls are dangling or stale. Results without a call and
//! further results of a call are no defects here: the agents of these formats ignore them.

use onward_core::Timestamp;
use onward_core::call::message::for_model;
use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Cause, Limit};
use onward_core::transcript::{
    Call, CallMatcher, Message, Part, Repair, RepairKind, Resolution, ResultMatch, Role, sanitize,
};
use serde_json::Value;

use super::super::event::{Entry, Event};
use super::RepairContext;

/// A conversation, built from its records.
#[derive(Default)]
pub(super) struct Conversation {
    /// The agent, which determines the timeouts of its tools.
    agent: &'static str,
    messages: Vec<Message<'static>>,
    /// The record and the number of each call in it, by row and part.
    calls: Vec<Vec<CallPlace>>,
    /// The last record with a call or a result of each row.
    last_records: Vec<usize>,
    matcher: CallMatcher<(usize, usize)>,
    /// Calls with the id of another call in their step.
    pub(super) duplicate_ids: Vec<(CallPlace, Repair)>,
}

/// The place of a call: its record, and its number among the calls of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallPlace {
    pub(super) record: usize,
    pub(super) call: usize,
}

/// A call that will not get a result.
pub(super) struct InterruptedCall {
    pub(super) place: CallPlace,
    /// The last record of its step with a call or a result.
    pub(super) last_record: usize,
    pub(super) repair: Repair,
    cause: Cause,
    limit: Limit,
}

impl InterruptedCall {
    /// The text of the result.
    pub(super) fn text(&self) -> String {
        for_model(self.cause, CallPolicy::default().timeout(self.limit))
    }

    pub(super) fn cause(&self) -> Cause {
        self.cause
    }
}

/// The calls without a result.
#[derive(Default)]
pub(super) struct Diagnosis {
    pub(super) interrupted: Vec<InterruptedCall>,
    /// Calls that may still get a result.
    pub(super) open_calls: usize,
}

impl Conversation {
    pub(super) fn of_agent(agent: &'static str) -> Self {
        Self {
            agent,
            ..Self::default()
        }
    }

    /// Adds the events of a record.
    pub(super) fn push(&mut self, record: usize, entry: Entry) {
        let mut call = 0;
        for event in entry.events {
            match event {
                Event::Prompt => self.start_row(Role::User, record),
                Event::Step => self.start_row(Role::Assistant, record),
                Event::Content => {
                    let last = self.messages.last();
                    if last.is_none_or(|row| row.role != Role::Assistant) {
                        self.start_row(Role::Assistant, record);
                    }
                }
                Event::Text(_) => {}
                Event::Call { id, tool, input } => {
                    let place = CallPlace { record, call };
                    self.add_call(place, &id, tool, &input, entry.at);
                    call += 1;
                }
                Event::Result { id, .. } => {
                    if let ResultMatch::Matched((row, part)) = self.matcher.match_result(&id) {
                        self.settle(row, part);
                        self.touch(row, record);
                    }
                }
                Event::Reset => self.reset(),
            }
        }
    }

    fn start_row(&mut self, role: Role, record: usize) {
        self.matcher.start_row();
        // The text makes the rows distinct: logs do not repeat rows.
        let text = self.messages.len().to_string();
        self.messages.push(Message {
            role,
            parts: vec![Part::Text(text.into())],
            is_queued: false,
            is_plain: true,
        });
        self.calls.push(vec![CallPlace::default()]);
        self.last_records.push(record);
    }

    fn add_call(
        &mut self,
        place: CallPlace,
        id: &str,
        tool: String,
        input: &Value,
        at: Option<Timestamp>,
    ) {
        let last = self.messages.iter();
        let row = last.clone().rposition(|row| row.role == Role::Assistant);
        let row = match row {
            Some(row) => row,
            None => {
                self.start_row(Role::Assistant, place.record);
                self.messages.len() - 1
            }
        };
        let limit = Limit::for_call(self.agent, &tool, input);
        let call = Call {
            id: id.to_owned().into(),
            tool: Some(tool.into()),
            input: String::new().into(),
            resolution: Resolution::Open(CallTimestamp {
                status: CallStatus::Running,
                started_at: at,
                last_progress_at: None,
                limit,
                grace: None,
            }),
        };
        self.touch(row, place.record);
        let (Some(message), Some(places)) = (self.messages.get_mut(row), self.calls.get_mut(row))
        else {
            return;
        };
        let is_same = |part: &Part<'_>| matches!(part, Part::Call(other) if other.id == call.id);
        if message.parts.iter().any(is_same) {
            let repair = Repair::for_call(RepairKind::DuplicateId, row, &call);
            self.duplicate_ids.push((place, repair));
        }
        self.matcher.add_call(id, (row, message.parts.len()));
        message.parts.push(Part::Call(call));
        places.push(place);
    }

    fn settle(&mut self, row: usize, part: usize) {
        let parts = self.messages.get_mut(row).map(|row| &mut row.parts);
        if let Some(Part::Call(call)) = parts.and_then(|parts| parts.get_mut(part)) {
            call.resolution = Resolution::Settled;
        }
    }

    fn touch(&mut self, row: usize, record: usize) {
        if let Some(last) = self.last_records.get_mut(row) {
            *last = record.max(*last);
        }
    }

    /// The calls so far are no longer sent to the model.
    fn reset(&mut self) {
        self.matcher = CallMatcher::default();
        for message in &mut self.messages {
            for part in &mut message.parts {
                if let Part::Call(call) = part {
                    call.resolution = Resolution::Settled;
                }
            }
        }
    }

    pub(super) fn diagnose(&self, context: RepairContext) -> Diagnosis {
        let mut diagnosis = Diagnosis::default();
        let (rows, _) = sanitize(&self.messages, context.now, CallPolicy::default());
        for row in rows {
            for (part, content) in row.message.parts.iter().enumerate() {
                let Part::Call(call) = content else { continue };
                if call.resolution == Resolution::Settled {
                    continue;
                }
                let Some((cause, kind)) = context.repair_of(call.resolution) else {
                    diagnosis.open_calls += 1;
                    continue;
                };
                let message = self.messages.get(row.index);
                let limit = match message.and_then(|message| message.parts.get(part)) {
                    Some(Part::Call(Call {
                        resolution: Resolution::Open(times),
                        ..
                    })) => times.limit,
                    Some(_) | None => Limit::Unspecified,
                };
                let places = self.calls.get(row.index);
                let place = places.and_then(|places| places.get(part));
                let last_record = self.last_records.get(row.index);
                diagnosis.interrupted.push(InterruptedCall {
                    place: place.copied().unwrap_or_default(),
                    last_record: last_record.copied().unwrap_or_default(),
                    repair: Repair::for_call(kind, row.index, call),
                    cause,
                    limit,
                });
            }
        }
        diagnosis
    }
}
