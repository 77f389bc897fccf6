//! Second half of the execution loop: writes the decision.

use onward_core::StepId;
use onward_core::attention::no_agent_at;
use onward_core::finding::Finding;
use onward_core::id::ArtifactId;
use onward_core::step::StepState;
use onward_core::transition::{Due, Transition};
use onward_store::{Artifacts, Author, Commit, Notifications, Transitions, Tx};

use super::command::{Applied, CommandContext, CommandOutcome, inconsistent_decision};
use super::evaluate::Evaluation;
use crate::error::Error;

/// Applies the events to the loaded facts and writes the changed rows.
pub(super) fn commit(
    tx: &mut Tx,
    evaluation: Evaluation,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<CommandOutcome, Error> {
    let Evaluation {
        head,
        steps,
        independent,
        session,
        events,
        branches,
    } = evaluation;
    let events = match events {
        Ok(events) => events,
        Err(refusal) => return Ok(CommandOutcome::Rejected { refusal, head }),
    };
    // The invalid results that the holders of these steps have submitted so far.
    let kept = steps
        .iter()
        .filter_map(|step| Some((step.id(), step.attempt(), step.claimed_work()?.kept?)));
    let kept: Vec<(StepId, u32, ArtifactId)> = kept.collect();
    let before = head.seq;
    let commit_seq = commit_seq.unwrap_or(before.saturating_add(1));
    let Transition {
        head,
        changed,
        unchanged,
        due,
    } = Transition::new(head, steps, &events, ctx.now).map_err(inconsistent_decision)?;
    // The sweep reports a plan that no agent continues.
    let due = match (due, no_agent_at(&head, ctx.now, ctx.no_agent_after)) {
        (Due::Unchanged, Some(at)) if !events.is_empty() => Due::By(at.next()),
        (due, _) => due,
    };
    let session = ctx.author.session.clone().or(session);
    if !events.is_empty() {
        let author = Author {
            session: session.clone(),
            ..ctx.author.clone()
        };
        Transitions(tx).commit(&Commit {
            before,
            commit_seq,
            head: &head,
            steps: &changed,
            branches: &branches,
            independent,
            events: &events,
            at: ctx.now,
            author: &author,
            acted: ctx.watcher.is_none(),
            due,
        });
    }
    for (id, attempt, artifact) in kept {
        let step = changed.iter().find(|after| after.step.id() == id);
        let superseded = step.is_some_and(|after| match &after.step.state {
            StepState::Completed { .. } => true,
            // After a takeover, the input of the previous holder stays.
            StepState::InProgress(_) | StepState::AwaitingInput { .. } => {
                let kept = after.step.claimed_work().and_then(|work| work.kept);
                after.step.attempt() == attempt && kept != Some(artifact)
            }
            StepState::Pending { .. } | StepState::Skipped { .. } | StepState::Failed { .. } => {
                false
            }
        });
        if superseded {
            Artifacts(tx).discard(artifact);
        }
    }
    for event in &events {
        for finding in Finding::from_event(event, ctx.now) {
            Notifications(tx).add_notice(head.id, &finding, ctx.now);
        }
    }
    let changed = changed.into_iter().map(|after| after.step);
    Ok(CommandOutcome::Applied(Applied {
        head,
        steps: changed.chain(unchanged).collect(),
        events,
        commit_seq,
        due,
        session,
    }))
}
