//! Batching of transitions of concurrent callers into one statement.
//!
//! A transition is sent immediately if few others are in flight; otherwise it is queued and sent in
//! a batch (`batch_queue`). One statement that changes four plans costs the server half as much as four
//! statements, and needs one fsync. [`Batched`] is a decorator of [`Connection`]: it changes only the
//! commit. Without it (`Options::batching`), every transition is sent alone.
//!
//! # Why a batched transition has the same result as one that is sent alone
//!
//! 1. A transition that can be batched ([`batch_key`]) consists of a version check of one row,
//!    whose key is the key of the transition, and changes of rows that belong to this row. Each
//!    change finds its row by primary key and reads no other row, so changes of different rows can
//!    run in any order.
//! 2. The members of a batch have different keys. [`Queue::route`] decides under one lock: if a transition
//!    of the same key is queued or in flight, the new one is sent alone, and so is the queued one.
//!    So no two members change the same row. All members have the same tenant, because each tenant
//!    has its own queue.
//! 3. A batch is one statement, and its own transaction. Its first part locks the free rows, its
//!    second part updates those that still have their version, and returns their keys. All other
//!    changes depend on these keys (`merge`). So a member is written as a whole or not at all, and
//!    one that is outdated or locked by another transaction does not affect the others. PostgreSQL
//!    checks the condition of an update again on a row that was changed concurrently, so a version
//!    check cannot succeed on an outdated row.
//! 4. A member gets [`Outcome::Committed`] only if the response to the commit contains its key. It
//!    is then as durable as after its own commit. A member without its key has written nothing; it
//!    is sent alone, where it waits for locks, succeeds or loses the race as usual.
//! 5. If the server rejects the statement, for example because of a constraint or a locked row of
//!    another table, the transaction has written nothing. Every member is sent alone and gets its
//!    own result, so no member fails because of another one.
//! 6. If the connection is lost, the batch may have been committed. Every member gets that error,
//!    and none is sent again: the same as for a commit that is sent alone. If no connection is
//!    available, nothing was sent, and every member gets that error.
//! 7. A transition is in one place: it is queued, in one batch, or sent alone. It changes place under
//!    the lock of the queue ([`Batcher::remove`], [`Batcher::next_batch`]), so it is not sent twice.
//! 8. A caller that is dropped while its transition is queued has changed nothing. Once the
//!    transition is in a batch, a separate task completes the batch, so the other members get their
//!    results.
//! 9. Batches do not deadlock: they skip locked rows that have a version, and wait at most 20 ms for
//!    any other row (`SHORT_LOCK_TIMEOUT`), after which 5 applies.
//! 10. No transition waits for long: it is queued for at most `max_wait` (20 ms), and a message in
//!     flight for longer than that no longer delays others.
//!
//! Tests: `tests/batcher.rs` for 2 to 8 and 10 on a server; this module and `batch_queue` for the form of
//! batches and the queue; `onward-engine/tests/race` and the conformance suite with and without the
//! batcher.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::batch_queue::{Batcher, Batchers, Member, Outcome};
use super::connection::{Connection, Mode};
use super::error;
use super::merge::{MOST_MERGED, mergeable};
use super::server::Postgres;
use crate::backend::{Candidate, Exec, Isolation, NearestSearch, Response, Syntax};
use crate::error::Error;
use crate::query::Query;
use crate::statement::{Expect, Statement};
use crate::value::{Row, Value};

/// How a transition is sent.
enum Route {
    Alone(InFlight, Vec<Statement>),
    /// Queued for a batch, under this number.
    Queued(u64, oneshot::Receiver<Outcome>),
}

/// The key of the row whose version a transition checks, if the transition can be batched: it
/// consists of frequent row changes only, each of another row.
pub(super) fn batch_key(statements: &[Statement]) -> Option<Uuid> {
    let key = match statements.first() {
        Some(first) if first.checks_version() => first.params.get(1),
        Some(_) | None => None,
    };
    let Some(Value::Id(key)) = key else {
        return None;
    };
    let fits = |statement: &Statement| {
        let most = statement.query.row_change()?.most_in_batch;
        let same = statements
            .iter()
            .filter(|other| other.query == statement.query);
        Some(same.count() <= most)
    };
    let all_fit = statements.iter().all(|one| fits(one) == Some(true));
    let merged = mergeable(&statements.iter().collect::<Vec<_>>(), false);
    (all_fit && merged == statements.len()).then_some(*key)
}

/// A connection whose commit may be part of a batch.
pub(super) struct Batched {
    connection: Connection,
    queue: Queue,
}

impl Batched {
    pub(super) fn new(connection: Connection, queue: Queue) -> Self {
        Self { connection, queue }
    }

    /// Commits a transition, alone or in a batch. Returns its statements if nothing was written and
    /// the caller must send them alone.
    async fn commit_batched(
        &mut self,
        key: Uuid,
        statements: Vec<Statement>,
    ) -> Result<Option<Vec<Statement>>, Error> {
        let (number, mut outcome) = match self.queue.route(key, statements) {
            Route::Alone(in_flight, statements) => {
                let sent = self.connection.send_and_commit(&refs(&statements)).await;
                drop(in_flight);
                return sent.map(|()| None);
            }
            Route::Queued(number, outcome) => (number, outcome),
        };
        // Other callers can use the connection while this one is queued.
        self.connection.release();
        let max_wait = self.queue.postgres.0.limits.max_wait;
        let outcome = match timeout(max_wait, &mut outcome).await {
            Ok(outcome) => outcome,
            Err(_) => {
                // Slow messages no longer count as in flight, so the queued transitions may be ready
                // to be sent.
                self.queue.dispatch_ready();
                match self.queue.with(|batcher| batcher.remove(number)) {
                    Some(member) => return Ok(Some(member.statements)),
                    None => outcome.await,
                }
            }
        };
        match outcome {
            Ok(Outcome::Committed) => Ok(None),
            Ok(Outcome::SendAlone(statements)) => Ok(Some(statements)),
            Ok(Outcome::Failed(why)) => Err(why),
            Err(_) => Err(error::outcome_unknown("the task that sent it has ended")),
        }
    }
}

impl Exec for Batched {
    fn commit(&mut self, statements: Vec<Statement>) -> Response<'_, ()> {
        Box::pin(async {
            let statements = match batch_key(&statements) {
                Some(key) if self.connection.is_idle() => {
                    self.commit_batched(key, statements).await?
                }
                Some(_) | None => Some(statements),
            };
            let Some(statements) = statements else {
                return Ok(());
            };
            self.connection.send_and_commit(&refs(&statements)).await
        })
    }

    fn run<'a>(&'a mut self, batch: &'a [Statement], writes: bool) -> Response<'a, Vec<Vec<Row>>> {
        self.connection.run(batch, writes)
    }

    fn rollback(&mut self) {
        self.connection.rollback();
    }

    fn nearest<'a>(&'a mut self, search: &'a NearestSearch) -> Response<'a, Vec<Candidate>> {
        self.connection.nearest(search)
    }

    fn isolation(&self) -> Isolation {
        self.connection.isolation()
    }

    fn failure(&self) -> Option<&Error> {
        self.connection.failure()
    }

    fn syntax(&self) -> &'static Syntax {
        self.connection.syntax()
    }
}

fn refs(statements: &[Statement]) -> Vec<&Statement> {
    statements.iter().collect()
}

/// Handle to the batcher of one tenant.
#[derive(Clone)]
pub(super) struct Queue {
    postgres: Postgres,
    batchers: Arc<Batchers>,
    tenant: Arc<str>,
}

impl Queue {
    pub(super) fn new(postgres: Postgres, batchers: Arc<Batchers>, tenant: Arc<str>) -> Self {
        Self {
            postgres,
            batchers,
            tenant,
        }
    }

    fn with<A>(&self, act: impl FnOnce(&mut Batcher) -> A) -> A {
        self.batchers.with(&self.tenant, act)
    }

    /// Decides whether a transition is sent alone or queued.
    fn route(&self, key: Uuid, statements: Vec<Statement>) -> Route {
        let now = Instant::now();
        let route = self.with(|batcher| {
            let queued = batcher.remove_key(key);
            let alone = if queued.is_some() || batcher.is_changing(key) {
                // The members of a batch must have different keys.
                Some(batcher.send_uncounted(key))
            } else {
                batcher.try_send_alone(key, now)
            };
            // A dropped caller needs no result.
            drop(queued.map(|queued| queued.outcome.send(Outcome::SendAlone(queued.statements))));
            if let Some(number) = alone {
                return Route::Alone(InFlight::new(self, number), statements);
            }
            let (outcome, receiver) = oneshot::channel();
            let member = Member {
                key,
                statements,
                outcome,
            };
            Route::Queued(batcher.push(member, now), receiver)
        });
        if let Route::Queued(..) = route {
            self.dispatch_ready();
        }
        route
    }

    /// Sends the batches that are ready.
    fn dispatch_ready(&self) {
        // Without a runtime there are no callers.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        while let Some((number, batch)) = self.with(|batcher| batcher.next_batch(Instant::now())) {
            runtime.spawn(send(InFlight::new(self, number), batch));
        }
    }
}

/// A message in flight. When it completes, queued transitions may be ready to be sent.
pub(super) struct InFlight {
    queue: Queue,
    /// Its number, until it has completed.
    number: Option<u64>,
}

impl InFlight {
    fn new(queue: &Queue, number: u64) -> Self {
        Self {
            queue: queue.clone(),
            number: Some(number),
        }
    }

    /// A message that is never sent: transitions are queued until it is dropped.
    #[cfg(test)]
    pub(super) fn placeholder(queue: &Queue) -> Self {
        let dispatch = |batcher: &mut Batcher| batcher.dispatch(vec![Uuid::nil()], Instant::now());
        Self::new(queue, queue.with(dispatch))
    }

    /// Marks the message as completed, before its callers get their results and return with the
    /// next transition: they must not be counted twice.
    fn complete(&mut self) {
        if let Some(number) = self.number.take() {
            self.queue.with(|batcher| batcher.complete(number));
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.complete();
        self.queue.dispatch_ready();
    }
}

/// Sends a batch, and returns the result to each member.
async fn send(mut in_flight: InFlight, batch: Vec<Member>) {
    let Queue {
        postgres, tenant, ..
    } = &in_flight.queue;
    let mut connection = Connection::new(postgres.clone(), Arc::clone(tenant), Mode::Batch);
    let padding = padding_rows(&batch);
    let sent = match connection.acquire().await {
        Ok(()) => {
            connection
                .send_and_commit(&by_query(&batch, &padding))
                .await
        }
        Err(why) => Err(why),
    };
    // No connection, or an unknown outcome: sending the members alone would not help.
    let for_all = !connection.has_client() || connection.is_lost();
    let written = connection.take_written();
    connection.roll_back();
    drop(connection);
    in_flight.complete();
    for member in batch {
        let outcome = match &sent {
            Ok(()) if written.contains(&member.key) => Outcome::Committed,
            // Its plan has changed, or another transaction has locked it.
            Ok(()) => Outcome::SendAlone(member.statements),
            Err(why) if for_all => Outcome::Failed(why.clone()),
            Err(_) => Outcome::SendAlone(member.statements),
        };
        // A dropped caller needs no result.
        drop(member.outcome.send(outcome));
    }
    drop(in_flight);
}

/// Rows without a key, which fill each kind of statement up to a multiple of the number of members.
/// Each number of rows needs a separate statement text, which every connection has to prepare.
fn padding_rows(batch: &[Member]) -> Vec<Statement> {
    let mut padding = Vec::new();
    for query in queries(batch) {
        let mut rows = rows(batch, query);
        let Some(first) = rows.next() else { continue };
        let missing = batch.len() - 1 - rows.count() % batch.len();
        let mut row = first.clone();
        let values = row.params.iter_mut().skip(1);
        values.for_each(|value| *value = Value::Null);
        padding.extend(std::iter::repeat_n(row, missing));
    }
    padding
}

/// The statements of all members with the padding, grouped by kind.
fn by_query<'s>(batch: &'s [Member], padding: &'s [Statement]) -> Vec<&'s Statement> {
    let mut statements = Vec::with_capacity(MOST_MERGED);
    for query in queries(batch) {
        statements.extend(rows(batch, query));
        statements.extend(padding.iter().filter(|row| row.query == query));
    }
    statements
}

/// The kinds of statement in a batch: those that check a version first, the others in a fixed order.
fn queries(batch: &[Member]) -> impl Iterator<Item = Query> {
    let all = batch.iter().flat_map(|member| &member.statements);
    let ordered: BTreeSet<(bool, Query)> = all
        .map(|one| (one.expect != Expect::Version, one.query))
        .collect();
    ordered.into_iter().map(|(_, query)| query)
}

fn rows(batch: &[Member], query: Query) -> impl Iterator<Item = &Statement> {
    let all = batch.iter().flat_map(|member| &member.statements);
    all.filter(move |one| one.query == query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ALL;

    /// A transition, each statement about another row.
    fn transition(queries: &[Query]) -> Vec<Statement> {
        let statement = |(number, query): (u128, &Query)| {
            let is_due = matches!(query, Query::DueSooner | Query::DueClear);
            let key = Value::Id(Uuid::from_u128(if is_due { 0 } else { number }));
            let params = vec![Value::Text("a".into()), key, Value::Int(1)];
            let statement = Statement::without_tenant(*query, params);
            if *query == Query::PlanMove {
                statement.checking_version()
            } else {
                statement
            }
        };
        (0..).zip(queries).map(statement).collect()
    }

    #[test]
    fn a_full_batch_fits_into_one_statement() {
        let most = |query: &Query| query.row_change().map_or(0, |change| change.most_in_batch);
        let all: usize = ALL.iter().map(most).sum();
        assert!(all * crate::backend::postgres::batch_queue::MAX_BATCH <= MOST_MERGED);
    }

    #[test]
    fn batches_only_transitions_of_the_common_form() {
        let can_be_batched = |queries: &[Query]| batch_key(&transition(queries)).is_some();
        let first = [Query::PlanMove, Query::StepAdvance, Query::EventInsert];
        assert!(can_be_batched(&first));
        assert!(can_be_batched(
            &[&first[..], &[Query::EventInsert, Query::DueSooner]].concat()
        ));
        assert!(can_be_batched(&[&first[..], &[Query::DueClear]].concat()));
        for more in [
            &[Query::StepUpdate][..],
            &[Query::PlanMove],
            &[Query::StepAdvance, Query::StepAdvance],
            &[Query::DueSooner, Query::DueClear],
            &[Query::StepsRestoreSign],
        ] {
            assert!(!can_be_batched(&[&first[..], more].concat()), "{more:?}");
        }
        assert!(!can_be_batched(&[]));
        assert!(
            !can_be_batched(&[Query::EventInsert, Query::PlanMove]),
            "the version check is not first"
        );
    }

    #[test]
    fn pads_batches_of_one_size_to_the_same_statement() {
        let sent = |transitions: [&[Query]; 2]| {
            let members = transitions.map(|queries| Member {
                key: Uuid::nil(),
                statements: transition(queries),
                outcome: oneshot::channel().0,
            });
            let padding = padding_rows(&members);
            let all = by_query(&members, &padding);
            all.iter().map(|one| one.query).collect::<Vec<_>>()
        };
        let next = [
            Query::PlanMove,
            Query::StepAdvance,
            Query::StepAdvance,
            Query::EventInsert,
            Query::EventInsert,
        ];
        let first = [Query::PlanMove, Query::StepAdvance, Query::EventInsert];
        let expected = [
            [Query::PlanMove; 2].as_slice(),
            &[Query::EventInsert; 4],
            &[Query::StepAdvance; 4],
        ];
        assert_eq!(sent([&next, &next]), expected.concat());
        assert_eq!(sent([&next, &first]), expected.concat());
        let ends = [
            Query::PlanMove,
            Query::StepAdvance,
            Query::EventInsert,
            Query::DueClear,
        ];
        assert_eq!(sent([&first, &ends])[2..4], [Query::DueClear; 2]);
    }
}
