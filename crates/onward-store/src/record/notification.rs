//! Notifications about findings: stored in the transaction of the change they concern, and updated
//! as they are delivered. They are deleted with their plan.

use std::fmt;
use std::str::FromStr;

use onward_core::finding::Finding;
use onward_core::policy::{UnknownVariant, parse_variant};
use onward_core::{PlanId, StepId, Timestamp};

use crate::change::Subject;
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, params};

/// Delivery state of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Not delivered yet.
    Waiting,
    /// Delivered.
    Sent,
    /// Delivery failed too often.
    GivenUp,
    /// Notifications of this kind are disabled.
    Unwanted,
}

impl Delivery {
    const ALL: [Delivery; 4] = [
        Delivery::Waiting,
        Delivery::Sent,
        Delivery::GivenUp,
        Delivery::Unwanted,
    ];

    /// Name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Delivery::Waiting => "waiting",
            Delivery::Sent => "sent",
            Delivery::GivenUp => "given_up",
            Delivery::Unwanted => "unwanted",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Delivery {
    type Err = UnknownVariant;

    fn from_str(word: &str) -> Result<Self, UnknownVariant> {
        parse_variant(word, &Self::ALL, Self::as_str)
    }
}

/// A notification about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The plan.
    pub plan: PlanId,
    /// The finding.
    pub finding: Finding,
    /// Time of the finding.
    pub found_at: Timestamp,
    /// Delivery state.
    pub delivery: Delivery,
    /// Number of attempts.
    pub tries: u32,
    /// Time of the next attempt, while it is not delivered.
    pub next_at: Option<Timestamp>,
    /// When it was delivered or dropped.
    pub ended_at: Option<Timestamp>,
    /// Error of the last attempt.
    pub last_error: Option<String>,
}

/// Notifications and their delivery state.
pub struct Notifications<'t>(pub &'t mut Tx);

impl Notifications<'_> {
    /// Queues a notification, unless the same finding is already stored.
    pub fn add_notice(&mut self, plan: PlanId, finding: &Finding, at: Timestamp) {
        let params = params![
            plan.as_uuid(),
            &finding.key,
            finding.kind.as_str(),
            finding.step.map(|step| *step.as_uuid()),
            finding.attempt,
            finding.since,
            finding.note.as_deref(),
            at,
        ];
        self.0.queue(Statement::new(Query::NoticeInsert, params));
        self.0.record_change(Subject::Plan(plan));
    }

    /// Notifications due by this instant, longest due first. Locks them until the commit.
    pub async fn notices_due(&mut self, at: Timestamp, limit: u32) -> Result<Vec<Notice>, Error> {
        let rows = self
            .0
            .rows(Query::NoticesDueLocked, params![at, limit])
            .await?;
        rows.into_iter().map(notice).collect()
    }

    /// When the next notification of this tenant is due.
    pub async fn next_notice_at(&mut self) -> Result<Option<Timestamp>, Error> {
        let rows = self.0.rows(Query::NoticeFirst, params![]).await?;
        let at = first(Some(rows), |row| row.cells("notices").maybe_at("next_at"))?;
        Ok(at.flatten())
    }

    /// Updates a notification after an attempt; `tries` is the number of attempts before. Does
    /// nothing if another process has updated it meanwhile.
    pub fn change_notice(&mut self, notice: &Notice, tries: u32) {
        let params = params![
            notice.plan.as_uuid(),
            &notice.finding.key,
            notice.delivery.as_str(),
            notice.tries,
            notice.next_at,
            notice.ended_at,
            notice.last_error.as_deref(),
            tries,
        ];
        self.0.queue(Statement::new(Query::NoticeUpdate, params));
    }

    /// Notifications of findings after this instant, oldest first.
    pub async fn notices_after(&mut self, at: Timestamp, limit: u32) -> Result<Vec<Notice>, Error> {
        let rows = self.0.rows(Query::NoticesAfter, params![at, limit]).await?;
        rows.into_iter().map(notice).collect()
    }

    /// Notifications of the latest findings, newest first.
    pub async fn notices(&mut self, limit: u32) -> Result<Vec<Notice>, Error> {
        let rows = self.0.rows(Query::NoticesLatest, params![limit]).await?;
        rows.into_iter().map(notice).collect()
    }
}

fn notice(row: Row) -> Result<Notice, Error> {
    let mut cells = row.cells("notices");
    let plan = PlanId::new(cells.id("plan_id")?);
    let key = cells.string("finding")?;
    let finding = Finding {
        kind: cells.word("kind")?,
        key,
        step: cells.maybe_id("step_id")?.map(StepId::new),
        attempt: cells.maybe_u32("attempt")?,
        since: cells.at("since_at")?,
        note: cells.maybe_string("note")?,
    };
    Ok(Notice {
        plan,
        finding,
        found_at: cells.at("found_at")?,
        delivery: cells.word("delivery")?,
        tries: cells.u32("tries")?,
        next_at: cells.maybe_at("next_at")?,
        ended_at: cells.maybe_at("ended_at")?,
        last_error: cells.maybe_string("last_error")?,
    })
}
