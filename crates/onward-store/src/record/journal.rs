//! What was done in the plans of a directory.

use onward_core::{PlanId, PlanStatus, StepId, StepType, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::tx::Tx;
use crate::value::{Row, params};

/// A completed step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The plan.
    pub plan: PlanId,
    /// The plan's name.
    pub name: String,
    /// The plan's present status.
    pub status: PlanStatus,
    /// Number of its completed and skipped steps.
    pub done: u32,
    /// Number of its steps.
    pub total: u32,
    /// The step.
    pub step: StepId,
    /// The step's position.
    pub order: u32,
    /// The step's title.
    pub title: Option<String>,
    /// The step's type.
    pub step_type: StepType,
    /// When it was completed.
    pub ended_at: Timestamp,
}

/// End of a page of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalCursor {
    /// End of the last step of the page.
    pub ended_at: Timestamp,
    /// Id of that step.
    pub step: StepId,
}

/// The journals of directories.
pub struct Journals<'t>(pub &'t mut Tx);

impl Journals<'_> {
    /// Completed steps after the cursor, the last one first.
    pub async fn completed_steps(
        &mut self,
        directory: &str,
        behind: Option<JournalCursor>,
        limit: u32,
    ) -> Result<Vec<JournalEntry>, Error> {
        let (at, id) = behind.map_or((Timestamp::MAX, Uuid::max()), |cursor| {
            (cursor.ended_at, *cursor.step.as_uuid())
        });
        let params = params![directory, at, id, limit];
        let rows = self.0.rows(Query::Journal, params).await?;
        rows.into_iter().map(entry).collect()
    }

    /// Directories with plans, each with its last activity, most recent first.
    pub async fn directories(&mut self, limit: u32) -> Result<Vec<(String, Timestamp)>, Error> {
        let rows = self.0.rows(Query::JournalDirectories, params![limit]);
        let read = |row: Row| {
            let mut cells = row.cells("directory_plans");
            Ok((cells.string("directory")?, cells.at("seen_at")?))
        };
        rows.await?.into_iter().map(read).collect()
    }
}

fn entry(row: Row) -> Result<JournalEntry, Error> {
    let mut cells = row.cells("steps");
    Ok(JournalEntry {
        plan: PlanId::new(cells.id("plan_id")?),
        name: cells.string("name")?,
        status: cells.word("status")?,
        done: cells.u32("done")?,
        total: cells.u32("total")?,
        step: StepId::new(cells.id("step_id")?),
        order: cells.u32("step_order")?,
        title: cells.maybe_string("title")?,
        step_type: cells.word("step_type")?,
        ended_at: cells.at("ended_at")?,
    })
}
