//! Batches: the calls of one model response are interrupted together, except those that may still
//! return.

use std::cell::Cell;
use std::cmp::Ordering;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallPolicy, CallTransition, Cause, InterruptDecision, Limit, OpenCall, Owner, OwnerExit,
    Timeouts, calls_to_interrupt,
};
use onward_core::watcher::{Watcher, WatcherPolicy};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn owner(process: u32) -> Option<Owner> {
    Some(Owner {
        host: "host-1".to_owned(),
        boot: None,
        process,
        process_started: None,
    })
}

fn call(seconds: Option<f64>, owner: Option<Owner>, transitions: &[CallTransition]) -> Call {
    let mut call = Call::requested(
        Limit::from_millis(seconds.map(|seconds| seconds * 1000.0)),
        owner,
    );
    for transition in transitions {
        call.apply(*transition, at(0)).expect("legal transition");
    }
    call
}

fn causes(
    calls: &[(&Call, u32, Option<OwnerExit>)],
    now: i64,
    timeouts: Timeouts<'_>,
) -> Vec<Option<Cause>> {
    let open: Vec<OpenCall<'_, u32>> = calls
        .iter()
        .map(|(call, batch, owner_exit)| OpenCall {
            call,
            batch: *batch,
            owner_exit: *owner_exit,
        })
        .collect();
    let decisions = calls_to_interrupt(&open, at(now), CallPolicy::default(), timeouts);
    decisions
        .iter()
        .map(|decision| decision.map(|decision| decision.cause))
        .collect()
}

const EXITED: Option<OwnerExit> = Some(OwnerExit::ProcessExited);

#[test]
fn a_dead_owner_interrupts_every_call_of_its_batch_with_a_cause_by_status() {
    let running = call(Some(600.0), owner(7), &[CallTransition::Start]);
    let waiting = call(None, owner(7), &[CallTransition::RequestApproval]);
    let unowned = call(None, None, &[]);
    let calls = [
        (&running, 1, EXITED),
        (&waiting, 1, EXITED),
        (&unowned, 1, None),
    ];
    assert_eq!(
        causes(&calls, 0, Timeouts::Ignored),
        [
            Some(Cause::OutcomeUnknown),
            Some(Cause::NotStarted),
            Some(Cause::NotStarted)
        ]
    );
}

#[test]
fn calls_of_another_batch_or_a_live_owner_stay_open() {
    let dead = call(None, owner(7), &[CallTransition::Start]);
    let alive = call(None, owner(8), &[CallTransition::Start]);
    let other_batch = call(None, None, &[CallTransition::Start]);
    let calls = [
        (&dead, 1, EXITED),
        (&alive, 1, None),
        (&other_batch, 2, None),
    ];
    assert_eq!(
        causes(&calls, 0, Timeouts::Enforced),
        [Some(Cause::OutcomeUnknown), None, None]
    );
}

#[test]
fn a_timeout_also_interrupts_the_calls_of_its_batch_that_have_not_started() {
    let short = call(Some(10.0), None, &[CallTransition::Start]);
    let long = call(Some(600.0), None, &[CallTransition::Start]);
    let queued = call(None, None, &[]);
    let awaiting_approval = call(None, None, &[CallTransition::RequestApproval]);
    let calls = [
        (&short, 1, None),
        (&long, 1, None),
        (&queued, 1, None),
        (&awaiting_approval, 1, None),
    ];
    assert_eq!(causes(&calls, 40, Timeouts::Enforced), [None; 4]);
    assert_eq!(
        causes(&calls, 41, Timeouts::Enforced),
        [Some(Cause::TimedOut), None, Some(Cause::NotStarted), None]
    );
    assert_eq!(causes(&calls, 41, Timeouts::Ignored), [None; 4]);
}

#[test]
fn the_monitor_waits_one_grace_period_after_a_sleep_except_for_dead_owners() {
    let stale = call(Some(10.0), None, &[CallTransition::Start]);
    let policy = WatcherPolicy {
        tolerance: Duration::from_secs(5),
        grace: Duration::from_secs(60),
    };
    let watcher = Watcher::begin(policy, at(1_000));
    let calls = [(&stale, 1, None)];
    assert_eq!(causes(&calls, 1_060, Timeouts::Watched(&watcher)), [None]);
    assert_eq!(
        causes(&calls, 1_061, Timeouts::Watched(&watcher)),
        [Some(Cause::TimedOut)]
    );
    // A dead owner needs no grace period.
    let owned = call(Some(10.0), owner(7), &[CallTransition::Start]);
    let open = [OpenCall {
        call: &owned,
        batch: 1,
        owner_exit: EXITED,
    }];
    let decisions = calls_to_interrupt(
        &open,
        at(1_000),
        CallPolicy::default(),
        Timeouts::Watched(&watcher),
    );
    let expected = InterruptDecision {
        cause: Cause::OutcomeUnknown,
        owner_exit: EXITED,
    };
    assert_eq!(decisions, [Some(expected)]);
}

/// A batch id that counts its comparisons.
struct CountingBatch<'a> {
    number: usize,
    comparisons: &'a Cell<usize>,
}

impl PartialEq for CountingBatch<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for CountingBatch<'_> {}

impl PartialOrd for CountingBatch<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CountingBatch<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.comparisons.set(self.comparisons.get() + 1);
        self.number.cmp(&other.number)
    }
}

#[test]
fn deciding_4096_open_calls_does_not_compare_all_pairs() {
    let calls = 4_096;
    let dead = call(None, owner(7), &[CallTransition::Start]);
    let queued = call(None, None, &[]);
    for batches in [1, 64, calls / 2] {
        let comparisons = Cell::new(0);
        let open: Vec<OpenCall<'_, CountingBatch<'_>>> = (0..calls)
            .map(|index| {
                let is_dead = index < batches;
                OpenCall {
                    call: if is_dead { &dead } else { &queued },
                    batch: CountingBatch {
                        number: index % batches,
                        comparisons: &comparisons,
                    },
                    owner_exit: EXITED.filter(|_| is_dead),
                }
            })
            .collect();
        let decisions = calls_to_interrupt(&open, at(0), CallPolicy::default(), Timeouts::Ignored);
        assert!(decisions.iter().all(Option::is_some), "{batches} batches");
        // Two tree lookups per call. Comparing all pairs would take 16 million comparisons.
        assert!(
            comparisons.get() < calls * 64,
            "{batches}: {}",
            comparisons.get()
        );
    }
}
