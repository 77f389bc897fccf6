//! The subagents of a session, and the claims that hooks have seen in it. Both agents and plans use it.

use onward_core::Timestamp;
use onward_core::id::SessionId;
use onward_core::session::{SubagentFacts, SubagentStatus};
use onward_store::{CONNECTION, CallRecord, SeenClaim, Sessions, ToolCalls, Turn, Tx};

use crate::error::Error;

/// Maximum number of a session's subagents in a response.
pub(crate) const MAX_SUBAGENTS: u32 = 100;

pub(crate) fn subagent_facts(turn: &Turn, calls: &[CallRecord]) -> SubagentFacts {
    let mut own = calls.iter().filter(|call| call.key.agent == turn.agent);
    SubagentFacts {
        began_at: turn.began_at,
        last_seen_at: turn.seen_at,
        ended_at: turn.ended.map(|(at, _)| at),
        has_open_call: own.any(|call| call.status().is_open()),
    }
}

/// The claims that hooks have seen in a session, and whether one of its subagents is working.
pub(crate) async fn claims_and_subagents(
    tx: &mut Tx,
    session: &SessionId,
    now: Timestamp,
) -> Result<(Vec<SeenClaim>, bool), Error> {
    let Some(session) = Sessions(tx).session(session.as_str()).await? else {
        return Ok((Vec::new(), false));
    };
    if session.agent == CONNECTION {
        return Ok((Vec::new(), false));
    }
    let turns = Sessions(tx).subagents(&session.id, MAX_SUBAGENTS).await?;
    if turns.iter().all(|turn| turn.ended.is_some()) {
        return Ok((session.claims, false));
    }
    let calls = ToolCalls(tx).open_calls(&session.id).await?;
    let is_working = |turn: &Turn| {
        let (status, _) = subagent_facts(turn, &calls).status(now);
        status == SubagentStatus::Working
    };
    Ok((session.claims, turns.iter().any(is_working)))
}
