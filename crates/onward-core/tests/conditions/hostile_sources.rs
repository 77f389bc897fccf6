//! Sources and results designed to overflow the stack of a parser or an interpreter.

use super::*;

/// Runs the test on a thread with a stack of 1 MiB.
fn with_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

/// Repeated tokens and nested brackets up to the maximum source length.
fn sources() -> Vec<String> {
    let repeated = |unit: &str| unit.repeat(MAX_SOURCE_BYTES / unit.len());
    let nested = |open: &str, middle: &str, close: &str| {
        let times = (MAX_SOURCE_BYTES - middle.len()) / (open.len() + close.len());
        format!("{}{middle}{}", open.repeat(times), close.repeat(times))
    };
    let mut sources: Vec<String> = [
        "!",
        "-",
        "(",
        "[",
        "{",
        ")",
        "]",
        "}",
        "a.",
        "a.a.",
        "1+",
        "1+1*",
        "a?a:",
        "a?",
        "a&&",
        "a||",
        "a<",
        "a in ",
        "\"",
        "'",
        "\"\"\"",
        "'a' ",
        "r'",
        "b'",
        "\\",
        "#",
        "`",
        "é",
        "😀",
        "\u{0}",
        "\n",
        "\r",
        "//",
        "// é\n",
        "===",
        "!==",
        "=",
        "&",
        "|",
        ",",
        ":",
        "?",
        ".",
        ".5",
        "1.",
        "1e",
        "0x",
        "9",
        "9u",
        "1e9",
        "f(",
        "size(",
        "has(",
        "has(a.",
        "a.all(x,",
        "a.map(x,",
        "a[",
        "a[0]",
        "{1:",
        "{'a':{",
        "T{a:",
        "a.?b",
        "a ",
        "in ",
        "true ",
        "null",
        "a.matches('(",
        "a.matches('a')||",
        "'\\u",
        "'\\U0010FFFF'+",
        "!-",
        "-!",
        "(a)",
        "[[]],",
    ]
    .iter()
    .map(|unit| repeated(unit))
    .collect();
    sources.extend([
        nested("(", "a", ")"),
        nested("[", "a", "]"),
        nested("{1:", "a", "}"),
        nested("size(", "a", ")"),
        nested("a[", "a", "]"),
        nested("a.contains(", "a", ")"),
        nested("a.all(x,", "x", ")"),
        nested("!(", "a", ")"),
        nested("(a?a:", "a", ")"),
        format!("a.matches('{}')", nested("(", "a", ")").split_off(32)),
        format!("a.matches('{}')", "(?:a?){9}".repeat(200)),
        format!("'{}", "x".repeat(2040)),
        format!("{} == 1", "a".repeat(2040)),
        format!("1{} > 1", "0".repeat(2040)),
        format!("0.{} > 1", "1".repeat(2040)),
        format!("a // {}", "é".repeat(1000)),
    ]);
    sources
}

#[test]
fn hostile_sources_cause_no_panic_or_stack_overflow() {
    with_small_stack(|| {
        let result = json!({ "a": { "a": true }, "f": "x" });
        for source in sources() {
            let mut cut = source.as_str();
            while !cut.is_empty() {
                if let Ok(condition) = Condition::parse(cut) {
                    let _ = condition.evaluate(&scope(Some(&result)));
                }
                cut = &cut[..cut.floor_char_boundary(cut.len() * 3 / 4)];
            }
        }
    });
}

#[test]
fn the_deepest_condition_and_result_need_less_than_1_mib_of_stack() {
    with_small_stack(|| {
        let (levels, height) = (MAX_NESTING as usize - 1, MAX_HEIGHT as usize);
        let deep = (1..MAX_DEPTH).fold(json!([]), |inner, _| json!([inner]));
        let result = json!({ "deep": deep.clone(), "a": { "a": 1 } });
        for source in [
            format!("{}deep == deep{}", "(".repeat(levels), ")".repeat(levels)),
            format!("{}deep{} != deep", "[".repeat(levels), "]".repeat(levels)),
            format!("{}true", "!".repeat(height - 1)),
            format!("{}a", "-".repeat(height - 1)),
            format!("a{}", ".a".repeat(height - 1)),
            format!("a{}", "[0]".repeat(height - 1)),
            format!("{}1 > 0", "1 + ".repeat(height - 2)),
            format!("{}true", "false ? false : ".repeat(levels)),
            format!(
                "{}true{}",
                "!(1 + 1 * 1 == 2 && ".repeat(20),
                ")".repeat(20)
            ),
        ] {
            let condition = parse(&source);
            let _ = condition.evaluate(&scope(Some(&result)));
            drop(condition);
        }
        // A result of maximum depth, compared completely.
        assert_eq!(evaluate("result == result", &deep), Ok(true));
    });
}
