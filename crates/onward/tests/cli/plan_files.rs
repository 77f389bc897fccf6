//! `onward plan create`, `new` and `template`: the documented example on both databases, templates
//! of project and user, and questions in a terminal. `scripts/plan_files.txt` has the messages.

use std::io::Write;
use std::process::{Output, Stdio};

use onward_testbed::Cluster;
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::script::shell;

/// The example of the documentation.
fn example() -> &'static str {
    let page = include_str!("../../../../docs/plans.md");
    let rest = page.split("````markdown\n").nth(1).expect("an example");
    rest.split("\n````").next().expect("the example ends")
}

fn run(fixture: &Fixture, command: &str) -> Output {
    shell(fixture, command).output().expect("the shell starts")
}

#[track_caller]
fn read(fixture: &Fixture, command: &str) -> Value {
    let run = run(fixture, command);
    assert!(run.status.success(), "{command}: {run:?}");
    serde_json::from_slice(&run.stdout).expect("JSON")
}

fn write(fixture: &Fixture, path: &str, text: &str) {
    let path = fixture.dir.join(path);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("directory created");
    std::fs::write(path, text).expect("file written");
}

fn creates_the_documented_example(fixture: &Fixture) {
    write(fixture, "release.md", example());
    let created = read(fixture, "onward plan create release.md --json");
    assert_eq!(created["name"], "Release 2.4");
    assert_eq!(created["stepCount"], 4);
    let plan = created["planId"].as_str().expect("an id");
    let shown = read(fixture, &format!("onward plan show {plan} --json"));
    assert_eq!(
        shown["researchQuestion"],
        "Is version 2.4 ready for all customers?"
    );
    // The stored plan is the file.
    let arguments = read(fixture, "onward plan create release.md --dry-run --json");
    assert_eq!(
        read(
            fixture,
            &format!("onward plan show {plan} --as-file --json")
        ),
        arguments
    );
    let again = format!("onward plan show {plan} --as-file | onward plan create - --json");
    let again = read(fixture, &again);
    assert_ne!(again["planId"], created["planId"]);
    let plan = again["planId"].as_str().expect("an id");
    assert_eq!(
        read(
            fixture,
            &format!("onward plan show {plan} --as-file --json")
        ),
        arguments
    );
    // The arguments are a file, too.
    let dry_run = "onward plan create release.md --dry-run --json | onward plan create - --json";
    assert_eq!(read(fixture, dry_run)["stepCount"], 4);
}

#[test]
fn the_documented_example_creates_a_plan() {
    creates_the_documented_example(&Fixture::empty("plan-files-example"));
}

#[test]
fn the_documented_example_creates_a_plan_on_postgres() {
    let fixture = Fixture::empty("plan-files-example-postgres");
    creates_the_documented_example(&fixture.on(Cluster::shared().database()));
}

#[test]
fn a_dry_run_and_an_invalid_file_create_nothing() {
    let fixture = Fixture::empty("plan-files-dry-run");
    write(&fixture, "release.md", example());
    assert!(
        run(&fixture, "onward plan create release.md --dry-run")
            .status
            .success()
    );
    write(
        &fixture,
        "wrong.md",
        &example().replace("onStall", "onStal"),
    );
    let wrong = run(&fixture, "onward plan create wrong.md --json");
    assert_eq!(wrong.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&wrong.stderr).expect("JSON");
    assert_eq!(error["error"]["code"], "invalid_input");
    let issue = &error["error"]["details"]["issues"][0];
    assert_eq!(
        (&issue["line"], &issue["path"]),
        (&json!(5), &json!("onStal"))
    );
    assert!(!fixture.dir.join("onward.db").exists());
    assert_eq!(
        run(&fixture, "onward plan create missing.md").status.code(),
        Some(3)
    );
    std::fs::write(fixture.dir.join("bytes.md"), b"# A\n\n\xff\n").expect("file written");
    assert_eq!(
        run(&fixture, "onward plan create bytes.md").status.code(),
        Some(1)
    );
}

#[test]
fn a_file_with_an_idempotency_key_creates_one_plan() {
    let fixture = Fixture::empty("plan-files-key");
    write(
        &fixture,
        "a.md",
        "+++\nidempotencyKey = \"a\"\n+++\n# A\n\nB\n\n## C\n\nD\n",
    );
    let create = || read(&fixture, "onward plan create a.md --json")["planId"].clone();
    assert_eq!(create(), create());
}

#[test]
fn the_approval_of_a_plan_is_part_of_its_file() {
    let fixture = Fixture::empty("plan-files-approval");
    let file = "+++\nrequiresApproval = true\n+++\n# A\n\nB\n\n## C\n\nD\n";
    write(&fixture, "a.md", file);
    let arguments = read(&fixture, "onward plan create a.md --dry-run --json");
    assert_eq!(arguments["requiresApproval"], true);
    let created = read(&fixture, "onward plan create a.md --json");
    let plan = created["planId"].as_str().expect("an id");
    let shown = format!("onward plan show {plan} --as-file --json");
    assert_eq!(read(&fixture, &shown), arguments);
    read(
        &fixture,
        &format!("onward review decide {plan} approve --json"),
    );
    assert_eq!(read(&fixture, &shown), arguments);
}

#[test]
fn inserted_steps_are_left_out_of_the_file() {
    let fixture = Fixture::empty("plan-files-inserted");
    let branch = "[[branchingConditions]]\nafterStepOrder = 1\nconditionExpression = \"true\"\n\
                  ifTrueAction = \"add_steps\"\n[[branchingConditions.actionParams.steps]]\n\
                  stepType = \"search\"\ninstructions = \"more\"";
    write(
        &fixture,
        "a.md",
        &format!("+++\n{branch}\n+++\n# A\n\nB\n\n## C\n\nD\n\n## E\n\nF\n"),
    );
    let arguments = read(&fixture, "onward plan create a.md --dry-run --json");
    let created = read(&fixture, "onward plan create a.md --json");
    let plan = created["planId"].as_str().expect("an id");
    let step = read(&fixture, &format!("onward plan next {plan} --claim --json"));
    let submit = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "submit_step_result",
            "arguments": { "stepId": step["stepId"], "resultSummary": "done" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let submitted = read(&fixture, &format!("echo '{submit}' | onward mcp"));
    assert!(submitted["error"].is_null(), "{submitted}");
    let shown = read(&fixture, &format!("onward plan show {plan} --json"));
    assert_eq!(shown["totalSteps"], 3, "{shown}");
    assert_eq!(
        read(
            &fixture,
            &format!("onward plan show {plan} --as-file --json")
        ),
        arguments
    );
}

#[test]
fn a_template_of_the_project_hides_that_of_the_user() {
    let fixture = Fixture::empty("plan-templates");
    let plan = |name: &str| format!("# {name}\n\nWhy?\n\n## Step\n\nDo it.\n");
    write(&fixture, "work/.git/HEAD", "");
    write(&fixture, "work/src/lib.rs", "");
    write(
        &fixture,
        "work/.onward/plans/release.md",
        &plan("Project release"),
    );
    write(&fixture, "work/.onward/plans/broken.md", "text\n");
    write(
        &fixture,
        "home/.config/onward/plans/release.md",
        &plan("User release"),
    );
    write(
        &fixture,
        "home/.config/onward/plans/weekly.md",
        &plan("Weekly"),
    );
    let list = |folder: &str| {
        let listed = read(
            &fixture,
            &format!("cd {folder} && onward plan template list --json"),
        );
        let row = |row: &Value| [&row["template"], &row["scope"], &row["name"]].map(Value::clone);
        let rows = listed["templates"]
            .as_array()
            .expect("a list")
            .iter()
            .map(row);
        rows.collect::<Vec<_>>()
    };
    assert_eq!(
        list("work/src"),
        [
            [json!("broken"), json!("project"), Value::Null],
            [json!("release"), json!("project"), json!("Project release")],
            [json!("weekly"), json!("user"), json!("Weekly")],
        ]
    );
    assert_eq!(list(".").len(), 2);
    let used = read(
        &fixture,
        "cd work/src && onward plan template use release --name 'Release 7' --json --database ../../a.db",
    );
    assert_eq!(used["name"], "Release 7");
    assert_eq!(used["researchQuestion"], "Why?");
    let missing = run(&fixture, "cd work && onward plan template use relaese");
    assert_eq!(missing.status.code(), Some(3));
    assert_eq!(
        run(&fixture, "cd work && onward plan template use broken")
            .status
            .code(),
        Some(1)
    );
}

/// Answers the questions of a command in a pseudoterminal.
fn answer(fixture: &Fixture, command: &str, answers: &str) -> (bool, String) {
    let mut outer = shell(fixture, "script -qec \"$INNER\" /dev/null");
    let mut child = outer
        .env("INNER", command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(answers.as_bytes())
        .expect("answers written");
    drop(stdin);
    let run = child.wait_with_output().expect("`script` ends");
    (
        run.status.success(),
        String::from_utf8_lossy(&run.stdout).into_owned(),
    )
}

#[test]
fn asks_for_a_plan_in_a_terminal() {
    let fixture = Fixture::empty("plan-new");
    let answers = "Boats\nWhich boat?\nOffers\nsearch\nFind offers.\nThree of them.\n\n\
                   Compare\nunknown\n\nCompare them.\n\n9\n1\n\n";
    let (done, text) = answer(&fixture, "onward plan new", &format!("{answers}y\n"));
    assert!(done, "{text}");
    let plans = read(&fixture, "onward plan list --json");
    let plan = plans["plans"][0]["planId"].as_str().expect("an id");
    let created = read(
        &fixture,
        &format!("onward plan show {plan} --as-file --json"),
    );
    assert_eq!(
        created,
        json!({
            "name": "Boats",
            "researchQuestion": "Which boat?",
            "steps": [
                { "title": "Offers", "stepType": "search", "instructions": "Find offers.\nThree of them." },
                { "title": "Compare", "stepType": "custom", "instructions": "Compare them.", "dependsOn": [1] },
            ],
        })
    );
    let (done, text) = answer(&fixture, "onward plan new --save boats.md", answers);
    assert!(done, "{text}");
    assert_eq!(
        read(&fixture, "onward plan create boats.md --dry-run --json"),
        created
    );
    // An existing file is not overwritten, and nothing is created without a confirmation.
    assert!(!answer(&fixture, "onward plan new --save boats.md", answers).0);
    assert!(!answer(&fixture, "onward plan new", &format!("{answers}n\n")).0);
    assert_eq!(
        read(&fixture, "onward plan list --json")["plans"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(run(&fixture, "onward plan new").status.code(), Some(2));
}
