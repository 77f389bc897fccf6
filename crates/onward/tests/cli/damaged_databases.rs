//! Databases with a newer schema, changed rows, a damaged index or wrong permissions.

use serde_json::Value;

use crate::fixture::Fixture;
use crate::script::shell;

/// Where SQLite stores `user_version`: four bytes, big-endian.
const VERSION_OFFSET: usize = 60;

fn exit_code(fixture: &Fixture, command: &str) -> Option<i32> {
    let run = shell(fixture, command).output().expect("the shell starts");
    run.status.code()
}

/// The error of a failing command with `--json`, and its exit code.
fn error(fixture: &Fixture, command: &str) -> (Value, Option<i32>) {
    let run = shell(fixture, command).output().expect("the shell starts");
    let mut response: Value = serde_json::from_slice(&run.stderr).expect("the error is JSON");
    (response["error"].take(), run.status.code())
}

/// The failed checks of a doctor command, as (name, message, hint), and its exit code.
fn failed_checks(fixture: &Fixture, command: &str) -> (Vec<[String; 3]>, Option<i32>) {
    let command = format!("{command} --json --quiet");
    let run = shell(fixture, &command).output().expect("the shell starts");
    let report: Value = serde_json::from_slice(&run.stdout).expect("the report is JSON");
    let checks = report["checks"].as_array().expect("an array of checks");
    let failed: Vec<[String; 3]> = checks
        .iter()
        .filter(|check| check["ok"] == false)
        .map(|check| {
            ["check", "message", "hint"]
                .map(|key| check[key].as_str().expect("a string").to_owned())
        })
        .collect();
    assert_eq!(report["ok"], failed.is_empty());
    (failed, run.status.code())
}

/// A fixture with `copy.db`, a changed copy of its database in a single file.
fn with_changed_copy(test: &str, change: impl FnOnce(&mut Vec<u8>)) -> Fixture {
    let fixture = Fixture::empty(test).with_plans();
    assert_eq!(exit_code(&fixture, "onward backup copy.db"), Some(0));
    let path = fixture.dir.join("copy.db");
    let mut bytes = std::fs::read(&path).expect("the copy exists");
    change(&mut bytes);
    std::fs::write(&path, bytes).expect("the copy is writable");
    fixture
}

#[test]
fn rejects_a_newer_schema() {
    let fixture = with_changed_copy("newer", |bytes| bytes[VERSION_OFFSET + 3] = 99);
    for command in ["plan list", "status", "migrate", "migrate --check"] {
        let command = format!("onward --json --database copy.db {command}");
        let (error, code) = error(&fixture, &command);
        assert_eq!(error["code"], "unavailable", "{command}: {error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("99"), "{command}: {message}");
        assert_eq!(code, Some(5), "{command}");
    }
    let (failed, code) = failed_checks(&fixture, "onward --database copy.db doctor");
    let [[check, message, _]] = &failed[..] else {
        panic!("expected one failed check, got {failed:?}");
    };
    assert_eq!(check, "schema");
    assert!(message.contains("99"), "{message}");
    assert_eq!(code, Some(5));
}

#[test]
fn doctor_finds_a_row_that_differs_from_the_audit_trail() {
    let text = b"In two paragraphs.";
    let fixture = with_changed_copy("changed", |bytes| {
        let position = bytes.windows(text.len()).position(|window| window == text);
        bytes[position.expect("the file contains the text")] = b'i';
    });
    let (failed, code) = failed_checks(&fixture, "onward --database copy.db doctor");
    assert!(
        failed.iter().any(|[check, ..]| check == "plans"),
        "{failed:?}"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn doctor_finds_a_damaged_search_index_and_reindex_repairs_it() {
    const DAMAGE: &str = "DELETE FROM chunk_signs WHERE tenant_id = 'local'";
    let fixture = Fixture::empty("index").with_plans();
    assert_eq!(
        failed_checks(&fixture, "onward doctor"),
        (Vec::new(), Some(0))
    );
    let database = rusqlite::Connection::open(fixture.dir.join("onward.db"));
    let deleted = database
        .expect("the database opens")
        .execute(DAMAGE, [])
        .expect("the rows are deleted");
    assert!(deleted > 1);
    let (failed, code) = failed_checks(&fixture, "onward doctor");
    let [[check, _, hint]] = &failed[..] else {
        panic!("expected one failed check, got {failed:?}");
    };
    assert_eq!(check, "search");
    assert!(hint.contains("`onward reindex`"), "{hint}");
    assert_eq!(code, Some(1));
    assert_eq!(exit_code(&fixture, "onward reindex"), Some(0));
    assert_eq!(exit_code(&fixture, "onward doctor"), Some(0));
}

#[test]
fn doctor_finds_a_missing_trigger_and_a_missing_index() {
    let fixture = Fixture::empty("schema").with_plans();
    let database = rusqlite::Connection::open(fixture.dir.join("onward.db"));
    let database = database.expect("the database opens");
    let drop = "DROP TRIGGER events_reject_update; DROP INDEX plans_ended";
    database.execute_batch(drop).expect("the objects exist");
    let (failed, code) = failed_checks(&fixture, "onward doctor");
    let checks: Vec<&str> = failed.iter().map(|[check, ..]| check.as_str()).collect();
    assert_eq!(checks, ["schema", "schema"], "{failed:?}");
    assert!(failed[0][1].contains("plans_ended"), "{failed:?}");
    assert!(failed[1][1].contains("events_reject_update"), "{failed:?}");
    assert_eq!(code, Some(1));
}

#[test]
fn doctor_shows_ten_problems_and_their_number() {
    let fixture = Fixture::empty("many-problems").with_plans();
    let database = rusqlite::Connection::open(fixture.dir.join("onward.db"));
    let database = database.expect("the database opens");
    // Each plan gets nine copies without an audit trail.
    let copy = "CREATE TEMP TABLE copy AS SELECT * FROM plans; \
        UPDATE copy SET plan_id = randomblob(16), name = 'copy'; \
        INSERT INTO plans SELECT * FROM copy";
    database.execute_batch(copy).expect("the plans are copied");
    for _ in 0..8 {
        let again =
            "UPDATE copy SET plan_id = randomblob(16); INSERT INTO plans SELECT * FROM copy";
        database.execute_batch(again).expect("the plans are copied");
    }
    let (failed, code) = failed_checks(&fixture, "onward doctor");
    assert!(
        failed.iter().all(|[check, ..]| check == "plans"),
        "{failed:?}"
    );
    assert_eq!(code, Some(1));
    let copies = database.query_row(
        "SELECT count(*) FROM plans WHERE name = 'copy'",
        [],
        |row| row.get::<_, i64>(0),
    );
    let copies = copies.expect("the plans are counted");
    assert!(copies > 20 && failed.len() < 20, "{failed:?}");
    let last = &failed.last().expect("a failed check")[1];
    assert!(last.starts_with(&format!("{copies} ")), "{failed:?}");
}

#[cfg(unix)]
#[test]
fn doctor_finds_a_file_that_other_users_can_read() {
    let fixture = Fixture::empty("permissions").with_plans();
    assert_eq!(exit_code(&fixture, "chmod 644 onward.db"), Some(0));
    let (failed, code) = failed_checks(&fixture, "onward doctor");
    let [[check, message, hint]] = &failed[..] else {
        panic!("expected one failed check, got {failed:?}");
    };
    assert_eq!(check, "permissions");
    assert!(message.contains("644"), "{message}");
    assert_eq!(hint, "chmod 600 'onward.db'");
    assert_eq!(code, Some(1));
}

#[test]
fn doctor_reports_another_version_that_uses_the_database() {
    let fixture = Fixture::empty("versions").with_plans();
    let path = fixture.dir.join("onward.db-version-9.9.9");
    let other = std::fs::File::create_new(&path).expect("the file is new");
    assert_eq!(
        exit_code(&fixture, "chmod 600 onward.db-version-9.9.9"),
        Some(0)
    );
    other.lock_shared().expect("the file is locked");
    let (failed, code) = failed_checks(&fixture, "onward doctor");
    let [[check, message, _]] = &failed[..] else {
        panic!("expected one failed check, got {failed:?}");
    };
    assert_eq!(check, "versions");
    assert!(
        message.contains("9.9.9") && message.contains(env!("CARGO_PKG_VERSION")),
        "{message}"
    );
    assert_eq!(code, Some(1));
    drop(other);
    assert_eq!(
        failed_checks(&fixture, "onward doctor"),
        (Vec::new(), Some(0))
    );
}

#[test]
fn rejects_an_ambiguous_prefix() {
    let fixture = Fixture::empty("ambiguous").with_plans();
    // A plan has steps with adjacent ids.
    let step = fixture.names.iter().find(|(name, _)| name == "tides-2");
    let (_, id) = step.expect("the step has a name");
    let command = format!("onward --json review decide {} approve", &id[..3]);
    let (error, code) = error(&fixture, &command);
    assert_eq!(error["code"], "invalid_input", "{error}");
    assert_eq!(code, Some(2), "{error}");
}
