//! Settings of the C library's allocator for a server: two arenas, and freed memory returns to the
//! system.
//!
//! By default, each of eight arenas per core keeps up to 64 MiB of freed memory. glibc reads its
//! settings at the start of a process only, so the process replaces itself once, under the same
//! process id.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) use glibc::apply_settings;

/// Other C libraries have no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn apply_settings() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::env;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    /// The settings and their values. The first one marks a process that has them.
    const SETTINGS: [(&str, &str); 3] = [
        ("MALLOC_ARENA_MAX", "2"),
        // Texts of this size return to the system as soon as they are freed.
        ("MALLOC_MMAP_THRESHOLD_", "65536"),
        ("MALLOC_TRIM_THRESHOLD_", "1048576"),
    ];

    /// Starts the program again with the settings, unless the environment has its own.
    pub(in crate::cli) fn apply_settings() {
        let [(mark, _), ..] = SETTINGS;
        if env::var_os(mark).is_some() {
            return;
        }
        let mut arguments = env::args_os();
        let Some(name) = arguments.next() else { return };
        // Returns only on failure; then the process continues with more memory.
        let error = Command::new("/proc/self/exe")
            .arg0(name)
            .args(arguments)
            .envs(SETTINGS)
            .exec();
        tracing::debug!(%error, "cannot restart with allocator settings");
    }
}
