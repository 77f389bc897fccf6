//! Properties for arbitrary sources and results, and equivalence with the `cel` crate.

use proptest::prelude::*;

use super::*;
use std::collections::HashMap;
use std::fmt::Write;

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-5i64..5).prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "[a-cé\"\\\\\n\u{1}]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::btree_map("[a-e]", inner, 0..6)
                .prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

/// Random sequences of tokens.
fn token_sequences() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a",
        "b",
        "result",
        "step.order",
        "confidence",
        "resultSummary",
        "x",
        "1",
        "2u",
        "0.5",
        "'a'",
        "\"é\"",
        "true",
        "null",
        "in",
        "has",
        "size",
        "all",
        "exists",
        "map",
        "filter",
        "matches",
        "contains",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        ":",
        "?",
        "==",
        "===",
        "!==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        " ",
        "\n",
        "// c\n",
        "result.a",
        "a.all(x, x)",
        "a.map(x, [x])",
        "size(a)",
        "has(a.b)",
        "a[0]",
        "=",
        "'",
        "\\",
        "0x",
        "r'",
        "int(",
        "&",
        "a.matches('",
        "(a",
        "b)",
        "'a' in",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

/// Generates a condition from random numbers. Without numbers it chooses the shortest form.
struct Generator<'t> {
    numbers: std::slice::Iter<'t, u8>,
    inside: bool,
}

impl Generator<'_> {
    fn choose(&mut self, count: u8) -> u8 {
        self.numbers.next().map_or(0, |number| number % count)
    }

    fn choose_text(&mut self, options: &[&str]) -> String {
        let index = self.choose(u8::try_from(options.len()).unwrap());
        options[usize::from(index)].to_owned()
    }

    fn comparison(&mut self, left: String, right: String) -> String {
        let sign = self.choose_text(&["==", "!=", "<", "<=", ">", ">="]);
        format!("({left} {sign} {right})")
    }

    /// `list.name(x, body)`, or `None` inside another comprehension.
    fn comprehension(
        &mut self,
        name: &str,
        depth: u8,
        body: fn(&mut Self, u8) -> String,
    ) -> Option<String> {
        if self.inside {
            return None;
        }
        let list = self.list(depth - 1);
        self.inside = true;
        let body = body(self, depth - 1);
        self.inside = false;
        Some(format!("{list}.{name}(x, {body})"))
    }

    fn boolean(&mut self, depth: u8) -> String {
        let leaf = &[
            "true",
            "false",
            "b",
            "has(result.t)",
            "has(o.z)",
            "missing",
            "o.z == 1",
        ];
        if depth == 0 {
            return self.choose_text(leaf);
        }
        let d = depth - 1;
        match self.choose(15) {
            0 => self.choose_text(leaf),
            1 => format!("!{}", self.boolean(d)),
            2 => format!("({} && {})", self.boolean(d), self.boolean(d)),
            3 => format!("({} || {})", self.boolean(d), self.boolean(d)),
            4 => format!(
                "({} ? {} : {})",
                self.boolean(d),
                self.boolean(d),
                self.boolean(d)
            ),
            5 => {
                let (l, r) = (self.int(d), self.int(d));
                self.comparison(l, r)
            }
            6 => {
                let (l, r) = (self.double(d), self.int(d));
                self.comparison(l, r)
            }
            7 => {
                let (l, r) = (self.text(d), self.text(d));
                self.comparison(l, r)
            }
            8 => {
                let name = self.choose_text(&["contains", "startsWith", "endsWith"]);
                format!("{}.{name}({})", self.text(d), self.text(d))
            }
            9 => format!("({} in {})", self.int(d), self.list(d)),
            10 => format!("({} == {})", self.list(d), self.list(d)),
            11 => {
                let pattern =
                    self.choose_text(&["'a'", "'^a*$'", "'[^b]b'", "r'\\d+'", "'(?i)A|é'"]);
                format!("{}.matches({pattern})", self.text(d))
            }
            12 => format!("(o == {{'a': {}}})", self.int(d)),
            13 => format!("({} == {})", self.int(d), self.text(d)),
            _ => {
                let name = self.choose_text(&["all", "exists", "exists_one"]);
                self.comprehension(&name, depth, Self::boolean)
                    .unwrap_or_else(|| "(x > 1)".to_owned())
            }
        }
    }

    fn int(&mut self, depth: u8) -> String {
        if depth == 0 {
            let names: &[&str] = &[
                "0",
                "1",
                "-3",
                "n",
                "result.n",
                "l[0]",
                "l[2]",
                "o.a",
                "step.order",
            ];
            return if self.inside && self.choose(2) == 1 {
                "x".to_owned()
            } else {
                self.choose_text(names)
            };
        }
        let d = depth - 1;
        match self.choose(6) {
            0 => self.int(0),
            1 => {
                let sign = self.choose_text(&["+", "-", "*", "/", "%"]);
                format!("({} {sign} {})", self.int(d), self.int(d))
            }
            2 => format!("-({})", self.int(d)),
            3 => format!("size({})", self.text(d)),
            4 => format!("{}.size()", self.list(d)),
            _ => format!("({} ? {} : {})", self.boolean(d), self.int(d), self.int(d)),
        }
    }

    fn double(&mut self, depth: u8) -> String {
        if depth == 0 {
            return self.choose_text(&["0.0", "1.5", "-2.0", "d", "result.d", "confidence"]);
        }
        let d = depth - 1;
        match self.choose(3) {
            0 => self.double(0),
            1 => {
                let sign = self.choose_text(&["+", "-", "*"]);
                format!("({} {sign} {})", self.double(d), self.double(d))
            }
            _ => format!("double({})", self.int(d)),
        }
    }

    fn text(&mut self, depth: u8) -> String {
        if depth == 0 {
            return self.choose_text(&[
                "'a'",
                "''",
                "'éb'",
                "t",
                "result.t",
                "resultSummary",
                "step.type",
            ]);
        }
        let d = depth - 1;
        match self.choose(3) {
            0 => self.text(0),
            1 => format!("({} + {})", self.text(d), self.text(d)),
            _ => format!("string({})", self.int(d)),
        }
    }

    fn list(&mut self, depth: u8) -> String {
        if depth == 0 {
            return self.choose_text(&["l", "result.l", "[]"]);
        }
        let d = depth - 1;
        let comprehension = match self.choose(5) {
            0 => return self.list(0),
            1 => return format!("[{}, {}]", self.int(d), self.int(d)),
            2 => return format!("({} + {})", self.list(d), self.list(d)),
            3 => self.comprehension("filter", depth, Self::boolean),
            _ => self.comprehension("map", depth, Self::int),
        };
        comprehension.unwrap_or_else(|| "[x]".to_owned())
    }
}

/// A condition whose operators get operands of supported types.
fn generated_conditions() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), 0..60).prop_map(|numbers| {
        let mut generator = Generator {
            numbers: numbers.iter(),
            inside: false,
        };
        generator.boolean(4)
    })
}

/// A result with the keys that the generated conditions read.
fn matching_results() -> impl Strategy<Value = Json> {
    let int = -3i64..4;
    let texts = "[abé1]{0,3}";
    (int.clone(), -2i32..3, texts, prop::collection::vec(int.clone(), 0..4), int, any::<bool>())
        .prop_map(|(n, d, t, l, a, b)| {
            json!({ "n": n, "d": f64::from(d) / 2.0, "t": t, "l": l, "o": { "a": a }, "b": b })
        })
}

fn to_cel(json: &Json) -> cel::Value {
    match json {
        Json::Null => cel::Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(int) => int.into(),
            None => number.as_f64().unwrap().into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(entries) => entries.iter().map(to_cel).collect::<Vec<_>>().into(),
        Json::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.as_str(), to_cel(value)));
            entries.collect::<HashMap<_, _>>().into()
        }
    }
}

/// The result of the `cel` crate, which is the reference.
fn evaluate_with_cel(source: &str, result: &Json) -> Option<bool> {
    let scope = scope(None);
    let mut context = cel::Context::default();
    for (key, value) in result.as_object().unwrap() {
        context.add_variable_from_value(key.as_str(), to_cel(value));
    }
    context.add_variable_from_value("result", to_cel(result));
    context.add_variable_from_value("confidence", scope.confidence.unwrap());
    context.add_variable_from_value("resultSummary", scope.result_summary);
    let step = HashMap::from([
        ("order", cel::Value::from(i64::from(scope.step.order))),
        ("type", scope.step.step_type.into()),
    ]);
    context.add_variable_from_value("step", step);
    let program = cel::Program::compile(source).unwrap_or_else(|e| panic!("{source}: {e}"));
    match program.execute(&context) {
        Ok(cel::Value::Bool(value)) => Some(value),
        Ok(other) => panic!("{source}: {other:?}"),
        Err(_) => None,
    }
}

/// The parser of the `cel` crate needs 100 kB of stack per bracket.
fn with_large_stack<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| {
        let thread = std::thread::Builder::new().stack_size(64 * 1024 * 1024);
        thread.spawn_scoped(threads, run).unwrap().join().unwrap()
    })
}

fn check_invariants(source: &str, result: &Json) -> Result<(), TestCaseError> {
    let Ok(condition) = Condition::parse(source) else {
        return Ok(());
    };
    prop_assert_eq!(condition.source(), source);
    let once = condition.evaluate_metered(&scope(Some(result)));
    let twice = parse(source).evaluate_metered(&scope(Some(result)));
    prop_assert_eq!(&once, &twice);
    prop_assert!(once.1.work <= MAX_WORK && once.1.bytes <= MAX_BYTES);
    if let Err(reason) = once.0 {
        let reason = reason.to_string();
        prop_assert!(!reason.is_empty() && !reason.ends_with('.'), "{}", reason);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_causes_no_panic(source in any::<String>(), result in any_json()) {
        check_invariants(&source, &result)?;
    }

    #[test]
    fn arbitrary_tokens_cause_no_panic(source in token_sequences(), result in any_json()) {
        check_invariants(&source, &result)?;
    }

    #[test]
    fn generated_conditions_parse_and_cause_no_panic(source in generated_conditions(), result in any_json()) {
        prop_assert!(Condition::parse(&source).is_ok_and(|c| c.source() == source));
        check_invariants(&source, &result)?;
    }

    #[test]
    fn a_parse_error_has_a_position_in_the_source(source in token_sequences()) {
        if let Err(error) = Condition::parse(&source) {
            let line = source.split('\n').nth(error.line as usize - 1);
            let length = line.map(|line| line.chars().count());
            prop_assert!(length.is_some_and(|n| error.column as usize <= n + 1), "{}", error);
            prop_assert!(!error.message.ends_with('.'), "{}", error);
        }
    }

    #[test]
    fn accepted_conditions_are_valid_cel(source in token_sequences()) {
        // `cel` rejects `!` and `-` before the same operand.
        let mixed = |s: &str| s.contains("!-") || s.contains("-!") || s.contains("- !") || s.contains("! -");
        if Condition::parse(&source).is_ok() && !mixed(&source.replace('\n', " ")) {
            let with_double = source.replace("===", "== ").replace("!==", "!= ");
            let is_accepted = with_large_stack(|| cel::Program::compile(&with_double).is_ok());
            prop_assert!(is_accepted, "{}", source);
        }
    }

    #[test]
    fn evaluates_like_cel(source in generated_conditions(), result in matching_results()) {
        let ours = evaluate(&source, &result).ok();
        let reference = with_large_stack(|| evaluate_with_cel(&source, &result));
        prop_assert_eq!(ours, reference, "{}", source);
    }

    #[test]
    fn three_equals_signs_do_not_change_the_outcome(source in generated_conditions(), result in matching_results()) {
        let with_triple = source.replace("==", "===").replace("!=", "!==");
        prop_assert_eq!(evaluate(&with_triple, &result), evaluate(&source, &result));
    }
}

#[test]
fn the_size_of_a_result_is_the_length_of_its_json() {
    let mut text = String::new();
    for code in 0..0x300u32 {
        let character = char::from_u32(code).unwrap();
        write!(text, "{character}{}", code).unwrap();
    }
    let numbers = json!([0, -1, u64::MAX, i64::MIN, 0.1, 1e300, -1.5e-7, 1.0, 100.0]);
    let rest = json!({ "a\"\n": [true, false, null, {}, [], { "b": [[1], {}] }], "n": numbers });
    let whole = |filling: usize| json!({ "t": text, "r": rest, "f": "x".repeat(filling) });
    let filling = MAX_EVALUATED_BYTES - whole(0).to_string().len();
    assert_eq!(evaluate("has(result.t)", &whole(filling)), Ok(true));
    assert_eq!(
        evaluate("has(result.t)", &whole(filling + 1)),
        Err(EvaluationError::ResultTooLarge {
            bytes: MAX_EVALUATED_BYTES + 1,
            limit: MAX_EVALUATED_BYTES,
        })
    );
}
