//! The database without Onward: counts what the sweep has done, and writes the same rows in a loop.

use std::path::PathBuf;
use std::time::Duration;

use onward_core::{PlanId, Timestamp};
use onward_testbed::bench;
use tokio_postgres::NoTls;

/// Plans per transaction on SQLite, where one writer serves all callers.
const GROUP: usize = 64;

const COUNT: &str = "SELECT count(*) FROM plans WHERE status = 'stalled' AND tenant_id LIKE $1";
const MARKED_AT: &str = "SELECT marked_at FROM plans WHERE plan_id = $1";
const PLANS: &str = "SELECT tenant_id, plan_id FROM plans WHERE tenant_id LIKE $1 LIMIT $2";
const PLANS_AS_TEXT: &str =
    "SELECT tenant_id, plan_id::text FROM plans WHERE tenant_id LIKE $1 LIMIT $2";
const PLAN: &str = "UPDATE plans SET status = 'stalled', marked_at = marked_at + 1, seq = seq + 1 \
    WHERE tenant_id = $1 AND plan_id = $2";
const EVENT: &str = "INSERT INTO events \
    (tenant_id, plan_id, seq, commit_seq, at, actor, session, name, step_id, details) \
    SELECT tenant_id, plan_id, seq + 1, seq + 1, at, actor, session, name, step_id, details FROM events \
    WHERE tenant_id = $1 AND plan_id = $2 ORDER BY seq DESC LIMIT 1";
const DUE: &str = "INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $2, 1) \
    ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at";

/// A database, without Onward.
pub(crate) enum Bare {
    File(PathBuf),
    Server(String),
}

impl Bare {
    pub(crate) fn file(path: PathBuf) -> Self {
        Self::File(path)
    }

    pub(crate) fn server(url: String) -> Self {
        Self::Server(url)
    }

    /// Number of stalled plans of the tenants with this prefix.
    pub(crate) async fn count_stalled(&self, prefix: &str) -> usize {
        let pattern = format!("{prefix}%");
        let count: i64 = match self {
            Self::File(path) => {
                let file = bench::open(path);
                file.query_row(COUNT, [&pattern], |row| row.get(0)).unwrap()
            }
            Self::Server(url) => {
                let client = connect(url).await;
                client.query_one(COUNT, &[&pattern]).await.unwrap().get(0)
            }
        };
        usize::try_from(count).unwrap()
    }

    /// How many seconds after its due time each plan was marked. Without those that are not yet due.
    pub(crate) async fn lateness(
        &self,
        probes: &[(PlanId, Timestamp)],
        threshold: Duration,
    ) -> Vec<f64> {
        let mut lateness = Vec::new();
        for (plan, silent_since) in probes {
            let marked_at: Option<i64> = match self {
                Self::File(path) => {
                    let plan = plan.as_uuid();
                    let file = bench::open(path);
                    let row = file.query_row(MARKED_AT, [plan.as_bytes()], |row| row.get(0));
                    row.unwrap()
                }
                Self::Server(url) => {
                    let client = connect(url).await;
                    let marked_at = MARKED_AT.replace("$1", "$1::text::uuid");
                    client
                        .query_one(&marked_at, &[&plan.as_uuid().to_string()])
                        .await
                        .unwrap()
                        .get(0)
                }
            };
            let due_at = silent_since.checked_add(threshold).unwrap().as_millis();
            if let Some(marked_at) = marked_at {
                lateness.push((marked_at - due_at) as f64 / 1000.0);
            }
        }
        lateness
    }

    /// Writes the row of the plan, an event and the due time, for so many plans.
    pub(crate) async fn write_same_rows(&self, prefix: &str, plans: usize) {
        let (pattern, plans) = (format!("{prefix}%"), i64::try_from(plans).unwrap());
        match self {
            Self::File(path) => {
                let file = bench::open(path);
                let mut statement = file.prepare(PLANS).unwrap();
                let rows = statement.query_map((&pattern, plans), |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
                });
                let rows: Vec<_> = rows.unwrap().map(Result::unwrap).collect();
                for group in rows.chunks(GROUP) {
                    bench::execute(&file, "BEGIN IMMEDIATE", ());
                    for (tenant, plan) in group {
                        for sql in [PLAN, EVENT, DUE] {
                            bench::execute(&file, sql, (tenant, plan));
                        }
                    }
                    bench::execute(&file, "COMMIT", ());
                }
            }
            Self::Server(url) => {
                let client = connect(url).await;
                let rows = client
                    .query(PLANS_AS_TEXT, &[&pattern, &plans])
                    .await
                    .unwrap();
                let begin = client.prepare("BEGIN").await.unwrap();
                let commit = client.prepare("COMMIT").await.unwrap();
                let [plan_sql, event_sql, due_sql] = [
                    client.prepare(&as_text(PLAN)).await.unwrap(),
                    client.prepare(&as_text(EVENT)).await.unwrap(),
                    client.prepare(&as_text(DUE)).await.unwrap(),
                ];
                for row in rows {
                    let (tenant, plan): (String, String) = (row.get(0), row.get(1));
                    client.execute(&begin, &[]).await.unwrap();
                    for sql in [&plan_sql, &event_sql, &due_sql] {
                        client.execute(sql, &[&tenant, &plan]).await.unwrap();
                    }
                    client.execute(&commit, &[]).await.unwrap();
                }
            }
        }
    }
}

/// The statement with the id of the plan as text.
fn as_text(sql: &str) -> String {
    sql.replace("$2", "$2::text::uuid")
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("connected");
    tokio::spawn(connection);
    client
}
