//! The process that is killed: an engine, the sweep, and agents who use everything.

use std::sync::Arc;
use std::time::Duration;

use onward_engine::{Address, Engine, Faults};

use crate::busy::{Agent, Open};
use crate::dice::Dice;
use crate::doom::{self, Doom};
use crate::history::{Line, Telling, What, to_stdout};
use crate::process::{Orders, end_with_input};

#[test]
#[ignore = "a process of its own, which the other tests start"]
fn works_for_another_test() {
    let Some(orders) = Orders::given() else {
        return;
    };
    end_with_input();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(work(orders));
}

/// A fault may strike somebody who lets nobody know, such as the sweep.
async fn die_once_struck(faults: Faults) {
    while faults.is_pending() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    doom::die();
}

async fn work(orders: Orders) {
    let doom = Doom::read(&orders.task);
    let settings = doom.settings();
    let faults = settings.faults.clone();
    let address = Address::parse(&orders.database).unwrap();
    let engine = Engine::open(&address, settings).await;
    let engine = engine.unwrap_or_else(|why| panic!("{why} ({})", why.hint()));
    let out = to_stdout();
    let tell: Telling = Arc::new(move |line: Line| match doom::is_fatal(&line.what) {
        true => doom::die(),
        false => out(line),
    });
    tell(Line {
        agent: orders.name.clone(),
        micros: 0,
        what: What::Ready,
    });
    if let Doom::AtOperation(number) = doom {
        faults.strike_after(number);
        tokio::spawn(die_once_struck(faults));
    }
    let (_running, stop) = tokio::sync::watch::channel(false);
    let sweeping = engine.clone();
    tokio::spawn(async move { sweeping.keep_sweeping(stop).await });
    let open = Open::default();
    let mut dice = Dice::new(orders.seed);
    let mut agents = tokio::task::JoinSet::new();
    for number in 0..orders.agents {
        let name = format!("{}-a{number}", orders.name);
        let agent = Agent::new(&engine, name, Dice::new(dice.roll()), &tell, &open);
        agents.spawn(agent.work());
    }
    // They work until this process is killed; one that panics ends it.
    if let Some(ended) = agents.join_next().await {
        panic!("an agent ended: {ended:?}");
    }
}
