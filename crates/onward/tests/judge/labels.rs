//! Scores with labels, compared with manually computed values.
//!
//! | turn | label | default rule | plain rule |
//! |---|---|---|---|
//! | harbour/true | stuck 0 to 11 | 7: caught, saves 4 | 7: caught, saves 4 |
//! | harbour/reading | healthy | left alone | left alone |
//! | harbour/edits | healthy | left alone | 8: disturbed |
//! | lagoon/four | unclear | quiet | quiet |
//! | lagoon/writing | healthy | left alone | left alone |
//! | lagoon/again | stuck 12 to 19 | 8: outside | 8: outside |
//! | lagoon/refused | stuck 0 to 9 | 8: caught, saves 1 | 7: caught, saves 2 |
//! | lagoon/gone | stuck | not in the file | not in the file |

use onward_testbed::TestDir;

use crate::harness::{file, judge};

const HEAD: &str = "source   stuck caught outside healthy disturbed  precision recall    F1  \
                    per 1,000  delay  saved  share  unclear\n";

const DEFAULT: &str = "\
harbour      1      1       0       2         0      1.000  1.000 1.000        0.0    7.0      4  0.333      0/0
lagoon       2      1       1       1         0      0.500  0.500 0.500        0.0    8.0      1  0.056      0/1
all          3      2       1       3         0      0.667  0.667 0.667        0.0    7.5      5  0.167      0/1
";

const PLAIN: &str = "\
harbour      1      1       0       2         1      0.500  1.000 0.667      500.0    7.0      4  0.333      0/0
lagoon       2      1       1       1         0      0.500  0.500 0.500        0.0    7.0      2  0.111      0/1
all          3      2       1       3         1      0.500  0.667 0.571      333.3    7.0      6  0.200      0/1
";

#[test]
fn prints_a_table_instead_of_lines() {
    for (rule, rows) in [("default", DEFAULT), ("plain", PLAIN)] {
        let run = judge(&["turns.jsonl", "--labels", "labels.jsonl", "--rule", rule]);
        assert_eq!(run.stdout, format!("{HEAD}{rows}"), "{rule}");
        let warning = run.stderr.lines().next().expect("warning printed");
        assert!(
            warning.starts_with("warning: ") && warning.ends_with(": 1"),
            "{}",
            run.stderr
        );
        assert_eq!(run.code, Some(0));
    }
}

#[test]
fn with_json_adds_the_outcome_and_prints_the_table_on_standard_error() {
    let run = judge(&["--json", "turns.jsonl", "--labels", "labels.jsonl"]);
    let outcomes: Vec<_> = run
        .json_lines()
        .iter()
        .map(|row| row["outcome"].as_str().map(str::to_owned))
        .collect();
    let expected = [
        Some("caught"),
        Some("left_alone"),
        Some("left_alone"),
        Some("unclear_quiet"),
        Some("left_alone"),
        Some("outside"),
        Some("caught"),
        None,
    ];
    assert_eq!(outcomes, expected.map(|outcome| outcome.map(str::to_owned)));
    assert!(
        run.stderr.starts_with(&format!("{HEAD}{DEFAULT}")),
        "{}",
        run.stderr
    );
}

#[test]
fn tolerates_two_steps_outside_the_label() {
    let dir = TestDir::new("tolerance");
    // The verdict on harbour/true is at step 7.
    for (from, to, caught, delay, saved) in [
        (9, 11, true, "-2.0", "4"),
        (10, 11, false, "-", "0"),
        (0, 5, true, "7.0", "0"),
        (0, 4, false, "-", "0"),
    ] {
        let label = format!(
            "{{\"id\":\"harbour/true\",\"label\":\"stuck\",\"stuck_from\":{from},\"stuck_to\":{to}}}\n"
        );
        let labels = file(&dir, "labels.jsonl", label);
        let run = judge(&["turns.jsonl", "--labels", &labels]);
        let all = run.stdout.lines().last().expect("table row");
        let columns: Vec<_> = all.split_whitespace().collect();
        let expected = if caught { ["1", "0"] } else { ["0", "1"] };
        assert_eq!(columns[2..4], expected, "{all}");
        assert_eq!(columns[10..12], [delay, saved], "{all}");
    }
}

#[test]
fn prints_unclear_turns_without_counting_them() {
    let run = judge(&[
        "turns.jsonl",
        "--labels",
        "labels.jsonl",
        "--threshold",
        "3",
    ]);
    let all = run.stdout.lines().last().expect("table row");
    assert!(all.ends_with("1/1"), "{all}");
    assert!(
        all.starts_with("all          3      2       1       3         0"),
        "{all}"
    );
}

#[test]
fn rejects_unreadable_labels_before_judging() {
    let run = judge(&["turns.jsonl", "--labels", "missing.jsonl"]);
    assert_eq!(run.stdout, "");
    assert!(
        run.stderr.starts_with("error: `missing.jsonl`"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(3));

    let dir = TestDir::new("labels");
    let labels = file(&dir, "labels.jsonl", "{\"id\":\"a\",\"label\":\"stuck\"}\n");
    let run = judge(&["turns.jsonl", "--labels", &labels]);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{labels}`, line 1: ")),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn prints_no_table_if_a_file_is_missing() {
    let run = judge(&["turns.jsonl", "missing.jsonl", "--labels", "labels.jsonl"]);
    assert_eq!(run.stdout, "");
    assert_eq!(run.code, Some(3));
}
