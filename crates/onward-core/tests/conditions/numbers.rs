//! Numbers: how they compare, what they make, what they become.

use super::*;

#[test]
fn they_compare_by_value_however_they_are_written() {
    all_true(
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
            // Neighbours that a rounded comparison would hold to be equal.
            "9007199254740993 != 9007199254740992.0",
            "9223372036854775807 < 9223372036854775808.0",
            "big < 18446744073709551616.0",
            "-9223372036854775808 == -9223372036854775808.0",
            "0x10 == 16 && 0xFFu == 255 && 1e3 == 1000 && .5 == 0.5 && 1.5e-1 == 0.15",
        ],
    );
}

#[test]
fn mixed_ones_can_be_computed_with() {
    all_true(
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
fn what_has_no_value_is_said() {
    let result = json!({});
    for (source, reason) in [
        (
            "9223372036854775807 + 1 > 0",
            "the result of `+` is too large a number",
        ),
        (
            "-9223372036854775808 - 1 < 0",
            "the result of `-` is too large a number",
        ),
        (
            "-(-9223372036854775808) > 0",
            "the result of `-` is too large a number",
        ),
        ("1u - 2u < 0", "the result of `-` is too large a number"),
        (
            "9223372036854775807 * 9223372036854775807 > 0",
            "too large a number",
        ),
        (
            "-9223372036854775808 / -1 > 0",
            "the result of `/` is too large a number",
        ),
        ("1 / 0 == 0", "`/` by zero"),
        ("1 % 0 == 0", "`%` by zero"),
    ] {
        assert!(why(source, &result).contains(reason), "{source}");
        let tried = tried(source, &result);
        assert!(
            matches!(tried, Err(Unevaluable::Uncomputable { .. })),
            "{source}"
        );
    }
    assert!(tried("1.5 % 1.0 == 0.5", &result).is_err());
}

#[test]
fn conversions_are_those_of_cel() {
    all_true(
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
        assert!(tried(source, &json!({})).is_err(), "{source}");
    }
}
