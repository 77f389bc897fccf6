//! A walk: a plan is made, then command after command is decided and applied, and after each one a
//! property looks at what happened.
//!
//! Whatever the property, a walk fails where an accepted command cannot be applied: no decision may
//! contradict the state that it was made on.

use std::fmt::{self, Write as _};
use std::time::Duration;

use onward_core::apply::Plan;
use onward_core::command::SubmitResult;
use onward_core::event::{Change, Created};
use onward_core::id::{ArtifactId, BranchId, ClaimToken, ReviewId, SkillExecutionId, StepId};
use onward_core::{Command, Event, Refusal, Timestamp, decide};
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::dice::Dice;
use crate::{commands, nonsense, plans};

/// When every walk begins.
const BEGIN: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// The numbers that a walk is made from.
#[derive(Clone)]
pub(crate) struct Walk {
    creation: Vec<u16>,
    turns: Vec<[u16; 14]>,
    wild: bool,
}

/// Walks with a little nonsense in them.
pub(crate) fn walks() -> impl Strategy<Value = Walk> {
    of_kind(false)
}

/// Walks of which half is nonsense, with ids that are not fresh among it.
pub(crate) fn wild_walks() -> impl Strategy<Value = Walk> {
    of_kind(true)
}

fn of_kind(wild: bool) -> impl Strategy<Value = Walk> {
    let creation = prop::collection::vec(any::<u16>(), 80);
    let turns = prop::collection::vec(prop::array::uniform14(any::<u16>()), 1..60);
    (creation, turns).prop_map(move |(creation, turns)| Walk {
        creation,
        turns,
        wild,
    })
}

/// So many cases in an ordinary run; `PROPTEST_CASES` scales it.
pub(crate) fn cases(ordinary: u32) -> Config {
    let config = Config::default();
    Config {
        cases: (config.cases.saturating_mul(ordinary) / 256).max(1),
        max_shrink_iters: 20_000,
        ..config
    }
}

/// One turn of a walk.
pub(crate) struct Moment<'w> {
    /// The plan that the command was decided on.
    pub(crate) before: &'w Plan,
    pub(crate) command: &'w Command,
    pub(crate) now: Timestamp,
    pub(crate) answer: &'w Result<Vec<Event>, Refusal>,
    /// The plan after it, and what else is known of the walk.
    pub(crate) world: &'w World,
}

impl Moment<'_> {
    /// The plan after the command.
    pub(crate) fn after(&self) -> &Plan {
        &self.world.plan
    }

    /// The events of this turn; none where the command was refused.
    pub(crate) fn events(&self) -> &[Event] {
        self.answer.as_deref().unwrap_or_default()
    }

    /// Each event of this turn, with the plan just before and just after it.
    pub(crate) fn each_event(
        &self,
        mut look: impl FnMut(&Plan, &Event, &Plan) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut plan = self.before.clone();
        for event in self.events() {
            let before = plan.clone();
            apply(&mut plan, std::slice::from_ref(event), self.now)?;
            look(&before, event, &plan)?;
        }
        Ok(())
    }
}

/// Applies what was decided; that it cannot be is a failure.
pub(crate) fn apply(plan: &mut Plan, events: &[Event], at: Timestamp) -> Result<(), TestCaseError> {
    plan.apply_all(events, at).map_err(|why| {
        TestCaseError::fail(format!(
            "what was decided cannot be applied: {why}\n{events:#?}"
        ))
    })
}

/// A plan, and what the commands to come need to know of its past.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    /// Every event, from the first.
    pub(crate) trail: Vec<(Event, Timestamp)>,
    /// Every token that was ever given out.
    pub(crate) tokens: Vec<(StepId, ClaimToken)>,
    /// Every result that was accepted.
    pub(crate) accepted: Vec<SubmitResult>,
    clock: Timestamp,
    fresh: Fresh,
}

/// Ids are counted up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fresh(u128);

impl Fresh {
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

impl World {
    fn created(dice: &mut Dice<'_>) -> Result<Self, TestCaseError> {
        let mut fresh = Fresh::default();
        let command = plans::sound(&mut fresh, dice);
        let events = onward_core::decide::create::decide(&command)
            .map_err(|why| TestCaseError::fail(format!("{why}: {command:#?}")))?;
        let trail: Vec<(Event, Timestamp)> =
            events.into_iter().map(|event| (event, BEGIN)).collect();
        let plan = replayed(&trail)?;
        Ok(Self {
            plan,
            trail,
            tokens: Vec::new(),
            accepted: Vec::new(),
            clock: BEGIN,
            fresh,
        })
    }

    /// Something fresh.
    pub(crate) fn fresh(&mut self) -> &mut Fresh {
        &mut self.fresh
    }

    /// Whether a step is past its threshold.
    pub(crate) fn has_stalls(&self) -> bool {
        !self.plan.stalls(self.clock, None).is_empty()
    }

    /// Time passes, mostly forwards; now and then the clock is plainly wrong for one turn.
    fn tick(&mut self, dice: &mut Dice<'_>) -> Timestamp {
        let stall_at = self.plan.next_stall_at(self.clock, None);
        let moved = match dice.below(18) {
            0..=4 => self.later(1_000),
            5 => self.clock,
            6 => self.later(1),
            7 => self.later(60_000),
            8 => self.later(31 * 60_000),
            9 => self.later(2 * 3_600_000),
            10 | 11 => stall_at.unwrap_or(self.clock),
            12 | 13 => stall_at.map_or(self.clock, Timestamp::next),
            14 => self.later(-5_000),
            15 => self.later(-3_600_000),
            16 => self.later(86_400_000),
            _ => {
                let wrong = [Timestamp::MAX, Timestamp::MIN, self.later(0)];
                return dice.pick(&wrong).copied().unwrap_or(self.clock);
            }
        };
        self.clock = moved;
        moved
    }

    fn later(&self, millis: i64) -> Timestamp {
        Timestamp::from_millis(self.clock.as_millis().saturating_add(millis))
    }

    fn remember(&mut self, command: &Command, events: &[Event], at: Timestamp) {
        if let Command::SubmitResult(submit) = command
            && !events.is_empty()
        {
            self.accepted.push(submit.clone());
        }
        for event in events {
            if let Event::StepStarted { step, claim } = event {
                self.tokens.push((*step, claim.token.clone()));
            }
            self.trail.push((event.clone(), at));
        }
    }
}

/// The plan that a trail makes.
pub(crate) fn replayed(trail: &[(Event, Timestamp)]) -> Result<Plan, TestCaseError> {
    Plan::replay(trail.iter().map(|(event, at)| (event, *at)))
        .map_err(|why| TestCaseError::fail(format!("the trail cannot be replayed: {why}")))
}

/// The first event of a trail.
pub(crate) fn creation(trail: &[(Event, Timestamp)]) -> &Created {
    match trail.first() {
        Some((
            Event::PlanModified {
                change: Change::Created(created),
                ..
            },
            _,
        )) => created,
        other => panic!("a trail begins with the plan's creation, not with {other:?}"),
    }
}

impl fmt::Debug for Walk {
    /// One line per turn, without the zeros at its end: they are the same as nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |rolls: &[u16]| {
            let end = rolls.iter().rposition(|roll| *roll != 0);
            format!("{:?}", &rolls[..end.map_or(0, |end| end + 1)])
        };
        writeln!(f, "walk from {}", short(&self.creation))?;
        for turn in &self.turns {
            writeln!(f, "  {}", short(turn))?;
        }
        Ok(())
    }
}

type Told = (Timestamp, Command, Result<Vec<Event>, Refusal>);

impl Walk {
    /// Plays the walk; the property looks at every turn. Answers with the end of it.
    pub(crate) fn play(
        &self,
        mut look: impl FnMut(&Moment<'_>) -> Result<(), TestCaseError>,
    ) -> Result<World, TestCaseError> {
        let mut world = World::created(&mut Dice::new(&self.creation))?;
        let mut story = Vec::new();
        for turn in &self.turns {
            if let Err(failure) = self.turn(&mut world, turn, &mut story, &mut look) {
                return Err(told(failure, creation(&world.trail), &story));
            }
        }
        Ok(world)
    }

    fn turn(
        &self,
        world: &mut World,
        rolls: &[u16],
        story: &mut Vec<Told>,
        look: &mut impl FnMut(&Moment<'_>) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut dice = Dice::new(rolls);
        let now = world.tick(&mut dice);
        let command = if dice.one_in(if self.wild { 2 } else { 8 }) {
            nonsense::command(world, &mut dice, self.wild)
        } else {
            commands::sensible(world, &mut dice)
        };
        let answer = decide(&world.plan, &command, now);
        story.push((now, command.clone(), answer.clone()));
        let before = world.plan.clone();
        if let Ok(events) = &answer {
            apply(&mut world.plan, events, now)?;
            world.remember(&command, events, now);
        }
        look(&Moment {
            before: &before,
            command: &command,
            now,
            answer: &answer,
            world,
        })
    }
}

/// The failure, with how it came to it.
fn told(failure: TestCaseError, created: &Created, story: &[Told]) -> TestCaseError {
    let mut text = format!("{failure}\nhow it came to it:\n{created:?}\n");
    for (now, command, answer) in story {
        let answer = match answer {
            Ok(events) => events
                .iter()
                .map(|event| match event.action() {
                    Some(action) => format!("{} ({action})", event.name()),
                    None => event.name().to_owned(),
                })
                .collect::<Vec<_>>()
                .join(", "),
            Err(refusal) => format!("refused: {refusal}"),
        };
        let mut command = format!("{command:?}");
        if let Some((end, _)) = command.char_indices().nth(600) {
            command.truncate(end);
        }
        let _ = writeln!(text, "{now} {command}\n    → {answer}");
    }
    TestCaseError::fail(text)
}

/// A span in milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
