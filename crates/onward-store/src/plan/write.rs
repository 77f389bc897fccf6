//! Writes transitions and new plans. Apart from importing and deleting a plan, nothing else changes
//! its state; token counts and due times are not part of it.

use std::sync::Arc;

use onward_core::event::Created;
use onward_core::next_check::Due;
use onward_core::transition::QueueChange;
use onward_core::{PlanHead, PlanId, Timestamp};

use super::transition;
use crate::commit::{Commit, Written};
use crate::error::Error;
use crate::query::Query;
use crate::row::event::Entry;
use crate::row::plan::{Owner, RequestOrigin, Sheet, StoredVersion, TimeBucket, VersionTag};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Value, params};

/// Writes to plans.
pub struct Transitions<'t>(pub &'t mut Tx);

impl Transitions<'_> {
    /// Writes a change to an existing plan.
    pub(crate) fn commit(&mut self, commit: &Commit<'_>) -> Written {
        let tx = &mut *self.0;
        let plan = commit.head.id;
        let known = tx.versions.get(plan);
        let bucket = match known {
            Some(known) if !commit.changes_plan() || !commit.acted => known.bucket,
            Some(_) | None => TimeBucket::new(commit.at),
        };
        let has_context = known.is_none_or(|known| known.has_context) || commit.adds_context();
        let tag = VersionTag::random();
        let updates_every_index = tx.syntax().updates_every_index;
        for statement in transition::plan_row(commit, known, tag, updates_every_index) {
            tx.queue(statement);
        }
        let known = StoredVersion::new(commit.head, bucket, tag, has_context);
        tx.versions.record_write(plan, known);
        for statement in transition::step_rows(commit) {
            tx.queue(statement);
        }
        let mut bytes = 0;
        for statement in transition::audit_entries(commit) {
            bytes += size(&statement);
            tx.queue(statement);
        }
        if let Some(due) = transition::due_time(plan, commit.due, commit.quiet_until()) {
            tx.queue(due);
        }
        // Statements that most transitions do not need come after those that all of them need:
        // PostgreSQL receives the latter as one message.
        for statement in transition::list_changes(commit) {
            tx.queue(statement);
        }
        tx.record_plan_change(plan, commit.head.seq);
        Written { tag, bytes }
    }

    /// Writes a new plan.
    pub(crate) fn create(
        &mut self,
        created: &Created,
        entry: &Entry,
        origin: RequestOrigin,
    ) -> Written {
        let tx = &mut *self.0;
        let at = entry.at;
        let head = PlanHead::new(created);
        let plan = head.id;
        let sheet = Sheet {
            head,
            brief: created.brief.clone(),
            created_at: at,
            updated_at: at,
            acted_at: at,
            worked_at: at,
            owner: Owner::new(&entry.author.name, origin),
            tokens: None,
        };
        let tag = VersionTag::random();
        for statement in transition::new_plan(&sheet, tag) {
            tx.queue(statement);
        }
        for statement in transition::new_lists(created, plan, at) {
            tx.queue(statement);
        }
        let queue = QueueChange::for_new_plan(&sheet.head);
        if let Some(statement) = transition::queue_change(&sheet.head, queue) {
            tx.queue(statement);
        }
        let audit = transition::audit_entry(plan, entry);
        let bytes = size(&audit);
        tx.queue(audit);
        tx.record_plan_change(plan, entry.seq);
        Written { tag, bytes }
    }

    /// Sets when the sweep must check a plan. If this depends on a plan that is not locked, the plan
    /// gets a new version: otherwise a commit that needs an earlier check could be overlooked.
    pub(crate) fn due(&mut self, plan: PlanId, due: Due) {
        let tx = &mut *self.0;
        if tx.is_optimistic()
            && !tx.checks_version()
            && let Some(known) = tx.versions.get(plan)
        {
            let (seq, tag) = (known.seq, VersionTag::random());
            let params = params![plan.as_uuid(), seq, tag.0, seq, known.tag.0];
            tx.queue(Statement::new(Query::PlanNote, params).checking_version());
        }
        if let Some(statement) = transition::due_time(plan, due, None) {
            self.0.queue(statement);
        }
    }

    /// Stores the idempotency key under which a plan was created, with the digest of its input.
    pub fn remember_key(&mut self, key: &str, plan: PlanId, digest: &str, at: Timestamp) {
        let params = params![key, plan.as_uuid(), digest, at];
        self.0
            .queue(Statement::new(Query::IdempotencyKeyInsert, params).expecting_new_key());
    }

    /// The plan created under an idempotency key, and the digest of its input.
    pub async fn plan_of_key(&mut self, key: &str) -> Result<Option<(PlanId, Arc<str>)>, Error> {
        let rows = self.0.rows(Query::IdempotencyKey, params![key]).await?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let mut cells = row.cells("idempotency_keys");
        cells.text("idempotency_key")?;
        let plan = PlanId::new(cells.id("plan_id")?);
        Ok(Some((plan, cells.text("digest")?)))
    }
}

/// Length of an audit entry in bytes.
fn size(statement: &Statement) -> usize {
    statement.params.iter().map(Value::bytes).sum()
}
