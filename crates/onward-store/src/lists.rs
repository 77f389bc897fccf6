//! Lists of plans: by status, by words, and how many there are.
//!
//! An index holds them in the order in which they are shown, and another one their words: what is not
//! shown is not read. Which words a plan has is said by the core.

use onward_core::search::spelled;
use onward_core::{PlanId, PlanStatus, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::row::plan::{self, Sheet};
use crate::tx::{Connection, Tx};
use crate::value::{Row, params};

/// Where a page of plans ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanCursor {
    /// When the last plan of the page last changed.
    pub updated_at: Timestamp,
    /// Which one it was.
    pub plan: PlanId,
}

/// How many plans are in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanCount {
    /// In which one.
    pub status: PlanStatus,
    /// How many plans.
    pub plans: u64,
    /// How many steps they have together.
    pub steps: u64,
}

/// A plan in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The plan.
    pub sheet: Sheet,
    /// Whether a step of it is past its threshold.
    pub stalled: bool,
}

impl Tx {
    /// A plan's row, and its words.
    pub(crate) fn insert_plan(&mut self, sheet: &Sheet) {
        let mut row = plan::changing(&sheet.head);
        row.extend(plan::fixed(sheet));
        self.queue(self.statement("plan_insert", row));
        let (id, brief) = (sheet.head.id, &sheet.brief);
        let words = format!(
            "{} {}",
            spelled(&brief.name),
            spelled(&brief.research_question)
        );
        self.queue(self.statement("plan_words_insert", params![id.as_uuid(), words]));
    }

    /// Plans in these statuses from the newest change on, behind the cursor.
    pub async fn list_plans(
        &mut self,
        statuses: &[PlanStatus],
        behind: Option<PlanCursor>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Listed>, Error> {
        let (at, id) = place(behind);
        let ask = |status: &PlanStatus| {
            self.statement("plans_in", params![at, id, now, limit, status.as_str()])
        };
        let questions = statuses.iter().map(ask).collect();
        let rows = self.ask(questions).await?.into_iter().flatten();
        let plans: Result<Vec<Listed>, Error> = rows.map(listed).collect();
        let mut plans = plans?;
        plans.sort_by(|one, other| {
            let key = |listed: &Listed| (listed.sheet.updated_at, listed.sheet.head.id);
            key(other).cmp(&key(one))
        });
        plans.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(plans)
    }

    /// Plans in these statuses whose name and question hold all these words, from the newest change on,
    /// behind the cursor. All that hold them are looked at: who asks knows that there are not many.
    pub async fn plans_with(
        &mut self,
        words: &[String],
        statuses: &[PlanStatus],
        behind: Option<PlanCursor>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Listed>, Error> {
        let (at, id) = place(behind);
        let statuses: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
        let (statuses, asked) = (statuses.join(" "), self.beginnings(words));
        let params = params![at, id, now, limit, statuses, asked];
        let rows = self.rows("plans_found", params).await?;
        rows.into_iter().map(listed).collect()
    }

    /// How many plans hold all these words, counted no further than this.
    pub async fn count_plans_with(&mut self, words: &[String], most: u32) -> Result<u64, Error> {
        let asked = self.beginnings(words);
        let rows = self.rows("plans_with_words", params![asked, most]).await?;
        let count = first(Some(rows), |row| row.cells("plan_words").u64("plans"))?;
        Ok(count.unwrap_or(0))
    }

    /// The words as one query in the language of this database: all of them, each as the beginning of a
    /// word or all of it. A word holds letters, digits and marks alone, so no quote can be in it.
    fn beginnings(&self, words: &[String]) -> String {
        let (quote, more, between) = match &self.connection {
            Connection::Sqlite(_) => ('"', "*", " AND "),
            Connection::Postgres(_) => ('\'', ":*", " & "),
        };
        let word = |word: &String| format!("{quote}{word}{quote}{more}");
        words.iter().map(word).collect::<Vec<_>>().join(between)
    }

    /// How many plans are in each status.
    pub async fn count_plans(&mut self) -> Result<Vec<PlanCount>, Error> {
        let rows = self.rows("plans_by_status", params![]).await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("plans");
                Ok(PlanCount {
                    status: cells.word("status")?,
                    plans: cells.u64("plans")?,
                    steps: cells.u64("steps")?,
                })
            })
            .collect()
    }

    /// Plans that were over before this instant, the oldest first.
    pub async fn plans_ended_before(
        &mut self,
        at: Timestamp,
        limit: u32,
    ) -> Result<Vec<PlanId>, Error> {
        let over = PlanStatus::ALL
            .into_iter()
            .filter(|status| status.is_terminal());
        let ask = |status: PlanStatus| {
            self.statement("plans_ended_before", params![at, limit, status.as_str()])
        };
        let questions = over.map(ask).collect();
        let read = |row: Row| {
            let mut cells = row.cells("plans");
            let id = PlanId::new(cells.id("plan_id")?);
            Ok((cells.at("updated_at")?, id))
        };
        let rows = self.ask(questions).await?.into_iter().flatten();
        let plans: Result<Vec<(Timestamp, PlanId)>, Error> = rows.map(read).collect();
        let mut plans = plans?;
        plans.sort();
        plans.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(plans.into_iter().map(|(_, id)| id).collect())
    }
}

/// Behind which plan a page begins.
fn place(behind: Option<PlanCursor>) -> (Timestamp, Uuid) {
    behind.map_or((Timestamp::MAX, Uuid::max()), |cursor| {
        (cursor.updated_at, *cursor.plan.as_uuid())
    })
}

fn listed(row: Row) -> Result<Listed, Error> {
    let (sheet, stalled) = plan::sheet_and_stalled(row)?;
    // A plan that is over has no stalls, whatever its steps were when it ended.
    let stalled = stalled && !sheet.head.status().is_terminal();
    Ok(Listed { sheet, stalled })
}
