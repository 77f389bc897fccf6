//! Tests of the form's values.

use serde_json::json;

use super::entries::Entries;
use super::*;
use crate::web::pages::Fields;

fn entries(fields: &[(&str, &str)]) -> Entries {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    Entries::read(&Fields(fields.iter().map(owned).collect()))
}

const COMPLETE: [(&str, &str); 18] = [
    ("name", "Boats"),
    ("researchQuestion", "Which boat?\r\nAnd why?"),
    ("onStall", "requeue"),
    ("stallThresholdMs", "90"),
    ("steps[0].title", "Offers"),
    ("steps[0].stepType", "search"),
    ("steps[0].instructions", "Find offers."),
    ("steps[1].instructions", "Compare them."),
    ("steps[1].stepType", "custom"),
    ("steps[1].dependsOn", "1"),
    ("steps[2].title", ""),
    ("steps[2].stepType", "custom"),
    ("branchingConditions[0].afterStepOrder", "1"),
    (
        "branchingConditions[0].conditionExpression",
        "confidence < 0.5",
    ),
    ("branchingConditions[0].ifTrueAction", "add_steps"),
    (
        "branchingConditions[0].actionParams.steps[0].instructions",
        "Search again.",
    ),
    (
        "branchingConditions[0].actionParams.steps[0].stepType",
        "search",
    ),
    ("branchingConditions[1].ifTrueAction", "skip_to"),
];

#[test]
fn entries_become_the_arguments_of_the_tool() {
    let mut entries = entries(&COMPLETE);
    entries.remove_blank();
    let arguments = entries.arguments();
    assert_eq!(
        Value::Object(arguments.clone()),
        json!({
            "name": "Boats",
            "researchQuestion": "Which boat?\nAnd why?",
            "onStall": "requeue",
            "stallThresholdMs": 5_400_000,
            "steps": [
                { "title": "Offers", "stepType": "search", "instructions": "Find offers." },
                { "stepType": "custom", "instructions": "Compare them.", "dependsOn": [1] },
            ],
            "branchingConditions": [{
                "afterStepOrder": 1,
                "conditionExpression": "confidence < 0.5",
                "ifTrueAction": "add_steps",
                "actionParams": { "steps": [{ "instructions": "Search again.", "stepType": "search" }] },
            }],
        })
    );
    assert!(PlanFile::from_arguments(arguments).check().is_ok());
}

#[test]
fn removing_a_step_renumbers_the_references() {
    let mut entries = entries(&[
        ("steps[0].instructions", "a"),
        ("steps[1].instructions", "b"),
        ("steps[2].instructions", "c"),
        ("steps[2].dependsOn", "1, 2"),
        ("branchingConditions[0].afterStepOrder", "3"),
        ("branchingConditions[0].actionParams.targetStepOrder", "1"),
    ]);
    entries.remove_step(0);
    let arguments = Value::Object(entries.arguments());
    assert_eq!(arguments["steps"][1]["dependsOn"], json!([1]));
    let branch = &arguments["branchingConditions"][0];
    assert_eq!(branch, &json!({ "afterStepOrder": 2 }));
}

#[test]
fn an_issue_concerns_its_input_only() {
    let issue = |path: &str| FileIssue {
        line: None,
        path: Some(path.to_owned()),
        message: String::new(),
    };
    assert!(concerns(
        &issue("steps[1].dependsOn[0]"),
        "steps[1].dependsOn"
    ));
    assert!(concerns(&issue("steps[1].title"), "steps[1].title"));
    assert!(!concerns(&issue("steps[1].title"), "steps[0].title"));
    assert!(!concerns(&issue("steps[10].title"), "steps[1].title"));
    assert!(!concerns(&issue("names"), "name"));
}
