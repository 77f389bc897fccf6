//! Every event comes back as it was: from the value, and from the text that a database holds.

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
    serde_json::from_str(&details.to_string()).expect("JSON that was just written")
}

fn comes_back(event: &Event) {
    let encoded = encode(event);
    let back = decode(encoded.name, encoded.step, &encoded.details);
    assert_eq!(back.as_ref(), Ok(event), "{}", encoded.details);
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn the_name_of_every_event_is_in_the_list_of_names(event in events()) {
        prop_assert!(Event::NAMES.contains(&event.name()));
    }

    #[test]
    fn every_event_comes_back_as_it_was(event in events()) {
        let encoded = encode(&event);
        prop_assert_eq!(encoded.name, event.name());
        prop_assert_eq!(encoded.step, event.step());
        prop_assert_eq!(encoded.details.get("action").and_then(Value::as_str), event.action());
        let back = decode(encoded.name, encoded.step, &encoded.details);
        prop_assert_eq!(back.as_ref(), Ok(&event), "{}", encoded.details);
    }

    #[test]
    fn every_event_comes_back_from_the_text_that_a_database_holds(event in events()) {
        let encoded = encode(&event);
        let read = through_text(&encoded.details);
        prop_assert_eq!(&read, &encoded.details);
        prop_assert_eq!(decode(encoded.name, encoded.step, &read), Ok(event));
    }

    #[test]
    fn every_action_comes_back_from_its_word_and_its_params(action in actions()) {
        let params = through_text(&encode_action(&action));
        prop_assert_eq!(decode_action(action.as_str(), &params), Ok(action));
    }
}

#[test]
fn the_words_for_no_reason_are_a_reason_when_somebody_says_them() {
    let step = StepId::from_u128(1);
    for reason in [FailReason::ByHand(None), FailReason::Rejected(None)] {
        let said = Some(reason.to_string());
        let spelt = match reason {
            FailReason::ByHand(_) => FailReason::ByHand(said),
            FailReason::Rejected(_) => FailReason::Rejected(said),
            FailReason::Stalled | FailReason::AttemptsUsedUp => reason.clone(),
        };
        for reason in [reason, spelt] {
            let from = StepStatus::InProgress;
            comes_back(&Event::StepFailed { step, from, reason });
        }
    }
    for said in [None, Some("abandoned".to_owned()), Some(String::new())] {
        comes_back(&Event::PlanFailed {
            reason: PlanFailure::Abandoned(said),
        });
    }
}

#[test]
fn data_comes_back_however_deep_it_is_nested() {
    let mut data = json!(1);
    for _ in 0..1_000 {
        data = json!({ "in": [data] });
    }
    let result = StepResult {
        data: Some(data),
        ..StepResult::of_summary("deep")
    };
    comes_back(&Event::StepCompleted {
        step: StepId::from_u128(1),
        from: StepStatus::InProgress,
        result: Arc::new(result),
        verdicts: Vec::new(),
        session: None,
    });
}
