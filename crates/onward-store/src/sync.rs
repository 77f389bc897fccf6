//! When an SQLite commit is synced to disk: the durability setting of a database file.

/// When a commit is synced to disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sync {
    /// Before the caller gets its response. Other processes may read the change while it is being
    /// synced, and do not wait for the disk.
    #[default]
    BeforeResponse,
    /// Inside the commit, with the file locked (`synchronous = FULL`): no process reads a change
    /// that is not on disk.
    BeforeCommit,
}

impl Sync {
    /// All values.
    pub const ALL: [Sync; 2] = [Sync::BeforeResponse, Sync::BeforeCommit];

    /// The value of the configuration key `database_sync`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Sync::BeforeResponse => "response",
            Sync::BeforeCommit => "commit",
        }
    }
}

impl std::str::FromStr for Sync {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Sync::ALL.into_iter().find(|sync| sync.as_str() == word);
        found.ok_or_else(|| format!("unknown value `{word}`"))
    }
}
