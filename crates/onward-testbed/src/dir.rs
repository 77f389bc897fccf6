//! Temporary directories.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory. It is removed on drop, unless the test failed.
#[derive(Debug)]
pub struct TestDir(PathBuf);

impl TestDir {
    /// Creates a directory in the system's temporary directory, which is outside of any checkout.
    pub fn new(name: &str) -> Self {
        Self::create_in(&std::env::temp_dir(), name)
    }

    /// Creates a directory in memory if possible, for tests that do not depend on durability.
    pub fn in_memory(name: &str) -> Self {
        let memory = PathBuf::from("/dev/shm");
        if memory.is_dir() {
            Self::create_in(&memory, name)
        } else {
            Self::new(name)
        }
    }

    /// Creates a directory in another one.
    pub fn create_in(parent: &Path, name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("onward-{name}-{}-{number}", std::process::id()));
        // A failed test of an earlier process with the same id may have left files.
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("temporary directory created");
        Self(path)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file, which need not exist.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, creates its directory if necessary, and returns its path.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        let parent = path.parent().unwrap_or(&self.0);
        std::fs::create_dir_all(parent).expect("directory created");
        std::fs::write(&path, bytes).expect("file written");
        path
    }

    /// The content of a file.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }
}
