//! Content for the fields of events: empty text, quotes, U+0000, right-to-left marks, extreme
//! numbers, any JSON, and the default texts for a missing reason.

use onward_core::StepId;
use onward_core::id::{BranchId, ReviewId, SessionId, SkillExecutionId};
use onward_core::plan::PlanFailure;
use onward_core::step::FailReason;
use proptest::collection::vec;
use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// Text that has caused bugs before, or could.
pub(crate) fn text() -> BoxedStrategy<String> {
    let known = [
        "",
        " ",
        "\"",
        "\\",
        "\\u0000",
        "\0",
        "a\0b",
        "'; --",
        "\u{202e}abc",
        "\u{feff}",
        "🧭",
        "e\u{301}",
        "\r\n",
        "null",
        "{}",
        "claimToken",
    ];
    let failures = [
        FailReason::Manual(None),
        FailReason::Stalled,
        FailReason::AttemptsExhausted,
        FailReason::Rejected(None),
    ];
    let plan_failures = [
        PlanFailure::Branch(None),
        PlanFailure::Rejected(None),
        PlanFailure::Abandoned(None),
    ];
    let mut known = known.map(str::to_owned).to_vec();
    known.extend(failures.map(|reason| reason.to_string()));
    known.extend(plan_failures.map(|reason| reason.to_string()));
    prop_oneof![
        2 => select(known),
        1 => vec(any::<char>(), 0..12).prop_map(String::from_iter),
        1 => "[a-z ]{1,20}",
    ]
    .boxed()
}

/// A finite number, of any size.
pub(crate) fn number() -> BoxedStrategy<f64> {
    prop_oneof![
        0.0..=1.0_f64,
        0.0..=100.0_f64,
        POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO,
        select(
            &[
                0.0,
                -0.0,
                0.1,
                1.0,
                100.0,
                f64::MIN,
                f64::MAX,
                f64::MIN_POSITIVE,
                f64::EPSILON
            ][..]
        ),
    ]
    .boxed()
}

/// Any JSON.
pub(crate) fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        number().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

pub(crate) fn step_ids() -> impl Strategy<Value = StepId> {
    any::<u128>().prop_map(StepId::from_u128)
}

pub(crate) fn branch_ids() -> impl Strategy<Value = BranchId> {
    any::<u128>().prop_map(BranchId::from_u128)
}

pub(crate) fn review_ids() -> impl Strategy<Value = ReviewId> {
    any::<u128>().prop_map(ReviewId::from_u128)
}

pub(crate) fn executions() -> impl Strategy<Value = SkillExecutionId> {
    any::<u128>().prop_map(SkillExecutionId::from_u128)
}

pub(crate) fn sessions() -> impl Strategy<Value = Option<SessionId>> {
    option::of(text().prop_map(SessionId::new))
}
