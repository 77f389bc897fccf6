//! Where a test's database is: a file of its own, or a database of its own on a real PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine, ToolCall};
use onward_testbed::Cluster;
use serde_json::Value;

/// A directory for one test, gone when the test ends.
pub(crate) struct Place {
    folder: PathBuf,
    database: String,
}

impl Place {
    /// On a file that nobody has made yet.
    pub(crate) fn file() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcp-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let database = folder.join("onward.db").display().to_string();
        Self { folder, database }
    }

    /// On PostgreSQL.
    pub(crate) fn server() -> Self {
        let mut place = Self::file();
        place.database = Cluster::shared().database();
        place
    }

    /// The binary, on this database and in nobody's home.
    pub(crate) fn onward(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("USER", "ada")
            .arg("--database")
            .arg(&self.database);
        command
    }

    /// A file beside the database.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a command to its end, and gives what it printed.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = self
            .onward()
            .args(args)
            .output()
            .expect("the binary starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {told}");
        String::from_utf8(output.stdout).expect("standard output is UTF-8")
    }

    /// Does something with the engine, beside the binary.
    pub(crate) fn engine<T>(&self, ask: impl AsyncFnOnce(&Engine, &Caller) -> T) -> T {
        let address = Address::parse(&self.database).expect("an address");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime starts");
        runtime.block_on(async {
            let engine = Engine::open(&address, Settings::default()).await;
            let engine = engine.expect("the database opens");
            let answer = ask(&engine, &Caller::local("test")).await;
            engine.close().await;
            answer
        })
    }

    /// The log of calls, newest first.
    pub(crate) fn calls(&self) -> Vec<ToolCall> {
        self.engine(async |engine, caller| engine.calls(caller, 100).await.expect("a log"))
    }

    /// The same, as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args = [&["--json"], args].concat();
        serde_json::from_str(&self.run(&args)).expect("it prints JSON")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays behind is in the build's own folder.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
