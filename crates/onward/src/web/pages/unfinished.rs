//! The section "Unfinished lists" of the overview and the list of plans: agents' own lists that no agent
//! works on, the latest first, each with the prompt that continues it and the action that drops it.

use onward_core::Timestamp;
use onward_core::attention::{Attention, Word};
use onward_core::role::Permission;
use onward_engine::OpenPlan;

use super::Visit;
use super::format::{RelativeTime, one_line};
use super::plan::prompt;
use super::who::Who;
use crate::output::format;

/// Maximum number of rows.
const MAX_ROWS: usize = 8;

/// The section.
pub(super) struct UnfinishedLists {
    pub(super) rows: Vec<Row>,
    /// Number of lists.
    pub(super) total: usize,
    pub(super) may_drop: bool,
    /// The page to which a dropped list returns.
    pub(super) page: &'static str,
}

/// A list.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) detail: String,
    pub(super) acted: RelativeTime,
    pub(super) prompt: String,
}

impl UnfinishedLists {
    /// The lists among these plans.
    pub(super) fn new<'p>(
        visit: &Visit,
        plans: impl Iterator<Item = &'p (OpenPlan, Attention)>,
        page: &'static str,
        now: Timestamp,
    ) -> Self {
        let mut lists: Vec<&OpenPlan> = plans
            .filter(|(_, attention)| attention.word == Word::UnfinishedList)
            .map(|(plan, _)| plan)
            .collect();
        lists.sort_by_key(|plan| std::cmp::Reverse(plan.acted_at));
        let row = |plan: &&OpenPlan| {
            let who = Who::new(&plan.owner);
            let counts = &plan.head.counts;
            let (done, total) = (counts.completed + counts.skipped, counts.total());
            let mut detail = format!("{done} of {}", format::count(total, "task", "tasks"));
            for part in [Some(who.short()), who.directory].into_iter().flatten() {
                detail = format!("{detail} · {part}");
            }
            Row {
                id: plan.head.id.to_string(),
                name: one_line(&plan.name, 100),
                detail,
                acted: RelativeTime::new(plan.acted_at, now),
                prompt: prompt(plan.head.id),
            }
        };
        Self {
            rows: lists.iter().take(MAX_ROWS).map(row).collect(),
            total: lists.len(),
            may_drop: visit.denial(Permission::Intervene).is_none(),
            page,
        }
    }

    /// A section that is not displayed.
    pub(super) fn none() -> Self {
        Self {
            rows: Vec::new(),
            total: 0,
            may_drop: false,
            page: "",
        }
    }
}
