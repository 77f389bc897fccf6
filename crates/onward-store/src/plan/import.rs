//! Import of a plan with its complete audit trail.

use std::collections::BTreeMap;

use onward_core::branch::Branch;
use onward_core::event::Change;
use onward_core::id::BranchId;
use onward_core::next_check::Due;
use onward_core::transition::QueueChange;
use onward_core::{Event, Plan, PlanId, StepStatus, Timestamp};

use uuid::Uuid;

use super::trail::ended_commits;
use super::transition::{self, BRANCHES_PER_EVENT};
use super::write::Transitions;
use crate::change::Subject;
use crate::error::Error;
use crate::query::Query;
use crate::row::event::Entry;
use crate::row::plan::{Owner, RequestOrigin, Sheet, VersionTag};
use crate::row::step;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::params;

/// Imports of plans.
pub struct Imports<'t>(pub &'t mut Tx);

impl Imports<'_> {
    /// The first step or branch id of the plan that is already in use.
    pub async fn first_taken(&mut self, made: &Plan) -> Result<Option<Uuid>, Error> {
        let by_id = |query, id: &Uuid| Statement::new(query, params![*id]);
        let mut ids: Vec<Uuid> = Vec::new();
        let mut questions = Vec::new();
        for step in made.steps() {
            ids.push(*step.id().as_uuid());
            questions.push(by_id(Query::StepIsTaken, step.id().as_uuid()));
            for branch in made.branches_after(step.id()) {
                ids.push(*branch.id.as_uuid());
                questions.push(by_id(Query::BranchIsTaken, branch.id.as_uuid()));
            }
        }
        let answers = self.0.query(questions).await?;
        let taken = ids
            .into_iter()
            .zip(answers)
            .find(|(_, rows)| !rows.is_empty());
        Ok(taken.map(|(id, _)| id))
    }

    /// Writes a plan that was replayed from an audit trail, and the audit trail. `stalls_at` is the
    /// time at which each step exceeds its stall threshold.
    pub fn restore(&mut self, made: &Plan, trail: &[Entry], stalls_at: &[Option<Timestamp>]) {
        let id = made.head().id;
        let author = trail.first().map_or("", |entry| entry.author.name.as_str());
        let sheet = Sheet {
            head: made.head().clone(),
            brief: made.brief().clone(),
            created_at: made.created_at(),
            updated_at: made.updated_at(),
            acted_at: made.updated_at(),
            worked_at: last_activity(trail).unwrap_or(made.created_at()),
            owner: Owner::new(author, RequestOrigin::default()),
            tokens: None,
        };
        self.queue(transition::new_plan(&sheet, VersionTag::random()));
        let ended = ended_commits(trail);
        for (step, stalls_at) in made.steps().iter().zip(stalls_at) {
            let waits = step.spec.depends_on.iter();
            let needed = waits.filter_map(|needed| made.step(*needed));
            let open = needed.filter(|needed| !step.spec.is_met_by(needed.status()));
            let open = open.count();
            let (spec, at) = (&step.spec, step.updated_at);
            self.queue(transition::new_step(id, spec, step.order, at, open));
            if step.status() != StepStatus::Pending || !step.superseded.is_empty() {
                let ended = ended.get(&step.id()).copied().unwrap_or(1);
                let params = step::changing(step, *stalls_at, ended);
                self.0
                    .queue(Statement::new(Query::StepUpdate, params).expecting(1));
            }
            if let Some(successor) = step.superseded_by {
                self.queue([transition::supersede(step.id(), successor)]);
            }
        }
        let queue = QueueChange::for_new_plan(made.head());
        self.queue(transition::queue_change(made.head(), queue));
        // A redone step passes its branches on, so the current branches are stored, each with the
        // ordinal of the event that added it.
        let branches: BTreeMap<BranchId, &Branch> =
            made.branches().map(|branch| (branch.id, branch)).collect();
        for entry in trail {
            self.restore_entry(made, entry, &branches);
        }
        let over = made.head().status().is_terminal();
        let has_deadline = made.under_review().any(|step| step.deadline().is_some());
        let has_budget = made
            .head()
            .budget
            .is_some_and(|budget| budget.ends_at().is_some());
        if !over && (has_deadline || has_budget || stalls_at.iter().any(Option::is_some)) {
            // The next sweep checks the plan and computes the exact time.
            Transitions(self.0).due(id, Due::By(made.updated_at()));
        }
        self.0.record_change(Subject::Plan(id));
    }

    fn queue(&mut self, statements: impl IntoIterator<Item = Statement>) {
        for statement in statements {
            self.0.queue(statement);
        }
    }

    fn restore_entry(
        &mut self,
        made: &Plan,
        entry: &Entry,
        branches: &BTreeMap<BranchId, &Branch>,
    ) {
        let id = made.head().id;
        if let Event::PlanModified { change, .. } = &entry.event {
            if let Change::Created(created) = change {
                for (place, branch) in (0u64..).zip(&created.branches) {
                    self.restore_branch(id, branches.get(&branch.id), BRANCHES_PER_EVENT + place);
                }
            } else if let Change::BranchAdded { branch } = change {
                let ordinal = entry.seq.saturating_mul(BRANCHES_PER_EVENT);
                self.restore_branch(id, branches.get(&branch.id), ordinal);
            }
        } else if let Event::SessionResumed { session } = &entry.event {
            let params = params![id.as_uuid(), session.as_str()];
            self.0
                .queue(Statement::new(Query::ResumedSessionInsert, params));
        }
        self.0.queue(transition::audit_entry(id, entry));
    }

    /// A branch is restored only if its step still exists.
    fn restore_branch(&mut self, plan: PlanId, branch: Option<&&Branch>, ordinal: u64) {
        if let Some(branch) = branch {
            self.queue(transition::add_branch(plan, branch, ordinal));
        }
    }
}

/// The last activity of an agent.
fn last_activity(trail: &[Entry]) -> Option<Timestamp> {
    let last = trail.iter().rev();
    last.filter(|entry| entry.event.is_agent_activity())
        .map(|entry| entry.at)
        .next()
}
