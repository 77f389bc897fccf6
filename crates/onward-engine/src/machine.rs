//! The environment of this machine: its clock, its random source, and process liveness from `/proc`.
//!
//! On a system without `/proc`, or one that hides other users' processes, no exit can be proven,
//! and only timeouts apply. A zombie counts as exited. A process id is only meaningful on its host,
//! so the host name includes the machine id and the PID namespace: machines may share a name, and
//! containers a machine.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onward_core::Timestamp;
use onward_core::call::Owner;
use onward_core::call::owner::{ProcessObservation, ProcessState};
use sha2::{Digest, Sha256};

use crate::environment::{Environment, hex};

/// Maximum number of ancestors that are searched.
const MAX_ANCESTORS: usize = 32;
/// The initial PID namespace, the same on every Linux system.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Shells, which only start other programs.
const SHELLS: [&str; 12] = [
    "ash", "bash", "busybox", "cmd", "csh", "dash", "fish", "ksh", "nu", "sh", "tcsh", "zsh",
];

/// The environment of the running machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Option<Duration> {
        Some(monotonic())
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        if getrandom::fill(bytes).is_err() {
            // Without randomness, claim tokens would be guessable.
            std::process::abort();
        }
    }

    fn is_wall_clock(&self) -> bool {
        true
    }

    fn process_state(&self, process: u32) -> ProcessObservation {
        process_state(process)
    }
}

/// Time since the machine was started, including sleep.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn monotonic() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;
    let now = clock_gettime(CLOCK);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Time since the first call.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn monotonic() -> Duration {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// The state of a process.
pub fn process_state(process: u32) -> ProcessObservation {
    let Some(host) = host() else {
        return ProcessObservation::unknown();
    };
    let seen = match stat(process) {
        Ok(Some(stat)) if stat.is_dead => ProcessState::Missing,
        Ok(Some(stat)) => ProcessState::Running(Some(stat.started)),
        // An entry that cannot be parsed belongs to a live process.
        Ok(None) => ProcessState::Running(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && lists_other_processes() => {
            ProcessState::Missing
        }
        Err(_) => ProcessState::Unknown,
    };
    ProcessObservation {
        host: host.to_owned(),
        boot: boot(),
        process: seen,
    }
}

/// Whether this system shows the state of processes. If not, only timeouts end the calls of a process
/// that has exited.
pub fn detects_exits() -> bool {
    owner(std::process::id()).is_some()
}

/// A live process of this host as the owner of a call. `None` if it has exited or cannot be
/// inspected.
pub fn owner(process: u32) -> Option<Owner> {
    let sight = process_state(process);
    let process_started = match sight.process {
        ProcessState::Running(started) => started,
        ProcessState::Missing | ProcessState::Unknown => return None,
    };
    Some(Owner {
        host: sight.host,
        boot: sight.boot,
        process,
        process_started,
    })
}

/// The program that started this process: the nearest ancestor that is not a shell.
pub fn launcher() -> Option<Owner> {
    let mut process = stat(std::process::id()).ok()??.parent;
    for _ in 0..MAX_ANCESTORS {
        let stat = stat(process).ok()??;
        if !SHELLS.contains(&stat.name.trim_start_matches('-')) {
            return owner(process);
        }
        process = stat.parent;
    }
    None
}

/// The fields used from `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    is_dead: bool,
    parent: u32,
    started: u64,
}

fn stat(process: u32) -> std::io::Result<Option<Stat>> {
    let line = fs::read(format!("/proc/{process}/stat"))?;
    Ok(parse(&String::from_utf8_lossy(&line)))
}

/// Parses `PID (NAME) STATE PARENT …`. The name may contain any characters; the start time is
/// field 22.
fn parse(line: &str) -> Option<Stat> {
    let (head, rest) = line.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Stat {
        name: name.to_owned(),
        is_dead: matches!(state, "Z" | "X" | "x"),
        parent,
        started,
    })
}

/// Whether `/proc` lists other users' processes: process 1 always exists.
fn lists_other_processes() -> bool {
    fs::metadata("/proc/1/stat").is_ok()
}

fn boot() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot = boot.trim();
    (!boot.is_empty()).then(|| boot.to_owned())
}

/// Name of this host, for people.
pub fn host_name() -> Option<String> {
    let file = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let variable = || {
        ["HOSTNAME", "COMPUTERNAME"]
            .iter()
            .find_map(|name| std::env::var(name).ok())
    };
    let name = file.or_else(variable)?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Name of the host, within which process ids are unique.
fn host() -> Option<&'static str> {
    static HOST: OnceLock<Option<String>> = OnceLock::new();
    let host = HOST.get_or_init(|| {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        let namespace = namespace.to_str()?;
        let mut host = name.trim().to_owned();
        // The machine id is confidential, so it is hashed.
        if let Ok(machine) = fs::read_to_string("/etc/machine-id")
            && !machine.trim().is_empty()
        {
            let digest = Sha256::digest(format!("onward {}", machine.trim()).as_bytes());
            host.push('-');
            host.push_str(digest.get(..6).map(hex).unwrap_or_default().as_str());
        }
        if namespace != INITIAL_PID_NAMESPACE {
            let namespace_id = namespace.trim_start_matches("pid:[").trim_end_matches(']');
            host.push('-');
            host.push_str(namespace_id);
        }
        (!host.is_empty()).then_some(host)
    });
    host.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_with_any_characters() {
        let line = "42 (a (b) c) S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 20";
        assert_eq!(
            parse(line),
            Some(Stat {
                name: "a (b) c".to_owned(),
                is_dead: false,
                parent: 7,
                started: 987_654,
            })
        );
        for malformed in ["", "42", "42 (x", "42 (x) S", "42 (x) S seven"] {
            assert_eq!(parse(malformed), None, "{malformed}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn detects_live_killed_and_reaped_processes() {
        let own = owner(std::process::id()).expect("this process is alive");
        assert_eq!(
            onward_core::call::owner::owner_exit(Some(&own), &process_state(own.process)),
            None
        );
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("child process started");
        let owner = owner(child.id()).expect("child process is alive");
        child.kill().expect("child process killed");
        let death =
            || onward_core::call::owner::owner_exit(Some(&owner), &process_state(owner.process));
        // The child becomes a zombie shortly after the kill.
        let began = std::time::Instant::now();
        while death().is_none() {
            assert!(
                began.elapsed().as_secs() < 60,
                "the child was killed but is still alive"
            );
            std::thread::yield_now();
        }
        child.wait().expect("child process reaped");
        assert!(death().is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_launcher_of_a_test_is_not_a_shell() {
        let launcher = launcher().expect("launcher found");
        let stat = stat(launcher.process)
            .ok()
            .flatten()
            .expect("launcher is alive");
        assert!(!SHELLS.contains(&stat.name.as_str()), "{stat:?}");
    }
}
