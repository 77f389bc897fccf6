//! How a session is: its turn, its calls, its plans. It reads, and changes nothing.

use onward_core::call::owner::death;
use onward_core::call::{CallStatus, is_stale};
use onward_core::role::Permission;
use onward_core::{PlanHead, Timestamp, TurnPolicy};
use onward_store::{CallRecord, Turn};

use super::{POLICY, no_session};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// How many calls and plans are shown.
const LISTED: u32 = 50;

/// How a session is.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The session's id.
    pub session: String,
    /// The agent's last turn; none where nobody has told of one.
    pub turn: Option<Turn>,
    /// How many idle steps in a row are a stall, where no turn says otherwise.
    pub threshold: u32,
    /// How many calls stand where.
    pub counts: CallCounts,
    /// The calls that are open, and the latest that were given up, in the order in which they were
    /// asked for; each with whether it will still answer.
    pub calls: Vec<(CallRecord, bool)>,
    /// Open plans that the session worked on last.
    pub plans: Vec<SessionPlan>,
    /// The instant of all this.
    pub now: Timestamp,
}

/// How many calls stand where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Running, also those that will not answer any more.
    pub running: u64,
    /// A person is asked.
    pub awaiting_approval: u64,
    /// Open, and nobody will answer: past their time, or their owner is dead.
    pub stale: u64,
    /// Given up.
    pub interrupted: u64,
}

/// A plan of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub head: PlanHead,
}

impl Engine {
    /// How a session is, by its whole id. One that nobody told of may have worked on plans all the same:
    /// then there is nothing to say of its turns and calls.
    pub async fn session_health(&self, caller: &Caller, id: &str) -> Result<Health, Error> {
        caller.allow(Permission::Read)?;
        let (name, now, world) = (id.to_owned(), self.now(), self.world());
        let read = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move {
                let known = tx.known_session(&name, "").await?;
                let counts = tx.count_calls(&name).await?;
                let mut calls = tx.calls_of_session(&name, 10 * LISTED).await?;
                let open = tx.open_calls(&name).await?;
                let mut plans = Vec::new();
                for plan in tx.plans_of_session(&name, LISTED).await? {
                    plans.extend(tx.sheet(plan).await?);
                }
                if known.is_none() && plans.is_empty() {
                    return Err(no_session(&name));
                }
                let turn = known.and_then(|(_, turn)| turn);
                calls.retain(|record| record.status() == CallStatus::Interrupted);
                let surplus = calls.len().saturating_sub(LISTED as usize);
                calls.drain(..surplus);
                Ok::<_, Error>((turn, counts, calls, open, plans))
            })
        });
        let (turn, counted, given_up, open, plans) = read.await?;
        let of = |status| {
            let found = counted.iter().find(|(known, _)| *known == status);
            found.map_or(0, |(_, calls)| *calls)
        };
        let judged = open.into_iter().map(|record| {
            let owner = record.call.owner.as_ref();
            let dead =
                owner.is_some_and(|own| death(Some(own), &world.look(own.process)).is_some());
            let stale = dead || is_stale(&record.call.timestamp(), now, POLICY);
            (record, stale)
        });
        let mut calls: Vec<(CallRecord, bool)> = judged.collect();
        let stale = calls.iter().filter(|(_, stale)| *stale).count();
        calls.extend(given_up.into_iter().map(|record| (record, false)));
        calls.sort_by(|(one, _), (other, _)| {
            let place = |record: &CallRecord| (record.requested_at, record.key.clone());
            place(one).cmp(&place(other))
        });
        let plan = |sheet: onward_store::Sheet| SessionPlan {
            name: sheet.brief.name,
            head: sheet.head,
        };
        Ok(Health {
            session: id.to_owned(),
            turn,
            threshold: TurnPolicy::default().stall_threshold,
            counts: CallCounts {
                running: of(CallStatus::Running),
                awaiting_approval: of(CallStatus::AwaitingApproval),
                stale: u64::try_from(stale).unwrap_or(u64::MAX),
                interrupted: of(CallStatus::Interrupted),
            },
            calls,
            plans: plans.into_iter().map(plan).collect(),
            now,
        })
    }
}
