//! A user's home and a project, with whatever configuration a test puts there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const AGENTS: [&str; 6] = [
    "claude-code",
    "codex",
    "gemini",
    "kimi",
    "cursor",
    "opencode",
];

pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("onward-install-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(folder.join("project")).expect("a folder can be made");
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).expect("it is JSON")
    }

    /// Every file there is, with what it holds.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut waiting = vec![self.0.clone()];
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => waiting.push(path),
                    false => drop(all.insert(path.clone(), std::fs::read(&path).unwrap())),
                }
            }
        }
        all
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_as(Path::new(env!("CARGO_BIN_EXE_onward")), arguments)
    }

    /// Another copy of the binary, at this place. A process of its own makes it: while a file that this one
    /// writes to is open, every process that another test starts has it open too, and a program that
    /// somebody may write to does not start.
    pub(crate) fn copy_binary(&self, to: &str) -> PathBuf {
        let copy = self.path(to);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        let mut command = Command::new("cp");
        command.arg(env!("CARGO_BIN_EXE_onward")).arg(&copy);
        assert!(command.status().expect("cp starts").success());
        copy
    }

    pub(crate) fn run_as(&self, binary: &Path, arguments: &[&str]) -> Output {
        Command::new(binary)
            .arg("install")
            .args(arguments)
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", &self.0)
            .output()
            .expect("the binary starts")
    }

    /// Runs it; it must end well.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> Output {
        let run = self.run(arguments);
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        run
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What stays behind is in the system's folder for temporary things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
