//! The announced instants are enough: who sweeps only when something is due does what one does who
//! sweeps every millisecond. And the two databases do the same along the same walk.

use std::sync::Arc;
use std::time::Duration;

use onward_core::policy::OnStall;
use onward_core::{PlanId, Timestamp};
use onward_engine::Engine;
use onward_store::{Due, Options, Store};

use crate::desk::{Desk, RUNTIME};
use crate::on_both_databases;
use crate::place::{Company, Kind};
use crate::verbs::document;
use crate::walk::Walk;

const MOMENT: Duration = Duration::from_millis(1);

/// When the database says that something is due.
async fn announced(store: &Store) -> Option<Timestamp> {
    let nobody = Arc::from("");
    let first = store.read(&nobody, |tx| Box::pin(async { tx.first_due().await }));
    first.await.expect("it can be asked")
}

/// Has the plan looked at by the next sweep, whatever was announced.
async fn look_now(store: &Store, desk: &Desk, plan: PlanId) {
    let now = desk.now();
    let told = store.write(&desk.me.tenant, move |tx| {
        Box::pin(async move {
            tx.due(plan, Due::By(now));
            Ok::<(), onward_store::Error>(())
        })
    });
    told.await.expect("it can be told");
}

async fn store(desk: &Desk) -> Store {
    let opened = Store::open(&desk.place.address(), Options::default()).await;
    opened.expect("it opens")
}

async fn sweeping_only_when_something_is_due_misses_nothing(desk: &Desk) {
    let kind = desk.place.kind();
    for policy in [OnStall::Mark, OnStall::Requeue, OnStall::Fail] {
        let seed = format!("schedule {policy} {kind:?}");
        let restless = Desk::seeded(kind, Company::Alone, "restless", &seed).await;
        let patient = Desk::seeded(kind, Company::Alone, "patient", &seed).await;
        let stores = [store(&restless).await, store(&patient).await];
        let mut walks = [
            Walk::begin(&restless, &seed, policy).await,
            Walk::begin(&patient, &seed, policy).await,
        ];
        let mut watchers = [restless.engine.watcher(), patient.engine.watcher()];
        for call in 0..40 {
            let [one, other] = &mut walks;
            let answers = tokio::join!(one.step(&restless), other.step(&patient));
            assert_eq!(answers.0, answers.1, "{policy}, call {call}");
            walks[1].rest();
            for _ in 0..walks[0].rest() {
                restless.advance(MOMENT);
                patient.advance(MOMENT);
                look_now(&stores[0], &restless, walks[0].plan).await;
                restless.engine.sweep(&mut watchers[0]).await.unwrap();
                if announced(&stores[1])
                    .await
                    .is_some_and(|at| at <= patient.now())
                {
                    patient.engine.sweep(&mut watchers[1]).await.unwrap();
                }
            }
        }
        let expected = document(&restless.engine, &restless.me, walks[0].plan).await;
        let found = document(&patient.engine, &patient.me, walks[1].plan).await;
        assert_eq!(found, expected, "{policy}");
        drop(stores);
        restless.close(Company::Alone).await;
        patient.close(Company::Alone).await;
    }
}

/// Walks along a seed, and gives back what was answered and what is left.
async fn walked(desk: &Desk, seed: &str, policy: OnStall) -> Vec<String> {
    let mut walk = Walk::begin(desk, seed, policy).await;
    let mut watcher = desk.engine.watcher();
    let mut said = Vec::new();
    for _ in 0..50 {
        said.push(walk.step(desk).await);
        desk.advance(MOMENT * u32::try_from(walk.rest()).unwrap());
        let round = desk.engine.sweep(&mut watcher).await.unwrap();
        said.push(format!("{} {:?}", round.acted_on.len(), round.next_at));
    }
    said.push(
        document(&desk.engine, &desk.me, walk.plan)
            .await
            .to_string(),
    );
    said
}

#[test]
fn both_databases_answer_alike_along_random_walks() {
    RUNTIME.block_on(async {
        for round in 0..4u32 {
            let seed = format!("walk {round}");
            let policy = OnStall::ALL[usize::try_from(round).unwrap()];
            let along = async |kind| {
                let desk = Desk::seeded(kind, Company::Alone, "walks", &seed).await;
                let said = walked(&desk, &seed, policy).await;
                desk.close(Company::Alone).await;
                said
            };
            let said = tokio::join!(along(Kind::Sqlite), along(Kind::Postgres));
            for (call, (file, server)) in said.0.iter().zip(&said.1).enumerate() {
                assert_eq!(file, server, "{seed}, answer {call}");
            }
        }
    });
}

async fn the_next_instant_is_the_one_at_which_something_is_done(desk: &Desk) {
    let engine: &Engine = &desk.engine;
    let mut watcher = engine.watcher();
    let mut draft = desk.draft(1);
    draft.stall_threshold = Some(Duration::from_millis(100));
    draft.on_stall = OnStall::Fail;
    let plan = desk.create(draft).await;
    assert_eq!(engine.sweep(&mut watcher).await.unwrap().next_at, None);
    let began = desk.now();
    desk.take(plan.id).await;
    let next = engine.sweep(&mut watcher).await.unwrap().next_at.unwrap();
    assert_eq!(next.since(began), Duration::from_millis(101));
    desk.world.set(next);
    assert_eq!(engine.sweep(&mut watcher).await.unwrap().acted_on.len(), 1);
}

on_both_databases![alone:
    the_next_instant_is_the_one_at_which_something_is_done,
];

/// Each walk has its own databases.
mod shared {
    use super::sweeping_only_when_something_is_due_misses_nothing;
    crate::on_both_databases![sweeping_only_when_something_is_due_misses_nothing];
}
