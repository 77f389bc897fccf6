//! Sweep schedule: sweeping only at the due times has the same effect as sweeping every
//! millisecond. Random walks produce the same responses on both backends.

use std::sync::Arc;
use std::time::Duration;

use onward_core::attention::DEFAULT_NO_AGENT_AFTER;
use onward_core::next_check::Due;
use onward_core::policy::OnStall;
use onward_core::{PlanId, Timestamp};
use onward_engine::Engine;
use onward_store::{Cached, DueChecks, Options, Store, Transitions};
use onward_testbed::Backend;

use crate::database::{Isolation, RUNTIME};
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::document;
use crate::random_walk::RandomWalk;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The earliest due time in the database.
async fn first_due(store: &Store) -> Option<Timestamp> {
    let no_tenant = Arc::from("");
    let first = store.read(&no_tenant, |tx| {
        Box::pin(async { DueChecks(tx).first_due().await })
    });
    first.await.expect("due time was read")
}

/// Makes the plan due now, so that the next sweep checks it.
async fn set_due(store: &Store, harness: &Harness, plan: PlanId) {
    let now = harness.now();
    let written = store.write(&harness.me.tenant, move |tx| {
        Box::pin(async move {
            Cached(Transitions(tx)).due(plan, Due::By(now));
            Ok::<(), onward_store::Error>(())
        })
    });
    written.await.expect("due time was written");
}

async fn open_store(harness: &Harness) -> Store {
    let opened = Store::open(&harness.database.address(), Options::default()).await;
    opened.expect("store was opened")
}

async fn sweeping_only_when_due_equals_sweeping_every_millisecond(harness: &Harness) {
    let backend = harness.database.backend();
    for policy in [OnStall::Mark, OnStall::Requeue, OnStall::Fail] {
        let seed = format!("schedule {policy} {backend:?}");
        let polling = Harness::with_seed(backend, Isolation::Exclusive, "polling", &seed).await;
        let scheduled = Harness::with_seed(backend, Isolation::Exclusive, "scheduled", &seed).await;
        let stores = [open_store(&polling).await, open_store(&scheduled).await];
        let mut walks = [
            RandomWalk::start(&polling, &seed, policy).await,
            RandomWalk::start(&scheduled, &seed, policy).await,
        ];
        let mut watchers = [polling.engine.watcher(), scheduled.engine.watcher()];
        for call in 0..40 {
            let [one, other] = &mut walks;
            let responses = tokio::join!(one.step(&polling), other.step(&scheduled));
            assert_eq!(responses.0, responses.1, "{policy}, call {call}");
            walks[1].pause();
            for _ in 0..walks[0].pause() {
                polling.advance(MILLISECOND);
                scheduled.advance(MILLISECOND);
                set_due(&stores[0], &polling, walks[0].plan).await;
                polling.engine.sweep(&mut watchers[0]).await.unwrap();
                if first_due(&stores[1])
                    .await
                    .is_some_and(|at| at <= scheduled.now())
                {
                    scheduled.engine.sweep(&mut watchers[1]).await.unwrap();
                }
            }
        }
        let expected = document(&polling.engine, &polling.me, walks[0].plan).await;
        let found = document(&scheduled.engine, &scheduled.me, walks[1].plan).await;
        assert_eq!(found, expected, "{policy}");
        drop(stores);
        polling.close(Isolation::Exclusive).await;
        scheduled.close(Isolation::Exclusive).await;
    }
}

/// Performs a random walk and returns the responses and the final document.
async fn walk_responses(harness: &Harness, seed: &str, policy: OnStall) -> Vec<String> {
    let mut walk = RandomWalk::start(harness, seed, policy).await;
    let mut watcher = harness.engine.watcher();
    let mut responses = Vec::new();
    for _ in 0..50 {
        responses.push(walk.step(harness).await);
        harness.advance(MILLISECOND * u32::try_from(walk.pause()).unwrap());
        let round = harness.engine.sweep(&mut watcher).await.unwrap();
        responses.push(format!("{} {:?}", round.changed.len(), round.next_at));
    }
    responses.push(
        document(&harness.engine, &harness.me, walk.plan)
            .await
            .to_string(),
    );
    responses
}

#[test]
fn random_walks_produce_the_same_responses_on_both_backends() {
    RUNTIME.block_on(async {
        for round in 0..4u32 {
            let seed = format!("walk {round}");
            let policy = OnStall::ALL[usize::try_from(round).unwrap()];
            let run = async |backend| {
                let isolation = Isolation::Exclusive;
                let harness = Harness::with_seed(backend, isolation, "walks", &seed).await;
                let responses = walk_responses(&harness, &seed, policy).await;
                harness.close(isolation).await;
                responses
            };
            let responses = tokio::join!(run(Backend::Sqlite), run(Backend::Postgres));
            for (call, (file, server)) in responses.0.iter().zip(&responses.1).enumerate() {
                assert_eq!(file, server, "{seed}, response {call}");
            }
        }
    });
}

async fn the_next_due_time_is_when_the_sweep_acts(harness: &Harness) {
    let engine: &Engine = &harness.engine;
    let mut watcher = engine.watcher();
    let mut draft = harness.draft(1);
    draft.stall_threshold = Some(Duration::from_millis(100));
    draft.on_stall = OnStall::Fail;
    let plan = harness.create(draft).await;
    let began = harness.now();
    let next = engine.sweep(&mut watcher).await.unwrap().next_at.unwrap();
    assert!(
        next.since(began) > DEFAULT_NO_AGENT_AFTER,
        "no agent starts the plan"
    );
    harness.claim(plan.id).await;
    let next = engine.sweep(&mut watcher).await.unwrap().next_at.unwrap();
    assert_eq!(next.since(began), Duration::from_millis(101));
    harness.environment.set(next);
    assert_eq!(engine.sweep(&mut watcher).await.unwrap().changed.len(), 1);
}

on_both_databases![exclusive:
    the_next_due_time_is_when_the_sweep_acts,
];

/// Each walk creates its own databases.
mod shared {
    use super::sweeping_only_when_due_equals_sweeping_every_millisecond;
    crate::on_both_databases![sweeping_only_when_due_equals_sweeping_every_millisecond];
}
