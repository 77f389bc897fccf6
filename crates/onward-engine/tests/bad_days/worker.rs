//! The process whose disk is full: an engine, and agents who use everything.

use onward_engine::{Address, Engine};

use crate::busy::{Agent, Open};
use crate::dice::Dice;
use crate::history::to_stdout;
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

async fn work(orders: Orders) {
    let address = Address::parse(&orders.database).unwrap();
    let engine = Engine::open(&address, Default::default()).await;
    let engine = engine.unwrap_or_else(|why| panic!("{why} ({})", why.hint()));
    let (tell, open) = (to_stdout(), Open::default());
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
