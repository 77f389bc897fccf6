//! Tests of plan files: the documented example, the line of each kind of error, and files that are
//! written and read back.

use onward_core::Code;
use serde_json::{Value, json};

use super::*;

/// The example in the documentation.
fn example() -> &'static str {
    let page = include_str!("../../../../docs/plans.md");
    let rest = page
        .split("````markdown\n")
        .nth(1)
        .expect("the page has an example");
    rest.split("\n````").next().expect("the example ends")
}

fn parse(text: &str) -> PlanFile {
    PlanFile::parse(text).unwrap_or_else(|invalid| panic!("{invalid:?}"))
}

/// The code, and the line and path of each issue.
fn rejected(text: &str) -> (Code, Vec<(usize, String)>) {
    let checked = PlanFile::parse(text).and_then(|file| file.check());
    let invalid = checked.expect_err("the file is invalid");
    let issue = |issue: &FileIssue| {
        let path = issue.path.clone().unwrap_or_default();
        (issue.line.expect("every issue has a line"), path)
    };
    (invalid.code, invalid.issues.iter().map(issue).collect())
}

#[track_caller]
fn assert_rejected(text: &str, code: Code, expected: &[(usize, &str)]) {
    let (actual, issues) = rejected(text);
    let issues: Vec<(usize, &str)> = issues
        .iter()
        .map(|(line, path)| (*line, path.as_str()))
        .collect();
    assert_eq!((actual, issues.as_slice()), (code, expected), "{text}");
}

/// A valid file with these front matter lines and these lines in the block of step 2, at line 15.
fn file(front_matter: &str, fields: &str) -> String {
    format!(
        "+++\n{front_matter}\n+++\n\n# Boats\n\nWhich boat?\n\n## Offers\n\nFind offers.\n\n\
         ## Compare\n```toml\n{fields}\n```\nCompare them.\n"
    )
}

#[test]
fn the_documented_example_has_all_fields() {
    let file = parse(example());
    assert!(file.check().is_ok(), "{:?}", file.check());
    let plan = Value::Object(file.arguments);
    assert_eq!(plan["name"], "Release 2.4");
    assert_eq!(
        plan["researchQuestion"],
        "Is version 2.4 ready for all customers?"
    );
    assert_eq!(plan["stallThresholdMs"], 3_600_000);
    assert_eq!(
        plan["branchingConditions"][0]["actionParams"],
        json!({ "targetStepOrder": 4 })
    );
    let added = &plan["branchingConditions"][1]["actionParams"]["steps"][0];
    assert_eq!(added["title"], "Find the common cause");
    assert_eq!(plan["steps"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        plan["steps"][2],
        json!({
            "title": "Fix the failures",
            "stepType": "custom",
            "dependsOn": [2],
            "stallThresholdMs": 7_200_000,
            "instructions": "Fix each failed migration in a separate commit.\n\n### Limits\n\n\
                             Do not change migrations that are already deployed.",
        })
    );
}

#[test]
fn unknown_fields_have_a_line_and_a_suggestion() {
    for (text, line, meant) in [
        (file("\nonStal = \"mark\"", ""), 3, "onStall"),
        (file("", "dependson = [1]"), 15, "dependsOn"),
        (file("", "\nmaxAtempts = 2"), 16, "maxAttempts"),
    ] {
        let invalid = parse(&text).check().expect_err("the field is unknown");
        let [issue] = invalid.issues.as_slice() else {
            panic!("{invalid:?}");
        };
        assert_eq!(issue.line, Some(line));
        assert!(issue.message.contains(&format!("`{meant}`")), "{issue:?}");
    }
    // A field of every tool call is not a field of a plan.
    assert_rejected(
        &file("maxChars = 5", ""),
        Code::InvalidInput,
        &[(2, "maxChars")],
    );
}

#[test]
fn invalid_values_have_the_line_of_the_field() {
    let valid = file("", "");
    assert!(parse(&valid).check().is_ok());
    for (text, code, line, path) in [
        (
            file("onStall = \"wait\"", ""),
            Code::InvalidInput,
            2,
            "onStall",
        ),
        (
            file("stallThresholdMs = 0", ""),
            Code::InvalidInput,
            2,
            "stallThresholdMs",
        ),
        (
            file("", "dependsOn = 1"),
            Code::InvalidInput,
            15,
            "steps[1].dependsOn",
        ),
        (
            file("", "dependsOn = [\n1,\ntrue]"),
            Code::InvalidInput,
            17,
            "steps[1].dependsOn[1]",
        ),
        (
            file("", "stepType = \"dig\""),
            Code::InvalidInput,
            15,
            "steps[1].stepType",
        ),
        (
            file("", "dependsOn = [\n7]"),
            Code::InvalidDependency,
            16,
            "steps[1].dependsOn[0]",
        ),
        (
            file("", "dependsOn = [2]"),
            Code::InvalidDependency,
            15,
            "steps[1].dependsOn[0]",
        ),
        (
            file(
                "[[branchingConditions]]\nafterStepOrder = 1\nconditionExpression = \"(\"\nifTrueAction = \"fail\"",
                "",
            ),
            Code::InvalidCondition,
            4,
            "branchingConditions[0].conditionExpression",
        ),
        (
            file(
                "[[branchingConditions]]\nafterStepOrder = 9\nconditionExpression = \"true\"\nifTrueAction = \"fail\"",
                "",
            ),
            Code::InvalidStepReference,
            3,
            "branchingConditions[0].afterStepOrder",
        ),
        (
            file(
                "[[branchingConditions]]\nafterStepOrder = 1\nconditionExpression = \"true\"\nifTrueAction = \"skip_to\"",
                "",
            ),
            Code::InvalidInput,
            2,
            "branchingConditions[0].actionParams.targetStepOrder",
        ),
        (
            file(
                "[[branchingConditions]]\nafterStepOrder = 1\nconditionExpression = \"true\"\nifTrueAction = \"add_steps\"\n[[branchingConditions.actionParams.steps]]\nstepType = \"custom\"\ninstructions = \"a\"\ndependsOn = [9]",
                "",
            ),
            Code::InvalidDependency,
            9,
            "branchingConditions[0].actionParams.steps[0].dependsOn[0]",
        ),
    ] {
        assert_rejected(&text, code, &[(line, path)]);
    }
}

#[test]
fn missing_texts_have_the_line_of_their_heading() {
    let text = "# \n\n## A\n\n## B\n\ntext\n";
    assert_rejected(
        text,
        Code::InvalidInput,
        &[
            (1, "name"),
            (1, "researchQuestion"),
            (3, "steps[0].instructions"),
        ],
    );
}

#[test]
fn syntax_errors_have_a_line() {
    let invalid = Code::InvalidInput;
    for (text, line) in [
        ("+++\nname = \"a\"\n", 1),
        ("---\nname: a\n---\n", 1),
        ("+++\nname = \"a\"\nname = \"b\"\n+++\n# C\n", 3),
        ("+++\nonStall = mark\n+++\n# A\n\nB\n\n## C\n\nD\n", 2),
        ("+++\nsteps = []\n+++\n# A\n\nB\n\n## C\n\nD\n", 2),
        ("+++\nname = \"x\"\n+++\n# A\n\nB\n\n## C\n\nD\n", 4),
        ("# A\n\nB\n", 3),
        ("", 1),
        ("A text.\n\n# A\n\nB\n\n## C\n\nD\n", 1),
        ("# A\n\nB\n\n## C\n\nD\n\n# E\n", 9),
        ("# A\n\nB\n\n## C\n\n```toml\ntitle = \"x\"\n```\n\nD\n", 5),
        ("# A\n\nB\n\n## C\n\n```toml\ndependsOn = [\n```\n\nD\n", 8),
        ("{\n  \"name\": \"a\",\n}", 3),
        ("{\n  \"name\": \"a\",\n  \"name\": \"b\"\n}", 3),
    ] {
        assert_rejected(text, invalid, &[(line, "")]);
    }
}

#[test]
fn json_files_have_the_same_fields_and_lines() {
    let from_markdown = parse(example()).arguments;
    let text = serde_json::to_string_pretty(&from_markdown).expect("valid JSON");
    assert_eq!(parse(&text).arguments, from_markdown);
    assert_eq!(parse(&format!("\u{feff}\n{text}")).arguments, from_markdown);
    let text = "{\n\"name\": \"a\",\n\"researchQuestion\": \"b\",\n\"onstal\": 1,\n\"steps\": [\n\
                {\"stepType\": \"custom\", \"instructions\": \"c\"},\n\
                {\"stepType\": \"custom\",\n\"instructions\": 5}\n]}";
    assert_rejected(
        text,
        Code::InvalidInput,
        &[(4, "onstal"), (8, "steps[1].instructions")],
    );
    assert_rejected(
        &text
            .replace("5}", "\"d\", \"dependsOn\": [\n3]}")
            .replace("\"onstal\": 1,", ""),
        Code::InvalidDependency,
        &[(9, "steps[1].dependsOn[0]")],
    );
}

#[test]
fn only_headings_of_the_document_are_steps() {
    let text = "# A\r\n\r\nB\r\n\r\n## C ##\r\n\r\n> ## quoted\r\n\r\n- item\r\n\r\n  ## in a list\r\n\r\n\
                ```\r\n## code\r\n```\r\n\r\nText\r\n---\r\n\r\n### Part\r\n\r\n```toml\r\nx = 1\r\n```\r\n";
    let plan = parse(text).arguments;
    let steps = plan["steps"].as_array().expect("a list");
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0]["title"], "C");
    let instructions = steps[0]["instructions"].as_str().expect("a text");
    assert!(instructions.starts_with("> ## quoted\n"), "{instructions}");
    assert!(
        instructions.ends_with("```toml\nx = 1\n```"),
        "{instructions}"
    );
    assert!(!instructions.contains('\r'));
}

/// Texts that Markdown or TOML could change.
const NASTY: [&str; 22] = [
    "plain",
    "# heading",
    "## heading",
    "text\n\n## heading\n\ntext",
    "text\n---",
    "text\n===\nmore",
    "```\nopen",
    "```toml\nstepType = \"search\"\n```",
    "```toml\nstepType = \"search\"\n```\n\ntext",
    "  indented\n    more",
    "+++\nname = \"x\"\n+++",
    "a\n+++\nb",
    "\"quoted\" \\ \"\"\" '''",
    "trailing #",
    "trailing \\#",
    "a\r\nb",
    "a\tb\u{7f}\u{0}",
    "<!-- open",
    "- list\n\n  ## in it",
    "[a]: http://example.org",
    "````\n```\n````",
    "ends with two spaces  ",
];

#[test]
fn a_written_file_reads_back_unchanged() {
    for text in NASTY {
        for other in ["plain", "## heading", "```\nopen"] {
            let step = |title: &str, text: &str| json!({ "title": title, "instructions": text, "stepType": "search", "dependsOn": [1] });
            let arguments = json!({
                "name": text,
                "researchQuestion": other,
                "planDesignRationale": text,
                "stallThresholdMs": 5,
                "steps": [
                    { "instructions": text, "stepType": "custom" },
                    step(text, other),
                    step(other, text),
                ],
                "branchingConditions": [{
                    "afterStepOrder": 1,
                    "conditionExpression": text,
                    "ifTrueAction": "add_steps",
                    "actionParams": { "steps": [step(text, text)] },
                }],
            });
            let arguments = arguments.as_object().expect("an object");
            let written = to_markdown(arguments);
            let read = PlanFile::parse(&written);
            let read = read.unwrap_or_else(|invalid| panic!("{invalid:?} in\n{written}"));
            assert_eq!(&read.arguments, arguments, "{written}");
        }
    }
}

#[test]
fn a_written_file_uses_headings_and_text() {
    let arguments = parse(example()).arguments;
    let written = to_markdown(&arguments);
    for part in [
        "\n# Release 2.4\n",
        "\n## Fix the failures\n",
        "\n[[branchingConditions]]\n",
    ] {
        assert!(written.contains(part), "{written}");
    }
    assert_eq!(parse(&written).arguments, arguments);
}
