//! When an SQLite commit is synced to disk: the durability setting of a database file.

/// When a commit is synced to disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Before the caller gets its response. Other processes may read the change while it is being
    /// synced, and do not wait for the disk.
    #[default]
    BeforeResponse,
    /// Inside the commit, with the file locked (`synchronous = FULL`): no process reads a change
    /// that is not on disk.
    BeforeCommit,
}

impl SyncMode {
    /// All values.
    pub const ALL: [SyncMode; 2] = [SyncMode::BeforeResponse, SyncMode::BeforeCommit];

    /// The value of the configuration key `database_sync`.
    pub const fn as_str(self) -> &'static str {
        match self {
            SyncMode::BeforeResponse => "response",
            SyncMode::BeforeCommit => "commit",
        }
    }
}

impl std::str::FromStr for SyncMode {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = SyncMode::ALL.into_iter().find(|sync| sync.as_str() == word);
        found.ok_or_else(|| format!("unknown value `{word}`"))
    }
}
