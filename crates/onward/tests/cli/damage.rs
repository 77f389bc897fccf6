//! Databases that are wrong: newer than the program, or changed behind its back.

use std::fmt::Write;

use crate::scene::Scene;
use crate::script::shell;

/// Where SQLite keeps `user_version`: four bytes, the highest first.
const VERSION: usize = 60;

fn run(scene: &Scene, command: &str) -> (String, Option<i32>) {
    let run = shell(scene, command).output().expect("a shell starts");
    let mut text = String::from_utf8(run.stdout).expect("it is UTF-8");
    let _ = write!(text, "{}", String::from_utf8_lossy(&run.stderr));
    (text, run.status.code())
}

/// A copy of the database that is one whole file.
fn copied(test: &str, change: impl FnOnce(&mut Vec<u8>)) -> Scene {
    let scene = Scene::empty(test).with_plans();
    assert_eq!(run(&scene, "onward backup copy.db").1, Some(0));
    let path = scene.folder.join("copy.db");
    let mut bytes = std::fs::read(&path).expect("the copy is there");
    change(&mut bytes);
    std::fs::write(&path, bytes).expect("the copy can be written");
    scene
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let scene = copied("newer", |bytes| bytes[VERSION + 3] = 99);
    for command in [
        "plan list",
        "status",
        "migrate",
        "migrate --check",
        "doctor",
    ] {
        let (text, code) = run(&scene, &format!("onward --database copy.db {command}"));
        assert!(text.contains("schema version 99"), "{command}: {text}");
        assert!(text.contains("this program knows"), "{command}: {text}");
        assert_eq!(code, Some(5), "{command}: {text}");
    }
}

#[test]
fn a_row_that_was_changed_behind_our_back_is_found_by_the_doctor() {
    let marker = b"In two paragraphs.";
    let scene = copied("changed", |bytes| {
        let found = bytes
            .windows(marker.len())
            .position(|window| window == marker);
        bytes[found.expect("the text is in the file")] = b'i';
    });
    let (text, code) = run(&scene, "onward --database copy.db doctor");
    assert!(text.contains("FAULT"), "{text}");
    assert!(text.contains("differs from what the trail says"), "{text}");
    assert_eq!(code, Some(1), "{text}");
    let (json, code) = run(&scene, "onward --quiet --json --database copy.db doctor");
    let answer: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(answer["ok"], false);
    assert_eq!(code, Some(1));
}

#[test]
fn an_index_that_does_not_fit_is_found_and_made_anew() {
    const DAMAGE: &str = "DELETE FROM chunk_signs WHERE tenant_id = 'local'";
    let scene = Scene::empty("unfit").with_plans();
    let (text, code) = run(&scene, "onward doctor");
    assert!(text.contains("ok  search"), "{text}");
    assert_eq!(code, Some(0), "{text}");
    let file = rusqlite::Connection::open(scene.folder.join("onward.db"));
    let damaged = file.expect("it opens").execute(DAMAGE, []);
    assert!(damaged.expect("it can be damaged") > 1);
    let (text, code) = run(&scene, "onward doctor");
    assert!(text.contains("chunks that no model will see"), "{text}");
    assert!(text.contains("hint: `onward reindex`"), "{text}");
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(run(&scene, "onward reindex").1, Some(0));
    assert_eq!(run(&scene, "onward doctor").1, Some(0));
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_a_fault() {
    let scene = Scene::empty("open").with_plans();
    let (text, code) = run(&scene, "chmod 644 onward.db; onward doctor");
    assert!(text.contains("mode 644"), "{text}");
    assert!(text.contains("chmod 600"), "{text}");
    assert_eq!(code, Some(1), "{text}");
}

#[test]
fn a_prefix_that_fits_several_steps_is_wrong_usage() {
    let scene = Scene::empty("ambiguous").with_plans();
    // Ids of steps begin with the time at which they were made.
    let (text, code) = run(&scene, "onward review decide 0 approve");
    assert!(text.contains("more than one id"), "{text}");
    assert_eq!(code, Some(2), "{text}");
}
