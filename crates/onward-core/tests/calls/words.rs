//! What the model and the operator are told.

use std::time::Duration;

use onward_core::call::words::{for_model, for_operator};
use onward_core::call::{Call, CallMove, CallPolicy, Cause, Death, Limit, Owner};

use crate::law::at;

#[test]
fn the_model_is_told_what_it_can_do() {
    assert_eq!(
        for_model(Cause::NotStarted, None),
        "This call was not carried out: it never began. Make it again if it is still needed."
    );
    assert_eq!(
        for_model(Cause::OutcomeUnknown, None),
        "The outcome of this call is unknown: it had begun, and no result was received. Check what \
         it did before making it again; only a call that merely reads may simply be repeated."
    );
    assert_eq!(
        for_model(Cause::TimedOut, Some(Duration::from_secs(120))),
        "No answer came within 120 s. The call may still be running; check what it did before \
         making it again."
    );
    assert_eq!(
        for_model(Cause::TimedOut, None),
        "No answer came in time. The call may still be running; check what it did before making it \
         again."
    );
}

#[test]
fn the_model_reads_nothing_of_our_machinery() {
    let ours = [
        "onward",
        "synthetic",
        "ledger",
        "owner",
        "process",
        "host",
        "boot",
        "sweep",
        "repair",
        "proxy",
        "hook",
        "restart",
        "user",
        "success",
    ];
    for cause in Cause::ALL {
        for timeout in [None, Some(Duration::from_millis(1500))] {
            let text = for_model(cause, timeout).to_lowercase();
            for word in ours {
                assert!(!text.contains(word), "{cause}: `{word}` in `{text}`");
            }
        }
    }
}

#[test]
fn the_operator_reads_everything() {
    let owner = Owner {
        host: "pier".to_owned(),
        boot: None,
        process: 42,
        process_started: None,
    };
    let mut call = Call::requested(Limit::Unsaid, Some(owner));
    call.apply(CallMove::Start, at(0)).unwrap();
    let policy = CallPolicy::default();
    let death = Some(Death::ProcessGone);
    assert_eq!(
        for_operator(&call, Cause::OutcomeUnknown, policy, death, at(60)),
        "outcome unknown: it was `running`; last sign of life at 1970-01-01T00:00:00.000Z, 60 s \
         ago; its owner, process 42 on `pier`, is dead: the process is gone"
    );
    call.owner = None;
    assert_eq!(
        for_operator(&call, Cause::TimedOut, policy, None, at(151)),
        "timed out: no answer within 120 s and 30 s of grace; last sign of life at \
         1970-01-01T00:00:00.000Z, 151 s ago; its owner is unknown"
    );
}
