//! Of several processes on one database one sweeps, and when it ends, another one does.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::Engine;
use onward_engine::engine::Settings;
use onward_engine::world::World;
use onward_store::{Lead, Options, Store};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::world::Simulated;

/// Nothing here takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("it happens in time")
}

/// A world that knows how often somebody looked at its clock: who sweeps does, who waits does not.
struct Watched {
    inner: Arc<Simulated>,
    looks: AtomicU64,
    looked: Notify,
}

impl World for Watched {
    fn now(&self) -> Timestamp {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.looked.notify_one();
        self.inner.now()
    }

    fn dice(&self, bytes: &mut [u8]) {
        self.inner.dice(bytes);
    }
}

struct Sweeper {
    world: Arc<Watched>,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Sweeper {
    async fn start(desk: &Desk) -> Self {
        let world = Arc::new(Watched {
            inner: Arc::clone(&desk.world),
            looks: AtomicU64::new(0),
            looked: Notify::new(),
        });
        let settings = Settings {
            world: Arc::<Watched>::clone(&world),
            ..Settings::default()
        };
        let engine = Engine::open(&desk.place.address(), settings).await.unwrap();
        world.looks.store(0, Ordering::SeqCst);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move { engine.keep_sweeping(stopped).await });
        Self { world, stop, task }
    }

    fn looks(&self) -> u64 {
        self.world.looks.load(Ordering::SeqCst)
    }

    /// Waits until it sweeps.
    async fn sweeps(&self) {
        soon(async {
            while self.looks() == 0 {
                self.world.looked.notified().await;
            }
        })
        .await;
    }
}

/// Makes a plan with a step that is silent too long, and waits until somebody has marked it.
async fn is_marked(desk: &Desk) {
    let mut draft = desk.draft(1);
    draft.stall_threshold = Some(Duration::from_millis(500));
    let plan = desk.create(draft).await;
    desk.take(plan.id).await;
    desk.advance(Duration::from_millis(501));
    let mut changes = desk.engine.watch();
    soon(async {
        while desk.plan_status(plan.id).await.as_str() != "stalled" {
            // On SQLite nobody hears of what another engine did: look again, soon.
            drop(timeout(Duration::from_millis(20), changes.recv()).await);
        }
    })
    .await;
    let trail = desk.trail(plan.id).await;
    assert_eq!(
        trail.iter().filter(|name| *name == "plan_stalled").count(),
        1
    );
}

async fn one_of_two_sweeps_and_the_other_one_after_it(desk: &Desk) {
    let first = Sweeper::start(desk).await;
    first.sweeps().await;
    let second = Sweeper::start(desk).await;
    is_marked(desk).await;
    assert_eq!(second.looks(), 0, "the second one waits");
    first.stop.send(true).unwrap();
    soon(first.task).await.unwrap();
    second.sweeps().await;
    is_marked(desk).await;
    second.stop.send(true).unwrap();
    soon(second.task).await.unwrap();
}

async fn the_lead_passes_on_when_its_holder_is_cut_off(desk: &Desk) {
    let first = Sweeper::start(desk).await;
    first.sweeps().await;
    let second = Sweeper::start(desk).await;
    first.task.abort();
    assert!(soon(first.task).await.is_err());
    second.sweeps().await;
    second.stop.send(true).unwrap();
    soon(second.task).await.unwrap();
}

async fn one_who_waits_for_the_lead_can_be_stopped(desk: &Desk) {
    let first = Sweeper::start(desk).await;
    first.sweeps().await;
    let second = Sweeper::start(desk).await;
    second.stop.send(true).unwrap();
    soon(second.task).await.unwrap();
    first.stop.send(true).unwrap();
    soon(first.task).await.unwrap();
    let third = Sweeper::start(desk).await;
    third.sweeps().await;
    third.stop.send(true).unwrap();
    soon(third.task).await.unwrap();
}

async fn the_lead_is_held_by_one_store_at_a_time(desk: &Desk) {
    let open = async || {
        let opened = Store::open(&desk.place.address(), Options::default()).await;
        opened.expect("it opens")
    };
    let (one, other) = (open().await, open().await);
    let held = soon(one.lead(Lead::Sweep)).await.unwrap();
    assert!(!held.is_lost());
    let waits = tokio::spawn(async move { other.lead(Lead::Sweep).await.map(drop) });
    desk.plan(1).await;
    assert!(!waits.is_finished());
    drop(held);
    soon(waits).await.unwrap().unwrap();
}

on_both_databases![alone:
    one_of_two_sweeps_and_the_other_one_after_it,
    the_lead_passes_on_when_its_holder_is_cut_off,
    one_who_waits_for_the_lead_can_be_stopped,
    the_lead_is_held_by_one_store_at_a_time,
];
