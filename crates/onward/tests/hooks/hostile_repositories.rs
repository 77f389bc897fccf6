//! A hook in a hostile repository: the fingerprint runs none of the programs that the repository's
//! configuration names, and still detects changes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use onward_testbed::{git, run_git};

use crate::harness::Harness;

/// A checkout whose configuration names a program that leaves a file for each way of running it.
struct HostileRepository {
    harness: Harness,
    program: PathBuf,
}

impl HostileRepository {
    fn new(test: &str) -> Self {
        let harness = Harness::new(test, "codex");
        let dir = harness.program.dir.path();
        // A filter copies its input; as `ssh` it must end, or git would wait for it.
        let copy = "case $1 in *ssh*) ;; *) cat ;; esac";
        let script = format!("#!/bin/sh\n: > {}/ran-$1\n{copy}\n", dir.display());
        let program = harness.program.dir.write("program", script);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let repository = Self { harness, program };
        repository.set_up();
        repository
    }

    fn set_up(&self) {
        let work = self.harness.work_dir();
        let inner = work.join("inner");
        std::fs::create_dir(&inner).unwrap();
        for folder in [&inner, work] {
            git(folder, &["init", "-q", "-b", "main"]);
            std::fs::write(folder.join("a.txt"), "one\n").unwrap();
            std::fs::write(folder.join("b.txt"), "one\n").unwrap();
            let attributes = "*.txt diff=evil\na.txt filter=evil\nb.txt filter=odd.name\n";
            std::fs::write(folder.join(".gitattributes"), attributes).unwrap();
            git(folder, &["add", "."]);
            git(folder, &["commit", "-q", "-m", "first"]);
        }
        for (folder, prefix) in [(inner.as_path(), "inner-"), (work, "")] {
            let hooks = self.harness.program.dir.join(format!("{prefix}hooks"));
            std::fs::create_dir(&hooks).unwrap();
            for hook in ["post-index-change", "post-checkout", "fsmonitor-watchman"] {
                std::os::unix::fs::symlink(&self.program, hooks.join(hook)).unwrap();
            }
            git(
                folder,
                &["config", "core.hooksPath", hooks.to_str().unwrap()],
            );
            for key in [
                "core.fsmonitor",
                "core.sshCommand",
                "diff.external",
                "diff.evil.textconv",
                "diff.evil.command",
                "filter.evil.clean",
                "filter.odd.name.process",
            ] {
                let command = format!("{} {prefix}{key}", self.program.display());
                git(folder, &["config", key, &command]);
            }
            git(folder, &["config", "filter.evil.required", "true"]);
            // The size stays the same, so git compares the content, which it filters first.
            std::fs::write(folder.join("a.txt"), "two\n").unwrap();
            std::fs::write(folder.join("b.txt"), "two\n").unwrap();
        }
    }

    /// Makes it a partial clone that lacks the tree of its commit.
    fn remove_tree(&self) {
        let work = self.harness.work_dir();
        for (key, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", "ssh://127.0.0.1/x"),
        ] {
            git(work, &["config", key, value]);
        }
        let tree = git(work, &["rev-parse", "HEAD^{tree}"]);
        let (folder, name) = tree.trim().split_at(2);
        let object = work.join(".git/objects").join(folder).join(name);
        std::fs::remove_file(object).unwrap();
    }

    /// The ways in which the program ran so far.
    fn runs(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.harness.program.dir.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("ran-")).collect()
    }

    fn status(&self) {
        // It may fail because the filters return nothing.
        run_git(self.harness.work_dir(), &["status", "--porcelain"]);
    }

    /// The last fingerprint of the session, after another step.
    fn judge(&self) -> serde_json::Value {
        self.harness.send("idle");
        let session = self.harness.session();
        let steps = session["turns"][0]["steps"].as_array().unwrap();
        steps.last().unwrap().clone()
    }
}

/// Removes the files of the program's runs, which the setup may have caused.
fn forget_runs(repository: &HostileRepository) {
    for name in repository.runs() {
        std::fs::remove_file(repository.harness.program.dir.join(name)).unwrap();
    }
}

#[test]
fn runs_no_program_of_a_hostile_repository() {
    let repository = HostileRepository::new("hostile-repository");
    forget_runs(&repository);
    repository.harness.send("prompt").assert_empty();
    repository.judge();
    assert_eq!(repository.runs(), [""; 0]);
    // The fingerprint works: a change of a filtered file is progress.
    let is_change =
        |step: &serde_json::Value| step["why"] == onward_core::turn::Progress::Changed.to_string();
    let file = repository.harness.work_dir().join("a.txt");
    let found = (0..50).any(|n| {
        std::fs::write(&file, format!("{n}\n")).unwrap();
        is_change(&repository.judge())
    });
    assert!(found, "the fingerprint did not change");
    assert_eq!(repository.runs(), [""; 0]);
    repository.remove_tree();
    forget_runs(&repository);
    repository.judge();
    assert_eq!(repository.runs(), [""; 0]);
}

#[test]
fn a_plain_git_status_runs_programs_of_the_hostile_repository() {
    let repository = HostileRepository::new("plain-status");
    forget_runs(&repository);
    repository.status();
    let mut runs = repository.runs();
    runs.sort();
    for run in [
        "ran-core.fsmonitor",
        "ran-filter.evil.clean",
        "ran-filter.odd.name.process",
        "ran-inner-core.fsmonitor",
    ] {
        assert!(runs.contains(&run.to_owned()), "{run}: {runs:?}");
    }
    repository.remove_tree();
    repository.status();
    assert!(
        repository
            .runs()
            .contains(&"ran-core.sshCommand".to_owned())
    );
}
