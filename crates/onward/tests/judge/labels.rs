//! Verdicts beside labels: the table, against sums done by hand.
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

use crate::desk::{Scratch, judge};

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
fn the_table_takes_the_place_of_the_lines() {
    for (rule, rows) in [("default", DEFAULT), ("plain", PLAIN)] {
        let run = judge(&["turns.jsonl", "--labels", "labels.jsonl", "--rule", rule]);
        assert_eq!(run.stdout, format!("{HEAD}{rows}"), "{rule}");
        assert!(
            run.stderr
                .starts_with("warning: labels of turns that are in none of the files: 1\n"),
            "{}",
            run.stderr
        );
        assert_eq!(run.code, Some(0));
    }
}

#[test]
fn with_json_the_verdicts_say_what_they_are_worth_and_the_table_is_talk() {
    let run = judge(&["--json", "turns.jsonl", "--labels", "labels.jsonl"]);
    let outcomes: Vec<_> = run
        .values()
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
fn two_steps_of_grace_and_not_three() {
    let scratch = Scratch::new("grace");
    // The verdict on harbour/true falls at step 7.
    for (from, to, caught, delay, saved) in [
        (9, 11, true, "-2.0", "4"),
        (10, 11, false, "-", "0"),
        (0, 5, true, "7.0", "0"),
        (0, 4, false, "-", "0"),
    ] {
        let label = format!(
            "{{\"id\":\"harbour/true\",\"label\":\"stuck\",\"stuck_from\":{from},\"stuck_to\":{to}}}\n"
        );
        let labels = scratch.file("labels.jsonl", label);
        let run = judge(&["turns.jsonl", "--labels", &labels]);
        let all = run.stdout.lines().last().expect("a row");
        let columns: Vec<_> = all.split_whitespace().collect();
        let expected = if caught { ["1", "0"] } else { ["0", "1"] };
        assert_eq!(columns[2..4], expected, "{all}");
        assert_eq!(columns[10..12], [delay, saved], "{all}");
    }
}

#[test]
fn unclear_turns_that_fire_are_shown_and_count_for_nothing() {
    let run = judge(&[
        "turns.jsonl",
        "--labels",
        "labels.jsonl",
        "--threshold",
        "3",
    ]);
    let all = run.stdout.lines().last().expect("a row");
    assert!(all.ends_with("1/1"), "{all}");
    assert!(
        all.starts_with("all          3      2       1       3         0"),
        "{all}"
    );
}

#[test]
fn labels_that_cannot_be_read_are_an_error_before_anything_is_judged() {
    let run = judge(&["turns.jsonl", "--labels", "gone.jsonl"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "error: `gone.jsonl` does not exist\nhint: check the path\n"
    );
    assert_eq!(run.code, Some(3));

    let scratch = Scratch::new("labels");
    let labels = scratch.file("labels.jsonl", "{\"id\":\"a\",\"label\":\"stuck\"}\n");
    let run = judge(&["turns.jsonl", "--labels", &labels]);
    assert!(
        run.stderr
            .starts_with(&format!("error: `{labels}`, line 1: not a label: ")),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn a_table_that_lacks_a_file_is_not_printed() {
    let run = judge(&["turns.jsonl", "gone.jsonl", "--labels", "labels.jsonl"]);
    assert_eq!(run.stdout, "");
    assert_eq!(run.code, Some(3));
}
