//! A journal by day: the completed steps of each plan, the last day first. The terminal, `--json` and
//! the page show the same days.

use onward_core::{PlanId, Timestamp};
use onward_engine::JournalEntry;

use super::format;
use super::time::Zone;

/// A day.
pub(crate) struct Day {
    /// The time of its last step.
    pub(crate) at: Timestamp,
    /// The date, `2026-11-18`.
    pub(crate) date: String,
    /// The plan whose step was completed last is first.
    pub(crate) plans: Vec<PlanDay>,
}

/// What was done in a plan on a day.
pub(crate) struct PlanDay {
    pub(crate) plan: PlanId,
    pub(crate) name: String,
    /// The present number of completed and skipped steps.
    pub(crate) done: u32,
    pub(crate) total: u32,
    /// The steps that were completed that day, the first one first.
    pub(crate) steps: Vec<DoneStep>,
}

/// A completed step.
pub(crate) struct DoneStep {
    pub(crate) order: u32,
    pub(crate) title: String,
    pub(crate) at: Timestamp,
}

/// The days of entries that are sorted by time, the last one first.
pub(crate) fn days(entries: &[JournalEntry], zone: Zone) -> Vec<Day> {
    let mut days: Vec<Day> = Vec::new();
    for entry in entries {
        let date = zone.date(entry.ended_at);
        if days.last().is_none_or(|day| day.date != date) {
            days.push(Day {
                at: entry.ended_at,
                date,
                plans: Vec::new(),
            });
        }
        let Some(day) = days.last_mut() else {
            continue;
        };
        let title = entry.title.as_deref().unwrap_or(entry.step_type.as_str());
        let step = DoneStep {
            order: entry.order,
            title: format::sanitize_line(title),
            at: entry.ended_at,
        };
        match day.plans.iter_mut().find(|plan| plan.plan == entry.plan) {
            Some(plan) => plan.steps.insert(0, step),
            None => day.plans.push(PlanDay {
                plan: entry.plan,
                name: format::sanitize_line(&entry.name),
                done: entry.done,
                total: entry.total,
                steps: vec![step],
            }),
        }
    }
    days
}

#[cfg(test)]
mod tests {
    use onward_core::{PlanStatus, StepId, StepType};

    use super::*;

    fn entry(plan: u128, order: u32, at: i64) -> JournalEntry {
        JournalEntry {
            plan: PlanId::from_u128(plan),
            name: format!("Plan {plan}"),
            status: PlanStatus::Executing,
            done: 2,
            total: 3,
            step: StepId::from_u128(plan * 10 + u128::from(order)),
            order,
            title: None,
            step_type: StepType::Custom,
            ended_at: Timestamp::from_millis(at),
        }
    }

    #[test]
    fn groups_the_steps_by_day_and_plan() {
        const DAY: i64 = 24 * 60 * 60 * 1_000;
        let entries = [
            entry(1, 3, 2 * DAY),
            entry(1, 2, 2 * DAY - 1),
            entry(2, 1, 2 * DAY - 2),
            entry(1, 1, DAY),
        ];
        let days = days(&entries, Zone::utc());
        let read = |day: &Day| {
            let plan = |plan: &PlanDay| {
                let orders = plan.steps.iter().map(|step| step.order);
                (plan.plan.as_uuid().as_u128(), orders.collect::<Vec<_>>())
            };
            let plans: Vec<_> = day.plans.iter().map(plan).collect();
            (day.date.clone(), plans)
        };
        let days: Vec<_> = days.iter().map(read).collect();
        assert_eq!(
            days,
            [
                ("1970-01-03".to_owned(), vec![(1, vec![3])]),
                ("1970-01-02".to_owned(), vec![(1, vec![1, 2]), (2, vec![1])]),
            ]
        );
    }
}
