//! The row changes of a transition as data, so that a backend can render several of them as one
//! statement. SQLite runs each as its own statement from `query/*.sql`, with the same parameters.

use crate::query::Query;

/// A change of one row. The parameters of its statement are the tenant, then the columns in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowChange {
    pub(crate) table: &'static str,
    /// The columns of the parameters. The first one is the key of the row, after the tenant.
    pub(crate) columns: &'static [(&'static str, Type)],
    pub(crate) effect: Effect,
    /// Maximum number of these changes in a transition that is batched with others. Every number of
    /// rows is a separate statement text, so transitions with rare changes are not batched.
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

/// The kind of a change. Expressions refer to the parameters as columns of `new`, and to the
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
    /// Inserts a row.
    Insert {
        /// The action if a row with this key exists. If empty, that is an error.
        on_conflict: &'static str,
        /// The insert is unnecessary if this expression is true. An optimisation: the last
        /// parameter is used only here, and a backend may leave out both.
        unless: Option<&'static str>,
    },
    /// Deletes the row, if there is one.
    Delete,
}

impl Query {
    /// The change that the statement makes, if it can be merged with others: it reads no row that
    /// they change.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "no other statement can be merged"
    )]
    pub(crate) const fn row_change(self) -> Option<&'static RowChange> {
        match self {
            Query::PlanMove => Some(&PLAN_MOVE),
            Query::StepUpdate => Some(&STEP_UPDATE),
            Query::StepAdvance => Some(&STEP_ADVANCE),
            Query::EventInsert => Some(&EVENT_INSERT),
            Query::DueSooner => Some(&DUE_SOONER),
            Query::DueSet => Some(&DUE_SET),
            Query::DueClear => Some(&DUE_CLEAR),
            _ => None,
        }
    }
}

/// For every change of a plan: a column that keeps its value costs almost nothing.
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
            ("acted_at", "coalesce(new.acted_at, plans.acted_at)"),
            (
                "acted_about",
                "coalesce(new.acted_at, plans.acted_at) / 10000",
            ),
            ("worked_at", "coalesce(new.worked_at, plans.worked_at)"),
            (
                "steps",
                "new.pending + new.in_progress + new.awaiting_input + new.completed + new.skipped \
                 + new.failed",
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
        "coalesce(steps.ended_commit, new.ended_commit)",
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
    effect: Effect::Insert {
        on_conflict: "",
        unless: None,
    },
    most_in_batch: 3,
};

/// An unchanged row would still be locked, which writes to it. So a row that is early enough is not
/// updated if it is not due before `quiet`: until then no sweep postpones it.
static DUE_SOONER: RowChange = RowChange {
    table: "due",
    columns: &[
        ("plan_id", Type::Id),
        ("at", Type::Int),
        ("quiet", Type::Int),
    ],
    effect: Effect::Insert {
        on_conflict: "(tenant_id, plan_id) DO UPDATE SET at = excluded.at WHERE excluded.at < due.at",
        unless: Some(
            "(SELECT was.at > new.quiet AND was.at <= new.at FROM due AS was \
             WHERE was.tenant_id = $1 AND was.plan_id = new.plan_id)",
        ),
    },
    most_in_batch: 1,
};

static DUE_SET: RowChange = RowChange {
    table: "due",
    columns: &[("plan_id", Type::Id), ("at", Type::Int)],
    effect: Effect::Insert {
        on_conflict: "(tenant_id, plan_id) DO UPDATE SET at = excluded.at",
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
