//! The floor of SQLite: the rows that the engine writes, without reads, decisions or checks.

use std::path::Path;
use std::sync::Arc;

/// Details of an audit entry.
pub const PAYLOAD: &str = r#"{"from":"pending","to":"in_progress","attempt":1,"token":"0123456789abcdef0123456789abcdef"}"#;

/// Jobs to write, one per transaction, with a separate list for each caller.
pub trait JobSource: Clone + Send + 'static {
    /// One transaction.
    type Job: Send + 'static;
    /// The jobs of one caller, in order.
    fn jobs(&self, caller: usize) -> impl Iterator<Item = Self::Job> + Send + 'static;
    /// Writes the rows of one job.
    fn write(file: &rusqlite::Connection, job: &Self::Job);
}

/// Runs a prepared statement, and returns the number of rows that it changed.
pub fn execute(file: &rusqlite::Connection, text: &str, params: impl rusqlite::Params) -> usize {
    let mut prepared = file.prepare_cached(text).expect("statement prepared");
    prepared.execute(params).expect("statement executed")
}

/// The same rows as the engine, in the same tables with all indexes and constraints. Each step is
/// started and completed, without reading or deciding anything.
#[derive(Clone)]
pub struct SameRows {
    /// For each caller, its plans with their steps.
    plans: Arc<Vec<Vec<Plan>>>,
    claim_next: bool,
}

type Id = [u8; 16];
/// A plan and its steps.
type Plan = (Id, Vec<Id>);

/// A transition of a step: started or completed.
#[derive(Clone)]
pub struct Transition {
    plan: Id,
    step: Id,
    /// Sequence number of its event; even numbers start a step.
    seq: i64,
}

impl SameRows {
    /// Distributes the new plans of a file among the callers. With `claim_next`, one transaction
    /// completes a step and starts the next one, as in the engine.
    pub fn load(path: &Path, callers: usize, claim_next: bool) -> Self {
        let file = rusqlite::Connection::open(path).expect("database opened");
        let mut all = file
            .prepare(
                "SELECT plan_id, step_id FROM steps JOIN plans USING (tenant_id, plan_id) \
                 WHERE plans.seq = 1 ORDER BY plan_id, step_order",
            )
            .expect("statement prepared");
        let rows = all.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
        let mut plans = vec![Vec::<Plan>::new(); callers];
        let (mut last, mut caller) = (None, 0);
        for row in rows.expect("query executed") {
            let (plan, step): (Id, Id) = row.expect("row decoded");
            if last.replace(plan) != Some(plan) {
                caller = (caller + 1) % callers;
                plans[caller].push((plan, Vec::new()));
            }
            let (_, steps) = plans[caller].last_mut().expect("a plan was added");
            steps.push(step);
        }
        Self {
            plans: Arc::new(plans),
            claim_next,
        }
    }

    /// Distributes the plans of each caller among this many rounds.
    pub fn rounds(&self, count: usize) -> Vec<Self> {
        let round = |round: usize| {
            let plans = self.plans.iter().map(|plans| {
                let plans = plans.iter().skip(round).step_by(count);
                plans.cloned().collect()
            });
            Self {
                plans: Arc::new(plans.collect()),
                claim_next: self.claim_next,
            }
        };
        (0..count).map(round).collect()
    }
}

impl JobSource for SameRows {
    type Job = Vec<Transition>;

    fn jobs(&self, caller: usize) -> impl Iterator<Item = Vec<Transition>> + Send + 'static {
        let (plans, claim_next) = (Arc::clone(&self.plans), self.claim_next);
        (0..plans[caller].len()).flat_map(move |index| {
            let (plan, steps) = plans[caller][index].clone();
            let steps = steps.into_iter().flat_map(|step| [step, step]);
            let transitions = (2..).zip(steps);
            let transitions: Vec<Transition> = transitions
                .map(|(seq, step)| Transition { plan, step, seq })
                .collect();
            let same_job = |a: &Transition, b: &Transition| claim_next && !a.starts() && b.starts();
            let jobs = transitions.chunk_by(same_job);
            jobs.map(<[Transition]>::to_vec).collect::<Vec<_>>()
        })
    }

    fn write(file: &rusqlite::Connection, job: &Vec<Transition>) {
        for transition in job {
            transition.write(file);
        }
    }
}

impl Transition {
    fn starts(&self) -> bool {
        self.seq % 2 == 0
    }

    fn write(&self, file: &rusqlite::Connection) {
        let Self { plan, step, seq } = self;
        let starts = self.starts();
        let plans = execute(
            file,
            "UPDATE plans SET last_session = NULL, pending = pending - ?3, \
             in_progress = in_progress + ?3 - ?4, awaiting_input = 0, completed = completed + ?4, \
             skipped = 0, failed = 0, seq = ?5, updated_at = updated_at + 1 \
             WHERE tenant_id = ?1 AND plan_id = ?2 AND seq = ?5 - 1",
            ("local", plan, i64::from(starts), i64::from(!starts), seq),
        );
        assert_eq!(plans, 1, "the plan has this version");
        let text = if starts {
            "UPDATE steps SET status = 'in_progress', claim_token = ?3, started_at = ?4, \
             updated_at = ?4, stalls_at = ?4 WHERE tenant_id = ?1 AND step_id = ?2"
        } else {
            "UPDATE steps SET status = 'completed', result_summary = ?3, ended_at = ?4, \
             ended_commit = 1, updated_at = ?4, stalls_at = NULL \
             WHERE tenant_id = ?1 AND step_id = ?2"
        };
        let token = "0123456789abcdef0123456789abcdef";
        execute(
            file,
            text,
            ("local", step, token, 1_800_000_000_000i64 + seq),
        );
        execute(
            file,
            "INSERT INTO events (tenant_id, plan_id, seq, commit_seq, at, actor, name, step_id, \
             details) VALUES (?1, ?2, ?3, ?3, 1800000000000, 'bench', 'step_started', ?4, ?5)",
            ("local", plan, seq, step, PAYLOAD),
        );
    }
}

/// Opens a file with the same durability as the engine.
pub fn open(path: &Path) -> rusqlite::Connection {
    let file = rusqlite::Connection::open(path).expect("database opened");
    file.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;")
        .expect("pragmas set");
    file.set_prepared_statement_cache_capacity(32);
    file
}
