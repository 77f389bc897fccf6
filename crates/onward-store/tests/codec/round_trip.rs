//! Round trips of all events: as a value, and as the text that a database stores.

use std::sync::Arc;

use onward_core::id::StepId;
use onward_core::plan::PlanFailure;
use onward_core::step::{FailReason, StepResult};
use onward_core::{Event, StepStatus};
use onward_store::codec::{decode, decode_action, encode, encode_action};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases;
use crate::events::{actions, events};

fn through_text(details: &Value) -> Value {
    serde_json::from_str(&details.to_string()).expect("valid JSON")
}

fn round_trips(event: &Event) {
    let encoded = encode(event);
    let back = decode(encoded.name, encoded.step, &encoded.details);
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
        prop_assert_eq!(encoded.details.get("action").and_then(Value::as_str), event.action());
        let back = decode(encoded.name, encoded.step, &encoded.details);
        prop_assert_eq!(back.as_ref(), Ok(&event), "{}", encoded.details);
    }

    #[test]
    fn round_trips_every_event_through_the_stored_text(event in events()) {
        let encoded = encode(&event);
        let read = through_text(&encoded.details);
        prop_assert_eq!(&read, &encoded.details);
        prop_assert_eq!(decode(encoded.name, encoded.step, &read), Ok(event));
    }

    #[test]
    fn round_trips_every_action(action in actions()) {
        let params = through_text(&encode_action(&action));
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
            reason: PlanFailure::Abandoned(text),
        });
    }
}

#[test]
fn round_trips_deeply_nested_data() {
    let mut data = json!(1);
    for _ in 0..1_000 {
        data = json!({ "in": [data] });
    }
    let result = StepResult {
        data: Some(data),
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
