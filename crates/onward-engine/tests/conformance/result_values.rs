//! Result values: numbers round-trip exactly, and the size and nesting limits are inclusive.

use onward_core::Json;
use onward_core::policy::MAX_RESULT_BYTES;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, submission_for};

async fn a_confidence_round_trips_bit_for_bit(harness: &Harness) {
    for confidence in [
        0.0,
        1.0,
        0.1 + 0.2,
        1.0 / 3.0,
        f64::MIN_POSITIVE,
        5e-324,
        1.0 - 1e-16,
    ] {
        let plan = harness.plan(1).await;
        let step = harness.claim(plan.id).await;
        let mut submission = submission_for(&step, "done");
        submission.result.confidence = Some(confidence);
        harness.submit(submission.clone()).await.unwrap();
        let stored = harness.step_result(plan.id, 0).await.confidence.unwrap();
        assert_eq!(stored.to_bits(), confidence.to_bits(), "{confidence:e}");
        harness
            .submit(submission)
            .await
            .expect("retry of the same result succeeds");
    }
}

async fn a_negative_zero_confidence_is_stored_as_zero(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut submission = submission_for(&step, "done");
    submission.result.confidence = Some(-0.0);
    harness.submit(submission.clone()).await.unwrap();
    let document = crate::operations::document(&harness.engine, &harness.me, plan.id).await;
    let exported = document["steps"][0]["confidence"].to_string();
    // `-0.0` on only one of the backends would be a difference.
    assert_eq!(exported, "0.0");
    harness
        .submit(submission)
        .await
        .expect("retry of the same result succeeds");
}

async fn rejects_confidences_out_of_range(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    for confidence in [-5e-324, 1.0 + f64::EPSILON, f64::NAN, f64::INFINITY, -1.0] {
        let mut submission = submission_for(&step, "done");
        submission.result.confidence = Some(confidence);
        assert_eq!(
            code(harness.submit(submission).await),
            "invalid_input",
            "{confidence}"
        );
    }
}

async fn numbers_in_result_data_round_trip(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let sent = json!({
        "largest": u64::MAX,
        "smallest": i64::MIN,
        "odd": 9_007_199_254_740_993_u64,
        "huge": 1e300,
        "tiny": 5e-324,
        "sum": 0.1 + 0.2,
        "whole": 1.0,
        "one": 1,
        "negative zero": -0.0,
        "deep": [[[[1e-7, true, null]]]],
    });
    let mut submission = submission_for(&step, "done");
    submission.result.data = Some(sent.clone().into());
    submission.result.report = Some(sent.clone().into());
    harness.submit(submission.clone()).await.unwrap();
    let stored = harness.step_result(plan.id, 0).await;
    // Compared as text, to distinguish `1` from `1.0`.
    let text = |value: &Option<Json>| value.as_ref().unwrap().to_string();
    assert_eq!(text(&stored.data), sent.to_string());
    assert_eq!(text(&stored.report), sent.to_string());
    harness
        .submit(submission)
        .await
        .expect("retry of the same result succeeds");
}

async fn accepts_result_data_of_one_mebibyte_and_rejects_one_byte_more(harness: &Harness) {
    let overhead = json!({ "text": "" }).to_string().len();
    let of_size = |bytes: usize| json!({ "text": "x".repeat(bytes - overhead) });
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut submission = submission_for(&step, "done");
    submission.result.data = Some(of_size(MAX_RESULT_BYTES + 1).into());
    assert_eq!(
        code(harness.submit(submission.clone()).await),
        "invalid_input"
    );
    submission.result.data = Some(of_size(MAX_RESULT_BYTES).into());
    submission.result.report = Some(of_size(MAX_RESULT_BYTES).into());
    harness.submit(submission).await.unwrap();
    let stored = harness.step_result(plan.id, 0).await;
    assert_eq!(stored.data, Some(of_size(MAX_RESULT_BYTES).into()));
}

async fn accepts_64_nesting_levels_and_rejects_65(harness: &Harness) {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "in": inner }));
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut submission = submission_for(&step, "done");
    submission.result.data = Some(nested(65).into());
    assert_eq!(
        code(harness.submit(submission.clone()).await),
        "invalid_input"
    );
    submission.result.data = Some(nested(64).into());
    harness.submit(submission).await.unwrap();
    let exported = harness.engine.export(&harness.me, plan.id).await.unwrap();
    let text = exported.to_string();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), exported);
}

on_both_databases![
    a_confidence_round_trips_bit_for_bit,
    a_negative_zero_confidence_is_stored_as_zero,
    rejects_confidences_out_of_range,
    numbers_in_result_data_round_trip,
    accepts_result_data_of_one_mebibyte_and_rejects_one_byte_more,
    accepts_64_nesting_levels_and_rejects_65,
];
