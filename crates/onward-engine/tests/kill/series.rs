//! A series of kills on one database, checked after each; then the next series, on a fresh one, so
//! that making the schema is killed, too.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use onward_engine::Caller;

use crate::dice::{Dice, seed};
use crate::doom::Doom;
use crate::history::{Line, Told, What};
use crate::place::{Kind, Place};
use crate::process::{Ended, Orders, Process};
use crate::promises::{self, Sum};

/// Kills of the suite, on both databases together.
const KILLS: u32 = 50;

/// After so many kills a fresh database is taken.
const PER_DATABASE: u32 = 25;

/// No worker takes this long to start and to write what is waited for.
const LIMIT: Duration = Duration::from_secs(60);

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

/// Kills servers on this kind of database, as often as the environment wants.
pub fn run(kind: Kind) {
    let wanted = std::env::var("ONWARD_KILLS").ok();
    let wanted: u32 = wanted.map_or(KILLS, |kills| kills.parse().expect("a number of kills"));
    let half = wanted.div_ceil(2);
    let seed = seed();
    println!("{kind:?}: ONWARD_SEED={seed}");
    let mut dice = Dice::new(seed);
    let since = Instant::now();
    let (mut kills, mut acknowledged, mut unanswered, mut events) = (0, 0, 0, 0);
    while kills < half {
        let most = PER_DATABASE.min(half - kills);
        let (sum, killed) = series(kind, &mut dice, most);
        kills += killed;
        acknowledged += sum.told;
        unanswered += sum.unanswered;
        events += sum.events;
        if kills < half {
            println!("{kind:?}: {kills} of {half} kills, {acknowledged} acknowledged calls");
        }
    }
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{kind:?}: {kills} kills, {acknowledged} acknowledged calls all there, {unanswered} \
         unanswered ones there and whole, {events} events replayed, {seconds:.1} s"
    );
}

/// Kills on one database.
fn series(kind: Kind, dice: &mut Dice, most: u32) -> (Sum, u32) {
    let place = Place::new(kind);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    let mut lines: Vec<Line> = Vec::new();
    let mut sum = Sum::default();
    let (mut round, mut kills) = (0, 0);
    while kills < most {
        round += 1;
        let together = match dice.below(3) {
            0 => 3.min(most - kills),
            _ => 1,
        };
        let workers: Vec<_> = (0..together)
            .map(|number| {
                let doom = Doom::of_chance(dice, round);
                Victim::start(&place, dice, doom, format!("r{round}w{number}"))
            })
            .collect();
        for worker in workers {
            lines.extend(worker.die(dice));
            kills += 1;
        }
        let caller = Caller::local("checker");
        sum = runtime.block_on(async {
            let engine = place.open().await;
            promises::check(&engine, &caller, &lines).await
        });
    }
    (sum, kills)
}

/// Kills servers that are making their schema, each on a fresh database.
pub fn in_the_schema(kind: Kind, kills: u32) {
    let seed = seed();
    println!("{kind:?}: ONWARD_SEED={seed}");
    let mut dice = Dice::new(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    // How long it takes undisturbed, once everything it reads has been read before.
    let whole = (0..2).map(|_| takes(kind, &mut dice)).min().unwrap_or(0);
    let mut finished = 0;
    for number in 0..kills {
        let place = Place::new(kind);
        let name = format!("w{number}");
        let victim = Victim::start(&place, &mut dice, Doom::Killed, name.clone());
        // The first part of it is this program's own start.
        std::thread::sleep(Duration::from_micros(whole / 5 + dice.below(whole)));
        let lines = died(&name, Doom::Killed, victim.process.kill());
        finished += u32::from(!lines.is_empty());
        let caller = Caller::local("checker");
        runtime.block_on(async {
            let engine = place.open().await;
            promises::check(&engine, &caller, &lines).await;
        });
    }
    println!(
        "{kind:?}: {kills} kills in the first {whole} µs, {finished} after the schema was there"
    );
}

/// How long a worker takes to open a fresh database, in microseconds.
fn takes(kind: Kind, dice: &mut Dice) -> u64 {
    let place = Place::new(kind);
    let since = Instant::now();
    let mut process = Victim::start(&place, dice, Doom::Killed, "first".to_owned()).process;
    assert!(process.wait_until(LIMIT, |lines| !lines.is_empty()));
    let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    process.kill();
    micros
}

/// A worker, and how it will die.
struct Victim {
    process: Process,
    doom: Doom,
    name: String,
}

impl Victim {
    fn start(place: &Place, dice: &mut Dice, doom: Doom, name: String) -> Self {
        let process = Process::start(&Orders {
            name: name.clone(),
            database: place.written(),
            seed: dice.roll(),
            agents: 1 + dice.below(6),
            task: doom.written(),
        });
        Self {
            process,
            doom,
            name,
        }
    }

    /// Waits for its moment, and takes what it wrote.
    fn die(self, dice: &mut Dice) -> Vec<Line> {
        let Self {
            mut process,
            doom,
            name,
        } = self;
        let ended = match doom {
            Doom::Killed => {
                // In its start, or in the middle of its work.
                if dice.percent(80) {
                    let answers = 1 + usize::try_from(dice.below(120)).unwrap_or(0);
                    if !process.wait_for(answers, LIMIT) {
                        panic!(
                            "{name} did not write {answers} answers:\n{}",
                            process.kill().complaints
                        );
                    }
                }
                std::thread::sleep(Duration::from_micros(dice.below(30_000)));
                process.kill()
            }
            Doom::AtQuestion(_) | Doom::AtOperation(_) => process.end(LIMIT),
        };
        died(&name, doom, ended)
    }
}

/// A worker that ended in another way than it should, or that was told of trouble, is a failure.
fn died(name: &str, doom: Doom, ended: Ended) -> Vec<Line> {
    let Ended {
        status,
        lines,
        complaints,
    } = ended;
    let by = match doom {
        Doom::Killed => SIGKILL,
        Doom::AtQuestion(_) | Doom::AtOperation(_) => SIGABRT,
    };
    assert_eq!(
        status.signal(),
        Some(by),
        "{name} ({doom:?}): {status}\n{complaints}"
    );
    for line in &lines {
        if let What::Told(Told::Trouble { .. }) = line.what {
            panic!("{name} ({doom:?}): {line:?}");
        }
    }
    lines
}
