//! Queries for skill executions: a paginated list, a single execution, and statistics.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::id::SkillExecutionId;
use onward_core::role::Permission;
use onward_core::skill::{SkillExecution, SkillStatus};
use onward_store::{SkillCount, SkillCursor, Skills};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, ObjectKind};

/// Time window for recent failures.
const RECENT_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// A query for skill executions.
#[derive(Debug, Clone, Default)]
pub struct SkillQuery {
    /// Maximum number of executions.
    pub limit: u32,
    /// Cursor: the last execution of the previous page.
    pub after: Option<SkillCursor>,
    /// Only executions in this status.
    pub status: Option<SkillStatus>,
    /// Only executions of this skill.
    pub skill: Option<String>,
}

/// A page of executions.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillPage {
    /// Most recently started first.
    pub executions: Vec<SkillExecution>,
    /// Cursor for the next page, if there is one.
    pub next: Option<SkillCursor>,
}

/// Statistics on skill executions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkillStats {
    /// Number of executions.
    pub total: u64,
    /// Completed executions.
    pub completed: u64,
    /// Failed executions.
    pub failed: u64,
    /// Executions that failed within the last 24 hours.
    pub failed_recently: u64,
    /// Average duration of ended executions.
    pub average: Option<Duration>,
}

impl SkillStats {
    /// Percentage of ended executions that completed. `None` if no execution has ended.
    pub fn completion_rate(&self) -> Option<u64> {
        let ended = self.completed.saturating_add(self.failed);
        let rounded = self.completed.saturating_mul(200).saturating_add(ended);
        rounded.checked_div(ended.saturating_mul(2))
    }

    fn new(counts: &[SkillCount], failed_lately: u64) -> Self {
        let mut stats = Self {
            failed_recently: failed_lately,
            ..Self::default()
        };
        let mut took = Duration::ZERO;
        for count in counts {
            stats.total = stats.total.saturating_add(count.executions);
            took = took.saturating_add(count.took);
            match count.status {
                SkillStatus::Completed => stats.completed = count.executions,
                SkillStatus::Failed => stats.failed = count.executions,
                SkillStatus::Started | SkillStatus::Executing => {}
            }
        }
        let ended = u128::from(stats.completed) + u128::from(stats.failed);
        let average = took.as_millis().checked_div(ended);
        let average = average.and_then(|average| u64::try_from(average).ok());
        stats.average = average.map(Duration::from_millis);
        stats
    }
}

impl Engine {
    /// Skill executions, most recently started first.
    pub async fn list_skills(
        &self,
        caller: &Caller,
        query: SkillQuery,
    ) -> Result<SkillPage, Error> {
        caller.allow(Permission::Read)?;
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let listed = self.store.read(&caller.tenant, move |tx| {
            let query = query.clone();
            Box::pin(async move {
                let limit_plus_one = query.limit.saturating_add(1);
                let name = query.skill.as_deref();
                Skills(tx)
                    .list_skills(query.after, query.status, name, limit_plus_one)
                    .await
            })
        });
        let mut executions = listed.await?;
        let is_full = executions.len() > limit;
        executions.truncate(limit);
        let last = executions.last().filter(|_| is_full);
        let next = last.map(|last| SkillCursor {
            started_at: last.started_at,
            execution: last.id,
        });
        Ok(SkillPage { executions, next })
    }

    /// One execution.
    pub async fn skill_execution(
        &self,
        caller: &Caller,
        id: SkillExecutionId,
    ) -> Result<SkillExecution, Error> {
        caller.allow(Permission::Read)?;
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Skills(tx).skill_seen(id).await })
        });
        found.await?.ok_or_else(|| Error::NotFound {
            kind: ObjectKind::SkillExecution,
            name: id.to_string(),
        })
    }

    /// Statistics on skill executions.
    pub async fn count_skills(&self, caller: &Caller) -> Result<SkillStats, Error> {
        caller.allow(Permission::Read)?;
        let lately = i64::try_from(RECENT_WINDOW.as_millis()).unwrap_or(i64::MAX);
        let since = self.now().as_millis().saturating_sub(lately);
        let since = Timestamp::from_millis(since);
        let counted = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Skills(tx).count_skills(since).await })
        });
        let (counts, failed_lately) = counted.await?;
        Ok(SkillStats::new(&counts, failed_lately))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(status: SkillStatus, executions: u64, seconds: u64) -> SkillCount {
        SkillCount {
            status,
            executions,
            took: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn rates_and_averages_count_ended_executions_only() {
        let unfinished = SkillStats::new(&[count(SkillStatus::Started, 3, 0)], 0);
        assert_eq!(
            (
                unfinished.total,
                unfinished.completion_rate(),
                unfinished.average
            ),
            (3, None, None)
        );
        let counts = [
            count(SkillStatus::Completed, 2, 50),
            count(SkillStatus::Executing, 4, 0),
            count(SkillStatus::Failed, 1, 10),
        ];
        let mixed = SkillStats::new(&counts, 1);
        assert_eq!((mixed.total, mixed.completed, mixed.failed), (7, 2, 1));
        assert_eq!(mixed.completion_rate(), Some(67), "rounded");
        assert_eq!(mixed.average, Some(Duration::from_secs(20)));
    }
}
