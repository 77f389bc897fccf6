//! One of the servers: an engine, and agents who race on the plan that they are told, or on one that
//! this process makes.

use onward_engine::create::NewPlan;
use onward_engine::{Address, Caller, Engine};

use crate::dice::Dice;
use crate::history::{Call, Line, Told, What, digest, to_stdout};
use crate::plans;
use crate::process::{Orders, end_with_input};
use crate::racer::Racer;
use crate::scribe::Scribe;

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
    let tell = to_stdout();
    tell(Line {
        agent: orders.name.clone(),
        micros: 0,
        what: What::Ready,
    });
    let mut dice = Dice::new(orders.seed);
    let plan = match orders.task.parse() {
        Ok(plan) => plan,
        Err(_) => {
            let command = plans::branching(&engine, &mut dice, &orders.name, 60);
            let plan = command.plan;
            let caller = Caller::local(orders.name.clone());
            let asked = engine.create_plan(&caller, command, None);
            let told = |made: &NewPlan| Told::Created {
                plan,
                digest: digest(&*made.created),
            };
            let scribe = Scribe::new(orders.name.clone(), &tell);
            let made = scribe.ask(Call::Create, plan, "", asked, told).await;
            made.expect("a plan can be made").created.plan
        }
    };
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..orders.agents {
        let name = format!("{}-a{number}", orders.name);
        let racer = Racer::new(&engine, name, Dice::new(dice.roll()), &tell);
        racing.spawn(racer.work_on(plan));
    }
    racing.join_all().await;
}
