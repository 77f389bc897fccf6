//! The journal of a project: the steps that its agents completed. The interface groups them by day.

use onward_core::Timestamp;
use onward_core::role::Permission;
use onward_store::{JournalCursor, JournalEntry, Journals};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::sanitize;

/// A page of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPage {
    /// Completed steps, the last one first.
    pub entries: Vec<JournalEntry>,
    /// Cursor for the next page, if there is one.
    pub next: Option<JournalCursor>,
}

impl Engine {
    /// The completed steps of all plans of a project, the last one first.
    pub async fn journal(
        &self,
        caller: &Caller,
        project: &str,
        after: Option<JournalCursor>,
        limit: u32,
    ) -> Result<JournalPage, Error> {
        caller.allow(Permission::Read)?;
        let mut project = project.to_owned();
        sanitize::text(&mut project);
        let entries = self.store.read(&caller.tenant, move |tx| {
            let project = project.clone();
            Box::pin(async move {
                let limit_plus_one = limit.saturating_add(1);
                Journals(tx)
                    .completed_steps(&project, after, limit_plus_one)
                    .await
            })
        });
        let mut entries = entries.await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| has_more);
        let next = next.map(|last| JournalCursor {
            ended_at: last.ended_at,
            step: last.step,
        });
        Ok(JournalPage { entries, next })
    }

    /// Projects with plans, each with its last activity, most recent first.
    pub async fn projects(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<(String, Timestamp)>, Error> {
        caller.allow(Permission::Read)?;
        let projects = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Journals(tx).directories(limit).await })
        });
        Ok(projects.await?)
    }
}
