//! A random walk: creates a plan, then decides and applies one command per round and lets the
//! property check each round.
//!
//! Every walk fails if an accepted command cannot be applied.

use std::fmt::{self, Write as _};

use onward_core::apply::Plan;
use onward_core::event::Created;
use onward_core::{Command, Event, Refusal, Timestamp, decide};
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::rng::Rng;
use crate::state::{WalkState, apply, creation};
use crate::{commands, invalid_commands};

/// The random values of a walk.
#[derive(Clone)]
pub(crate) struct Walk {
    creation: Vec<u16>,
    rounds: Vec<[u16; 14]>,
    hostile: bool,
}

/// Walks with a few invalid commands.
pub(crate) fn walks() -> impl Strategy<Value = Walk> {
    walks_of_kind(false)
}

/// Walks in which half of the commands are invalid and ids may be reused.
pub(crate) fn hostile_walks() -> impl Strategy<Value = Walk> {
    walks_of_kind(true)
}

fn walks_of_kind(hostile: bool) -> impl Strategy<Value = Walk> {
    let creation = prop::collection::vec(any::<u16>(), 80);
    let rounds = prop::collection::vec(prop::array::uniform14(any::<u16>()), 1..60);
    (creation, rounds).prop_map(move |(creation, rounds)| Walk {
        creation,
        rounds,
        hostile,
    })
}

/// Runs this many cases by default. `PROPTEST_CASES` scales the number.
pub(crate) fn cases(default: u32) -> Config {
    let config = Config::default();
    Config {
        cases: (config.cases.saturating_mul(default) / 256).max(1),
        max_shrink_iters: 20_000,
        ..config
    }
}

/// One round of a walk.
pub(crate) struct Round<'w> {
    /// The plan before the command.
    pub(crate) before: &'w Plan,
    pub(crate) command: &'w Command,
    pub(crate) now: Timestamp,
    pub(crate) outcome: &'w Result<Vec<Event>, Refusal>,
    /// The plan after the command, and the history of the walk.
    pub(crate) state: &'w WalkState,
}

impl Round<'_> {
    /// The plan after the command.
    pub(crate) fn after(&self) -> &Plan {
        &self.state.plan
    }

    /// The events of this round; none if the command was rejected.
    pub(crate) fn events(&self) -> &[Event] {
        self.outcome.as_deref().unwrap_or_default()
    }

    /// Calls `check` for each event with the plan before and after it.
    pub(crate) fn each_event(
        &self,
        mut check: impl FnMut(&Plan, &Event, &Plan) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut plan = self.before.clone();
        for event in self.events() {
            let before = plan.clone();
            apply(&mut plan, std::slice::from_ref(event), self.now)?;
            check(&before, event, &plan)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Walk {
    /// One line per round. Trailing zeros are omitted, because missing values count as zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |values: &[u16]| {
            let end = values.iter().rposition(|value| *value != 0);
            format!("{:?}", &values[..end.map_or(0, |end| end + 1)])
        };
        writeln!(f, "walk from {}", short(&self.creation))?;
        for round in &self.rounds {
            writeln!(f, "  {}", short(round))?;
        }
        Ok(())
    }
}

type HistoryEntry = (Timestamp, Command, Result<Vec<Event>, Refusal>);

impl Walk {
    /// Runs the walk and lets the property check every round. Returns the final state.
    pub(crate) fn run(
        &self,
        mut check: impl FnMut(&Round<'_>) -> Result<(), TestCaseError>,
    ) -> Result<WalkState, TestCaseError> {
        let mut state = WalkState::create(&mut Rng::new(&self.creation))?;
        let mut history = Vec::new();
        for round in &self.rounds {
            if let Err(failure) = self.run_round(&mut state, round, &mut history, &mut check) {
                return Err(with_history(
                    failure,
                    creation(&state.audit_trail),
                    &history,
                ));
            }
        }
        Ok(state)
    }

    fn run_round(
        &self,
        state: &mut WalkState,
        values: &[u16],
        history: &mut Vec<HistoryEntry>,
        check: &mut impl FnMut(&Round<'_>) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut rng = Rng::new(values);
        let now = state.advance_clock(&mut rng);
        let command = if rng.one_in(if self.hostile { 2 } else { 8 }) {
            invalid_commands::command(state, &mut rng, self.hostile)
        } else {
            commands::plausible(state, &mut rng)
        };
        let outcome = decide(&state.plan, &command, now);
        history.push((now, command.clone(), outcome.clone()));
        let before = state.plan.clone();
        if let Ok(events) = &outcome {
            apply(&mut state.plan, events, now)?;
            state.record(&command, events, now);
        }
        check(&Round {
            before: &before,
            command: &command,
            now,
            outcome: &outcome,
            state,
        })
    }
}

/// Adds the commands and their outcomes to a failure.
fn with_history(
    failure: TestCaseError,
    created: &Created,
    history: &[HistoryEntry],
) -> TestCaseError {
    let mut text = format!("{failure}\nhistory:\n{created:?}\n");
    for (now, command, outcome) in history {
        let outcome = match outcome {
            Ok(events) => events
                .iter()
                .map(|event| match event.action() {
                    Some(action) => format!("{} ({action})", event.name()),
                    None => event.name().to_owned(),
                })
                .collect::<Vec<_>>()
                .join(", "),
            Err(refusal) => format!("rejected: {refusal}"),
        };
        let mut command = format!("{command:?}");
        if let Some((end, _)) = command.char_indices().nth(600) {
            command.truncate(end);
        }
        let _ = writeln!(text, "{now} {command}\n    → {outcome}");
    }
    TestCaseError::fail(text)
}
