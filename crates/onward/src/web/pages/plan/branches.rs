//! The branches of a plan with their outcome: taken, not taken or not reached. The outcome comes
//! from the audit trail, and the values that a condition has read from the result of its step.

use std::collections::{HashMap, HashSet};

use onward_core::branch::{Action, Branch, Effect};
use onward_core::condition::TestedValue;
use onward_core::id::BranchId;
use onward_core::{Event, PlanId, StepId, StepStatus};
use onward_engine::{Caller, Engine, Error, StepLine};

use super::step_name;
use crate::output::format;
use crate::web::pages::format::one_line;

/// Maximum number of taken branches that are loaded.
const MAX_TAKEN: u32 = 500;
const MAX_BYTES: u64 = 1024 * 1024;
/// Maximum number of branches that are displayed with the values of their conditions.
const MAX_TESTED: usize = 50;

/// The branches of a plan.
pub(super) struct Branches {
    all: Vec<(Branch, Outcome)>,
    /// The steps that branches refer to.
    lines: Vec<StepLine>,
    skips: Vec<(StepId, StepId)>,
    /// The steps that each taken branch has added.
    additions: Vec<Vec<StepId>>,
    tested: HashMap<BranchId, Vec<TestedValue>>,
}

/// The outcome of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Taken,
    NotTaken,
    NotReached,
}

impl Outcome {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Outcome::Taken => "taken",
            Outcome::NotTaken => "not taken",
            Outcome::NotReached => "not reached",
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Outcome::Taken => "branch",
            Outcome::NotTaken | Outcome::NotReached => "queued",
        }
    }
}

/// A branch for display.
pub(super) struct BranchNote {
    pub(super) after: String,
    pub(super) condition: String,
    pub(super) action: String,
    pub(super) outcome: Outcome,
    /// The values that the condition has read: "was 0.96".
    pub(super) tested: Option<String>,
}

impl Branches {
    pub(super) async fn load(
        engine: &Engine,
        caller: &Caller,
        plan: PlanId,
    ) -> Result<Self, Error> {
        let (branches, lines) = engine.branches(caller, plan).await?;
        let (mut taken, mut additions) = (HashSet::new(), Vec::new());
        if !branches.is_empty() {
            let name = Some("branch_taken".to_owned());
            let (entries, _) = engine
                .audit_trail_backwards(caller, plan, None, name, MAX_TAKEN, MAX_BYTES)
                .await?;
            for entry in &entries {
                if let Event::BranchTaken { branch, effect, .. } = &entry.entry.event {
                    taken.insert(*branch);
                    if let Effect::Added { steps } = effect {
                        additions.push(steps.iter().map(|step| step.id).collect());
                    }
                }
            }
        }
        let is_completed = |step: StepId| {
            let line = lines.iter().find(|line| line.id == step);
            line.is_some_and(|line| line.status == StepStatus::Completed)
        };
        let outcome = |branch: &Branch| {
            if taken.contains(&branch.id) {
                Outcome::Taken
            } else if is_completed(branch.after) {
                Outcome::NotTaken
            } else {
                Outcome::NotReached
            }
        };
        let all: Vec<(Branch, Outcome)> = branches
            .into_iter()
            .map(|branch| {
                let outcome = outcome(&branch);
                (branch, outcome)
            })
            .collect();
        let skip = |(branch, outcome): &(Branch, Outcome)| {
            if let Action::SkipTo { target } = &branch.action
                && *outcome == Outcome::Taken
            {
                Some((branch.after, *target))
            } else {
                None
            }
        };
        let evaluated = all
            .iter()
            .filter(|(_, outcome)| *outcome != Outcome::NotReached);
        let evaluated = evaluated.filter_map(|(branch, _)| {
            let line = lines.iter().find(|line| line.id == branch.after)?;
            Some((branch.clone(), line.clone()))
        });
        let evaluated: Vec<(Branch, StepLine)> = evaluated.take(MAX_TESTED).collect();
        let tested = if evaluated.is_empty() {
            HashMap::new()
        } else {
            engine.tested_values(caller, &evaluated).await?
        };
        Ok(Self {
            skips: all.iter().filter_map(skip).collect(),
            additions,
            tested,
            all,
            lines,
        })
    }

    /// The steps that each taken branch has added.
    pub(super) fn additions(&self) -> &[Vec<StepId>] {
        &self.additions
    }

    /// Taken branches that skipped steps: from the step before them to their target.
    pub(super) fn skips(&self) -> &[(StepId, StepId)] {
        &self.skips
    }

    pub(super) fn is_taken_after(&self, step: StepId) -> bool {
        let mut all = self.all.iter();
        all.any(|(branch, outcome)| branch.after == step && *outcome == Outcome::Taken)
    }

    /// Whether a branch has added the step.
    pub(super) fn is_added(&self, step: StepId) -> bool {
        self.additions.iter().any(|steps| steps.contains(&step))
    }

    /// The branches after a step.
    pub(super) fn after(&self, step: StepId) -> Vec<BranchNote> {
        let of_step = self.all.iter().filter(|(branch, _)| branch.after == step);
        of_step.map(|one| self.note(one)).collect()
    }

    /// The number of taken branches.
    pub(super) fn taken(&self) -> usize {
        let taken = |(_, outcome): &&(Branch, Outcome)| *outcome == Outcome::Taken;
        self.all.iter().filter(taken).count()
    }

    pub(super) fn notes(&self) -> Vec<BranchNote> {
        self.all.iter().map(|one| self.note(one)).collect()
    }

    fn note(&self, (branch, outcome): &(Branch, Outcome)) -> BranchNote {
        let name = |id: StepId| {
            let line = self.lines.iter().find(|line| line.id == id);
            line.map_or("a deleted step".to_owned(), |line| {
                format!("step {}, {}", line.order, step_name(line))
            })
        };
        BranchNote {
            after: name(branch.after),
            condition: one_line(branch.condition.source(), 300),
            action: match &branch.action {
                Action::Continue => "continue".to_owned(),
                Action::SkipTo { target } => format!("skip to {}", name(*target)),
                Action::AddSteps { steps } => {
                    let number = u64::try_from(steps.len()).unwrap_or(u64::MAX);
                    format!("add {}", format::count(number, "step", "steps"))
                }
                Action::Fail { reason } => match reason {
                    Some(reason) => format!("fail the plan: {}", one_line(reason, 300)),
                    None => "fail the plan".to_owned(),
                },
            },
            outcome: *outcome,
            tested: self.tested.get(&branch.id).and_then(|values| was(values)),
        }
    }
}

/// "was 0.96", or the name of each value if there are several.
fn was(values: &[TestedValue]) -> Option<String> {
    match values {
        [] => None,
        [one] => Some(format!("was {}", one_line(&one.value, 60))),
        many => {
            let named = many
                .iter()
                .map(|one| format!("{} was {}", one.path, one.value));
            Some(one_line(&named.collect::<Vec<_>>().join(", "), 200))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_are_named() {
        let value = |path: &str, value: &str| TestedValue {
            path: path.to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(was(&[]), None);
        let one = value("confidence", "0.96");
        assert_eq!(was(std::slice::from_ref(&one)).as_deref(), Some("was 0.96"));
        let both = [one, value("result.spread", "64")];
        assert_eq!(
            was(&both).as_deref(),
            Some("confidence was 0.96, result.spread was 64")
        );
    }
}
