//! The check of one plan.

use std::sync::Arc;

use onward_core::attention::{Word, attention, no_agent_at};
use onward_core::command::HandleStalls;
use onward_core::decide::handle_stalls;
use onward_core::finding::Finding;
use onward_core::next_check::{self, Due};
use onward_core::watcher::Watcher;
use onward_core::{PlanHead, Timestamp};
use onward_store::{Cached, DuePlan, Facts, Notifications, Pipeline, PlanLists, Transitions, Tx};

use super::deadlines;
use crate::agent::tool_calls::RETRY_AFTER;
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{CommandContext, CommandOutcome, run_loaded};

/// Outcome of a check.
pub(super) enum Checked {
    /// The check acted on the plan.
    Changed,
    Unchanged,
    /// The plan could not be checked.
    Failed(String),
}

impl Engine {
    /// Checks a plan. One that fails must not prevent checks of the others: it is postponed.
    pub(super) async fn check(
        &self,
        due: &DuePlan,
        watcher: Watcher,
        pipeline: &Pipeline,
    ) -> Checked {
        let now = self.now();
        let error = match self.check_plan(due, watcher, now, pipeline).await {
            Ok(has_changed) => {
                self.sweep_waker.reached(due.plan);
                return if has_changed {
                    Checked::Changed
                } else {
                    Checked::Unchanged
                };
            }
            Err(error) => error,
        };
        let is_reachable = !matches!(
            error,
            Error::Store(
                onward_store::Error::Unavailable { .. }
                    | onward_store::Error::Overloaded(_)
                    | onward_store::Error::LostRace
            )
        );
        if !is_reachable || self.postpone(due, now, pipeline).await.is_err() {
            self.sweep_waker.postpone(due.plan, now);
        }
        Checked::Failed(error.to_string())
    }

    /// Postpones the next check of a damaged plan.
    async fn postpone(
        &self,
        due: &DuePlan,
        now: Timestamp,
        pipeline: &Pipeline,
    ) -> Result<(), Error> {
        let plan = due.plan;
        let later = now.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX);
        let postpone = self.store.transition_in(pipeline, &due.tenant, move |tx| {
            Box::pin(async move {
                Cached(Transitions(tx)).due(plan, Due::At(later));
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(postpone.await?)
    }

    /// Checks one plan, acts on its reviews and stalls, and schedules the next check. Returns true if
    /// it acted.
    async fn check_plan(
        &self,
        due: &DuePlan,
        watcher: Watcher,
        now: Timestamp,
        pipeline: &Pipeline,
    ) -> Result<bool, Error> {
        let caller = Caller::internal(Arc::clone(&due.tenant), "sweep");
        let plan = due.plan;
        let ctx = CommandContext {
            now,
            author: caller.author(None),
            watcher: Some(watcher),
            no_agent_after: self.no_agent_after,
        };
        let acted = self
            .store
            .transition_in(pipeline, &caller.tenant, move |tx| {
                let ctx = ctx.clone();
                Box::pin(async move {
                    let command = HandleStalls::default();
                    let watcher = ctx.watcher;
                    let loaded = Facts(tx).stalls_of(plan, &command, watcher, now).await?;
                    let Some((mut facts, next_stall_at)) = loaded else {
                        Cached(Transitions(tx)).due(plan, Due::Never);
                        return Ok(false);
                    };
                    let reviews = deadlines::handle(tx, &facts.head, &ctx).await?;
                    if reviews.commit_seq.is_some() {
                        let changed = Facts(tx).stalls_of(plan, &command, watcher, now).await?;
                        facts = changed.map_or(facts, |(facts, _)| facts);
                    }
                    add_stall_notifications(tx, &facts, &command, now);
                    let changed_at = facts.changed_at;
                    match run_loaded(tx, facts, &command, &ctx, reviews.commit_seq)? {
                        CommandOutcome::Applied(done) => {
                            let has_changed =
                                reviews.commit_seq.is_some() || !done.events.is_empty();
                            let idle = report_no_agent(tx, &done.head, &ctx).await?;
                            let checked = handle_stalls::Facts {
                                changed_at: if has_changed { now } else { changed_at },
                                head: done.head,
                                in_progress: done.steps,
                                watcher,
                            };
                            let next = if checked.head.status().is_terminal() {
                                None
                            } else {
                                let stalls = next_check::after_check(&checked, next_stall_at, now);
                                stalls.into_iter().chain(idle).chain(reviews.next_at).min()
                            };
                            Cached(Transitions(tx)).due(plan, next.map_or(Due::Never, Due::At));
                            Ok(has_changed)
                        }
                        CommandOutcome::Rejected { refusal, .. } => Err(Error::from(refusal)),
                        CommandOutcome::NotFound => Ok(false),
                    }
                })
            });
        acted.await
    }
}

/// Queues a notification for every stall of a plan, unless its policy ignores stalls.
fn add_stall_notifications(
    tx: &mut Tx,
    facts: &handle_stalls::Facts,
    command: &HandleStalls,
    now: Timestamp,
) {
    for stall in handle_stalls::notifiable_stalls(facts, command, now) {
        Notifications(tx).add_notice(facts.head.id, &Finding::from_stall(&stall), now);
    }
}

/// Queues a notification for a plan on which no agent works or can work, once per period without
/// activity. A
/// user's own action delays it: they know the plan. Returns when to check again, if not yet.
async fn report_no_agent(
    tx: &mut Tx,
    head: &PlanHead,
    ctx: &CommandContext,
) -> Result<Option<Timestamp>, Error> {
    let limit = ctx.no_agent_after;
    if no_agent_at(head, ctx.now, limit).is_none() {
        return Ok(None);
    }
    let Some(listed) = PlanLists(tx).listed(head.id, ctx.now).await? else {
        return Ok(None);
    };
    let active_at = listed.sheet.acted_at;
    let Some(due_at) = no_agent_at(head, active_at, limit) else {
        return Ok(None);
    };
    let due_at = match &ctx.watcher {
        Some(watcher) => watcher.deadline(active_at, due_at),
        None => due_at,
    };
    if ctx.now <= due_at {
        return Ok(Some(due_at.next()));
    }
    let attention = attention(head, &listed.facts, ctx.now, limit);
    let finding = match attention.word {
        Word::NoAgent => Finding::no_agent(attention.since),
        Word::Blocked => Finding::blocked(attention.since),
        Word::Stuck
        | Word::NeedsYou
        | Word::Working
        | Word::NotStarted
        | Word::UnfinishedList
        | Word::Done
        | Word::DoneWithFailures
        | Word::Failed
        | Word::Cancelled => return Ok(None),
    };
    Notifications(tx).add_notice(head.id, &finding, ctx.now);
    Ok(None)
}
