//! The project's `onward.toml`: what it may set before and after `onward trust`.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use onward_testbed::{Program, Run};
use serde_json::{Value, json};

const HOSTILE: &str = "database = \"postgres://127.0.0.1:1/theirs\"\n\
    [loop_control]\nprogress_stall_threshold = 3\n\
    [embeddings]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n\
    [notify]\nwebhook = \"http://127.0.0.1:1/x\"\nsecret = \"0123456789abcdef0123456789abcdef\"\n";
const IGNORED: [&str; 5] = [
    "database",
    "embeddings.url",
    "embeddings.model",
    "notify.webhook",
    "notify.secret",
];

/// A user with an empty configuration, in a project with this file.
struct Project {
    program: Program,
    file: PathBuf,
}

impl Project {
    fn new(test: &str, text: &str) -> Self {
        let program = Program::new(env!("CARGO_BIN_EXE_onward"), test)
            .with_env("ONWARD_DATABASE", "")
            .with_current_dir("project");
        let file = program.dir.write("project/onward.toml", text);
        Self { program, file }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.program.run(arguments)
    }

    /// The configuration, and the lines on standard error.
    fn config(&self) -> (Value, Vec<String>) {
        let run = self.run(&["config", "--json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        (run.json(), run.stderr.lines().map(str::to_owned).collect())
    }

    fn set_mode(&self, path: &std::path::Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn an_untrusted_project_file_sets_thresholds_only() {
    let project = Project::new("untrusted", HOSTILE);
    let (config, warnings) = project.config();
    assert_eq!(config["loopControl"]["progressStallThreshold"]["value"], 3);
    assert_eq!(config["database"]["source"], "default");
    for pointer in ["/embeddings/url", "/embeddings/model", "/notify/webhook"] {
        let setting = config.pointer(pointer).unwrap();
        assert_eq!(setting["value"], Value::Null, "{pointer}");
    }
    assert_eq!(config["notify"]["secret"]["value"], false);
    let ignored = &config["ignored"];
    assert_eq!(ignored["keys"], json!(IGNORED));
    assert_eq!(ignored["reason"], "not_trusted");
    let [warning] = &warnings[..] else {
        panic!("one warning expected: {warnings:?}");
    };
    for part in IGNORED.iter().chain(&["onward trust"]) {
        assert!(warning.contains(part), "{part}: {warning}");
    }
}

#[test]
fn an_invalid_value_of_an_ignored_key_is_not_an_error() {
    let project = Project::new("untrusted-invalid", "database = 5\n");
    assert_eq!(project.config().0["ignored"]["keys"], json!(["database"]));
}

#[test]
fn harmless_keys_need_no_trust_and_no_warning() {
    let project = Project::new("harmless", "[loop_control]\non_stall = \"warn\"\n");
    let (config, warnings) = project.config();
    assert_eq!(config["loopControl"]["onStall"]["value"], "warn");
    assert_eq!(config["ignored"], Value::Null);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_trusted_project_file_applies_until_it_changes() {
    let project = Project::new("trusted", HOSTILE);
    let trusted = project.run(&["trust", "--json"]).json();
    assert_eq!(trusted["keys"], json!(IGNORED));
    let (config, warnings) = project.config();
    assert_eq!(
        config["embeddings"]["url"]["value"],
        "http://127.0.0.1:1/v1"
    );
    assert_eq!(config["database"]["source"], "file");
    assert_eq!(config["ignored"], Value::Null);
    assert!(warnings.is_empty(), "{warnings:?}");
    let state = || {
        let list = project.run(&["trust", "--list", "--json"]).json();
        assert_eq!(list["files"][0]["file"], project.file.display().to_string());
        list["files"][0]["state"].clone()
    };
    assert_eq!(state(), "trusted");
    std::fs::write(&project.file, format!("{HOSTILE}# changed\n")).unwrap();
    assert_eq!(project.config().0["ignored"]["reason"], "not_trusted");
    assert_eq!(state(), "changed");
    // The same content at another path is not trusted.
    let elsewhere = Project::new("trusted-elsewhere", HOSTILE);
    let records = project.program.dir.join(".local/state/onward/trust");
    let copied = elsewhere.program.dir.join(".local/state/onward/trust");
    std::fs::create_dir_all(&copied).unwrap();
    let record = std::fs::read_dir(&records)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    std::fs::copy(record.path(), copied.join(record.file_name())).unwrap();
    assert_eq!(elsewhere.config().0["ignored"]["reason"], "not_trusted");
}

#[test]
fn trust_is_private_and_can_be_revoked() {
    let project = Project::new("revoked", HOSTILE);
    let path = project.file.to_str().unwrap();
    assert_eq!(project.run(&["trust", path]).code, Some(0));
    let folder = project.program.dir.join(".local/state/onward/trust");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let records: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert_eq!(records.len(), 1);
    for record in records {
        assert_eq!(mode(&record.unwrap().path()), 0o600);
    }
    std::fs::remove_file(&project.file).unwrap();
    let list = project.run(&["trust", "--list", "--json"]).json();
    assert_eq!(list["files"][0]["state"], "missing");
    assert_eq!(project.run(&["trust", "--revoke", path]).code, Some(0));
    assert_eq!(project.run(&["trust", "--revoke", path]).code, Some(3));
    let list = project.run(&["trust", "--list", "--json"]).json();
    assert_eq!(list["files"], json!([]));
}

#[test]
fn ignores_a_project_file_that_other_users_can_change() {
    let project = Project::new("shared", HOSTILE);
    assert_eq!(project.run(&["trust"]).code, Some(0));
    let folder = project.file.parent().unwrap().to_owned();
    let is_ignored = |reason: &str| {
        let (config, warnings) = project.config();
        assert_eq!(config["ignored"]["reason"], reason);
        assert_eq!(config["ignored"]["keys"], json!([]));
        assert_eq!(config["loopControl"]["progressStallThreshold"]["value"], 8);
        assert_eq!(config["files"], json!([]));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(project.run(&["trust"]).code, Some(4));
    };
    for (path, safe_mode) in [(&folder, 0o755), (&project.file, 0o644)] {
        project.set_mode(path, safe_mode | 0o022);
        is_ignored("writable_by_others");
        project.set_mode(path, safe_mode);
        assert_eq!(project.config().0["ignored"], Value::Null);
    }
    // The owner of a directory such as `/tmp` decides who may replace a file in it.
    project.set_mode(&folder, 0o1777);
    assert_eq!(project.config().0["ignored"], Value::Null);
    project.set_mode(&folder, 0o755);
    // Only root can give a file away.
    if chown(&project.file, Some(12_345), None).is_ok() {
        is_ignored("other_owner");
        chown(&project.file, Some(0), None).unwrap();
        chown(&folder, Some(12_345), None).unwrap();
        is_ignored("other_owner");
    }
}

#[test]
fn a_named_file_and_the_users_file_need_no_trust() {
    let project = Project::new("named", HOSTILE);
    let path = project.file.to_str().unwrap();
    let run = project.run(&["--config", path, "config", "--json"]);
    assert_eq!(run.json()["database"]["source"], "file");
    assert_eq!(run.stderr, "");
    let config = project.program.dir.join(".config/onward/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::rename(&project.file, config).unwrap();
    let (config, warnings) = project.config();
    assert_eq!(config["database"]["source"], "file");
    assert!(warnings.is_empty(), "{warnings:?}");
}
