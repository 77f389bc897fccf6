//! A temporary directory with a separate SQLite or PostgreSQL database for each test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine, ToolCall};
use onward_testbed::Cluster;
use serde_json::Value;

/// A directory for one test, deleted when the test ends.
pub(crate) struct TestDir {
    path: PathBuf,
    database: String,
}

impl TestDir {
    /// With a new SQLite file.
    pub(crate) fn sqlite() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcp-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("directory is created");
        let database = path.join("onward.db").display().to_string();
        Self { path, database }
    }

    /// With a new PostgreSQL database.
    pub(crate) fn postgres() -> Self {
        let mut dir = Self::sqlite();
        dir.database = Cluster::shared().database();
        dir
    }

    /// The binary with this database and this directory as home.
    pub(crate) fn onward(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .current_dir(&self.path)
            .env_clear()
            .env("HOME", &self.path)
            .env("USER", "ada")
            .arg("--database")
            .arg(&self.database);
        command
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = self.onward().args(args).output().expect("binary starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }

    /// Uses the engine directly, in this process.
    pub(crate) fn engine<T>(&self, work: impl AsyncFnOnce(&Engine, &Caller) -> T) -> T {
        let address = Address::parse(&self.database).expect("address is valid");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("runtime starts");
        runtime.block_on(async {
            let engine = Engine::open(&address, Settings::default()).await;
            let engine = engine.expect("database opens");
            let value = work(&engine, &Caller::local("test")).await;
            engine.close().await;
            value
        })
    }

    /// The request log, newest first.
    pub(crate) fn calls(&self) -> Vec<ToolCall> {
        self.engine(async |engine, caller| {
            engine
                .logged_requests(caller, 100)
                .await
                .expect("log is readable")
        })
    }

    /// Runs a command with `--json`. Returns the parsed output.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args = [&["--json"], args].concat();
        serde_json::from_str(&self.run(&args)).expect("output is JSON")
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        // Leftovers are inside the target directory.
        drop(std::fs::remove_dir_all(&self.path));
    }
}
