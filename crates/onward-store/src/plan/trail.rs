//! Reading the audit trail.

use std::collections::HashMap;
use std::ops::Range;

use onward_core::event::ReviewAction;
use onward_core::id::ReviewId;
use onward_core::{Event, PlanId, StepId, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::row::event::{self, Entry};
use crate::tx::Tx;
use crate::value::{first, params};

/// Number of entries per query when a whole trail or commit is read.
const PAGE: u32 = 256;

/// Number of events of one name in an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourCount {
    /// Hours since 1970.
    pub hour: i64,
    /// Name of the events.
    pub name: String,
    /// Number of events.
    pub events: u64,
}

/// All times of entries.
pub const ALL_TIMES: Range<Timestamp> = Timestamp::MIN..Timestamp::MAX;

/// An entry of the audit trails of all plans, in the order of their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailCursor {
    /// Time of the entry.
    pub at: Timestamp,
    /// Its plan.
    pub plan: PlanId,
    /// Its sequence number.
    pub seq: u64,
}

/// Reads of the audit trail.
pub struct AuditTrail<'t>(pub &'t mut Tx);

impl AuditTrail<'_> {
    /// Entries after a sequence number, oldest first.
    pub async fn trail(
        &mut self,
        plan: PlanId,
        behind: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, Error> {
        let params = params![plan.as_uuid(), behind, limit];
        let rows = self.0.rows(Query::EventsAfter, params).await?;
        rows.into_iter().map(event::entry).collect()
    }

    /// Finished steps, stalls and review requests per hour since an instant.
    pub async fn by_hour(&mut self, since: Timestamp) -> Result<Vec<HourCount>, Error> {
        let rows = self.0.rows(Query::EventsByHour, params![since]).await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("events");
                Ok(HourCount {
                    hour: cells.int("hour")?,
                    name: cells.string("name")?,
                    events: cells.u64("events")?,
                })
            })
            .collect()
    }

    /// All entries, oldest first.
    pub async fn whole_trail(&mut self, plan: PlanId) -> Result<Vec<Entry>, Error> {
        let mut all = Vec::new();
        loop {
            let behind = all.last().map_or(0, |last: &Entry| last.seq);
            let page = self.trail(plan, behind, PAGE).await?;
            let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Entries after a sequence number, oldest first. Stops after `limit` entries, or after the
    /// entry with which the total size of the details reaches `max_bytes`.
    pub async fn trail_page(
        &mut self,
        plan: PlanId,
        behind: u64,
        limit: u32,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, Error> {
        self.trail_page_of(plan, ALL_TIMES, behind, limit, max_bytes)
            .await
    }

    /// Like [`trail_page`](Self::trail_page), only entries of these times.
    pub async fn trail_page_of(
        &mut self,
        plan: PlanId,
        times: Range<Timestamp>,
        behind: u64,
        limit: u32,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, Error> {
        let plan = plan.as_uuid();
        let params = params![plan, behind, limit, max_bytes, times.start, times.end];
        let rows = self.0.rows(Query::EventsPage, params).await?;
        rows.into_iter().map(event::entry).collect()
    }

    /// Entries of all plans of these times after the cursor, oldest first, limited like
    /// [`trail_page`](Self::trail_page).
    pub async fn trail_between(
        &mut self,
        times: Range<Timestamp>,
        behind: Option<TrailCursor>,
        limit: u32,
        max_bytes: u64,
    ) -> Result<Vec<(PlanId, Entry)>, Error> {
        let (at, plan, seq) = behind.map_or((Timestamp::MIN, Uuid::nil(), 0), |cursor| {
            (cursor.at, *cursor.plan.as_uuid(), cursor.seq)
        });
        let params = params![times.start, times.end, at, plan, seq, limit, max_bytes];
        let rows = self.0.rows(Query::EventsBetween, params).await?;
        rows.into_iter().map(event::entry_with_plan).collect()
    }

    /// Entries up to a sequence number, newest first, limited like [`trail_page`](Self::trail_page);
    /// only those with the given name, if any.
    pub async fn trail_back(
        &mut self,
        plan: PlanId,
        from: u64,
        name: Option<&str>,
        limit: u32,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, Error> {
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let plan = plan.as_uuid();
        let rows = match name {
            Some(name) => {
                let params = params![plan, from, limit, max_bytes, name];
                self.0.rows(Query::EventsLatestNamed, params).await?
            }
            None => {
                let params = params![plan, from, limit, max_bytes];
                self.0.rows(Query::EventsLatest, params).await?
            }
        };
        rows.into_iter().map(event::entry).collect()
    }

    /// All entries of the commit that completed a step, oldest first; none if the step was not
    /// completed.
    pub async fn completion(&mut self, plan: PlanId, step: StepId) -> Result<Vec<Entry>, Error> {
        let rows = self
            .0
            .rows(Query::StepEndedCommit, params![step.as_uuid()])
            .await?;
        let ended = first(Some(rows), |row| {
            let mut cells = row.cells("steps");
            cells.id("step_id")?;
            cells.u64("ended_commit")
        })?;
        match ended {
            Some(commit_seq) => self.commit(plan, commit_seq).await,
            None => Ok(Vec::new()),
        }
    }

    /// The request and the decision of a review, with their plan, oldest first. `since` is not later
    /// than the request.
    pub async fn review(
        &mut self,
        review: ReviewId,
        since: Timestamp,
    ) -> Result<Vec<(PlanId, Entry)>, Error> {
        let params = params![since, review.to_string()];
        let rows = self.0.rows(Query::EventsOfReview, params).await?;
        rows.into_iter().map(event::entry_with_plan).collect()
    }

    /// All entries of the commit of the last decision on a step, or of the decision on one review of
    /// the step, oldest first; none if there is no decision.
    pub async fn decision(
        &mut self,
        plan: PlanId,
        step: StepId,
        wanted: Option<ReviewId>,
    ) -> Result<Vec<Entry>, Error> {
        let params = params![plan.as_uuid(), step.as_uuid(), PAGE];
        let rows = self.0.rows(Query::EventsOfReviews, params).await?;
        let entries: Result<Vec<Entry>, Error> = rows.into_iter().map(event::entry).collect();
        let is_decision = |entry: &Entry| {
            let Event::UserReviewed { review, action, .. } = &entry.event else {
                return false;
            };
            matches!(action, ReviewAction::Decided { .. })
                && wanted.is_none_or(|wanted| wanted == *review)
        };
        match entries?.into_iter().find(is_decision) {
            Some(decided) => self.commit(plan, decided.commit_seq).await,
            None => Ok(Vec::new()),
        }
    }

    /// All entries of a commit, oldest first.
    async fn commit(&mut self, plan: PlanId, commit_seq: u64) -> Result<Vec<Entry>, Error> {
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let behind = commit_seq.saturating_sub(1);
            let behind = all.last().map_or(behind, |last| last.seq);
            let page = self.trail(plan, behind, PAGE).await?;
            let read = page.len();
            let same = |entry: &Entry| entry.commit_seq == commit_seq;
            let before = all.len();
            all.extend(page.into_iter().take_while(same));
            // Another commit begins, or the trail ends.
            if all.len() - before < read || read < usize::try_from(PAGE).unwrap_or(usize::MAX) {
                return Ok(all);
            }
        }
    }
}

/// The first event of the commit in which each step ended. A step ends only once.
pub fn ended_commits(trail: &[Entry]) -> HashMap<StepId, u64> {
    let ended = |entry: &Entry| Some((entry.event.ended_step()?, entry.commit_seq));
    trail.iter().filter_map(ended).collect()
}
