//! Numbers: comparison, arithmetic and conversion.

use super::*;

#[test]
fn numbers_of_different_types_compare_by_value() {
    assert_all_true(
        &json!({ "count": 5, "whole": 5.0, "part": 2.5, "big": u64::MAX, "list": [1, 2.0] }),
        &[
            "result.count == 5 && result.count == 5.0 && result.count == 5u",
            "result.whole == 5 && result.count == result.whole",
            "result.count > 2.5 && result.part < 3 && 3u > result.part",
            "confidence < 1 && confidence >= 0 && !(confidence >= 1)",
            "big == 18446744073709551615u && big > 0 && -1 < big",
            "list == [1.0, 2u] && 1.0 in list && 2 in list && !(3 in list)",
            "{1: 'a'} == {1u: 'a'} && {1: 'a'}[1.0] == 'a'",
            "list[1.0] == 2 && list[0u] == 1",
            // Different values that become equal after rounding to a double.
            "9007199254740993 != 9007199254740992.0",
            "9223372036854775807 < 9223372036854775808.0",
            "big < 18446744073709551616.0",
            "-9223372036854775808 == -9223372036854775808.0",
            "0x10 == 16 && 0xFFu == 255 && 1e3 == 1000 && .5 == 0.5 && 1.5e-1 == 0.15",
        ],
    );
}

#[test]
fn integers_and_doubles_can_be_mixed_in_arithmetic() {
    assert_all_true(
        &json!({ "done": 1, "total": 2, "score": 1 }),
        &[
            "score * 0.5 == 0.5 && 0.5 + score == 1.5 && score - 0.5 == 0.5",
            "1.0 * done / total == 0.5 && double(done) / total == 0.5",
            "done / total == 0 && 7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1",
            "3u - 1u == 2 && 1u - 2 == -1 && -(2u) == -2",
            "1.0 / 0.0 > 1e308 && !(0.0 / 0.0 < 1.0) && 0.0 / 0.0 != 0.0 / 0.0",
        ],
    );
}

#[test]
fn overflow_and_division_by_zero_are_arithmetic_errors() {
    let result = json!({});
    let errors = [
        "9223372036854775807 + 1 > 0",
        "-9223372036854775808 - 1 < 0",
        "-(-9223372036854775808) > 0",
        "1u - 2u < 0",
        "9223372036854775807 * 9223372036854775807 > 0",
        "-9223372036854775808 / -1 > 0",
        "1 / 0 == 0",
        "1 % 0 == 0",
    ]
    .map(|source| (source, evaluation_error(source, &result)));
    for (source, error) in &errors {
        assert!(
            matches!(error, EvaluationError::Arithmetic { .. }),
            "{source}"
        );
    }
    assert_golden("arithmetic", errors);
    assert!(evaluate("1.5 % 1.0 == 0.5", &result).is_err());
}

#[test]
fn conversions_follow_cel() {
    assert_all_true(
        &json!({}),
        &[
            "int(2.9) == 2 && int(-2.9) == -2 && int('-5') == -5 && int(5u) == 5",
            "uint(2.9) == 2u && uint('5') == 5u && double('1.5') == 1.5 && double(2) == 2.0",
            "string(5) == '5' && string(1.5) == '1.5' && string(true) == 'true'",
            "bool('true') && !bool('F'.size() == 1 ? 'false' : 'true') && bool(true)",
            "dyn(1) == 1 && type(dyn(1)) == int && type(1.0) == double && type('') == string",
            "type(null) == null_type && type([]) == list && type({}) == map",
        ],
    );
    for source in [
        "int(1e19) > 0",
        "uint(-1) > 0",
        "int('1.5') > 0",
        "bool('yes')",
        "int(true) == 1",
    ] {
        assert!(evaluate(source, &json!({})).is_err(), "{source}");
    }
}
