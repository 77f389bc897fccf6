//! A random walk: creates a plan, then decides and applies one command per round and lets the
//! property check each round.
//!
//! Every walk fails if an accepted command cannot be applied.

use std::fmt::{self, Write as _};
use std::time::Duration;

use onward_core::apply::Plan;
use onward_core::command::SubmitResult;
use onward_core::event::{Change, Created};
use onward_core::id::{ArtifactId, BranchId, ClaimToken, ReviewId, SkillExecutionId, StepId};
use onward_core::{Command, Event, Refusal, Timestamp, decide};
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::rng::Rng;
use crate::{commands, invalid_commands, plans};

/// The start time of every walk.
const BEGIN: Timestamp = Timestamp::from_millis(1_790_000_000_000);

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

/// Applies events. Fails the test case if they cannot be applied.
pub(crate) fn apply(plan: &mut Plan, events: &[Event], at: Timestamp) -> Result<(), TestCaseError> {
    plan.apply_all(events, at).map_err(|error| {
        TestCaseError::fail(format!(
            "decided events cannot be applied: {error}\n{events:#?}"
        ))
    })
}

/// A plan and the part of its history that later commands need.
#[derive(Debug, Clone)]
pub(crate) struct WalkState {
    pub(crate) plan: Plan,
    /// All events.
    pub(crate) audit_trail: Vec<(Event, Timestamp)>,
    /// All claim tokens.
    pub(crate) tokens: Vec<(StepId, ClaimToken)>,
    /// All accepted results.
    pub(crate) accepted: Vec<SubmitResult>,
    clock: Timestamp,
    ids: IdSource,
}

/// Sequential ids.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdSource(u128);

impl IdSource {
    fn next(&mut self) -> u128 {
        self.0 += 1;
        self.0
    }

    pub(crate) fn step(&mut self) -> StepId {
        StepId::from_u128(self.next())
    }

    pub(crate) fn branch(&mut self) -> BranchId {
        BranchId::from_u128(self.next())
    }

    pub(crate) fn review(&mut self) -> ReviewId {
        ReviewId::from_u128(self.next())
    }

    pub(crate) fn artifact(&mut self) -> ArtifactId {
        ArtifactId::from_u128(self.next())
    }

    pub(crate) fn execution(&mut self) -> SkillExecutionId {
        SkillExecutionId::from_u128(self.next())
    }

    pub(crate) fn token(&mut self) -> ClaimToken {
        ClaimToken::new(format!("token {}", self.next()))
    }
}

impl WalkState {
    fn create(rng: &mut Rng<'_>) -> Result<Self, TestCaseError> {
        let mut ids = IdSource::default();
        let command = plans::create(&mut ids, rng);
        let events = onward_core::decide::create::decide(&command)
            .map_err(|refusal| TestCaseError::fail(format!("{refusal}: {command:#?}")))?;
        let audit_trail: Vec<(Event, Timestamp)> =
            events.into_iter().map(|event| (event, BEGIN)).collect();
        let plan = replay(&audit_trail)?;
        Ok(Self {
            plan,
            audit_trail,
            tokens: Vec::new(),
            accepted: Vec::new(),
            clock: BEGIN,
            ids,
        })
    }

    /// The source of new ids.
    pub(crate) fn ids(&mut self) -> &mut IdSource {
        &mut self.ids
    }

    /// Whether any step is stalled.
    pub(crate) fn has_stalls(&self) -> bool {
        !self.plan.stalls(self.clock, None).is_empty()
    }

    /// Moves the clock, usually forward. Sometimes it is wrong for one round.
    fn advance_clock(&mut self, rng: &mut Rng<'_>) -> Timestamp {
        let stall_at = self.plan.next_stall_at(self.clock, None);
        let next = match rng.below(18) {
            0..=4 => self.offset_by(1_000),
            5 => self.clock,
            6 => self.offset_by(1),
            7 => self.offset_by(60_000),
            8 => self.offset_by(31 * 60_000),
            9 => self.offset_by(2 * 3_600_000),
            10 | 11 => stall_at.unwrap_or(self.clock),
            12 | 13 => stall_at.map_or(self.clock, Timestamp::next),
            14 => self.offset_by(-5_000),
            15 => self.offset_by(-3_600_000),
            16 => self.offset_by(86_400_000),
            _ => {
                let wrong = [Timestamp::MAX, Timestamp::MIN, self.offset_by(0)];
                return rng.pick(&wrong).copied().unwrap_or(self.clock);
            }
        };
        self.clock = next;
        next
    }

    fn offset_by(&self, millis: i64) -> Timestamp {
        Timestamp::from_millis(self.clock.as_millis().saturating_add(millis))
    }

    fn record(&mut self, command: &Command, events: &[Event], at: Timestamp) {
        if let Command::SubmitResult(submit) = command
            && !events.is_empty()
        {
            self.accepted.push(submit.clone());
        }
        for event in events {
            if let Event::StepStarted { step, claim } = event {
                self.tokens.push((*step, claim.token.clone()));
            }
            self.audit_trail.push((event.clone(), at));
        }
    }
}

/// Builds a plan from an audit trail.
pub(crate) fn replay(audit_trail: &[(Event, Timestamp)]) -> Result<Plan, TestCaseError> {
    Plan::replay(audit_trail.iter().map(|(event, at)| (event, *at)))
        .map_err(|error| TestCaseError::fail(format!("cannot replay the audit trail: {error}")))
}

/// The creation event.
pub(crate) fn creation(audit_trail: &[(Event, Timestamp)]) -> &Created {
    match audit_trail.first() {
        Some((
            Event::PlanModified {
                change: Change::Created(created),
                ..
            },
            _,
        )) => created,
        other => panic!("the audit trail starts with {other:?}"),
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

/// A duration in milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
