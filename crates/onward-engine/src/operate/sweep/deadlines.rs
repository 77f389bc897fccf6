//! Deadlines of reviews: reminds users, or decides as the review states.

use onward_core::command::{DecideReview, Reviewer};
use onward_core::event::Decision;
use onward_core::finding::Finding;
use onward_core::step::Review;
use onward_core::{Command, PlanHead, StepId, Timestamp};
use onward_store::{Notifications, Steps, Tx};
use serde_json::Map;

use crate::error::Error;
use crate::run::{CommandContext, CommandOutcome, Target, run};

/// Maximum number of pending reviews that are read of one plan.
const MAX_REVIEWS: u32 = 10_000;

/// The handled deadlines of a plan.
#[derive(Default)]
pub(super) struct Handled {
    /// The sequence number of the transaction's first event, if a review was decided.
    pub(super) commit_seq: Option<u64>,
    /// The next deadline.
    pub(super) next_at: Option<Timestamp>,
}

/// Handles the deadlines that have passed. The plan is locked.
pub(super) async fn handle(
    tx: &mut Tx,
    head: &PlanHead,
    ctx: &CommandContext,
) -> Result<Handled, Error> {
    let mut handled = Handled::default();
    let mut has_reviews = has_reviews(head);
    while has_reviews {
        let steps = Steps(tx).under_review(head.id, MAX_REVIEWS).await?;
        let mut due = None;
        handled.next_at = None;
        for step in &steps {
            let Some(review) = step.open_review() else {
                continue;
            };
            let Some(deadline) = review.options.deadline else {
                continue;
            };
            let step = step.id();
            if deadline.at > ctx.now {
                handled.next_at = handled.next_at.into_iter().chain([deadline.at]).min();
            } else if let Some(decision) = Decision::at_deadline(deadline.action) {
                due = due.or(Some((step, review, decision)));
            } else {
                // One notification per review, by its key.
                let finding = Finding::review_due(step, review);
                Notifications(tx).add_notice(head.id, &finding, ctx.now);
            }
        }
        let Some((step, review, decision)) = due else {
            return Ok(handled);
        };
        // A decision can change the other steps, so they are read again.
        let command = decide(step, review, decision);
        match run(tx, Target::Step(step), &command, ctx, handled.commit_seq).await? {
            CommandOutcome::Applied(done) => {
                handled.commit_seq.get_or_insert(done.commit_seq);
                has_reviews = self::has_reviews(&done.head);
            }
            CommandOutcome::Rejected { refusal, .. } => return Err(refusal.into()),
            CommandOutcome::NotFound => return Ok(handled),
        }
    }
    handled.next_at = None;
    Ok(handled)
}

fn has_reviews(head: &PlanHead) -> bool {
    !head.status().is_terminal() && head.counts.awaiting_input > 0
}

fn decide(step: StepId, review: &Review, decision: Decision) -> Command {
    Command::from(DecideReview {
        step,
        review: Some(review.id),
        reviewer: Reviewer::Policy,
        decision,
        feedback: None,
        answers: Map::new(),
        token: None,
        session: None,
    })
}
