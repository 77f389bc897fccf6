//! Executions of skills as people see them: a page at a time, one alone, and how they went on the whole.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::id::SkillExecutionId;
use onward_core::role::Permission;
use onward_core::skill::{SkillExecution, SkillStatus};
use onward_store::{SkillCount, SkillCursor};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// What failed is counted for so long.
const LATELY: Duration = Duration::from_secs(24 * 60 * 60);

/// Which executions.
#[derive(Debug, Clone, Default)]
pub struct SkillQuery {
    /// How many at most.
    pub limit: u32,
    /// Where the page before ended.
    pub behind: Option<SkillCursor>,
    /// Only those in this status.
    pub status: Option<SkillStatus>,
    /// Only those of the skill of this name.
    pub skill: Option<String>,
}

/// A page of executions.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillPage {
    /// From the last one on that started.
    pub executions: Vec<SkillExecution>,
    /// Where the next page begins, if there is one.
    pub next: Option<SkillCursor>,
}

/// How executions went on the whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkillFigures {
    /// All of them.
    pub total: u64,
    /// Those that ended well.
    pub completed: u64,
    /// Those that ended badly.
    pub failed: u64,
    /// Those that ended badly within the last 24 hours.
    pub failed_lately: u64,
    /// How long those took that have ended, on average.
    pub average: Option<Duration>,
}

impl SkillFigures {
    /// Of a hundred that have ended, so many ended well; nothing where none has ended.
    pub fn completion_rate(&self) -> Option<u64> {
        let ended = self.completed.saturating_add(self.failed);
        let rounded = self.completed.saturating_mul(200).saturating_add(ended);
        rounded.checked_div(ended.saturating_mul(2))
    }

    fn of(counts: &[SkillCount], failed_lately: u64) -> Self {
        let mut figures = Self {
            failed_lately,
            ..Self::default()
        };
        let mut took = Duration::ZERO;
        for count in counts {
            figures.total = figures.total.saturating_add(count.executions);
            took = took.saturating_add(count.took);
            match count.status {
                SkillStatus::Completed => figures.completed = count.executions,
                SkillStatus::Failed => figures.failed = count.executions,
                SkillStatus::Started | SkillStatus::Executing => {}
            }
        }
        let ended = u128::from(figures.completed) + u128::from(figures.failed);
        let average = took.as_millis().checked_div(ended);
        let average = average.and_then(|average| u64::try_from(average).ok());
        figures.average = average.map(Duration::from_millis);
        figures
    }
}

impl Engine {
    /// Executions, from the last one on that started.
    pub async fn list_skills(
        &self,
        caller: &Caller,
        query: SkillQuery,
    ) -> Result<SkillPage, Error> {
        caller.allow(Permission::Read)?;
        let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let listed = self.store.read(&caller.tenant, move |tx| {
            let query = query.clone();
            Box::pin(async move {
                let more = query.limit.saturating_add(1);
                let name = query.skill.as_deref();
                tx.list_skills(query.behind, query.status, name, more).await
            })
        });
        let mut executions = listed.await?;
        let is_full = executions.len() > wanted;
        executions.truncate(wanted);
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
            Box::pin(async move { tx.skill_seen(id).await })
        });
        found.await?.ok_or_else(|| Error::NotFound {
            what: "skill execution",
            name: id.to_string(),
        })
    }

    /// How executions went on the whole.
    pub async fn count_skills(&self, caller: &Caller) -> Result<SkillFigures, Error> {
        caller.allow(Permission::Read)?;
        let lately = i64::try_from(LATELY.as_millis()).unwrap_or(i64::MAX);
        let since = self.now().as_millis().saturating_sub(lately);
        let since = Timestamp::from_millis(since);
        let counted = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.count_skills(since).await })
        });
        let (counts, failed_lately) = counted.await?;
        Ok(SkillFigures::of(&counts, failed_lately))
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
    fn figures_are_of_what_has_ended() {
        let none = SkillFigures::of(&[count(SkillStatus::Started, 3, 0)], 0);
        assert_eq!(
            (none.total, none.completion_rate(), none.average),
            (3, None, None)
        );
        let counts = [
            count(SkillStatus::Completed, 2, 50),
            count(SkillStatus::Executing, 4, 0),
            count(SkillStatus::Failed, 1, 10),
        ];
        let some = SkillFigures::of(&counts, 1);
        assert_eq!((some.total, some.completed, some.failed), (7, 2, 1));
        assert_eq!(some.completion_rate(), Some(67), "rounded");
        assert_eq!(some.average, Some(Duration::from_secs(20)));
    }
}
