//! Agent sessions. The caller has already evaluated each step and decided on the reaction.

use std::collections::BTreeMap;

use onward_core::call::Owner;
use onward_core::{PlanId, Timestamp};

use crate::change::Subject;
use crate::error::Error;
use crate::query::Query;
use crate::row::call::{self, CallRecord};
use crate::row::session::{
    self, Captured, SeenClaim, Session, SessionLine, Turn, TurnStep, Watched, of_calls,
    of_captured, of_claims, of_turn, of_watched,
};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, Value, first, params};

/// Activity of a session, as it was reported.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionActivity<'a> {
    /// Id from the agent.
    pub id: &'a str,
    /// Agent name.
    pub agent: &'a str,
    /// Working directory.
    pub directory: Option<&'a str>,
    /// Subagent; empty for the agent itself.
    pub subagent: &'a str,
    /// Who reported it.
    pub actor: Option<&'a str>,
    /// The beginning of a prompt, without secrets.
    pub prompt: Option<&'a str>,
    /// The agent's process, if it is known.
    pub owner: Option<&'a Owner>,
}

/// The agent of a session that only a stdio connection has reported.
pub const CONNECTION: &str = "mcp";

/// Parameters of the columns of an owner.
fn of_owner(owner: Option<&Owner>) -> Vec<Value> {
    params![
        owner.map(|owner| owner.host.as_str()),
        owner.and_then(|owner| owner.boot.as_deref()),
        owner.map(|owner| owner.process),
        owner.and_then(|owner| owner.process_started),
    ]
}

/// Agent sessions, with their turns.
pub struct Sessions<'t>(pub &'t mut Tx);

impl Sessions<'_> {
    /// Records activity of a session, and locks it until the commit, so that concurrent reports
    /// wait. Returns the session, the detector state of one of its agents, and the last turn of
    /// that agent.
    pub async fn record_session_activity(
        &mut self,
        touched: &SessionActivity<'_>,
        now: Timestamp,
    ) -> Result<(Session, Option<Watched>, Option<Turn>), Error> {
        let SessionActivity {
            id,
            agent,
            directory,
            subagent,
            actor,
            prompt,
            owner,
        } = *touched;
        let mut row = params![id, agent, directory, now, actor, prompt];
        row.extend(of_owner(owner));
        let touch = Statement::new(Query::SessionTouch, row);
        self.0.queue(touch.expecting(1));
        self.0.record_change(Subject::Session(id.into()));
        if !subagent.is_empty() {
            let row = params![id, subagent, now];
            self.0.queue(Statement::new(Query::TurnTouch, row));
        }
        let questions = vec![
            Statement::new(Query::Session, params![id]),
            Statement::new(Query::SessionAgent, params![id, subagent]),
            Statement::new(Query::TurnLast, params![id, subagent]),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let session = first(answers.next(), session::session)?;
        let session =
            session.ok_or_else(|| Error::refused("a session that was just written is missing"))?;
        Ok((
            session,
            first(answers.next(), session::watched)?,
            first(answers.next(), session::turn)?,
        ))
    }

    /// Records that a stdio connection uses a session, which ends with the server's process.
    pub fn connect_session(
        &mut self,
        id: &str,
        directory: Option<&str>,
        actor: &str,
        server: Option<&Owner>,
        now: Timestamp,
    ) {
        let mut row = params![id, CONNECTION, directory, now, actor];
        row.extend(of_owner(server));
        self.0.queue(Statement::new(Query::SessionConnect, row));
        self.0.record_change(Subject::Session(id.into()));
    }

    /// The open sessions that end with this process, most recent activity first.
    pub async fn sessions_of_process(
        &mut self,
        owner: &Owner,
        limit: u32,
    ) -> Result<Vec<Session>, Error> {
        let params = params![owner.host.as_str(), owner.process, limit];
        let rows = self.0.rows(Query::SessionsOfProcess, params).await?;
        let sessions: Result<Vec<Session>, Error> =
            rows.into_iter().map(session::session).collect();
        let mut sessions = sessions?;
        sessions.retain(|session| session.owner.as_ref() == Some(owner));
        Ok(sessions)
    }

    /// A session, without recording activity or locking.
    pub async fn session(&mut self, id: &str) -> Result<Option<Session>, Error> {
        let rows = self.0.rows(Query::Session, params![id]).await?;
        first(Some(rows), session::session)
    }

    /// A session and the last turn of one of its agents, without recording activity or locking.
    pub async fn session_and_turn(
        &mut self,
        id: &str,
        subagent: &str,
    ) -> Result<Option<(Session, Option<Turn>)>, Error> {
        let questions = vec![
            Statement::new(Query::Session, params![id]),
            Statement::new(Query::TurnLast, params![id, subagent]),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let Some(session) = first(answers.next(), session::session)? else {
            return Ok(None);
        };
        let turn = first(answers.next(), session::turn)?;
        Ok(Some((session, turn)))
    }

    /// A session, the detector state of one of its agents and the last turn of that agent, without
    /// recording activity or locking.
    pub async fn session_state(
        &mut self,
        id: &str,
        subagent: &str,
    ) -> Result<Option<(Session, Option<Watched>, Option<Turn>)>, Error> {
        let questions = vec![
            Statement::new(Query::Session, params![id]),
            Statement::new(Query::SessionAgent, params![id, subagent]),
            Statement::new(Query::TurnLast, params![id, subagent]),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let Some(session) = first(answers.next(), session::session)? else {
            return Ok(None);
        };
        let watched = first(answers.next(), session::watched)?;
        let turn = first(answers.next(), session::turn)?;
        Ok(Some((session, watched, turn)))
    }

    /// Stores the detector state of an agent.
    pub fn keep_watched(&mut self, session: &str, watched: &Watched) {
        let mut row = params![session];
        row.extend(of_watched(watched));
        self.0
            .queue(Statement::new(Query::SessionAgentWrite, row).expecting(1));
    }

    /// Inserts or updates a turn.
    pub fn write_turn(&mut self, session: &str, turn: &Turn) {
        let mut row = params![session];
        row.extend(of_turn(turn));
        self.0
            .queue(Statement::new(Query::TurnWrite, row).expecting(1));
    }

    /// Adds a step to a turn.
    pub fn add_turn_step(&mut self, session: &str, turn: &Turn, step: &TurnStep) {
        let row = params![
            session,
            &turn.agent,
            turn.number,
            step.number,
            step.at,
            step.judgement.as_str(),
            step.why.as_deref(),
            step.idle_steps,
            &of_calls(&step.calls),
            step.message.as_deref(),
        ];
        self.0
            .queue(Statement::new(Query::TurnStepInsert, row).expecting(1));
    }

    /// Ends a session and all its open turns.
    pub fn end_session(&mut self, id: &str, now: Timestamp) {
        self.0
            .queue(Statement::new(Query::TurnsEnd, params![id, now]));
        self.0
            .queue(Statement::new(Query::SessionEnd, params![id, now]).expecting(1));
    }

    /// Stores the claims in the results of a session's calls.
    pub fn keep_claims(&mut self, id: &str, claims: &[SeenClaim]) {
        let statement = Statement::new(Query::SessionClaims, params![id, &of_claims(claims)]);
        self.0.queue(statement.expecting(1));
    }

    /// Switches the monitoring of a session off or on.
    pub fn switch_session(&mut self, id: &str, off: bool, now: Timestamp) {
        let statement = Statement::new(Query::SessionSwitch, params![id, off, now]);
        self.0.queue(statement.expecting(1));
        self.0.record_change(Subject::Session(id.into()));
    }

    /// Sessions whose id begins with `id`; at most two.
    pub async fn sessions_beginning(
        &mut self,
        id: &str,
        limit: u32,
    ) -> Result<Vec<Session>, Error> {
        let rows = self
            .0
            .rows(Query::SessionsBeginning, params![id, limit])
            .await?;
        rows.into_iter().map(session::session).collect()
    }

    /// The sessions with the most recent activity.
    pub async fn sessions(&mut self, limit: u32) -> Result<Vec<SessionLine>, Error> {
        let questions = [
            Query::SessionsLatest,
            Query::TurnsLastOfSessions,
            Query::SubagentsOfSessions,
            Query::CallsOfSessions,
            Query::PlansOfSessions,
        ];
        let questions = questions.map(|query| Statement::new(query, params![limit]));
        let mut answers = self.0.query(questions.into()).await?.into_iter();
        let mut next = || answers.next().into_iter().flatten();
        let lines: Result<Vec<SessionLine>, Error> = next().map(session::line).collect();
        let turns: Result<BTreeMap<String, Turn>, Error> =
            next().map(session::turn_of_session).collect();
        let mut subagents: BTreeMap<String, Vec<Turn>> = BTreeMap::new();
        for row in next() {
            let (session, turn) = session::turn_of_session(row)?;
            subagents.entry(session).or_default().push(turn);
        }
        let mut calls: BTreeMap<String, Vec<CallRecord>> = BTreeMap::new();
        for row in next() {
            let call = call::call(row)?;
            calls
                .entry(call.key.session.clone())
                .or_default()
                .push(call);
        }
        let mut plans = BTreeMap::new();
        for row in next() {
            let mut cells = row.cells("plans");
            let session = cells.string("last_session")?;
            let plan = PlanId::new(cells.id("plan_id")?);
            plans.insert(session, (plan, cells.string("name")?));
        }
        let (mut lines, mut turns) = (lines?, turns?);
        for line in &mut lines {
            line.last_turn = turns.remove(&line.session.id);
            line.subagents = subagents.remove(&line.session.id).unwrap_or_default();
            line.calls = calls.remove(&line.session.id).unwrap_or_default();
            line.plan = plans.remove(&line.session.id);
        }
        Ok(lines)
    }

    /// The agents that reported sessions, each with its last activity.
    pub async fn agents_seen(&mut self) -> Result<Vec<(String, Timestamp)>, Error> {
        let rows = self.0.rows(Query::AgentsSeen, params![]).await?;
        let agents = rows.into_iter().map(|row| {
            let mut cells = row.cells("sessions");
            Ok((cells.string("agent")?, cells.at("last_seen_at")?))
        });
        agents.collect()
    }

    /// The latest turns of a session, in the order in which they began.
    pub async fn turns(&mut self, id: &str, limit: u32) -> Result<Vec<Turn>, Error> {
        let rows = self
            .0
            .rows(Query::TurnsOfSession, params![id, limit])
            .await?;
        rows.into_iter().map(session::turn).collect()
    }

    /// The last turn of each of the latest subagents of a session, in the order in which they began.
    pub async fn subagents(&mut self, id: &str, limit: u32) -> Result<Vec<Turn>, Error> {
        let rows = self
            .0
            .rows(Query::SubagentsOfSession, params![id, limit])
            .await?;
        rows.into_iter().map(session::turn).collect()
    }

    /// The latest steps of a turn, in order.
    pub async fn turn_steps(
        &mut self,
        id: &str,
        turn: &Turn,
        limit: u32,
    ) -> Result<Vec<TurnStep>, Error> {
        let params = params![id, &turn.agent, turn.number, limit];
        let rows = self.0.rows(Query::TurnStepsLatest, params).await?;
        rows.into_iter().map(session::step).collect()
    }

    /// Records that a plan was worked on from a directory.
    pub fn link_directory(&mut self, directory: &str, plan: PlanId, now: Timestamp) {
        let row = params![directory, plan.as_uuid(), now];
        self.0.queue(Statement::new(Query::DirectoryPlanWrite, row));
    }

    /// The open plans that were worked on from a directory, most recent first, each with its number
    /// of pending reviews. Without captured plans that have no action since `archived_before`.
    pub async fn plans_of_directory(
        &mut self,
        directory: &str,
        archived_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<(PlanId, u32)>, Error> {
        let params = params![directory, limit, archived_before];
        let rows = self.0.rows(Query::DirectoryPlansOpen, params).await?;
        let plans = rows.into_iter().map(|row| {
            let mut cells = row.cells("plans");
            Ok((
                PlanId::new(cells.id("plan_id")?),
                cells.u32("awaiting_input")?,
            ))
        });
        plans.collect()
    }

    /// The captured task list of a session.
    pub async fn captured(&mut self, id: &str) -> Result<Option<Captured>, Error> {
        let rows = self.0.rows(Query::SessionCaptured, params![id]).await?;
        Ok(first(Some(rows), session::captured)?.flatten())
    }

    /// Stores the captured task list of a session.
    pub fn keep_captured(&mut self, id: &str, captured: &Captured) -> Result<(), Error> {
        let text = of_captured(captured)?;
        let statement = Statement::new(Query::SessionCapturedWrite, params![id, text]);
        self.0.queue(statement.expecting(1));
        Ok(())
    }

    /// The claims that the agent of a session was reminded of when it stopped.
    pub async fn reminded(&mut self, id: &str) -> Result<Option<String>, Error> {
        let rows = self.0.rows(Query::SessionReminded, params![id]).await?;
        let read = |row: Row| row.cells("sessions").maybe_string("reminded");
        Ok(first(Some(rows), read)?.flatten())
    }

    /// Stores the claims that the agent of a session is reminded of.
    pub fn keep_reminded(&mut self, id: &str, claims: &str) {
        let statement = Statement::new(Query::SessionRemindedWrite, params![id, claims]);
        self.0.queue(statement.expecting(1));
    }

    /// Records that the agent of a session receives a summary of its project.
    pub fn prime_session(&mut self, id: &str, event: &str, now: Timestamp) {
        let statement = Statement::new(Query::SessionPrimed, params![id, event, now]);
        self.0.queue(statement.expecting(1));
    }

    /// Deletes sessions without activity since this instant; returns their number.
    pub async fn forget_sessions(&mut self, before: Timestamp) -> Result<u64, Error> {
        let rows = self
            .0
            .rows(Query::SessionsCountBefore, params![before])
            .await?;
        for name in [
            Query::DueCallsDeleteBefore,
            Query::SessionCallsDeleteBefore,
            Query::TurnStepsDeleteBefore,
            Query::TurnsDeleteBefore,
            Query::SessionAgentsDeleteBefore,
            Query::SessionsDeleteBefore,
            Query::DirectoryPlansDeleteBefore,
        ] {
            self.0.queue(Statement::new(name, params![before]));
        }
        let count = first(Some(rows), |row| row.cells("sessions").u64("sessions"))?;
        Ok(count.unwrap_or(0))
    }

    /// Locks a session until the commit, without recording activity.
    pub async fn hold_session(&mut self, id: &str) -> Result<Option<Session>, Error> {
        let rows = self.0.rows(Query::SessionHold, params![id]).await?;
        first(Some(rows), session::session)
    }

    /// Records a change to a session that was not reported by its agent.
    pub fn bump_session(&mut self, id: &str, now: Timestamp) {
        let statement = Statement::new(Query::SessionBump, params![id, now]);
        self.0.queue(statement.expecting(1));
        self.0.record_change(Subject::Session(id.into()));
    }

    /// The most recently changed sessions since an instant, each with its number of changes.
    pub async fn sessions_changed(
        &mut self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(String, u64)>, Error> {
        let rows = self
            .0
            .rows(Query::SessionsChanged, params![since, limit])
            .await?;
        let read = rows.into_iter().map(|row| {
            let mut cells = row.cells("sessions");
            Ok((cells.string("session_id")?, cells.u64("changes")?))
        });
        read.collect()
    }

    /// A turn of a session by its number.
    pub async fn turn(
        &mut self,
        session: &str,
        agent: &str,
        turn: u32,
    ) -> Result<Option<Turn>, Error> {
        let rows = self
            .0
            .rows(Query::TurnOf, params![session, agent, turn])
            .await?;
        first(Some(rows), session::turn)
    }

    /// Open plans on which a session worked last.
    pub async fn plans_of_session(
        &mut self,
        session: &str,
        limit: u32,
    ) -> Result<Vec<PlanId>, Error> {
        let rows = self
            .0
            .rows(Query::PlansOfSession, params![session, limit])
            .await?;
        let read = rows
            .into_iter()
            .map(|row| row.cells("plans").id("plan_id").map(PlanId::new));
        read.collect()
    }
}
