//! Was every promise kept? What agents were told against what the database holds.
//!
//! Every call that was acknowledged is one commit of its author, with exactly the content that was
//! told. What else an author has in the trails is the one call that nobody answered, whole.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::event::{Change, ReviewAction};
use onward_core::{Event, PlanId, StepStatus};
use onward_engine::{Caller, Engine};
use onward_store::Entry;

use crate::commits;
use crate::history::{Call, Hold, Line, Told, What, digest};
use crate::trails::{self, Trails};

/// What a check looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    pub plans: u64,
    pub events: u64,
    /// Calls that were acknowledged.
    pub told: usize,
    /// Calls that nobody answered, and that are there nevertheless, whole.
    pub unanswered: usize,
}

/// Checks everything, and panics with all that is wrong.
pub async fn check(engine: &Engine, caller: &Caller, lines: &[Line]) -> Sum {
    let verified = engine
        .verify(caller)
        .await
        .expect("the database can be checked");
    let mut broken: Vec<String> = verified
        .faults
        .iter()
        .map(|fault| format!("plan {:?}: {}", fault.plan, fault.what))
        .collect();
    let trails = trails::read(engine, caller).await;
    for (plan, trail) in &trails {
        let faults = commits::faults(trail);
        broken.extend(
            faults
                .into_iter()
                .map(|fault| format!("plan `{plan}`: {fault}")),
        );
    }
    let mut sum = Sum {
        plans: verified.plans,
        events: verified.events,
        told: 0,
        unanswered: 0,
    };
    let mut agents: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        agents.entry(&line.agent).or_default().push(line);
    }
    let mut written = by_author(&trails);
    for (agent, lines) in agents {
        let own = written.remove(agent).unwrap_or_default();
        let account = Account {
            agent,
            trails: &trails,
            own,
        };
        account.settle(&lines, &mut sum, &mut broken);
    }
    broken.extend(in_rows(engine, caller, lines).await);
    assert!(
        broken.is_empty(),
        "{} broken promises:\n{}",
        broken.len(),
        broken.join("\n")
    );
    sum
}

/// A commit: of which plan, and its entries.
type Commit<'t> = (PlanId, &'t [Entry]);

fn by_author(trails: &Trails) -> BTreeMap<&str, Vec<Commit<'_>>> {
    let mut all: BTreeMap<&str, Vec<Commit<'_>>> = BTreeMap::new();
    for (plan, trail) in trails {
        for commit in trails::commits(trail) {
            all.entry(&commit[0].author.name)
                .or_default()
                .push((*plan, commit));
        }
    }
    all
}

/// One agent's lines against its commits.
struct Account<'t> {
    agent: &'t str,
    trails: &'t Trails,
    own: Vec<Commit<'t>>,
}

impl Account<'_> {
    fn settle(mut self, lines: &[&Line], sum: &mut Sum, broken: &mut Vec<String>) {
        let mut asked = None;
        let mut uncertain = Vec::new();
        let mut idle = 0;
        for line in lines {
            match &line.what {
                What::Ready => {}
                What::Asks(call) => asked = Some(call),
                What::Told(told) => {
                    let call = asked.take();
                    match told {
                        Told::Repeated => {}
                        Told::Nothing { .. } => idle += 1,
                        Told::Trouble { hint, .. } if hint.contains("is not known") => {
                            uncertain.extend(call);
                        }
                        Told::Trouble { .. } => {}
                        told if self.take(told) => sum.told += 1,
                        told => broken.push(format!(
                            "{} was told, and it is not there: {told:?}",
                            self.agent
                        )),
                    }
                }
            }
        }
        uncertain.extend(asked);
        let trouble: Vec<&What> = lines.iter().map(|line| &line.what).collect();
        let trouble: Vec<_> = trouble
            .windows(2)
            .filter(|pair| matches!(pair[1], What::Told(Told::Trouble { .. })))
            .collect();
        for (plan, commit) in std::mem::take(&mut self.own) {
            if idle > 0 && is_quiet(commit) {
                idle -= 1;
                continue;
            }
            let fits = uncertain
                .iter()
                .position(|call| self.fits(call, plan, commit));
            match fits {
                Some(place) => {
                    uncertain.remove(place);
                    sum.unanswered += 1;
                }
                None => broken.push(format!(
                    "{} was not told of commit {} of plan `{plan}`, or it is not whole: {:?}; it was \
                     told of trouble: {trouble:?}",
                    self.agent,
                    commit[0].commit_seq,
                    commit.iter().map(|entry| &entry.event).collect::<Vec<_>>()
                )),
            }
        }
    }

    /// Finds the commit that an agent was told of, and takes it off the account: a second answer
    /// needs a second commit.
    fn take(&mut self, told: &Told) -> bool {
        let found = self
            .own
            .iter()
            .position(|(plan, commit)| self.says(told, *plan, commit));
        found.map(|place| self.own.remove(place)).is_some()
    }

    fn says(&self, told: &Told, of: PlanId, commit: &[Entry]) -> bool {
        let has = |such: &dyn Fn(&Event) -> bool| commit.iter().any(|entry| such(&entry.event));
        match told {
            Told::Created { plan, digest } => of == *plan && has(&|event| created(event, digest)),
            Told::Claimed { plan, hold } => of == *plan && self.hands_out(of, commit, hold),
            Told::Completed {
                plan,
                step,
                digest,
                next,
            } => {
                let handed = next
                    .as_ref()
                    .is_none_or(|hold| self.hands_out(of, commit, hold));
                of == *plan
                    && handed
                    && has(&|event| {
                        completed(event, digest)
                            && matches!(event, Event::StepCompleted { step: done, .. } if done == step)
                    })
            }
            Told::Kept {
                plan,
                artifact: kept,
                ..
            } => {
                of == *plan
                    && has(
                        &|event| matches!(event, Event::LateResultKept { artifact, .. } if artifact.to_string() == *kept),
                    )
            }
            Told::Progressed {
                plan,
                step: of_step,
                note: words,
            } => {
                of == *plan
                    && has(
                        &|event| matches!(event, Event::StepProgressed { step, note: Some(note), .. } if step == of_step && note == words),
                    )
            }
            Told::Asked {
                plan,
                step: of_step,
                review: asked,
            } => {
                of == *plan
                    && has(
                        &|event| matches!(event, Event::UserReviewed { step, review, .. } if step == of_step && review.to_string() == *asked),
                    )
            }
            Told::Decided {
                plan,
                step: of_step,
                feedback: words,
            } => {
                of == *plan
                    && has(&|event| {
                        let Event::UserReviewed {
                            step,
                            action: ReviewAction::Decided { feedback, .. },
                            ..
                        } = event
                        else {
                            return false;
                        };
                        step == of_step && feedback.as_ref() == Some(words)
                    })
            }
            Told::Modified { plan, seq } => {
                of == *plan
                    && commit.last().is_some_and(|last| last.seq == *seq)
                    && has(&|event| matches!(event, Event::PlanModified { .. }))
            }
            Told::Repeated | Told::Nothing { .. } | Told::Trouble { .. } => false,
        }
    }

    /// Whether the commit gives out this claim; or tells its holder, once more, of a person's words.
    fn hands_out(&self, plan: PlanId, commit: &[Entry], hold: &Hold) -> bool {
        let starts = |entry: &Entry| match &entry.event {
            Event::StepStarted { step, claim } => {
                *step == hold.step
                    && claim.attempt == hold.attempt
                    && claim.token.as_str() == hold.token
            }
            _ => false,
        };
        let delivers = |entry: &Entry| matches!(&entry.event, Event::FeedbackDelivered { step, .. } if *step == hold.step);
        let trail = self.trails.get(&plan).map_or(&[][..], Vec::as_slice);
        commit.iter().any(starts) || (commit.iter().any(delivers) && trail.iter().any(starts))
    }

    /// Whether the commit is all that this call would have led to.
    fn fits(&self, call: &Call, plan: PlanId, commit: &[Entry]) -> bool {
        let has = |such: &dyn Fn(&Event) -> bool| commit.iter().any(|entry| such(&entry.event));
        match call {
            Call::Create => has(&|event| {
                matches!(
                    event,
                    Event::PlanModified {
                        change: Change::Created(_),
                        ..
                    }
                )
            }),
            Call::Next => has(&is_handing) || is_quiet(commit),
            Call::Submit { digest, claims } => {
                let keeps = has(&|event| matches!(event, Event::LateResultKept { .. }));
                let place = commit
                    .iter()
                    .position(|entry| completed(&entry.event, digest));
                let hands = place.is_some_and(|place| {
                    commit[place..].iter().any(|entry| is_handing(&entry.event))
                });
                let trail = self.trails.get(&plan).map_or(&[][..], Vec::as_slice);
                let none =
                    || commits::after(trail, commit).is_some_and(|plan| !commits::has_ready(&plan));
                keeps || (place.is_some() && if *claims { hands || none() } else { !hands })
            }
            Call::Progress => has(&|event| {
                matches!(
                    event,
                    Event::StepProgressed { .. } | Event::LateResultKept { .. }
                )
            }),
            Call::Review => has(&|event| {
                matches!(
                    event,
                    Event::UserReviewed { .. } | Event::LateResultKept { .. }
                )
            }),
            Call::Decide => has(&|event| matches!(event, Event::UserReviewed { .. })),
            Call::Modify => has(&|event| matches!(event, Event::PlanModified { .. })),
        }
    }
}

fn created(event: &Event, as_told: &str) -> bool {
    match event {
        Event::PlanModified {
            change: Change::Created(created),
            ..
        } => digest(created) == as_told,
        _ => false,
    }
}

fn completed(event: &Event, as_told: &str) -> bool {
    match event {
        Event::StepCompleted { result, .. } => digest(&**result) == as_told,
        _ => false,
    }
}

fn is_handing(event: &Event) -> bool {
    matches!(
        event,
        Event::StepStarted { .. } | Event::FeedbackDelivered { .. }
    )
}

/// What a call for the next step may lead to although it hands nothing out.
fn is_quiet(commit: &[Entry]) -> bool {
    commit.iter().all(|entry| {
        matches!(
            entry.event,
            Event::PlanResumed { .. }
                | Event::StepFailed { .. }
                | Event::StepRequeued { .. }
                | Event::PlanCompleted
        )
    })
}

/// What was told, as it stands in the rows, beside the trail.
async fn in_rows(engine: &Engine, caller: &Caller, lines: &[Line]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut done: BTreeMap<PlanId, BTreeSet<_>> = BTreeMap::new();
    let mut kept: BTreeMap<PlanId, Vec<(&str, &str)>> = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Told(Told::Completed { plan, step, .. }) => {
                done.entry(*plan).or_default().insert(*step);
            }
            What::Told(Told::Kept {
                plan,
                artifact,
                text,
            }) => {
                kept.entry(*plan).or_default().push((artifact, text));
            }
            What::Ready | What::Asks(_) | What::Told(_) => {}
        }
    }
    for (plan, mut steps) in done {
        let completed = Some(StepStatus::Completed);
        match engine.list_steps(caller, plan, completed, 0, 100_000).await {
            Ok(page) => page.steps.iter().for_each(|line| {
                steps.remove(&line.id);
            }),
            Err(why) => broken.push(format!("plan `{plan}`: {why}")),
        }
        broken.extend(
            steps
                .iter()
                .map(|step| format!("step `{step}` is not completed")),
        );
    }
    for (plan, kept) in kept {
        let document = engine.export(caller, plan).await;
        let document = document.unwrap_or_else(|why| why.to_string().into());
        let artifacts = document["artifacts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for (id, text) in kept {
            let whole = artifacts.iter().any(|artifact| {
                let content = artifact["content"].as_str().unwrap_or_default();
                artifact["artifactId"] == id && content.contains(text)
            });
            if !whole {
                broken.push(format!("artifact `{id}` does not hold `{text}`"));
            }
        }
    }
    broken
}
