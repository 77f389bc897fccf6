//! Checks the recorded history of agents against the database.
//!
//! Every acknowledged call must be one commit of its author with the acknowledged content. Any
//! other commit of the author must be the complete effect of a call without a known outcome.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::event::{Change, ReviewAction};
use onward_core::{Event, PlanId, StepStatus};
use onward_engine::{Caller, Engine};
use onward_store::Entry;

use crate::agents::audit_trails::{self, AuditTrails};
use crate::agents::commits;
use crate::agents::history::{Call, Claim, FailureKind, Record, RecordKind, Response, digest};

/// Counts of a check.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    pub plans: u64,
    pub events: u64,
    /// Acknowledged calls, all of them stored.
    pub acknowledged: usize,
    /// Calls without a known outcome that are stored completely.
    pub unacknowledged: usize,
}

/// Panics with a list of all violations.
pub async fn check(engine: &Engine, caller: &Caller, records: &[Record]) -> Summary {
    let verified = engine.verify(caller).await.expect("verify ran");
    let mut violations: Vec<String> = verified
        .inconsistencies
        .iter()
        .map(|found| format!("plan {:?}: {}", found.plan, found.message))
        .collect();
    let audit_trails = audit_trails::read(engine, caller).await;
    for (plan, entries) in &audit_trails {
        let found = commits::violations(entries);
        violations.extend(
            found
                .into_iter()
                .map(|violation| format!("plan `{plan}`: {violation}")),
        );
    }
    let mut summary = Summary {
        plans: verified.plans,
        events: verified.events,
        acknowledged: 0,
        unacknowledged: 0,
    };
    let mut agents: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records {
        agents.entry(&record.agent).or_default().push(record);
    }
    let mut commits_by_author = group_by_author(&audit_trails);
    for (agent, records) in agents {
        let commits = commits_by_author.remove(agent).unwrap_or_default();
        let history = AgentHistory {
            agent,
            audit_trails: &audit_trails,
            commits,
        };
        history.check(&records, &mut summary, &mut violations);
    }
    violations.extend(check_rows(engine, caller, records).await);
    assert!(
        violations.is_empty(),
        "{} violations:\n{}",
        violations.len(),
        violations.join("\n")
    );
    summary
}

/// The plan and the entries of a commit.
type Commit<'t> = (PlanId, &'t [Entry]);

fn group_by_author(audit_trails: &AuditTrails) -> BTreeMap<&str, Vec<Commit<'_>>> {
    let mut all: BTreeMap<&str, Vec<Commit<'_>>> = BTreeMap::new();
    for (plan, entries) in audit_trails {
        for commit in audit_trails::commits(entries) {
            all.entry(&commit[0].author.name)
                .or_default()
                .push((*plan, commit));
        }
    }
    all
}

/// The commits of one agent that are not matched to a recorded call yet.
struct AgentHistory<'t> {
    agent: &'t str,
    audit_trails: &'t AuditTrails,
    commits: Vec<Commit<'t>>,
}

impl AgentHistory<'_> {
    fn check(mut self, records: &[&Record], summary: &mut Summary, violations: &mut Vec<String>) {
        let mut pending = None;
        let mut uncertain = Vec::new();
        let mut no_changes = 0;
        for record in records {
            match &record.kind {
                RecordKind::Ready => {}
                RecordKind::Call(call) => pending = Some(call),
                RecordKind::Response(response) => {
                    let call = pending.take();
                    match response {
                        Response::Repeated => {}
                        Response::NoChange { .. } => no_changes += 1,
                        Response::Failed {
                            kind: FailureKind::OutcomeUnknown,
                            ..
                        } => uncertain.extend(call),
                        Response::Failed { .. } => {}
                        response if self.remove_commit_of(response) => summary.acknowledged += 1,
                        response => violations.push(format!(
                            "{}: acknowledged, but not stored: {response:?}",
                            self.agent
                        )),
                    }
                }
            }
        }
        uncertain.extend(pending);
        let kinds: Vec<&RecordKind> = records.iter().map(|record| &record.kind).collect();
        let failed_calls: Vec<_> = kinds
            .windows(2)
            .filter(|pair| matches!(pair[1], RecordKind::Response(Response::Failed { .. })))
            .collect();
        for (plan, commit) in std::mem::take(&mut self.commits) {
            if no_changes > 0 && assigns_nothing(commit) {
                no_changes -= 1;
                continue;
            }
            let index = uncertain
                .iter()
                .position(|call| self.is_complete_effect(call, plan, commit));
            match index {
                Some(index) => {
                    uncertain.remove(index);
                    summary.unacknowledged += 1;
                }
                None => violations.push(format!(
                    "{}: commit {} of plan `{plan}` is not acknowledged or not complete: {:?}; \
                     failed calls: {failed_calls:?}",
                    self.agent,
                    commit[0].commit_seq,
                    commit.iter().map(|entry| &entry.event).collect::<Vec<_>>()
                )),
            }
        }
    }

    /// Removes the commit that the response acknowledges, so that it cannot match another response.
    fn remove_commit_of(&mut self, response: &Response) -> bool {
        let found = self
            .commits
            .iter()
            .position(|(plan, commit)| self.acknowledges(response, *plan, commit));
        found.map(|index| self.commits.remove(index)).is_some()
    }

    fn acknowledges(&self, response: &Response, committed_plan: PlanId, commit: &[Entry]) -> bool {
        let has =
            |matches: &dyn Fn(&Event) -> bool| commit.iter().any(|entry| matches(&entry.event));
        match response {
            Response::Created { plan, digest } => {
                committed_plan == *plan && has(&|event| is_creation(event, digest))
            }
            Response::Claimed { plan, claim } => {
                committed_plan == *plan && self.assigns(committed_plan, commit, claim)
            }
            Response::Completed {
                plan,
                step,
                digest,
                next,
            } => {
                let assigned = next
                    .as_ref()
                    .is_none_or(|claim| self.assigns(committed_plan, commit, claim));
                committed_plan == *plan
                    && assigned
                    && has(&|event| is_completion(event, digest) && event.step() == Some(*step))
            }
            Response::LateResultKept {
                plan,
                artifact: kept,
                ..
            } => {
                committed_plan == *plan
                    && has(&|event| match event {
                        Event::LateResultKept { artifact, .. } => artifact.to_string() == *kept,
                        _ => false,
                    })
            }
            Response::ProgressRecorded {
                plan,
                step: expected_step,
                note: expected_note,
            } => {
                committed_plan == *plan
                    && has(&|event| match event {
                        Event::StepProgressed {
                            step,
                            note: Some(note),
                            ..
                        } => step == expected_step && note == expected_note,
                        _ => false,
                    })
            }
            Response::ReviewRequested {
                plan,
                step: expected_step,
                review: expected_review,
            } => {
                committed_plan == *plan
                    && has(&|event| match event {
                        Event::UserReviewed { step, review, .. } => {
                            step == expected_step && review.to_string() == *expected_review
                        }
                        _ => false,
                    })
            }
            Response::ReviewDecided {
                plan,
                step: expected_step,
                feedback: expected_feedback,
            } => {
                committed_plan == *plan
                    && has(&|event| {
                        let Event::UserReviewed {
                            step,
                            action: ReviewAction::Decided { feedback, .. },
                            ..
                        } = event
                        else {
                            return false;
                        };
                        step == expected_step && feedback.as_ref() == Some(expected_feedback)
                    })
            }
            Response::Modified { plan, seq } => {
                committed_plan == *plan
                    && commit.last().is_some_and(|last| last.seq == *seq)
                    && has(&|event| matches!(event, Event::PlanModified { .. }))
            }
            Response::Repeated | Response::NoChange { .. } | Response::Failed { .. } => false,
        }
    }

    /// Whether the commit starts this claim, or delivers a reviewer's feedback to its holder.
    fn assigns(&self, plan: PlanId, commit: &[Entry], expected: &Claim) -> bool {
        let starts = |entry: &Entry| match &entry.event {
            Event::StepStarted { step, claim } => {
                *step == expected.step
                    && claim.attempt == expected.attempt
                    && claim.token.as_str() == expected.token
            }
            _ => false,
        };
        let delivers = |entry: &Entry| match &entry.event {
            Event::FeedbackDelivered { step, .. } => *step == expected.step,
            _ => false,
        };
        let entries = self.audit_trails.get(&plan).map_or(&[][..], Vec::as_slice);
        commit.iter().any(starts) || (commit.iter().any(delivers) && entries.iter().any(starts))
    }

    /// Whether the commit is the complete effect of this call.
    fn is_complete_effect(&self, call: &Call, plan: PlanId, commit: &[Entry]) -> bool {
        let has =
            |matches: &dyn Fn(&Event) -> bool| commit.iter().any(|entry| matches(&entry.event));
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
            Call::Next => has(&is_assignment) || assigns_nothing(commit),
            Call::Submit { digest, claim_next } => {
                let result_kept = has(&|event| matches!(event, Event::LateResultKept { .. }));
                let index = commit
                    .iter()
                    .position(|entry| is_completion(&entry.event, digest));
                let assigns = index.is_some_and(|index| {
                    commit[index..]
                        .iter()
                        .any(|entry| is_assignment(&entry.event))
                });
                let entries = self.audit_trails.get(&plan).map_or(&[][..], Vec::as_slice);
                let none_ready = || {
                    commits::plan_after(entries, commit)
                        .is_some_and(|plan| !commits::has_ready_step(&plan))
                };
                result_kept
                    || (index.is_some()
                        && if *claim_next {
                            assigns || none_ready()
                        } else {
                            !assigns
                        })
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

fn is_creation(event: &Event, expected: &str) -> bool {
    match event {
        Event::PlanModified {
            change: Change::Created(created),
            ..
        } => digest(created) == expected,
        _ => false,
    }
}

fn is_completion(event: &Event, expected: &str) -> bool {
    match event {
        Event::StepCompleted { result, .. } => digest(&**result) == expected,
        _ => false,
    }
}

fn is_assignment(event: &Event) -> bool {
    matches!(
        event,
        Event::StepStarted { .. } | Event::FeedbackDelivered { .. }
    )
}

/// Whether the commit is the effect of a request for the next step that assigned none.
fn assigns_nothing(commit: &[Entry]) -> bool {
    commit.iter().all(|entry| {
        matches!(
            entry.event,
            Event::BudgetExhausted { .. }
                | Event::PlanStalled { .. }
                | Event::PlanResumed { .. }
                | Event::StepFailed { .. }
                | Event::StepRequeued { .. }
                | Event::PlanCompleted
        )
    })
}

/// Checks acknowledged results and stored late results against the rows.
async fn check_rows(engine: &Engine, caller: &Caller, records: &[Record]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut done: BTreeMap<PlanId, BTreeSet<_>> = BTreeMap::new();
    let mut kept: BTreeMap<PlanId, Vec<(&str, &str)>> = BTreeMap::new();
    for record in records {
        match &record.kind {
            RecordKind::Response(Response::Completed { plan, step, .. }) => {
                done.entry(*plan).or_default().insert(*step);
            }
            RecordKind::Response(Response::LateResultKept {
                plan,
                artifact,
                text,
            }) => {
                kept.entry(*plan).or_default().push((artifact, text));
            }
            RecordKind::Ready | RecordKind::Call(_) | RecordKind::Response(_) => {}
        }
    }
    for (plan, mut steps) in done {
        let completed = Some(StepStatus::Completed);
        match engine.list_steps(caller, plan, completed, 0, 100_000).await {
            Ok(page) => page.steps.iter().for_each(|step| {
                steps.remove(&step.id);
            }),
            Err(error) => violations.push(format!("plan `{plan}`: {error}")),
        }
        violations.extend(
            steps
                .iter()
                .map(|step| format!("step `{step}` is not completed")),
        );
    }
    for (plan, kept) in kept {
        let document = engine.export(caller, plan).await;
        let document = document.unwrap_or_else(|error| error.to_string().into());
        let artifacts = document["artifacts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for (id, text) in kept {
            let stored = artifacts.iter().any(|artifact| {
                let content = artifact["content"].as_str().unwrap_or_default();
                artifact["artifactId"] == id && content.contains(text)
            });
            if !stored {
                violations.push(format!("artifact `{id}` does not contain `{text}`"));
            }
        }
    }
    violations
}
