//! Calls of one model response are given up together, and those that may still answer are left alone.

use std::cell::Cell;
use std::cmp::Ordering;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallMove, CallPolicy, Cause, Clock, Death, Given, Limit, Owner, Up, give_up,
};
use onward_core::watcher::{Watcher, WatcherPolicy};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn owner(process: u32) -> Option<Owner> {
    Some(Owner {
        host: "here".to_owned(),
        boot: None,
        process,
        process_started: None,
    })
}

fn call(seconds: Option<f64>, owner: Option<Owner>, moves: &[CallMove]) -> Call {
    let mut call = Call::requested(Limit::of_seconds(seconds), owner);
    for asked in moves {
        call.apply(*asked, at(0)).expect("a lawful move");
    }
    call
}

fn causes(calls: &[(&Call, u32, Option<Death>)], now: i64, clock: Clock<'_>) -> Vec<Option<Cause>> {
    let given: Vec<Given<'_, u32>> = calls
        .iter()
        .map(|(call, batch, death)| Given {
            call,
            batch: *batch,
            death: *death,
        })
        .collect();
    let settled = give_up(&given, at(now), CallPolicy::default(), clock);
    settled.iter().map(|up| up.map(|up| up.cause)).collect()
}

const GONE: Option<Death> = Some(Death::ProcessGone);

#[test]
fn a_dead_owner_settles_every_call_of_its_batch_by_its_own_state() {
    let running = call(Some(600.0), owner(7), &[CallMove::Start]);
    let waiting = call(None, owner(7), &[CallMove::AskApproval]);
    let unowned = call(None, None, &[]);
    let calls = [
        (&running, 1, GONE),
        (&waiting, 1, GONE),
        (&unowned, 1, None),
    ];
    assert_eq!(
        causes(&calls, 0, Clock::Stopped),
        [
            Some(Cause::OutcomeUnknown),
            Some(Cause::NotStarted),
            Some(Cause::NotStarted)
        ]
    );
}

#[test]
fn a_call_of_another_batch_or_of_a_living_owner_is_left_alone() {
    let dead = call(None, owner(7), &[CallMove::Start]);
    let living = call(None, owner(8), &[CallMove::Start]);
    let elsewhere = call(None, None, &[CallMove::Start]);
    let calls = [(&dead, 1, GONE), (&living, 1, None), (&elsewhere, 2, None)];
    assert_eq!(
        causes(&calls, 0, Clock::Running),
        [Some(Cause::OutcomeUnknown), None, None]
    );
}

#[test]
fn where_one_is_past_its_time_those_that_never_began_go_with_it() {
    let short = call(Some(10.0), None, &[CallMove::Start]);
    let long = call(Some(600.0), None, &[CallMove::Start]);
    let queued = call(None, None, &[]);
    let asked = call(None, None, &[CallMove::AskApproval]);
    let calls = [
        (&short, 1, None),
        (&long, 1, None),
        (&queued, 1, None),
        (&asked, 1, None),
    ];
    assert_eq!(causes(&calls, 40, Clock::Running), [None; 4]);
    assert_eq!(
        causes(&calls, 41, Clock::Running),
        [Some(Cause::TimedOut), None, Some(Cause::NotStarted), None]
    );
    assert_eq!(causes(&calls, 41, Clock::Stopped), [None; 4]);
}

#[test]
fn a_watcher_that_slept_convicts_nobody_for_one_grace_period() {
    let stale = call(Some(10.0), None, &[CallMove::Start]);
    let policy = WatcherPolicy {
        tolerance: Duration::from_secs(5),
        grace: Duration::from_secs(60),
    };
    let watcher = Watcher::begin(policy, at(1_000));
    let calls = [(&stale, 1, None)];
    assert_eq!(causes(&calls, 1_060, Clock::Watched(&watcher)), [None]);
    assert_eq!(
        causes(&calls, 1_061, Clock::Watched(&watcher)),
        [Some(Cause::TimedOut)]
    );
    // A dead owner is proof: there is nothing to wait for.
    let owned = call(Some(10.0), owner(7), &[CallMove::Start]);
    let given = [Given {
        call: &owned,
        batch: 1,
        death: GONE,
    }];
    let settled = give_up(
        &given,
        at(1_000),
        CallPolicy::default(),
        Clock::Watched(&watcher),
    );
    let up = Up {
        cause: Cause::OutcomeUnknown,
        death: GONE,
    };
    assert_eq!(settled, [Some(up)]);
}

/// A batch that counts how often it is compared.
struct Counted<'a> {
    number: usize,
    compared: &'a Cell<usize>,
}

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted<'_> {}

impl PartialOrd for Counted<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compared.set(self.compared.get() + 1);
        self.number.cmp(&other.number)
    }
}

#[test]
fn four_thousand_open_calls_are_settled_without_comparing_each_with_each() {
    let calls = 4_096;
    let dead = call(None, owner(7), &[CallMove::Start]);
    let queued = call(None, None, &[]);
    for batches in [1, 64, calls / 2] {
        let compared = Cell::new(0);
        let given: Vec<Given<'_, Counted<'_>>> = (0..calls)
            .map(|place| {
                let is_dead = place < batches;
                Given {
                    call: if is_dead { &dead } else { &queued },
                    batch: Counted {
                        number: place % batches,
                        compared: &compared,
                    },
                    death: GONE.filter(|_| is_dead),
                }
            })
            .collect();
        let settled = give_up(&given, at(0), CallPolicy::default(), Clock::Stopped);
        assert!(settled.iter().all(Option::is_some), "{batches} batches");
        // A search in a tree, twice for each call; each with each would be sixteen million.
        assert!(compared.get() < calls * 64, "{batches}: {}", compared.get());
    }
}
