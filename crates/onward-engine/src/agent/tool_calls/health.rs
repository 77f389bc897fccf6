//! Session health: its turn, tool calls and plans. Read-only.

use onward_core::call::owner::owner_exit;
use onward_core::call::{CallStatus, is_stale};
use onward_core::role::Permission;
use onward_core::{PlanHead, Timestamp, TurnPolicy};
use onward_store::{CallRecord, Plans, Sessions, ToolCalls, Turn};

use super::record::{POLICY, session_not_found};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Maximum number of calls and plans in a response.
const MAX_LISTED: u32 = 50;

/// Health of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHealth {
    /// The session's id.
    pub session: String,
    /// The agent's last turn, if any was reported.
    pub turn: Option<Turn>,
    /// Number of consecutive idle steps that count as a stall, unless the turn has its own
    /// threshold.
    pub threshold: u32,
    /// Number of calls by state.
    pub counts: CallCounts,
    /// Open calls and the most recently interrupted calls, in request order. The flag is true if
    /// the call is stale.
    pub calls: Vec<(CallRecord, bool)>,
    /// Open plans that the session worked on most recently.
    pub plans: Vec<SessionPlan>,
    /// Time of this snapshot.
    pub now: Timestamp,
}

/// Number of calls by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Running calls, including stale ones.
    pub running: u64,
    /// Calls waiting for a user's approval.
    pub awaiting_approval: u64,
    /// Open calls whose result can no longer arrive: timed out, or the owner process has exited.
    pub stale: u64,
    /// Interrupted calls.
    pub interrupted: u64,
}

/// A session's plan.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// The plan's name.
    pub name: String,
    /// The plan's head.
    pub head: PlanHead,
}

impl Engine {
    /// Health of a session, by its full id. A session that worked on plans but was never reported
    /// by hooks has no turns and no calls.
    pub async fn session_health(&self, caller: &Caller, id: &str) -> Result<SessionHealth, Error> {
        caller.allow(Permission::Read)?;
        let (name, now, environment) = (id.to_owned(), self.now(), self.environment());
        let read = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move {
                let known = Sessions(tx).session_and_turn(&name, "").await?;
                let counts = ToolCalls(tx).count_calls(&name).await?;
                let mut calls = ToolCalls(tx)
                    .calls_of_session(&name, 10 * MAX_LISTED)
                    .await?;
                let open = ToolCalls(tx).open_calls(&name).await?;
                let mut plans = Vec::new();
                for plan in Sessions(tx).plans_of_session(&name, MAX_LISTED).await? {
                    plans.extend(Plans(tx).sheet(plan).await?);
                }
                if known.is_none() && plans.is_empty() {
                    return Err(session_not_found(&name));
                }
                let turn = known.and_then(|(_, turn)| turn);
                calls.retain(|record| record.status() == CallStatus::Interrupted);
                let surplus = calls.len().saturating_sub(MAX_LISTED as usize);
                calls.drain(..surplus);
                Ok::<_, Error>((turn, counts, calls, open, plans))
            })
        });
        let (turn, counted, interrupted, open, plans) = read.await?;
        let count_in = |status| {
            let found = counted.iter().find(|(known, _)| *known == status);
            found.map_or(0, |(_, calls)| *calls)
        };
        let checked = open.into_iter().map(|record| {
            let owner = record.call.owner.as_ref();
            let owner_exited = owner.is_some_and(|own| {
                owner_exit(Some(own), &environment.process_state(own.process)).is_some()
            });
            let stale = owner_exited || is_stale(&record.call.timestamp(), now, POLICY);
            (record, stale)
        });
        let mut calls: Vec<(CallRecord, bool)> = checked.collect();
        let stale = calls.iter().filter(|(_, stale)| *stale).count();
        calls.extend(interrupted.into_iter().map(|record| (record, false)));
        calls.sort_by(|(one, _), (other, _)| {
            let place = |record: &CallRecord| (record.requested_at, record.key.clone());
            place(one).cmp(&place(other))
        });
        let plan = |sheet: onward_store::Sheet| SessionPlan {
            name: sheet.brief.name,
            head: sheet.head,
        };
        Ok(SessionHealth {
            session: id.to_owned(),
            turn,
            threshold: TurnPolicy::default().stall_threshold,
            counts: CallCounts {
                running: count_in(CallStatus::Running),
                awaiting_approval: count_in(CallStatus::AwaitingApproval),
                stale: u64::try_from(stale).unwrap_or(u64::MAX),
                interrupted: count_in(CallStatus::Interrupted),
            },
            calls,
            plans: plans.into_iter().map(plan).collect(),
            now,
        })
    }
}
