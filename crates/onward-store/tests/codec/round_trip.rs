//! Round trips of all events, and of texts that earlier versions stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use onward_core::id::StepId;
use onward_core::plan::PlanFailure;
use onward_core::step::{FailReason, StepResult};
use onward_core::{Event, PlanStatus, StepStatus};
use onward_store::codec::{decode, decode_action, encode, encode_action, encode_details};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases;
use crate::events::{actions, events};
use crate::kinds::{KINDS, kind};

fn round_trips(event: &Event) {
    let encoded = encode(event);
    let back = decode(encoded.name, encoded.step, &encode_details(event));
    assert_eq!(back.as_ref(), Ok(event), "{}", encoded.details);
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn every_event_name_is_listed(event in events()) {
        prop_assert!(Event::NAMES.contains(&event.name()));
    }

    #[test]
    fn round_trips_every_event(event in events()) {
        let encoded = encode(&event);
        prop_assert_eq!(encoded.name, event.name());
        prop_assert_eq!(encoded.step, event.step());
        let details = encoded.details.parse().expect("JSON");
        prop_assert_eq!(details.get("action").and_then(Value::as_str), event.action());
        let stored = encode_details(&event);
        prop_assert_eq!(&stored, &encoded.details.to_string());
        prop_assert_eq!(decode(encoded.name, encoded.step, &stored), Ok(event), "{}", stored);
    }

    #[test]
    fn round_trips_every_action(action in actions()) {
        let params = encode_action(&action).to_string();
        prop_assert_eq!(decode_action(action.as_str(), &params), Ok(action));
    }
}

#[test]
fn distinguishes_a_missing_reason_from_its_default_text() {
    let step = StepId::from_u128(1);
    for reason in [FailReason::Manual(None), FailReason::Rejected(None)] {
        let text = Some(reason.to_string());
        let explicit = match reason {
            FailReason::Manual(_) => FailReason::Manual(text),
            FailReason::Rejected(_) => FailReason::Rejected(text),
            FailReason::Stalled | FailReason::AttemptsExhausted => reason.clone(),
        };
        for reason in [reason, explicit] {
            let from = StepStatus::InProgress;
            round_trips(&Event::StepFailed { step, from, reason });
        }
    }
    for text in [None, Some("abandoned".to_owned()), Some(String::new())] {
        round_trips(&Event::PlanFailed {
            from: PlanStatus::Stalled,
            reason: PlanFailure::Abandoned(text),
        });
    }
}

/// One line per event: name, step or `-`, and details, for every kind of event with as few and with
/// as many keys as possible. Stored audit trails contain these texts, so the file must not change.
#[test]
fn round_trips_stored_texts_byte_for_byte() {
    let mut found = BTreeSet::new();
    for line in include_str!("stored.txt").lines() {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().expect("three parts");
        let (name, step, details) = (part(), part(), part());
        let step = (step != "-").then(|| step.parse().expect("step id"));
        let event = decode(name, step, details).expect(line);
        assert_eq!((event.name(), event.step()), (name, step), "{line}");
        assert_eq!(encode_details(&event), details);
        found.insert(kind(&event));
    }
    let missing: Vec<_> = KINDS.iter().filter(|kind| !found.contains(*kind)).collect();
    assert!(missing.is_empty(), "not in the file: {missing:?}");
}

/// As deep as a parser accepts.
#[test]
fn round_trips_deeply_nested_data() {
    let mut data = json!(1);
    for _ in 0..62 {
        data = json!({ "in": [data] });
    }
    let result = StepResult {
        data: Some(data.into()),
        ..StepResult::from_summary("deep")
    };
    round_trips(&Event::StepCompleted {
        step: StepId::from_u128(1),
        from: StepStatus::InProgress,
        result: Arc::new(result),
        verdicts: Vec::new(),
        session: None,
    });
}
