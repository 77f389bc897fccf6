//! The session of a caller that passes no session id: the session that hooks report for the agent's
//! process, otherwise the stdio connection itself.
//!
//! Models do not know the session ids that their hooks report. A stdio server knows the agent that
//! started it, and hooks know it too, so the process connects the two. One process can run several
//! sessions; then the one whose hook has just recorded the call is the caller, and if that is
//! ambiguous, the caller has no session.
//!
//! A session that hooks do not report ends with the server's process or with its standard input.

use onward_core::call::{CallState, Owner};
use onward_core::id::SessionId;
use onward_store::{CONNECTION, Session, Sessions, ToolCalls, Tx};

use super::activity;
use super::tool_calls::end_session;
use crate::caller::Caller;
use crate::connection::Connection;
use crate::engine::Engine;
use crate::error::Error;
use crate::sanitize;

/// Maximum number of sessions of one process that are considered.
const MAX_SESSIONS: u32 = 20;

impl Engine {
    /// The session of a call of this tool: the reported one, the session that hooks report for the
    /// agent of the connection, or the connection itself. `None` for a caller without a connection.
    pub async fn session_of(
        &self,
        caller: &Caller,
        reported: Option<SessionId>,
        tool: &'static str,
    ) -> Result<Option<SessionId>, Error> {
        let reported = sanitize::session(reported);
        let Some(connection) = caller.connection.clone() else {
            return Ok(reported);
        };
        let session = match (reported, connection.agent()) {
            (Some(reported), _) => reported,
            (None, None) => connection.id().clone(),
            (None, Some(agent)) => {
                let agent = agent.clone();
                let hooked = self.store.read(&caller.tenant, move |tx| {
                    let agent = agent.clone();
                    Box::pin(async move { hooked_session(tx, &agent, tool).await })
                });
                match hooked.await? {
                    Hooked::Session(session) => return Ok(Some(session)),
                    Hooked::Ambiguous => return Ok(None),
                    Hooked::None => connection.id().clone(),
                }
            }
        };
        self.record_session(caller, &connection, &session).await?;
        Ok(Some(session))
    }

    /// Records, once, that a connection uses a session.
    async fn record_session(
        &self,
        caller: &Caller,
        connection: &Connection,
        session: &SessionId,
    ) -> Result<(), Error> {
        if connection.recorded().contains(session) {
            return Ok(());
        }
        let (id, server) = (session.clone(), connection.server().cloned());
        let ctx = self.command_context(caller, Some(session));
        let (directory, actor) = (caller.origin().directory, caller.actor());
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let (id, server, ctx) = (id.clone(), server.clone(), ctx.clone());
            let (directory, actor) = (directory.clone(), actor.clone());
            Box::pin(async move {
                let (id, directory) = (id.as_str(), directory.as_deref());
                Sessions(tx).connect_session(id, directory, &actor, server.as_ref(), ctx.now);
                ToolCalls(tx).keep_calls_due(id);
                // A session that had ended is active again, and keeps its steps.
                activity::record(tx, id, &[], &ctx).await
            })
        });
        recorded.await?;
        connection.recorded().insert(session.clone());
        Ok(())
    }

    /// The client has closed the connection. Ends the sessions that only this connection has used, and
    /// the session that hooks report if its agent has exited.
    pub async fn close_connection(&self, caller: &Caller) -> Result<(), Error> {
        let Some(connection) = caller.connection.clone() else {
            return Ok(());
        };
        let recorded = std::mem::take(&mut *connection.recorded());
        for session in recorded {
            let ctx = self.command_context(caller, Some(&session));
            let server = connection.server().cloned();
            let ended = self.store.write(&caller.tenant, move |tx| {
                let (session, server, ctx) = (session.clone(), server.clone(), ctx.clone());
                Box::pin(async move {
                    let known = Sessions(tx).hold_session(session.as_str()).await?;
                    let is_own = |known: &Session| {
                        known.agent == CONNECTION
                            && known.ended_at.is_none()
                            && known.owner == server
                    };
                    if known.as_ref().is_some_and(is_own) {
                        end_session(tx, session.as_str(), &ctx).await?;
                    }
                    Ok::<(), Error>(())
                })
            });
            ended.await?;
        }
        if connection.agent().is_some() {
            self.recover_host().await?;
        }
        Ok(())
    }
}

/// The session that hooks report for the agent that makes a call.
enum Hooked {
    None,
    Session(SessionId),
    Ambiguous,
}

async fn hooked_session(tx: &mut Tx, agent: &Owner, tool: &str) -> Result<Hooked, Error> {
    let mut open = Sessions(tx)
        .sessions_of_process(agent, MAX_SESSIONS)
        .await?;
    open.retain(|session| session.agent != CONNECTION);
    if open.len() > 1 {
        let mut calling = Vec::new();
        for session in open {
            let calls = ToolCalls(tx).open_calls(&session.id).await?;
            let runs = calls.iter().any(|record| {
                record.tool.ends_with(tool) && matches!(record.call.state, CallState::Running(_))
            });
            calling.extend(runs.then_some(session));
        }
        open = calling;
        if open.len() != 1 {
            return Ok(Hooked::Ambiguous);
        }
    }
    Ok(open.pop().map_or(Hooked::None, |session| {
        Hooked::Session(SessionId::new(session.id))
    }))
}
