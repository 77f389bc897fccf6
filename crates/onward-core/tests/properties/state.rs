//! The state of a walk: the plan, its history and the clock.

use onward_core::apply::Plan;
use onward_core::command::SubmitResult;
use onward_core::event::{Change, Created};
use onward_core::id::{ClaimToken, StepId};
use onward_core::{Command, Event, Timestamp};
use proptest::prelude::*;

use crate::ids::IdSource;
use crate::plans;
use crate::rng::Rng;

/// The start time of every walk.
const BEGIN: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// A plan and the part of its history that later commands need.
#[derive(Debug, Clone)]
pub(crate) struct WalkState {
    pub(crate) plan: Plan,
    /// All events.
    pub(crate) audit_trail: Vec<(Event, Timestamp)>,
    /// All claim tokens.
    pub(crate) tokens: Vec<(StepId, ClaimToken)>,
    /// All results that completed their step.
    pub(crate) accepted: Vec<SubmitResult>,
    clock: Timestamp,
    ids: IdSource,
}

impl WalkState {
    pub(crate) fn create(rng: &mut Rng<'_>) -> Result<Self, TestCaseError> {
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
    pub(crate) fn advance_clock(&mut self, rng: &mut Rng<'_>) -> Timestamp {
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

    pub(crate) fn offset_by(&self, millis: i64) -> Timestamp {
        Timestamp::from_millis(self.clock.as_millis().saturating_add(millis))
    }

    pub(crate) fn record(&mut self, command: &Command, events: &[Event], at: Timestamp) {
        let completes = |event: &Event| matches!(event, Event::StepCompleted { .. });
        if let Command::SubmitResult(submit) = command
            && events.iter().any(completes)
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

/// Applies events. Fails the test case if they cannot be applied.
pub(crate) fn apply(plan: &mut Plan, events: &[Event], at: Timestamp) -> Result<(), TestCaseError> {
    plan.apply_all(events, at).map_err(|error| {
        TestCaseError::fail(format!(
            "decided events cannot be applied: {error}\n{events:#?}"
        ))
    })
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
