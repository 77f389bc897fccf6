//! Messages about interrupted calls. `messages.txt` contains the expected texts; `ONWARD_BLESS=1`
//! rewrites it.

use std::time::Duration;

use onward_core::call::message::{for_model, for_operator};
use onward_core::call::{Call, CallPolicy, CallTransition, Cause, Limit, Owner, OwnerExit};
use onward_testbed::golden;

use crate::transitions::at;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calls/messages.txt");
const TIMEOUTS: [Option<Duration>; 2] = [None, Some(Duration::from_secs(120))];

fn running_call() -> Call {
    let owner = Owner {
        host: "host-1".to_owned(),
        boot: None,
        process: 42,
        process_started: None,
    };
    let mut call = Call::requested(Limit::Unspecified, Some(owner));
    call.apply(CallTransition::Start, at(0)).unwrap();
    call
}

/// All messages, one per line.
fn messages() -> String {
    let mut lines = Vec::new();
    for cause in Cause::ALL {
        for timeout in TIMEOUTS {
            lines.push(format!("model, {cause}: {}", for_model(cause, timeout)));
        }
    }
    let policy = CallPolicy::default();
    let owned = running_call();
    let unowned = Call {
        owner: None,
        ..owned.clone()
    };
    for cause in Cause::ALL {
        for (call, exit) in [
            (&owned, Some(OwnerExit::ProcessExited)),
            (&owned, None),
            (&unowned, None),
        ] {
            let text = for_operator(call, cause, policy, exit);
            lines.push(format!("operator, {cause}: {text}"));
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn messages_match_the_golden_file() {
    let messages = messages();
    golden::assert_matches(GOLDEN, &messages);
}

#[test]
fn messages_for_the_model_contain_no_internal_terms() {
    let internal_terms = [
        "onward",
        "synthetic",
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
        for timeout in TIMEOUTS {
            let text = for_model(cause, timeout).to_lowercase();
            for term in internal_terms {
                assert!(!text.contains(term), "{cause}: `{term}` in `{text}`");
            }
        }
    }
}

#[test]
fn the_message_for_the_operator_contains_status_and_owner() {
    let call = running_call();
    let exit = Some(OwnerExit::ProcessExited);
    let text = for_operator(&call, Cause::OutcomeUnknown, CallPolicy::default(), exit);
    for value in ["`running`", "42", "`host-1`"] {
        assert!(text.contains(value), "`{value}` in `{text}`");
    }
}
