//! Tests of the backend against a real server. A statement that no query file contains is its own
//! text.

mod batcher;
mod catalog;
mod distributable;
mod failover;
mod leader;
mod listen;
mod near_index;
mod node_reads;
mod outages;
mod pooler;
mod schema;
mod tenants;
mod transactions;

use onward_testbed::Cluster;
use tokio::sync::broadcast::{self, Receiver};

use std::sync::Arc;
use std::time::Duration;

use super::connection::Mode;
use super::pool::Limits;
use super::server::{Inner, Postgres};
use super::*;
use crate::change::{Changed, Subject};
use crate::error::Error;
use crate::fault::Faults;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Value, params};

const KEY: Query = Query::Text(
    "INSERT INTO idempotency_keys (tenant_id, idempotency_key, plan_id, digest, created_at) \
    VALUES ($1, $2, $3, '', 0)",
);
const KEYS: Query = Query::Text("SELECT count(*) AS n FROM idempotency_keys WHERE tenant_id = $1");
const ALL_KEYS: Query = Query::Text("SELECT count(*) AS n FROM idempotency_keys");
const RENAME: Query = Query::Text(
    "UPDATE idempotency_keys SET digest = $3 WHERE tenant_id = $1 AND idempotency_key = $2",
);

async fn open(url: &str) -> (Postgres, Receiver<Changed>) {
    let (watchers, watching) = broadcast::channel(64);
    (
        Postgres::connect(url, None, true, true, watchers)
            .await
            .unwrap(),
        watching,
    )
}

async fn fresh() -> Postgres {
    open(&Cluster::shared().database()).await.0
}

/// The same database with another login.
fn as_role(url: &str, role: &str) -> String {
    let place = url
        .rsplit_once('@')
        .map_or_else(|| url.trim_start_matches("postgres://"), |(_, host)| host);
    format!("postgres://{role}@{place}")
}

fn begin(postgres: &Postgres, tenant: &str) -> Tx {
    begin_as(postgres, tenant.into(), Mode::Lock)
}

fn begin_as(postgres: &Postgres, tenant: Arc<str>, kind: Mode) -> Tx {
    let exec = postgres.begin(Arc::clone(&tenant), kind);
    Tx::new(exec, tenant, Faults::default())
}

async fn commit(mut tx: Tx) -> Result<(), Error> {
    tx.commit().await
}

fn rollback(mut tx: Tx) {
    tx.rollback();
}

fn key(name: &str) -> Statement {
    Statement::new(KEY, params![name, uuid::Uuid::from_u128(1)])
}

async fn number(tx: &mut Tx, query: Query, params: Vec<Value>) -> Result<i64, Error> {
    let rows = tx
        .query(vec![Statement::without_tenant(query, params)])
        .await?;
    let row = rows.into_iter().flatten().next().unwrap();
    row.cells("t").int("n")
}

async fn keys(postgres: &Postgres, tenant: &str) -> i64 {
    let mut tx = begin(postgres, tenant);
    let found = number(&mut tx, KEYS, params![tenant]).await.unwrap();
    rollback(tx);
    found
}

async fn put(postgres: &Postgres, tenant: &str, name: &str) -> Result<(), Error> {
    let mut tx = begin(postgres, tenant);
    let statement = key(name).expecting(1);
    tx.queue(statement);
    commit(tx).await
}

const EVENT: Query = Query::Text(
    "INSERT INTO events (tenant_id, plan_id, seq, commit_seq, at, actor, name, details) \
    VALUES ($1, $2, $3, 1, 0, 'a', 'n', '{}')",
);
const PLAN: Query = Query::Text(
    "INSERT INTO plans (tenant_id, plan_id, name, research_question, on_stall, status, \
    pending, in_progress, awaiting_input, completed, skipped, failed, seq, created_at, updated_at, \
    acted_at, worked_at, created_by) \
    VALUES ($1, $2, 'n', 'q', 'mark', 'planning', 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 'a')",
);
