//! Batched transitions: each member gets the result that it would get alone.

use std::collections::BTreeSet;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::SimpleQueryMessage;

use super::outages::{exhausted, scarce, wire};
use super::*;
use crate::backend::postgres::batcher::InFlight;

const TENANT: &str = "a";

/// A backend with a long maximum wait, so that no transition is sent alone because the machine is
/// slow.
async fn patient(url: &str) -> Postgres {
    let limits = Limits {
        max_wait: Duration::from_secs(60),
        ..Limits::new(None)
    };
    let (watchers, _) = broadcast::channel(1);
    Postgres::within(limits, url, true, true, watchers)
        .await
        .unwrap()
}

fn id(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

/// Creates plans in version 1.
async fn make(postgres: &Postgres, plans: std::ops::RangeInclusive<u128>) {
    let mut tx = begin(postgres, TENANT);
    for plan in plans {
        let statement = Statement::new(PLAN, params![id(plan)]);
        tx.queue(statement);
    }
    commit(tx).await.unwrap();
}

fn event(plan: u128, seq: i64, commit: i64) -> Statement {
    let no_session = None::<&str>;
    let no_step = None::<uuid::Uuid>;
    let event = params![
        id(plan),
        seq,
        commit,
        5i64,
        "me",
        no_session,
        "n",
        no_step,
        "{}"
    ];
    Statement::new(Query::EventInsert, event)
}

/// A transition of a plan, based on this version.
fn transition(postgres: &Postgres, plan: u128, version: i64) -> Tx {
    let mut tx = begin_as(postgres, TENANT.into(), Mode::Optimistic);
    let mut head = params![id(plan), "executing"];
    head.extend(std::iter::repeat_n(Value::Null, 6));
    head.extend(params![1i64, 0i64, 0i64, 0i64, 0i64, 0i64]);
    head.extend(params![version + 1, 5i64, 5i64, 5i64, 0i64, version, 0i64]);
    let head = Statement::new(Query::PlanMove, head).checking_version();
    tx.queue(head);
    let event = event(plan, version + 1, version + 1);
    tx.queue(event);
    tx
}

/// A pending step of a plan.
fn step(plan: u128, order: u128) -> Statement {
    let mut row = params![id(plan * 10 + order), id(plan), order as i64, "search"];
    row.extend(params![
        None::<&str>,
        "do it",
        "[]",
        None::<i64>,
        3i64,
        None::<&str>,
        0i64,
        0i64,
        None::<uuid::Uuid>,
        "",
        5i64,
        "block"
    ]);
    Statement::new(Query::StepInsert, row)
}

/// Claims a step.
fn claim(plan: u128, order: u128) -> Statement {
    let mut row = params![id(plan * 10 + order), "in_progress", 1i64, "t", "s", 5i64];
    row.extend(std::iter::repeat_n(Value::Null, 6));
    row.extend(params![5i64, 9i64, None::<i64>]);
    Statement::new(Query::StepAdvance, row).expecting(1)
}

type Writing = JoinHandle<Result<(), Error>>;

/// Number of queued transitions.
fn queued(postgres: &Postgres) -> usize {
    postgres.0.batchers.as_ref().unwrap().queued(&TENANT.into())
}

/// Commits each transition in a separate task, and waits until all of them are queued.
async fn enqueue(postgres: &Postgres, transitions: Vec<Tx>) -> Vec<Writing> {
    let expected = queued(postgres) + transitions.len();
    let writing = transitions
        .into_iter()
        .map(|tx| tokio::spawn(async move { commit(tx).await }));
    let writing = writing.collect();
    while queued(postgres) < expected {
        tokio::task::yield_now().await;
    }
    writing
}

/// Messages in flight. Until they are dropped, transitions are queued; then as many are sent as a
/// batch.
fn keep_in_flight(postgres: &Postgres, messages: usize) -> Vec<InFlight> {
    let queue = postgres.queue(TENANT.into()).unwrap();
    let messages = std::iter::repeat_with(|| InFlight::placeholder(&queue)).take(messages);
    messages.collect()
}

/// Commits all of them as one batch.
async fn together(postgres: &Postgres, transitions: Vec<Tx>) -> Vec<Writing> {
    let busy = keep_in_flight(postgres, transitions.len());
    let writing = enqueue(postgres, transitions).await;
    drop(busy);
    writing
}

/// The transactions that wrote the current rows of the plans, and the versions of the plans.
async fn written(postgres: &Postgres) -> (BTreeSet<String>, Vec<i64>) {
    let mut tx = begin(postgres, TENANT);
    let all = "SELECT xmin::text AS made_by, seq, (SELECT count(*) FROM events WHERE \
        events.tenant_id = plans.tenant_id AND events.plan_id = plans.plan_id AND \
        events.seq = plans.seq) AS events FROM plans ORDER BY plan_id";
    let rows = tx
        .query(vec![Statement::without_tenant(Query::Text(all), vec![])])
        .await
        .unwrap();
    let (mut made_by, mut versions) = (BTreeSet::new(), Vec::new());
    for row in rows.into_iter().flatten() {
        let mut cells = row.cells("plans");
        made_by.insert(cells.string("made_by").unwrap());
        let version = cells.int("seq").unwrap();
        assert_eq!(cells.int("events").unwrap(), i64::from(version > 1));
        versions.push(version);
    }
    rollback(tx);
    (made_by, versions)
}

#[tokio::test]
async fn writes_concurrent_transitions_in_one_transaction() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=6).await;
    let transitions = (1..=6).map(|plan| transition(&postgres, plan, 1));
    let writing = together(&postgres, transitions.collect()).await;
    for writing in writing {
        writing.await.unwrap().unwrap();
    }
    let (made_by, versions) = written(&postgres).await;
    assert_eq!(versions, [2; 6]);
    assert_eq!(made_by.len(), 1, "one transaction");
}

#[tokio::test]
async fn writes_all_statements_of_each_member() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=3).await;
    let mut tx = begin(&postgres, TENANT);
    for (plan, order) in [(1, 1), (2, 1), (2, 2)] {
        let step = step(plan, order);
        tx.queue(step);
    }
    let due = Statement::new(Query::DueSet, params![id(3), 7i64]);
    tx.queue(due);
    commit(tx).await.unwrap();

    let mut transitions: Vec<Tx> = (1..=3).map(|plan| transition(&postgres, plan, 1)).collect();
    let [first, second, third] = transitions.as_mut_slice() else {
        unreachable!("three transitions")
    };
    first.queue(claim(1, 1));
    first.queue(Statement::new(
        Query::DueSooner,
        params![id(1), 9i64, i64::MAX],
    ));
    second.queue(claim(2, 1));
    second.queue(claim(2, 2));
    second.queue(event(2, 3, 2));
    third.queue(Statement::new(Query::DueClear, params![id(3)]));
    let writing = together(&postgres, transitions).await;
    for writing in writing {
        writing.await.unwrap().unwrap();
    }

    let (made_by, versions) = written(&postgres).await;
    assert_eq!((made_by.len(), versions), (1, vec![2; 3]));
    let mut tx = begin(&postgres, TENANT);
    for (question, expected) in [
        (
            "SELECT count(*) AS n FROM steps WHERE status = 'in_progress'",
            3,
        ),
        ("SELECT count(*) AS n FROM events", 4),
        ("SELECT count(*) AS n FROM due", 1),
        (
            "SELECT at AS n FROM due WHERE plan_id = '00000000-0000-0000-0000-000000000001'",
            9,
        ),
    ] {
        let found = number(&mut tx, Query::Text(question), vec![])
            .await
            .unwrap();
        assert_eq!(found, expected, "{question}");
    }
    rollback(tx);
}

#[tokio::test]
async fn a_failing_member_does_not_affect_the_others() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=4).await;
    for (outdated, invalid) in [(2, 3), (3, 2)] {
        let before = written(&postgres).await.1;
        let transitions = (1..=4).zip(&before).map(|(plan, version)| {
            let behind = i64::from(plan == outdated);
            let mut tx = transition(&postgres, plan, version - behind);
            if plan == invalid {
                // An event of a later commit, which a constraint rejects.
                let event = event(plan, version + 2, version + 7);
                tx.queue(event);
            }
            tx
        });
        let writing = together(&postgres, transitions.collect()).await;
        for (plan, writing) in (1..).zip(writing) {
            let answer = writing.await.unwrap();
            let is_expected = match &answer {
                Ok(()) => plan != outdated && plan != invalid,
                Err(Error::LostRace) => plan == outdated,
                Err(Error::Refused { why, .. }) => plan == invalid && why.contains("events_check"),
                Err(_) => false,
            };
            assert!(is_expected, "{plan}: {answer:?}");
        }
        let after = written(&postgres).await.1;
        let expected = (1..).zip(before).map(|(plan, version)| {
            let stays = plan == outdated || plan == invalid;
            version + i64::from(!stays)
        });
        assert_eq!(after, expected.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn sends_two_transitions_of_one_plan_outside_a_batch() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=3).await;
    let busy = keep_in_flight(&postgres, 3);
    let transitions = (1..=3).map(|plan| transition(&postgres, plan, 1));
    let mut writing = enqueue(&postgres, transitions.collect()).await;
    let second = commit(transition(&postgres, 2, 1)).await;
    let first = writing.remove(1).await.unwrap();
    let (won, lost) = match first {
        Ok(()) => (first, second),
        Err(_) => (second, first),
    };
    assert!(won.is_ok() && matches!(lost, Err(Error::LostRace)));
    assert_eq!(written(&postgres).await.1, [1, 2, 1]);
    drop(busy);
    for writing in writing {
        writing.await.unwrap().unwrap();
    }
    let (made_by, versions) = written(&postgres).await;
    assert_eq!((made_by.len(), versions), (2, vec![2; 3]));

    // The messages in flight change plan 0.
    make(&postgres, 0..=0).await;
    let _busy = keep_in_flight(&postgres, 2);
    let against = commit(transition(&postgres, 0, 1));
    let written = timeout(Duration::from_secs(20), against).await;
    written.expect("it is not queued").unwrap();
}

#[tokio::test]
async fn a_locked_plan_does_not_delay_the_other_members() {
    // Without timeouts, a transition that is sent alone waits forever for the lock.
    let url = Cluster::shared().database();
    let without_end = "?options=-c%20lock_timeout%3D0%20-c%20statement_timeout%3D0";
    let postgres = patient(&format!("{url}{without_end}")).await;
    make(&postgres, 1..=3).await;
    let mut holder = begin(&postgres, TENANT);
    let hold = "SELECT seq FROM plans WHERE tenant_id = $1 AND plan_id = $2 FOR UPDATE";
    let hold = Statement::new(Query::Text(hold), params![id(2)]);
    holder.query(vec![hold]).await.unwrap();

    let transitions = (1..=3).map(|plan| transition(&postgres, plan, 1));
    let mut writing = together(&postgres, transitions.collect()).await;
    let held = writing.remove(1);
    for writing in writing {
        let written = timeout(Duration::from_secs(20), writing).await;
        written
            .expect("it is not delayed by the lock")
            .unwrap()
            .unwrap();
    }
    assert_eq!(written(&postgres).await.1, [2, 1, 2]);
    assert!(!held.is_finished());
    rollback(holder);
    held.await.unwrap().unwrap();
    assert_eq!(written(&postgres).await.1, [2; 3]);
}

#[tokio::test]
async fn a_dropped_caller_does_not_affect_the_other_members() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=4).await;
    let busy = keep_in_flight(&postgres, 4);
    let transitions = (1..=4).map(|plan| transition(&postgres, plan, 1));
    let mut writing = enqueue(&postgres, transitions.collect()).await;
    let dropped = writing.remove(1);
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    drop(busy);
    // In flight, in a task that does not belong to the caller.
    writing.remove(1).abort();
    for writing in writing {
        writing.await.unwrap().unwrap();
    }
    assert_eq!(written(&postgres).await.1, [2, 1, 2, 2]);
}

#[tokio::test]
async fn sends_a_queued_transition_alone_after_the_maximum_wait() {
    let (postgres, _) = open(&Cluster::shared().database()).await;
    make(&postgres, 1..=1).await;
    let _busy = keep_in_flight(&postgres, 2);
    let commit = commit(transition(&postgres, 1, 1));
    commit.await.unwrap();
    assert_eq!(written(&postgres).await.1, [2]);
    assert_eq!(queued(&postgres), 0);
}

#[tokio::test]
async fn reports_a_lost_response_to_all_members() {
    let (through, cut) = wire(&Cluster::shared().database()).await;
    let postgres = scarce(&through).await;
    make(&postgres, 1..=3).await;
    // In the first round the connection prepares the statement.
    for version in [1, 2] {
        let busy = keep_in_flight(&postgres, 3);
        let transitions = (1..=3).map(|plan| transition(&postgres, plan, version));
        let writing = enqueue(&postgres, transitions.collect()).await;
        cut.send(version == 2).unwrap();
        drop(busy);
        for writing in writing {
            let answer = writing.await.unwrap();
            let is_lost = answer.is_err_and(|why| why.hint() == error::outcome_unknown("").hint());
            assert_eq!(is_lost, version == 2);
        }
    }
    cut.send(false).unwrap();
    assert_eq!(written(&postgres).await.1, [3; 3], "the commit succeeded");
}

#[tokio::test]
async fn reports_an_exhausted_pool_to_all_members() {
    let postgres = scarce(&Cluster::shared().database()).await;
    make(&postgres, 1..=3).await;
    let mut held = [begin(&postgres, TENANT), begin(&postgres, TENANT)];
    for held in &mut held {
        number(held, KEYS, params![TENANT]).await.unwrap();
    }
    let transitions = (1..=3).map(|plan| transition(&postgres, plan, 1));
    let writing = together(&postgres, transitions.collect()).await;
    for writing in writing {
        let why = writing.await.unwrap().unwrap_err();
        assert_eq!(why.to_string(), exhausted(&postgres));
    }
    drop(held);
    assert_eq!(written(&postgres).await.1, [1; 3]);
}

/// With statistics of a small table, the planner would scan all rows of a tenant instead of looking
/// up eight, and each connection would keep that plan until the next `ANALYZE`.
#[tokio::test]
async fn a_batch_finds_its_rows_by_primary_key() {
    let (postgres, _) = open(&Cluster::shared().database()).await;
    let mut run: Vec<Statement> = Vec::new();
    for plan in 1..=8 {
        let mut tx = transition(&postgres, plan, 1);
        let more = [
            claim(plan, 1),
            claim(plan, 2),
            Statement::new(Query::DueSooner, params![id(plan), 9i64, 9i64]),
            Statement::new(Query::DueClear, params![id(plan + 8)]),
        ];
        run.extend(tx.take_queued());
        run.extend(more.map(|statement| statement.bind(&TENANT.into())));
    }
    let order = [
        Query::PlanMove,
        Query::StepAdvance,
        Query::EventInsert,
        Query::DueSooner,
        Query::DueClear,
    ];
    run.sort_by_key(|one| order.iter().position(|query| *query == one.query));
    let run: Vec<&Statement> = run.iter().collect();
    assert_eq!(merge::mergeable(&run, false), run.len());
    let text =
        merge::MessageText::new(&run, merge::Form::Single, merge::OnLostRace::SkipLocked).unwrap();
    let text = &text.sql;
    let nulls = vec!["NULL"; merge::parameters(&run, false).count()].join(", ");

    let owner = postgres.0.address.open_long_lived().await.unwrap().client;
    for plans in [1..=3, 4..=40] {
        make(&postgres, plans.clone()).await;
        let mut tx = begin(&postgres, TENANT);
        for plan in plans {
            let due = Statement::new(Query::DueSet, params![id(plan), 9i64]);
            tx.queue(due);
            for order in 1..=9 {
                let step = step(plan, order);
                tx.queue(step);
            }
        }
        commit(tx).await.unwrap();
        let count = "ANALYZE plans, steps, due";
        owner.batch_execute(count).await.unwrap();
        let explain = format!("PREPARE g AS {text}; EXPLAIN EXECUTE g({nulls}); DEALLOCATE g");
        let connection = postgres.acquire().await.unwrap();
        let answer = connection.client.simple_query(&explain).await.unwrap();
        let lines: Vec<&str> = answer.iter().filter_map(first_cell).collect();
        let conditions = lines.iter().filter(|line| line.contains("Index Cond: "));
        let by_key = conditions.clone().filter(|line| line.contains(" AND "));
        let counts = (conditions.count(), by_key.count());
        assert_eq!(counts, (5, 5), "{}", lines.join("\n"));
    }
}

fn first_cell(message: &SimpleQueryMessage) -> Option<&str> {
    let SimpleQueryMessage::Row(row) = message else {
        return None;
    };
    row.get(0)
}
