//! Test harness: a temporary home directory with a project directory and configuration files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use onward_testbed::TestDir;

pub(crate) const AGENTS: [&str; 6] = [
    "claude-code",
    "codex",
    "gemini",
    "kimi",
    "cursor",
    "opencode",
];

/// A temporary home directory.
pub(crate) struct Home(TestDir);

impl Home {
    pub(crate) fn new(test: &str) -> Self {
        let dir = TestDir::new(test);
        std::fs::create_dir(dir.join("project")).expect("create the project directory");
        Self(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.0.write(name, text);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        self.0.read(name)
    }

    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).expect("the file is JSON")
    }

    /// All files, with their content.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(path.clone(), std::fs::read(&path).unwrap());
                }
            }
        }
        files
    }

    /// Runs `onward install`.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(Path::new(env!("CARGO_BIN_EXE_onward")), arguments)
    }

    /// Copies the binary. Uses `cp`, because a child process that another test starts meanwhile
    /// would inherit the open file descriptor, and a binary that is open for writing cannot be
    /// executed.
    pub(crate) fn copy_binary(&self, to: &str) -> PathBuf {
        let copy = self.path(to);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        let mut command = Command::new("cp");
        command.arg(env!("CARGO_BIN_EXE_onward")).arg(&copy);
        assert!(command.status().expect("start cp").success());
        copy
    }

    /// Runs `install` of another copy of the binary.
    pub(crate) fn run_with(&self, binary: &Path, arguments: &[&str]) -> Output {
        Command::new(binary)
            .arg("install")
            .args(arguments)
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", self.0.path())
            .output()
            .expect("start the binary")
    }

    /// Runs `onward install` and asserts success.
    #[track_caller]
    pub(crate) fn install(&self, arguments: &[&str]) -> Output {
        let run = self.run(arguments);
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        run
    }
}
