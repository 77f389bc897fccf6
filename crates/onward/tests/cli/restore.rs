//! `onward restore`: a backup replaces the database, and the previous database is kept.

use serde_json::Value;

use crate::fixture::Fixture;
use crate::script::shell;

/// Runs a command with `--json`; returns its output, its error and its exit code.
fn run(fixture: &Fixture, command: &str) -> (Value, Value, Option<i32>) {
    let command = format!("onward --json --quiet {command}");
    let run = shell(fixture, &command).output().expect("the shell starts");
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let error = parse(&run.stderr)["error"].take();
    (parse(&run.stdout), error, run.status.code())
}

fn plan_count(fixture: &Fixture, database: &str) -> usize {
    let (list, _, code) = run(fixture, &format!("--database '{database}' plan list --all"));
    assert_eq!(code, Some(0), "{list}");
    let plans = list["plans"].as_array().or_else(|| list.as_array());
    plans.unwrap_or_else(|| panic!("a list: {list}")).len()
}

#[test]
fn replaces_the_database_and_keeps_the_previous_one() {
    let fixture = Fixture::empty("restore").with_plans();
    assert_eq!(run(&fixture, "backup copy.db").2, Some(0));
    let before = plan_count(&fixture, "onward.db");
    let database = fixture.dir.join("onward.db");
    // A process that was killed leaves its write-ahead log behind: another connection keeps the log
    // from being removed, and the log would overwrite a copy over the file.
    let other = rusqlite::Connection::open(&database).expect("the database opens");
    other
        .query_row("SELECT count(*) FROM plans", [], |row| row.get::<_, i64>(0))
        .expect("plans are counted");
    let (list, _, _) = run(&fixture, "plan list --all");
    let plans = list["plans"].as_array().or_else(|| list.as_array());
    let id = plans.expect("a list")[0]["planId"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(run(&fixture, &format!("plan delete {id} --yes")).2, Some(0));
    assert_eq!(plan_count(&fixture, "onward.db"), before - 1);

    let (_, error, code) = run(&fixture, "restore copy.db");
    assert_eq!(
        (error["code"].as_str(), code),
        (Some("invalid_input"), Some(2))
    );
    assert_eq!(plan_count(&fixture, "onward.db"), before - 1);

    let (restored, error, code) = run(&fixture, "restore copy.db --yes");
    assert_eq!(code, Some(0), "{error}");
    drop(other);
    assert_eq!(plan_count(&fixture, "onward.db"), before);
    let previous = restored["previous"]
        .as_str()
        .expect("the previous database");
    assert!(previous.contains("onward.db.before-restore-"), "{previous}");
    assert_eq!(plan_count(&fixture, previous), before - 1);
    assert_eq!(plan_count(&fixture, "copy.db"), before);
}

#[test]
fn rejects_a_file_that_is_not_a_backup() {
    let fixture = Fixture::empty("no-backup").with_plans();
    let before = plan_count(&fixture, "onward.db");
    fixture.dir.write("letter.db", "This is a text file.\n");
    for (backup, expected) in [("missing.db", 3), ("letter.db", 4), ("onward.db", 4)] {
        let (_, error, code) = run(&fixture, &format!("restore {backup} --yes"));
        assert_eq!(code, Some(expected), "{backup}: {error}");
        assert!(error["hint"].is_string(), "{backup}: {error}");
    }
    assert_eq!(plan_count(&fixture, "onward.db"), before);
}

#[test]
fn a_copy_over_the_database_is_reported_instead_of_undone() {
    let fixture = Fixture::empty("copied-over").with_plans();
    assert_eq!(run(&fixture, "backup copy.db").2, Some(0));
    let before = plan_count(&fixture, "onward.db");
    let database = fixture.dir.join("onward.db");
    let other = rusqlite::Connection::open(&database).expect("the database opens");
    other
        .execute_batch("UPDATE plans SET name = 'changed'")
        .expect("plans are changed");
    let log = fixture.dir.join("onward.db-wal");
    assert!(std::fs::metadata(&log).expect("there is a log").len() > 0);
    std::fs::copy(fixture.dir.join("copy.db"), &database).expect("the file is overwritten");
    let (_, error, code) = run(&fixture, "plan list");
    assert_eq!(
        (error["code"].as_str(), code),
        (Some("unavailable"), Some(5))
    );
    let (_, error, code) = run(&fixture, "restore copy.db --yes");
    assert_eq!(code, Some(0), "{error}");
    drop(other);
    assert_eq!(plan_count(&fixture, "onward.db"), before);
}
