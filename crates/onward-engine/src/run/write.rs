//! Second half of the execution loop: writes the decision.

use onward_core::finding::Finding;
use onward_core::transition::Transition;
use onward_store::{Artifacts, Author, Cached, Commit, Notifications, Transitions, Tx};

use super::command::{Applied, CommandContext, CommandOutcome, inconsistent_decision};
use super::evaluate::Evaluation;
use super::log;
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
    let lines = log::lines(&head, &steps, &events);
    let before = head.seq;
    let commit_seq = commit_seq.unwrap_or(before.saturating_add(1));
    let Transition {
        head,
        changed,
        unchanged,
        due,
        queue,
        budget_changed,
        superseded,
    } = Transition::new(head, steps, &events, ctx.now, ctx.no_agent_after)
        .map_err(inconsistent_decision)?;
    let session = ctx.author.session.clone().or(session);
    if !events.is_empty() {
        let author = Author {
            session: session.clone(),
            ..ctx.author.clone()
        };
        Cached(Transitions(tx)).commit(&Commit {
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
            queue,
            budget_changed,
        });
    }
    log::write_after_commit(tx, head.id, lines, &ctx.author.name, session.as_ref());
    for artifact in superseded {
        Artifacts(tx).discard(artifact);
    }
    for event in &events {
        for finding in Finding::from_event(event, head.origin, ctx.now) {
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
