//! Numbers come back as they were sent, and results of the greatest size fit.

use onward_core::policy::MAX_RESULT_BYTES;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, result};

async fn a_confidence_comes_back_to_the_last_bit(desk: &Desk) {
    for confidence in [
        0.0,
        1.0,
        0.1 + 0.2,
        1.0 / 3.0,
        f64::MIN_POSITIVE,
        5e-324,
        1.0 - 1e-16,
    ] {
        let plan = desk.plan(1).await;
        let step = desk.take(plan.id).await;
        let mut submission = result(&step, "done");
        submission.result.confidence = Some(confidence);
        desk.submit(submission.clone()).await.unwrap();
        let kept = desk.result_of(plan.id, 0).await.confidence.unwrap();
        assert_eq!(kept.to_bits(), confidence.to_bits(), "{confidence:e}");
        desk.submit(submission)
            .await
            .expect("it is the same one again");
    }
}

async fn a_negative_zero_is_a_zero(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let mut submission = result(&step, "done");
    submission.result.confidence = Some(-0.0);
    desk.submit(submission.clone()).await.unwrap();
    let document = crate::verbs::document(&desk.engine, &desk.me, plan.id).await;
    let shown = document["steps"][0]["confidence"].to_string();
    // One text on both databases: `-0.0` on one of them would be a difference.
    assert_eq!(shown, "0.0");
    desk.submit(submission)
        .await
        .expect("it is the same one again");
}

async fn confidences_out_of_range_are_refused(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    for confidence in [-5e-324, 1.0 + f64::EPSILON, f64::NAN, f64::INFINITY, -1.0] {
        let mut submission = result(&step, "done");
        submission.result.confidence = Some(confidence);
        assert_eq!(
            code(desk.submit(submission).await),
            "invalid_input",
            "{confidence}"
        );
    }
}

async fn numbers_inside_of_a_result_come_back_equal(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
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
    let mut submission = result(&step, "done");
    submission.result.data = Some(sent.clone());
    submission.result.report = Some(sent.clone());
    desk.submit(submission.clone()).await.unwrap();
    let kept = desk.result_of(plan.id, 0).await;
    // As texts: `1` and `1.0` are not the same to everybody.
    let text = |value: &Option<Value>| value.as_ref().unwrap().to_string();
    assert_eq!(text(&kept.data), sent.to_string());
    assert_eq!(text(&kept.report), sent.to_string());
    desk.submit(submission)
        .await
        .expect("it is the same one again");
}

async fn a_result_of_a_mebibyte_fits_and_a_byte_more_does_not(desk: &Desk) {
    let around = json!({ "text": "" }).to_string().len();
    let of_size = |bytes: usize| json!({ "text": "x".repeat(bytes - around) });
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let mut submission = result(&step, "done");
    submission.result.data = Some(of_size(MAX_RESULT_BYTES + 1));
    assert_eq!(code(desk.submit(submission.clone()).await), "invalid_input");
    submission.result.data = Some(of_size(MAX_RESULT_BYTES));
    submission.result.report = Some(of_size(MAX_RESULT_BYTES));
    desk.submit(submission).await.unwrap();
    let kept = desk.result_of(plan.id, 0).await;
    assert_eq!(kept.data, Some(of_size(MAX_RESULT_BYTES)));
}

async fn a_result_is_nested_100_levels_deep_at_most(desk: &Desk) {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "in": inner }));
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let mut submission = result(&step, "done");
    submission.result.data = Some(nested(101));
    assert_eq!(code(desk.submit(submission.clone()).await), "invalid_input");
    submission.result.data = Some(nested(100));
    desk.submit(submission).await.unwrap();
    let exported = desk.engine.export(&desk.me, plan.id).await.unwrap();
    let text = exported.to_string();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), exported);
}

on_both_databases![
    a_confidence_comes_back_to_the_last_bit,
    a_negative_zero_is_a_zero,
    confidences_out_of_range_are_refused,
    numbers_inside_of_a_result_come_back_equal,
    a_result_of_a_mebibyte_fits_and_a_byte_more_does_not,
    a_result_is_nested_100_levels_deep_at_most,
];
