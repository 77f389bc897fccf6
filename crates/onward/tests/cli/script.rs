//! Runs transcripts again, and compares.
//!
//! A line that begins with `$ ` is a command for `sh`, in a directory of its own; `{name}` in it is an
//! id of the scene, `{fixtures}` the folder of saved sessions. What follows is its answer: standard output as it is, standard error behind `! `,
//! and `[code]` where that is not 0. Lines that begin with `#` before the first command are kept.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onward_testbed::Cluster;

use crate::redact::redact;
use crate::scene::Scene;

fn path(name: &str) -> PathBuf {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/scripts");
    scripts.join(name).with_extension("txt")
}

/// A shell in the scene's directory, in which `onward` is the binary.
pub(crate) fn shell(scene: &Scene, command: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_onward"));
    let folder = binary.parent().expect("it lies in a folder");
    let path = format!(
        "{}:{}",
        folder.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(&scene.folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", scene.folder.join("home"))
        .env("USER", "alice")
        .env("ONWARD_DATABASE", &scene.database)
        .stdin(Stdio::null());
    shell
}

/// The transcript of the commands in a script.
fn transcript(scene: &Scene, script: &str) -> String {
    let mut transcript = String::new();
    for line in script.lines().take_while(|line| line.starts_with('#')) {
        let _ = writeln!(transcript, "{line}");
    }
    for command in script.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/transcript");
        let mut given = command.replace("{fixtures}", fixtures);
        for (name, id) in &scene.names {
            given = given.replace(&format!("{{{name}}}"), id);
            // The beginning of a plan's id, as people type it.
            let short: String = id.chars().take(8).collect();
            given = given.replace(&format!("{{{name}:8}}"), &short);
        }
        let run = shell(scene, &given).output().expect("a shell starts");
        let _ = writeln!(transcript, "\n$ {command}");
        transcript.push_str(&told(scene, &run.stdout, ""));
        transcript.push_str(&told(scene, &run.stderr, "! "));
        let code = run.status.code();
        if code != Some(0) {
            let _ = writeln!(
                transcript,
                "[{}]",
                code.map_or("killed".to_owned(), |code| code.to_string())
            );
        }
    }
    transcript
}

fn told(scene: &Scene, bytes: &[u8], margin: &str) -> String {
    let mut text = String::from_utf8(bytes.to_vec()).expect("what is printed is UTF-8");
    for (name, id) in &scene.names {
        text = text.replace(id.as_str(), &format!("{{{name}}}"));
    }
    let folder = scene.folder.to_str().expect("the path is UTF-8");
    text = text.replace(folder, "{folder}");
    if scene.is_server() {
        text = text.replace(&scene.database, "{database}");
    }
    let text = redact(&text);
    text.lines().fold(String::new(), |mut told, line| {
        let _ = writeln!(told, "{}", format!("{margin}{line}").trim_end());
        told
    })
}

#[track_caller]
fn compare(name: &str, scene: &Scene) {
    let bless = std::env::var_os("ONWARD_BLESS").is_some();
    // The file's words are the ones that the server has to repeat.
    compare_or(name, scene, bless && !scene.is_server());
}

#[track_caller]
fn compare_or(name: &str, scene: &Scene, bless: bool) {
    let script = std::fs::read_to_string(path(name)).expect("the script is there");
    let said = transcript(scene, &script);
    if bless {
        std::fs::write(path(name), &said).expect("the script can be written");
        return;
    }
    let differs = (1..)
        .zip(said.lines())
        .zip(script.lines().map(Some).chain(std::iter::repeat(None)))
        .find(|((_, said), script)| Some(*said) != *script);
    assert!(
        said == script,
        "`{name}.txt` says something else; the first line that differs: {differs:#?}\n\
         If that is meant: ONWARD_BLESS=1 cargo test -p onward --test cli\n\n{said}"
    );
}

/// On a file.
#[track_caller]
fn on_sqlite(name: &str) {
    compare(name, &Scene::empty(name).with_plans());
}

/// On a server: the same words.
#[track_caller]
fn on_postgres(name: &str) {
    let scene = Scene::empty(&format!("{name}-postgres"));
    compare(name, &scene.on(Cluster::shared().database()).with_plans());
}

#[test]
fn plans_are_listed_shown_and_told() {
    on_sqlite("plans");
}

#[test]
fn plans_read_the_same_on_postgres() {
    on_postgres("plans");
}

#[test]
fn what_comes_next_is_looked_at_and_handed_out() {
    on_sqlite("next");
}

#[test]
fn what_comes_next_reads_the_same_on_postgres() {
    on_postgres("next");
}

#[test]
fn plans_are_resumed_given_up_and_deleted() {
    on_sqlite("changes");
}

#[test]
fn changes_read_the_same_on_postgres() {
    on_postgres("changes");
}

#[test]
fn reviews_are_listed_and_decided() {
    on_sqlite("reviews");
}

#[test]
fn reviews_read_the_same_on_postgres() {
    on_postgres("reviews");
}

#[test]
fn what_was_stored_is_found() {
    on_sqlite("search");
}

#[test]
fn the_same_is_found_on_postgres() {
    on_postgres("search");
}

#[test]
fn a_plan_moves_and_is_read_as_markdown() {
    on_sqlite("moving");
}

#[test]
fn moving_reads_the_same_on_postgres() {
    on_postgres("moving");
}

#[test]
fn the_wire_is_what_it_was() {
    on_sqlite("json");
}

#[test]
fn the_wire_is_the_same_on_postgres() {
    on_postgres("json");
}

#[test]
fn tokens_and_tenants_come_and_go() {
    on_sqlite("access");
}

#[test]
fn access_reads_the_same_on_postgres() {
    on_postgres("access");
}

#[test]
fn a_text_that_wants_to_rule_the_terminal_does_nothing() {
    on_sqlite("hostile");
}

#[test]
fn upkeep_of_a_file() {
    on_sqlite("upkeep");
}

#[test]
fn a_first_start_teaches() {
    compare("empty", &Scene::empty("empty"));
}

#[test]
fn configuration_says_where_it_comes_from() {
    compare("config", &Scene::empty("config"));
}

#[test]
fn a_saved_session_is_checked_and_put_right() {
    compare("transcripts", &Scene::empty("transcripts"));
}

#[test]
fn a_database_that_cannot_be_used_is_told_apart() {
    compare("unusable", &Scene::empty("unusable"));
}

#[test]
fn a_server_refuses_what_is_for_files() {
    let scene = Scene::empty("server").on(Cluster::shared().database());
    let bless = std::env::var_os("ONWARD_BLESS").is_some();
    compare_or("server", &scene.with_plans(), bless);
}

#[test]
fn the_demo_tells_its_story_and_leaves_a_sound_database() {
    compare("demo", &Scene::empty("demo"));
}

#[test]
fn sessions_are_listed_shown_and_switched_off() {
    on_sqlite("sessions");
}

#[test]
fn sessions_read_the_same_on_postgres() {
    on_postgres("sessions");
}
