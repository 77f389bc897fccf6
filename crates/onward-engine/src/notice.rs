//! What people are told of when nobody looks, and how far the telling got.
//!
//! A notice is written in the transaction of the change that it is about, so none is lost and none is
//! made up; the same finding twice is one notice. Whoever tells takes a notice first, in a transaction:
//! for a while nobody else tries it, so several servers tell it once. What a server took and did not
//! get told, because it ended in between, is tried again under the same key.

use std::sync::Arc;
use std::time::Duration;

use onward_core::finding::Kind;
use onward_core::role::Permission;
use onward_core::{PlanStatus, StepId, Timestamp};
use onward_store::{Delivery, Notice, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// How long nobody else tries a notice that was taken. Longer than any try takes.
pub const HELD: Duration = Duration::from_secs(60);
/// How often a notice is tried.
pub const TRIES: u32 = 8;
/// A notice that is older when somebody could first be told is no news.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// Characters that are kept of why a try came to nothing.
const LONGEST_ERROR: usize = 300;

/// How long after a try the next one comes: seconds at first, hours in the end.
pub fn pause_after(tries: u32) -> Duration {
    Duration::from_secs(match tries {
        0 | 1 => 1,
        2 => 10,
        3 => 60,
        4 => 5 * 60,
        5 => 30 * 60,
        6 => 2 * 60 * 60,
        _ => 6 * 60 * 60,
    })
}

/// A notice with what people want to know of its plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The notice.
    pub notice: Notice,
    /// The plan's name.
    pub plan_name: String,
    /// Where the plan stands.
    pub plan_status: PlanStatus,
    /// What the plan's policy does about a stall.
    pub on_stall: onward_core::policy::OnStall,
    /// The place of the step that it is about, and its title.
    pub step: Option<(StepId, u32, Option<String>)>,
}

/// What became of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// They were told.
    Sent,
    /// They could not be told, and why.
    Failed(String),
}

/// What is to be told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Taken {
    /// What the caller has taken, and tells now.
    pub notices: Vec<Told>,
    /// When there is something to be told next.
    pub next_at: Option<Timestamp>,
}

impl Engine {
    /// Takes what is to be told of a tenant, of these kinds; the rest is put aside. For whoever runs
    /// the server.
    pub async fn take_notices(
        &self,
        tenant: &Arc<str>,
        kinds: &[Kind],
        limit: u32,
    ) -> Result<Taken, Error> {
        let now = self.now();
        let next = self
            .store
            .read(tenant, |tx| Box::pin(async { tx.next_notice_at().await }));
        // Mostly there is nothing, which is found out without holding anybody up.
        let next_at: Option<Timestamp> = next.await?;
        if next_at.is_none_or(|at| at > now) {
            let notices = Vec::new();
            return Ok(Taken { notices, next_at });
        }
        let kinds: Arc<[Kind]> = kinds.into();
        let taken = self.store.write(tenant, move |tx| {
            let kinds = Arc::clone(&kinds);
            Box::pin(async move {
                let mut notices = Vec::new();
                for notice in tx.notices_due(now, limit).await? {
                    notices.extend(take(tx, notice, &kinds, now).await?);
                }
                let next_at = tx.next_notice_at().await?;
                Ok::<Taken, Error>(Taken { notices, next_at })
            })
        });
        taken.await
    }

    /// Writes down what became of a try. Where somebody else tried it meanwhile, theirs counts.
    pub async fn notice_tried(
        &self,
        tenant: &Arc<str>,
        notice: &Notice,
        tried: Tried,
    ) -> Result<Delivery, Error> {
        let mut notice = notice.clone();
        let now = self.now();
        match tried {
            Tried::Sent => end(&mut notice, Delivery::Sent, now),
            Tried::Failed(why) => {
                notice.last_error = Some(why.chars().take(LONGEST_ERROR).collect());
                match notice.tries >= TRIES {
                    true => end(&mut notice, Delivery::GivenUp, now),
                    false => notice.next_at = Some(after(now, pause_after(notice.tries))),
                }
            }
        }
        let delivery = notice.delivery;
        let written = self.store.write(tenant, move |tx| {
            let notice = notice.clone();
            Box::pin(async move {
                tx.change_notice(&notice, notice.tries);
                Ok::<(), onward_store::Error>(())
            })
        });
        written.await?;
        Ok(delivery)
    }

    /// What was found last, the newest first.
    pub async fn notices(&self, caller: &Caller, limit: u32) -> Result<Vec<Notice>, Error> {
        caller.allow(Permission::Read)?;
        let notices = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.notices(limit).await })
        });
        Ok(notices.await?)
    }

    /// What was found after an instant, the oldest first, with what people want to know of it.
    pub async fn notices_after(
        &self,
        caller: &Caller,
        at: Timestamp,
        limit: u32,
    ) -> Result<Vec<Told>, Error> {
        caller.allow(Permission::Read)?;
        let notices = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let mut told = Vec::new();
                for notice in tx.notices_after(at, limit).await? {
                    told.extend(with_plan(tx, notice).await?);
                }
                Ok::<Vec<Told>, Error>(told)
            })
        });
        notices.await
    }
}

/// Takes one notice, unless nobody wants to hear of it.
async fn take(
    tx: &mut Tx,
    mut notice: Notice,
    kinds: &[Kind],
    now: Timestamp,
) -> Result<Option<Told>, Error> {
    let before = notice.tries;
    if !kinds.contains(&notice.finding.kind) {
        end(&mut notice, Delivery::Unwanted, now);
    } else if before == 0 && now.since(notice.found_at) > OLD {
        notice.last_error = Some("nobody could be told for a day".to_owned());
        end(&mut notice, Delivery::GivenUp, now);
    } else if before >= TRIES {
        // Whoever tried it last ended before they could say what came of it.
        notice.last_error = Some("the server ended during the last try".to_owned());
        end(&mut notice, Delivery::GivenUp, now);
    } else {
        notice.tries = before.saturating_add(1);
        notice.next_at = Some(after(now, HELD));
    }
    tx.change_notice(&notice, before);
    match notice.delivery {
        Delivery::Waiting => with_plan(tx, notice).await,
        Delivery::Sent | Delivery::GivenUp | Delivery::Unwanted => Ok(None),
    }
}

fn end(notice: &mut Notice, delivery: Delivery, now: Timestamp) {
    notice.delivery = delivery;
    notice.next_at = None;
    notice.ended_at = Some(now);
}

fn after(now: Timestamp, span: Duration) -> Timestamp {
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// None where the plan is gone, and its notices with it.
async fn with_plan(tx: &mut Tx, notice: Notice) -> Result<Option<Told>, Error> {
    let Some(sheet) = tx.sheet(notice.plan).await? else {
        return Ok(None);
    };
    let step = match notice.finding.step {
        Some(step) => tx.sheet_of_step(step).await?,
        None => None,
    };
    let step = step.map(|(_, step)| (step.id(), step.order, step.spec.title.clone()));
    Ok(Some(Told {
        plan_name: sheet.brief.name,
        plan_status: sheet.head.status(),
        on_stall: sheet.head.on_stall,
        step,
        notice,
    }))
}
