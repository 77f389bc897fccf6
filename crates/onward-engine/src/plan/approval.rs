//! Approves the start of a plan with edits: the decision and the changes to the steps are one
//! transaction. If one change is rejected, the plan stays under review.

use std::sync::Arc;

use onward_core::command::{DecideReview, Modification, ModifyPlan};
use onward_core::event::RequeueReason;
use onward_core::refusal::Issue;
use onward_core::role::Permission;
use onward_core::{Command, Event, PlanId, Refusal, StepId};
use onward_store::Tx;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Applied, CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

impl Engine {
    /// Decides a review and, if that approves the start of its plan, changes the steps.
    pub(super) async fn decide_with_edits(
        &self,
        caller: &Caller,
        command: DecideReview,
        mut edits: Vec<Modification>,
        ctx: CommandContext,
    ) -> Result<Applied, Error> {
        caller.allow(Permission::Work)?;
        caller.allow(Permission::Intervene)?;
        edits.iter_mut().for_each(sanitize::modification);
        let step = command.step;
        let (command, edits) = (Arc::new(Command::from(command)), Arc::new(edits));
        let done = self.store.write(&caller.tenant, move |tx| {
            let (command, edits, ctx) = (Arc::clone(&command), Arc::clone(&edits), ctx.clone());
            Box::pin(async move { decide(tx, step, &command, &edits, &ctx).await })
        });
        let done = done.await?;
        self.sweep_waker.wake_by(done.due);
        Ok(done)
    }
}

async fn decide(
    tx: &mut Tx,
    step: StepId,
    command: &Command,
    edits: &[Modification],
    ctx: &CommandContext,
) -> Result<Applied, Error> {
    let mut done = match run(tx, Target::Step(step), command, ctx, None).await? {
        CommandOutcome::Applied(done) => done,
        CommandOutcome::Rejected { refusal, .. } => return Err(refusal.into()),
        CommandOutcome::NotFound => {
            let step = step.to_string();
            return Err(Error::StepNotFound { step, kept: None });
        }
    };
    // A repeated decision has made its changes.
    if done.events.is_empty() {
        return Ok(done);
    }
    let approves_start = |event: &Event| {
        let approved = RequeueReason::Approved;
        matches!(event, Event::StepRequeued { reason, .. } if *reason == approved)
    };
    if !done.events.iter().any(approves_start) {
        let message = "requires the decision `approve` on a review of the scope `start`";
        return Err(Error::invalid("edits", message));
    }
    for (index, edit) in edits.iter().enumerate() {
        let command = ModifyPlan::new(edit.clone());
        let changed = modify(tx, done.head.id, command, ctx, done.commit_seq).await?;
        let changed = changed.map_err(|refusal| rejected(index, refusal))?;
        done.head = changed.head;
        done.events.extend(changed.events);
    }
    Ok(done)
}

async fn modify(
    tx: &mut Tx,
    plan: PlanId,
    command: ModifyPlan,
    ctx: &CommandContext,
    commit_seq: u64,
) -> Result<Result<Applied, Refusal>, Error> {
    let command = Command::from(command);
    match run(tx, Target::Plan(plan), &command, ctx, Some(commit_seq)).await? {
        CommandOutcome::Applied(changed) => Ok(Ok(changed)),
        CommandOutcome::Rejected { refusal, .. } => Ok(Err(refusal)),
        CommandOutcome::NotFound => Err(Error::PlanNotFound(plan.to_string())),
    }
}

/// The rejection of a change, with its path.
fn rejected(index: usize, refusal: Refusal) -> Error {
    let path = format!("edits[{index}]");
    let issues = if let Refusal::InvalidInput(issues) = refusal {
        let prefixed = issues.into_iter().map(|issue| Issue {
            path: format!("{path}.{}", issue.path),
            ..issue
        });
        prefixed.collect()
    } else {
        let message = format!("is rejected: {refusal}");
        vec![Issue { path, message }]
    };
    Refusal::InvalidInput(issues).into()
}
