//! Golden transcripts: runs the commands of a script, and compares their output.
//!
//! A line that begins with `$ ` is a command for `sh` in the fixture's directory. In it, `{name}`
//! is an id of the fixture, `{name:8}` its prefix, and `{fixtures}` the directory of saved
//! sessions. The output follows: standard output, standard error with the prefix `! `, and `[code]`
//! if the exit code is not 0. Lines that begin with `#` before the first command are comments.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onward_testbed::{Cluster, golden};

use crate::fixture::Fixture;
use crate::redact::redact;

fn path(name: &str) -> PathBuf {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/scripts");
    scripts.join(name).with_extension("txt")
}

/// A shell in the fixture's directory, with `onward` in its `PATH`.
pub(crate) fn shell(fixture: &Fixture, command: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_onward"));
    let folder = binary.parent().expect("the binary is in a directory");
    let path = format!(
        "{}:{}",
        folder.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(fixture.dir.path())
        .env_clear()
        .env("PATH", path)
        .env("HOME", fixture.dir.join("home"))
        .env("USER", "alice")
        .env("TZ", "UTC")
        .env("ONWARD_DATABASE", &fixture.database)
        .stdin(Stdio::null());
    shell
}

/// Runs the commands of a script, and returns the transcript.
fn transcript(fixture: &Fixture, script: &str) -> String {
    let mut transcript = String::new();
    for line in script.lines().take_while(|line| line.starts_with('#')) {
        let _ = writeln!(transcript, "{line}");
    }
    for command in script.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/transcript");
        let mut expanded = command.replace("{fixtures}", fixtures);
        for (name, id) in &fixture.names {
            expanded = expanded.replace(&format!("{{{name}}}"), id);
            let prefix: String = id.chars().take(8).collect();
            expanded = expanded.replace(&format!("{{{name}:8}}"), &prefix);
        }
        let run = shell(fixture, &expanded)
            .output()
            .expect("the shell starts");
        let _ = writeln!(transcript, "\n$ {command}");
        transcript.push_str(&normalize(fixture, &run.stdout, ""));
        transcript.push_str(&normalize(fixture, &run.stderr, "! "));
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

/// Replaces ids and paths by their names, and adds a margin.
fn normalize(fixture: &Fixture, bytes: &[u8], margin: &str) -> String {
    let mut text = String::from_utf8(bytes.to_vec()).expect("the output is UTF-8");
    for (name, id) in &fixture.names {
        text = text.replace(id.as_str(), &format!("{{{name}}}"));
    }
    let folder = fixture.dir.path().to_str().expect("the path is UTF-8");
    text = text.replace(folder, "{folder}");
    if fixture.is_server() {
        text = text.replace(&fixture.database, "{database}");
        // The headline of the overview names the database.
        text = text.replace("Onward 0.1.0 · {database}", "Onward 0.1.0 · onward.db");
    }
    let text = redact(&text);
    text.lines().fold(String::new(), |mut lines, line| {
        let _ = writeln!(lines, "{}", format!("{margin}{line}").trim_end());
        lines
    })
}

#[track_caller]
fn compare(name: &str, fixture: &Fixture) {
    let script = std::fs::read_to_string(path(name)).expect("the script exists");
    golden::assert_matches(path(name), &transcript(fixture, &script));
}

#[track_caller]
fn on_sqlite(name: &str) {
    compare(name, &Fixture::empty(name).with_plans());
}

#[track_caller]
fn on_postgres(name: &str) {
    // SQLite writes the golden file; PostgreSQL must produce the same output.
    if golden::is_blessing() {
        return;
    }
    let fixture = Fixture::empty(&format!("{name}-postgres"));
    compare(name, &fixture.on(Cluster::shared().database()).with_plans());
}

#[test]
fn lists_and_shows_plans() {
    on_sqlite("plans");
}

#[test]
fn lists_and_shows_plans_on_postgres() {
    on_postgres("plans");
}

#[test]
fn shows_and_claims_the_next_step() {
    on_sqlite("next");
}

#[test]
fn shows_and_claims_the_next_step_on_postgres() {
    on_postgres("next");
}

#[test]
fn resumes_abandons_and_deletes_plans() {
    on_sqlite("changes");
}

#[test]
fn resumes_abandons_and_deletes_plans_on_postgres() {
    on_postgres("changes");
}

#[test]
fn lists_and_decides_reviews() {
    on_sqlite("reviews");
}

#[test]
fn lists_and_decides_reviews_on_postgres() {
    on_postgres("reviews");
}

#[test]
fn shows_releases_and_fails_steps() {
    on_sqlite("steps");
}

#[test]
fn shows_releases_and_fails_steps_on_postgres() {
    on_postgres("steps");
}

#[test]
fn searches_artifacts_and_outputs() {
    on_sqlite("search");
}

#[test]
fn searches_artifacts_and_outputs_on_postgres() {
    on_postgres("search");
}

#[test]
fn exports_and_imports_plans() {
    on_sqlite("export_import");
}

#[test]
fn exports_and_imports_plans_on_postgres() {
    on_postgres("export_import");
}

#[test]
fn creates_plans_from_files_and_templates() {
    on_sqlite("plan_files");
}

#[test]
fn creates_plans_from_files_and_templates_on_postgres() {
    on_postgres("plan_files");
}

#[test]
fn json_output_is_stable() {
    on_sqlite("json");
}

#[test]
fn json_output_is_stable_on_postgres() {
    on_postgres("json");
}

#[test]
fn manages_tokens_and_tenants() {
    on_sqlite("access");
}

#[test]
fn manages_tokens_and_tenants_on_postgres() {
    on_postgres("access");
}

#[test]
fn sanitizes_hostile_text() {
    on_sqlite("hostile");
}

#[test]
fn maintains_an_sqlite_database() {
    on_sqlite("sqlite");
}

#[test]
fn reading_before_the_first_plan_is_not_an_error() {
    // An empty variable counts as unset.
    compare("first_run", &Fixture::empty("first-run").on(String::new()));
}

#[test]
fn an_empty_installation_prints_next_steps() {
    compare("empty", &Fixture::empty("empty"));
}

#[test]
fn shows_the_configuration_and_its_sources() {
    compare("config", &Fixture::empty("config"));
}

#[test]
fn checks_and_repairs_a_saved_session() {
    compare("transcripts", &Fixture::empty("transcripts"));
}

#[test]
fn reports_unusable_databases() {
    compare("unusable", &Fixture::empty("unusable"));
}

#[test]
fn maintains_a_postgres_database() {
    let fixture = Fixture::empty("postgres").on(Cluster::shared().database());
    compare("postgres", &fixture.with_plans());
}

#[test]
fn runs_the_demo_and_leaves_a_valid_database() {
    compare("demo", &Fixture::empty("demo"));
}

#[test]
fn lists_shows_and_switches_sessions() {
    on_sqlite("sessions");
}

#[test]
fn lists_shows_and_switches_sessions_on_postgres() {
    on_postgres("sessions");
}
