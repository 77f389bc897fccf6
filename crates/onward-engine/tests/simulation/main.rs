//! Agents on a simulated clock drive the real engine on a real database, and a naive model of the
//! rules stands beside it: whatever they ask, both must say the same.
//!
//! | module | what |
//! |---|---|
//! | `agents` | what is asked, by chance |
//! | `model` | what must be answered, by the rules |
//! | `rows`, `reads`, `history` | what the database says, what the engine shows, what every trail keeps |
//! | `scene`, `coverage` | one run of one seed; what the agents must have met over all of them |
//! | `faults`, `races` | a store that fails; two engines at once |
//! | `world`, `dice`, `home` | the clock, chance, the database |
//!
//! A failure prints its seed and the command that repeats it. `ONWARD_SEEDS=1000` runs the first so
//! many seeds in each test, `ONWARD_SEED=7` one of them, `ONWARD_SEED=1001..2000` others. A race is
//! repeated by its seed only as far as the machine repeats it.

#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test says what must hold by panicking; and the model looks at few of many cases"
)]

mod agents;
mod ask;
mod conditions;
mod coverage;
mod dice;
mod faults;
mod history;
mod home;
mod model;
mod races;
mod reads;
mod rows;
mod said;
mod scene;
mod world;

use coverage::Coverage;
use home::{Database, Home};
use scene::Scene;

/// What a run is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Faults,
    Races,
}

async fn run(database: Database, kind: Kind, test: &str, ordinary: u64) {
    let seeds = seeds(ordinary);
    let engines = match kind {
        Kind::Plain | Kind::Faults => 1,
        Kind::Races => 2,
    };
    let home = Home::open(database, test, engines).await;
    let mut coverage = Coverage::default();
    // The first seeds come to every corner; others may have less luck.
    let first = seeds == (1..=ordinary) && database == Database::Sqlite;
    for seed in seeds {
        let mut scene = match Scene::open(&home, seed).await {
            Ok(scene) => scene,
            Err(why) => panic!("seed {seed} does not begin: {why}"),
        };
        if let Err(why) = play(&mut scene, kind).await {
            panic!(
                "seed {seed}: {why}\n\nThe last commands:\n{}\n\nAgain: \
                 ONWARD_SEED={seed} cargo test -p onward-engine --test simulation -- --exact {test}\n",
                scene.story()
            );
        }
        coverage.add(&scene.coverage);
    }
    if first && kind == Kind::Plain {
        let missing = coverage.missing();
        assert!(
            missing.is_empty(),
            "the agents never came to {missing:?} among {coverage:?}"
        );
    }
}

/// Those that the environment names, or else the first so many.
fn seeds(ordinary: u64) -> std::ops::RangeInclusive<u64> {
    let set = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    match (set("ONWARD_SEED"), set("ONWARD_SEEDS")) {
        (Some(named), _) => {
            let (first, last) = named.split_once("..").unwrap_or((&named, &named));
            number(first)..=number(last)
        }
        (None, Some(count)) => 1..=number(&count),
        (None, None) => 1..=ordinary,
    }
}

fn number(text: &str) -> u64 {
    let parsed = text.parse();
    parsed.unwrap_or_else(|_| panic!("`{text}` is no number of seeds"))
}

async fn play(scene: &mut Scene<'_>, kind: Kind) -> Result<(), String> {
    let commands = scene.dice.between(20, 90);
    let look_every = scene.dice.between(1, 9);
    for number in 0..commands {
        scene.let_time_pass();
        match kind {
            Kind::Plain => {
                let (agent, ask) = scene.crowd.wish(&scene.model);
                scene.say(agent, &ask).await?;
            }
            Kind::Faults => scene.say_with_a_fault().await?,
            Kind::Races => scene.race().await?,
        }
        if number % look_every == 0 {
            scene.look().await?;
        }
    }
    scene.close().await
}

macro_rules! simulations {
    ($($test:ident: $kind:ident on $database:ident, $seeds:literal;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                run(Database::$database, Kind::$kind, stringify!($test), $seeds).await;
            }
        )*
    };
}

simulations! {
    agents_follow_the_rules_on_sqlite: Plain on Sqlite, 40;
    agents_follow_the_rules_on_postgres: Plain on Postgres, 2;
    a_fault_leaves_all_or_nothing_on_sqlite: Faults on Sqlite, 12;
    a_fault_leaves_all_or_nothing_on_postgres: Faults on Postgres, 2;
    racing_engines_act_in_some_order_on_sqlite: Races on Sqlite, 8;
    racing_engines_act_in_some_order_on_postgres: Races on Postgres, 2;
}
