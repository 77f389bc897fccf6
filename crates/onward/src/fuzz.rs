//! Fuzz targets: every parser of input that other programs or users write. No input may cause a
//! panic, an unbounded response or unbounded work.
//!
//! The inputs are mutations of the fixtures (`mutation.rs`). They depend on a seed, which a failure
//! prints (`ONWARD_SEED` repeats it), and the input is saved. `ONWARD_FUZZ_INPUTS` is the number of
//! inputs per target; `script/fuzz` sets it. An input that failed becomes a regression test: put it
//! into `tests/fixtures/fuzz/TARGET`, whose files are seeds.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails if its setup fails; mutations treat most kinds of values alike"
)]

mod mutation;
mod target;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onward_testbed::{Rng, seed};

/// Number of inputs per target, unless `ONWARD_FUZZ_INPUTS` is set.
const DEFAULT_INPUTS: usize = 300;
/// Maximum time for one input, in a build without optimisation on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(5);
/// After this time the process is aborted: the input causes an endless loop.
const ABORT_AFTER: Duration = Duration::from_secs(60);
/// Maximum size of the response to one input.
const MAX_RESPONSE: usize = 8 << 20;

/// The input that a target processes, for the watchdog.
type Current = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// The variants of a target that process an input: all for a seed, one for a mutation.
#[derive(Clone, Copy)]
enum Variants {
    All,
    One(usize),
}

impl Variants {
    fn select<T>(self, variants: &[T]) -> &[T] {
        match self {
            Variants::All => variants,
            Variants::One(number) => {
                let at = number % variants.len();
                &variants[at..=at]
            }
        }
    }
}

/// Runs a target on mutations of the seeds. The target returns the size of its response.
fn fuzz(name: &str, seeds: &[Vec<u8>], mut target: impl FnMut(&[u8], Variants) -> usize) {
    assert!(!seeds.is_empty(), "`{name}` has no seeds");
    let mut seeds = seeds.to_vec();
    let regressions = format!("tests/fixtures/fuzz/{}", name.replace(' ', "-"));
    if Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(&regressions)
        .exists()
    {
        seeds.extend(files(&regressions));
    }
    let inputs = std::env::var("ONWARD_FUZZ_INPUTS");
    let inputs = inputs.map_or(DEFAULT_INPUTS, |text| text.parse().expect("a number"));
    let seed = seed();
    let mut rng = Rng::new(seed ^ name.bytes().map(u64::from).sum::<u64>());
    let current = Current::default();
    watch(name, &current);
    let (started, mut slowest, mut largest) = (Instant::now(), Duration::ZERO, 0);
    for number in 0..inputs + seeds.len() {
        // The seeds first: a target must accept its own fixtures.
        let (input, variants) = match seeds.get(number) {
            Some(seed) => (seed.clone(), Variants::All),
            None => (mutation::mutate(&seeds, &mut rng), Variants::One(number)),
        };
        let since = Instant::now();
        *current.lock().unwrap() = Some((since, input.clone()));
        let response = catch_unwind(AssertUnwindSafe(|| target(&input, variants)));
        *current.lock().unwrap() = None;
        let took = since.elapsed();
        let problem = match response {
            Err(_) => "panicked".to_owned(),
            Ok(bytes) if bytes > MAX_RESPONSE => format!("responded with {bytes} bytes"),
            Ok(_) if took > MAX_TIME => format!("took {took:?}"),
            Ok(bytes) => {
                (slowest, largest) = (slowest.max(took), largest.max(bytes));
                continue;
            }
        };
        let saved = save(name, &input);
        panic!(
            "`{name}` {problem}; the input is in `{}` (ONWARD_SEED={seed})",
            saved.display()
        );
    }
    println!(
        "{name}: {inputs} inputs in {:.1} s, slowest {slowest:.1?}, largest response {largest} bytes",
        started.elapsed().as_secs_f64()
    );
}

/// Aborts the process if one input takes too long.
fn watch(name: &str, current: &Current) {
    let (name, current) = (name.to_owned(), Arc::downgrade(current));
    std::thread::spawn(move || {
        while let Some(current) = current.upgrade() {
            if let Some((since, input)) = &*current.lock().unwrap()
                && since.elapsed() > ABORT_AFTER
            {
                let saved = save(&name, input);
                eprintln!("`{name}` does not end; see `{}`", saved.display());
                std::process::abort();
            }
            drop(current);
            std::thread::sleep(Duration::from_millis(500));
        }
    });
}

fn save(name: &str, input: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("onward-fuzz-{}", name.replace(' ', "-")));
    std::fs::write(&path, input).expect("input saved");
    path
}

/// The files below a folder of the tests or the documentation.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("entry").path())
            .collect();
        paths.sort();
        for path in paths {
            match path.extension().and_then(|kind| kind.to_str()) {
                None if path.is_dir() => folders.push(path),
                Some("json" | "jsonl" | "md" | "txt") => {
                    found.push(std::fs::read(path).expect("file"))
                }
                Some(_) | None => {}
            }
        }
    }
    found
}

fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
