//! The machine that this runs on, as far as it tells who lives: its name, its boot, its processes.
//!
//! Everything comes from `/proc`. A system that has none, or hides the processes of others, tells
//! nothing: then nobody is proven dead, and only the clock is left. A process that is dead and was not
//! buried yet (a zombie) is gone. The name of a host is where a process id means something: machines
//! may share a name, and containers a machine, so all three are in it.

use std::fs;
use std::sync::OnceLock;

use onward_core::call::Owner;
use onward_core::call::owner::{Process, Sight};
use sha2::{Digest, Sha256};

use crate::world::hex;

/// How far up somebody is looked for.
const HIGHEST: usize = 32;
/// The namespace that the machine itself is in, the same on every Linux.
const OUTERMOST: &str = "pid:[4026531836]";

/// Programs that only start others.
const SHELLS: [&str; 12] = [
    "ash", "bash", "busybox", "cmd", "csh", "dash", "fish", "ksh", "nu", "sh", "tcsh", "zsh",
];

/// What stands under a process id.
pub fn look(process: u32) -> Sight {
    let Some(host) = host() else {
        return blind();
    };
    let seen = match stat(process) {
        Ok(Some(stat)) if stat.is_dead => Process::Gone,
        Ok(Some(stat)) => Process::Started(Some(stat.started)),
        // What is readable but not understood is alive.
        Ok(None) => Process::Started(None),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound && sees_others() => Process::Gone,
        Err(_) => Process::Unknown,
    };
    Sight {
        host: host.to_owned(),
        boot: boot(),
        process: seen,
    }
}

/// A machine that tells nothing.
pub(crate) fn blind() -> Sight {
    Sight {
        host: String::new(),
        boot: None,
        process: Process::Unknown,
    }
}

/// A process of this machine as an owner, if it lives.
pub fn owner(process: u32) -> Option<Owner> {
    let sight = look(process);
    let process_started = match sight.process {
        Process::Started(started) => started,
        Process::Gone | Process::Unknown => return None,
    };
    Some(Owner {
        host: sight.host,
        boot: sight.boot,
        process,
        process_started,
    })
}

/// The program that had this one started: the nearest ancestor that is no shell.
pub fn starter() -> Option<Owner> {
    let mut process = stat(std::process::id()).ok()??.parent;
    for _ in 0..HIGHEST {
        let stat = stat(process).ok()??;
        if !SHELLS.contains(&stat.name.trim_start_matches('-')) {
            return owner(process);
        }
        process = stat.parent;
    }
    None
}

/// A line of `/proc`.
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

/// `PID (NAME) STATE PARENT …`, where the name may hold anything, and the start is the 22nd field.
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

/// Whether processes of others are shown at all: the first one always lives.
fn sees_others() -> bool {
    fs::metadata("/proc/1/stat").is_ok()
}

fn boot() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot = boot.trim();
    (!boot.is_empty()).then(|| boot.to_owned())
}

/// Where process ids mean what they mean here.
fn host() -> Option<&'static str> {
    static HOST: OnceLock<Option<String>> = OnceLock::new();
    let host = HOST.get_or_init(|| {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        let space = fs::read_link("/proc/self/ns/pid").ok()?;
        let space = space.to_str()?;
        let mut host = name.trim().to_owned();
        // The machine's own id is not for others to see, so it is hashed.
        if let Ok(machine) = fs::read_to_string("/etc/machine-id")
            && !machine.trim().is_empty()
        {
            let digest = Sha256::digest(format!("onward {}", machine.trim()).as_bytes());
            host.push('-');
            host.push_str(digest.get(..6).map(hex).unwrap_or_default().as_str());
        }
        if space != OUTERMOST {
            let inside = space.trim_start_matches("pid:[").trim_end_matches(']');
            host.push('-');
            host.push_str(inside);
        }
        (!host.is_empty()).then_some(host)
    });
    host.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
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
        for odd in ["", "42", "42 (x", "42 (x) S", "42 (x) S seven"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_lives_and_one_that_was_waited_for_does_not() {
        let own = owner(std::process::id()).expect("this process lives");
        assert_eq!(
            onward_core::call::owner::death(Some(&own), &look(own.process)),
            None
        );
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("a child can be started");
        let owner = owner(child.id()).expect("the child lives");
        child.kill().expect("it can be killed");
        let death = || onward_core::call::owner::death(Some(&owner), &look(owner.process));
        // Dead, and not buried yet: a killed process takes a moment to become one.
        let began = std::time::Instant::now();
        while death().is_none() {
            assert!(began.elapsed().as_secs() < 60, "it was killed");
            std::thread::yield_now();
        }
        child.wait().expect("it is dead");
        assert!(death().is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn whoever_started_a_test_is_no_shell() {
        let starter = starter().expect("somebody started it");
        let stat = stat(starter.process).ok().flatten().expect("it lives");
        assert!(!SHELLS.contains(&stat.name.as_str()), "{stat:?}");
    }
}
