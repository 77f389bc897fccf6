//! The row changes of a transition as data. A backend renders them as SQL: SQLite each as its own
//! statement, PostgreSQL several as one.

use crate::query::Query;

/// A change of one row. The parameters of its statement are the tenant, then the columns in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowChange {
    pub(crate) table: &'static str,
    /// The columns of the parameters. The first one is the key of the row, after the tenant.
    pub(crate) columns: &'static [(&'static str, Type)],
    pub(crate) effect: Effect,
    /// Maximum number of these changes in a transition that is batched with others. Each number of
    /// rows needs a separate statement text, so transitions with rare changes are not batched.
    pub(crate) most_in_batch: usize,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Id,
    Int,
    Real,
    Text,
}

/// The kind of a change. Expressions refer to a parameter by its column in braces, and to the
/// existing row by the name of its table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Sets all columns of an existing row except the key and the version.
    Update {
        /// Columns that are set to an expression.
        computed: &'static [(&'static str, &'static str)],
        /// Columns that must still have the value of a parameter.
        version: &'static [(&'static str, &'static str)],
    },
    /// Inserts a row with a new key.
    Insert,
    /// Inserts a row, or sets all columns of the existing one.
    Upsert {
        /// SQL condition under which the existing row is updated. The new row is `excluded`.
        condition: Option<&'static str>,
        /// The change is unnecessary if this expression is true. An optimization: the last
        /// parameter is used only here, and a backend may omit both.
        unless: Option<&'static str>,
    },
    /// Deletes the row, if there is one.
    Delete,
}

impl RowChange {
    /// The key of the row.
    pub(crate) fn key(&self) -> &'static str {
        self.columns.first().map_or("", |(key, _)| *key)
    }

    /// The columns without the parameter of [`Effect::Upsert`] that a backend may omit.
    pub(crate) fn stored(&self) -> &'static [(&'static str, Type)] {
        match (&self.effect, self.columns) {
            (
                Effect::Upsert {
                    unless: Some(_), ..
                },
                [stored @ .., _],
            ) => stored,
            (_, columns) => columns,
        }
    }

    /// The assignments of [`Effect::Update`], with the text of each parameter.
    pub(crate) fn assignments(&self, parameter: impl Fn(&str) -> String) -> String {
        let Effect::Update { computed, version } = self.effect else {
            return String::new();
        };
        let is_plain = |column: &str| {
            let is_computed = computed.iter().any(|(name, _)| *name == column);
            !is_computed && version.iter().all(|(_, parameter)| *parameter != column)
        };
        let columns = self.columns.iter().skip(1).map(|(name, _)| *name);
        let plain = columns
            .filter(|column| is_plain(column))
            .map(|column| format!("{column} = {}", parameter(column)));
        let computed = computed.iter().map(|(column, expression)| {
            format!("{column} = {}", self.fill(expression, &parameter))
        });
        plain.chain(computed).collect::<Vec<_>>().join(", ")
    }

    /// The clause of [`Effect::Upsert`] for an existing row.
    pub(crate) fn on_conflict(&self) -> String {
        let Effect::Upsert { condition, .. } = self.effect else {
            return String::new();
        };
        let columns = self.stored().iter().skip(1);
        let set: Vec<_> = columns
            .map(|(column, _)| format!("{column} = excluded.{column}"))
            .collect();
        let condition = condition.map_or(String::new(), |it| format!(" WHERE {it}"));
        format!(
            " ON CONFLICT (tenant_id, {}) DO UPDATE SET {}{condition}",
            self.key(),
            set.join(", ")
        )
    }

    /// An expression with the text of each parameter.
    pub(crate) fn fill(&self, expression: &str, parameter: impl Fn(&str) -> String) -> String {
        let columns = self.columns.iter();
        columns.fold(expression.to_owned(), |text, (column, _)| {
            text.replace(&format!("{{{column}}}"), &parameter(column))
        })
    }
}

impl Query {
    /// The change that the statement makes, if it can be merged with others: it reads no row that
    /// they change.
    pub(crate) fn row_change(self) -> Option<&'static RowChange> {
        let mut all = ROW_CHANGES.iter();
        all.find(|(query, _)| *query == self)
            .map(|(_, change)| *change)
    }
}

/// All row changes.
pub(crate) static ROW_CHANGES: [(Query, &RowChange); 7] = [
    (Query::PlanMove, &PLAN_MOVE),
    (Query::StepUpdate, &STEP_UPDATE),
    (Query::StepAdvance, &STEP_ADVANCE),
    (Query::EventInsert, &EVENT_INSERT),
    (Query::DueSooner, &DUE_SOONER),
    (Query::DueSet, &DUE_SET),
    (Query::DueClear, &DUE_CLEAR),
];

/// On PostgreSQL, used regardless of which columns change: setting a column to its current value
/// costs almost nothing.
static PLAN_MOVE: RowChange = RowChange {
    table: "plans",
    columns: &[
        ("plan_id", Type::Id),
        ("status", Type::Text),
        ("open_reviews", Type::Text),
        ("marked_at", Type::Int),
        ("ended_at", Type::Int),
        ("failure_kind", Type::Text),
        ("failure_words", Type::Text),
        ("last_session", Type::Text),
        ("pending", Type::Int),
        ("in_progress", Type::Int),
        ("awaiting_input", Type::Int),
        ("completed", Type::Int),
        ("skipped", Type::Int),
        ("failed", Type::Int),
        ("seq", Type::Int),
        ("updated_at", Type::Int),
        ("acted_at", Type::Int),
        ("worked_at", Type::Int),
        ("version_tag", Type::Int),
        ("before", Type::Int),
        ("tag_before", Type::Int),
    ],
    effect: Effect::Update {
        computed: &[
            ("acted_at", "coalesce({acted_at}, plans.acted_at)"),
            (
                "acted_about",
                "coalesce({acted_at}, plans.acted_at) / 10000",
            ),
            ("worked_at", "coalesce({worked_at}, plans.worked_at)"),
            (
                "steps",
                "{pending} + {in_progress} + {awaiting_input} + {completed} + {skipped} + {failed}",
            ),
        ],
        version: &[("seq", "before"), ("version_tag", "tag_before")],
    },
    most_in_batch: 1,
};

/// The commit in which a step ended is kept, even if its instructions are rewritten later.
const STEP_EFFECT: Effect = Effect::Update {
    computed: &[(
        "ended_commit",
        "coalesce(steps.ended_commit, {ended_commit})",
    )],
    version: &[],
};

/// The columns of a step's state. Those that a claim or a result changes come first: most transitions
/// set no others, and each column has a cost.
const STEP_COLUMNS: &[(&str, Type)] = &[
    ("step_id", Type::Id),
    ("status", Type::Text),
    ("attempt", Type::Int),
    ("claim_token", Type::Text),
    ("claim_session", Type::Text),
    ("started_at", Type::Int),
    ("ended_at", Type::Int),
    ("result_summary", Type::Text),
    ("result_confidence", Type::Real),
    ("result", Type::Text),
    ("result_report", Type::Text),
    ("result_notes", Type::Text),
    ("updated_at", Type::Int),
    ("stalls_at", Type::Int),
    ("ended_commit", Type::Int),
    // The others.
    ("last_progress_at", Type::Int),
    ("monitored", Type::Int),
    ("stall_marked_at", Type::Int),
    ("orphaned_at", Type::Int),
    ("undelivered", Type::Int),
    ("kept_artifact_id", Type::Id),
    ("review", Type::Text),
    ("result_evidence", Type::Text),
    ("skipped_by_branch", Type::Id),
    ("skipped_by_review", Type::Id),
    ("failure_kind", Type::Text),
    ("failure_words", Type::Text),
    ("superseded", Type::Text),
];

static STEP_UPDATE: RowChange = RowChange {
    table: "steps",
    columns: STEP_COLUMNS,
    effect: STEP_EFFECT,
    most_in_batch: 0,
};

static STEP_ADVANCE: RowChange = RowChange {
    table: "steps",
    columns: STEP_COLUMNS.split_at(15).0,
    effect: STEP_EFFECT,
    most_in_batch: 2,
};

static EVENT_INSERT: RowChange = RowChange {
    table: "events",
    columns: &[
        ("plan_id", Type::Id),
        ("seq", Type::Int),
        ("commit_seq", Type::Int),
        ("at", Type::Int),
        ("actor", Type::Text),
        ("session", Type::Text),
        ("name", Type::Text),
        ("step_id", Type::Id),
        ("details", Type::Text),
    ],
    effect: Effect::Insert,
    most_in_batch: 3,
};

/// `ON CONFLICT` locks the existing row even if it is not changed, and the lock is a write. So the
/// upsert is skipped if the stored time is early enough and is after `quiet`: no sweep postpones
/// such a row before `quiet`.
static DUE_SOONER: RowChange = RowChange {
    table: "due",
    columns: &[
        ("plan_id", Type::Id),
        ("at", Type::Int),
        ("quiet", Type::Int),
    ],
    effect: Effect::Upsert {
        condition: Some("excluded.at < due.at"),
        unless: Some(
            "(SELECT was.at > {quiet} AND was.at <= {at} FROM due AS was \
             WHERE was.tenant_id = $1 AND was.plan_id = {plan_id})",
        ),
    },
    most_in_batch: 1,
};

static DUE_SET: RowChange = RowChange {
    table: "due",
    columns: &[("plan_id", Type::Id), ("at", Type::Int)],
    effect: Effect::Upsert {
        condition: None,
        unless: None,
    },
    most_in_batch: 0,
};

static DUE_CLEAR: RowChange = RowChange {
    table: "due",
    columns: &[("plan_id", Type::Id)],
    effect: Effect::Delete,
    most_in_batch: 1,
};
