//! Transitions that go together: none of them fares worse than alone.

use std::collections::BTreeSet;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::group::Journey;
use super::outages::{scarce, wire};
use super::*;

const TENANT: &str = "a";

/// With all the time that a test may take: nobody goes alone because the machine is slow.
async fn patient(url: &str) -> Postgres {
    let limits = Limits {
        company: Duration::from_secs(60),
        ..Limits::from_environment().unwrap()
    };
    let (watchers, _) = broadcast::channel(1);
    Postgres::within(limits, url, true, watchers).await.unwrap()
}

/// Plans of one step, in version 1.
async fn make(postgres: &Postgres, plans: std::ops::RangeInclusive<u128>) {
    let mut tx = begin(postgres, TENANT);
    for plan in plans {
        let statement = tx.statement(PLAN, params![uuid::Uuid::from_u128(plan)]);
        tx.queue(statement);
    }
    postgres.commit(tx).await.unwrap();
}

/// A transition of a plan that was decided on this version.
fn transition(postgres: &Postgres, plan: u128, version: i64) -> Tx {
    let id = uuid::Uuid::from_u128(plan);
    let mut tx = postgres.begin(TENANT.into(), Faults::default(), Kind::Advancing);
    let mut head = params![id, "executing"];
    head.extend(std::iter::repeat_n(Value::Null, 7));
    head.extend(params![
        1i64,
        0i64,
        0i64,
        0i64,
        0i64,
        0i64,
        version + 1,
        5i64,
        version
    ]);
    let event = params![
        id,
        version + 1,
        version + 1,
        5i64,
        "me",
        None::<&str>,
        "n",
        None::<uuid::Uuid>,
        "{}"
    ];
    let statements = [
        tx.statement("plan_move", head).touching(1),
        tx.statement("event_insert", event),
    ];
    for statement in statements {
        tx.queue(statement);
    }
    tx
}

type Writing = JoinHandle<Result<(), Error>>;

/// Has each of them committed by a task of its own, and waits until all of those wait for each other.
async fn meet(postgres: &Postgres, transitions: Vec<Tx>) -> Vec<Writing> {
    let tenant = TENANT.into();
    let expected = postgres.0.groups.waiting(&tenant) + transitions.len();
    let writing = transitions.into_iter().map(|tx| {
        let postgres = postgres.clone();
        tokio::spawn(async move { postgres.commit(tx).await })
    });
    let writing = writing.collect();
    while postgres.0.groups.waiting(&tenant) < expected {
        tokio::task::yield_now().await;
    }
    writing
}

/// Whoever comes now waits, until these are dropped.
fn occupy(postgres: &Postgres) -> [Journey; 2] {
    let tenant = TENANT.into();
    [(); 2].map(|()| Journey::nowhere(postgres, &tenant))
}

/// The transactions that made the rows of these plans what they are, and their versions.
async fn written(postgres: &Postgres) -> (BTreeSet<String>, Vec<i64>) {
    let mut tx = begin(postgres, TENANT);
    let all = "SELECT xmin::text AS made_by, seq, (SELECT count(*) FROM events WHERE \
        events.tenant_id = plans.tenant_id AND events.plan_id = plans.plan_id AND \
        events.seq = plans.seq) AS events FROM plans ORDER BY plan_id";
    let rows = tx.ask(vec![Statement::outside(all, vec![])]).await.unwrap();
    let (mut made_by, mut versions) = (BTreeSet::new(), Vec::new());
    for row in rows.into_iter().flatten() {
        let mut cells = row.cells("plans");
        made_by.insert(cells.string("made_by").unwrap());
        let version = cells.int("seq").unwrap();
        assert_eq!(cells.int("events").unwrap(), i64::from(version > 1));
        versions.push(version);
    }
    postgres.rollback(tx).await;
    (made_by, versions)
}

#[tokio::test]
async fn those_that_meet_are_written_together() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=6).await;
    let busy = occupy(&postgres);
    let transitions = (1..=6).map(|plan| transition(&postgres, plan, 1));
    let writing = meet(&postgres, transitions.collect()).await;
    drop(busy);
    for writing in writing {
        writing.await.unwrap().unwrap();
    }
    let (made_by, versions) = written(&postgres).await;
    assert_eq!(versions, [2; 6]);
    assert_eq!(
        made_by.len(),
        2,
        "six are two groups of three, or of four and two"
    );
}

#[tokio::test]
async fn nobody_loses_because_of_another() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=4).await;
    let busy = occupy(&postgres);
    let mut transitions: Vec<Tx> = [(1, 1), (2, 7), (3, 1)]
        .map(|(plan, version)| transition(&postgres, plan, version))
        .into();
    // And one that breaks a law of the database.
    let mut unlawful = transition(&postgres, 4, 1);
    let event = params![
        uuid::Uuid::from_u128(4),
        3i64,
        9i64,
        5i64,
        "me",
        None::<&str>,
        "n",
        None::<uuid::Uuid>,
        "{}"
    ];
    let event = unlawful.statement("event_insert", event);
    unlawful.queue(event);
    transitions.push(unlawful);
    let mut writing = meet(&postgres, transitions).await.into_iter();
    drop(busy);
    let mut answer = async || writing.next().unwrap().await.unwrap();
    assert!(answer().await.is_ok());
    assert!(matches!(answer().await, Err(Error::LostRace)));
    assert!(answer().await.is_ok());
    let refused = answer().await;
    assert!(
        matches!(&refused, Err(Error::Refused(why)) if why.contains("events_check")),
        "{refused:?}"
    );
    assert_eq!(written(&postgres).await.1, [2, 1, 2, 1]);
}

#[tokio::test]
async fn a_plan_that_somebody_holds_keeps_no_other_waiting() {
    // Whoever goes alone would wait for ever.
    let url = Cluster::shared().database();
    let without_end = "?options=-c%20lock_timeout%3D0%20-c%20statement_timeout%3D0";
    let postgres = patient(&format!("{url}{without_end}")).await;
    make(&postgres, 1..=3).await;
    let mut holder = begin(&postgres, TENANT);
    let hold = "SELECT seq FROM plans WHERE tenant_id = $1 AND plan_id = $2 FOR UPDATE";
    let hold = holder.statement(hold, params![uuid::Uuid::from_u128(2)]);
    holder.ask(vec![hold]).await.unwrap();

    let busy = occupy(&postgres);
    let transitions = (1..=3).map(|plan| transition(&postgres, plan, 1));
    let mut writing = meet(&postgres, transitions.collect()).await;
    drop(busy);
    let held = writing.remove(1);
    for writing in writing {
        let written = timeout(Duration::from_secs(20), writing).await;
        written.expect("it waits for nobody").unwrap().unwrap();
    }
    assert_eq!(written(&postgres).await.1, [2, 1, 2]);
    assert!(!held.is_finished());
    postgres.rollback(holder).await;
    held.await.unwrap().unwrap();
    assert_eq!(written(&postgres).await.1, [2; 3]);
}

#[tokio::test]
async fn whoever_goes_away_takes_nobody_along() {
    let postgres = patient(&Cluster::shared().database()).await;
    make(&postgres, 1..=4).await;
    let busy = occupy(&postgres);
    let transitions = (1..=4).map(|plan| transition(&postgres, plan, 1));
    let mut writing = meet(&postgres, transitions.collect()).await;
    let gone = writing.remove(1);
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    drop(busy);
    // On its way, by a task that is not its own.
    writing.remove(1).abort();
    for writing in writing {
        writing.await.unwrap().unwrap();
    }
    let (_, versions) = written(&postgres).await;
    assert_eq!((versions[0], versions[1], versions[3]), (2, 1, 2));
}

#[tokio::test]
async fn nobody_waits_long_for_others() {
    let (postgres, _) = open(&Cluster::shared().database()).await;
    make(&postgres, 1..=1).await;
    let _busy = occupy(&postgres);
    let commit = postgres.commit(transition(&postgres, 1, 1));
    commit.await.unwrap();
    assert_eq!(written(&postgres).await.1, [2]);
    assert_eq!(postgres.0.groups.waiting(&TENANT.into()), 0);
}

#[tokio::test]
async fn all_hear_that_their_answer_is_lost() {
    let (through, cut) = wire(&Cluster::shared().database()).await;
    let postgres = scarce(&through).await;
    make(&postgres, 1..=3).await;
    // The first time, the connection learns the statement.
    for version in [1, 2] {
        let busy = occupy(&postgres);
        let transitions = (1..=3).map(|plan| transition(&postgres, plan, version));
        let writing = meet(&postgres, transitions.collect()).await;
        cut.send(version == 2).unwrap();
        drop(busy);
        for writing in writing {
            let answer = writing.await.unwrap();
            let is_lost = answer.is_err_and(|why| why.hint().contains("not known"));
            assert_eq!(is_lost, version == 2);
        }
    }
    cut.send(false).unwrap();
    assert_eq!(written(&postgres).await.1, [3; 3], "here it was written");
}

#[tokio::test]
async fn all_hear_that_there_is_no_connection() {
    let postgres = scarce(&Cluster::shared().database()).await;
    make(&postgres, 1..=3).await;
    let mut held = [begin(&postgres, TENANT), begin(&postgres, TENANT)];
    for held in &mut held {
        number(held, KEYS, params![TENANT]).await.unwrap();
    }
    let busy = occupy(&postgres);
    let transitions = (1..=3).map(|plan| transition(&postgres, plan, 1));
    let writing = meet(&postgres, transitions.collect()).await;
    drop(busy);
    for writing in writing {
        let why = writing.await.unwrap().unwrap_err();
        assert!(
            matches!(&why, Error::Unavailable { why, .. } if why.contains("in use")),
            "{why}"
        );
    }
    drop(held);
    assert_eq!(written(&postgres).await.1, [1; 3]);
}
