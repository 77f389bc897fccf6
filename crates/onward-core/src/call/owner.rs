//! Is the process that runs the tool dead? A proof, not a suspicion.
//!
//! The owner is the process that runs the tool: for a hook the agent, never the hook itself. A dead
//! owner needs no waiting, so only what is certain counts: the host booted again, the process is gone,
//! or its id belongs to a process that started later. An owner that is unknown, or on another host, or
//! that cannot be looked at, proves nothing; then there is only the clock.
//!
//! Looking at the machine is the caller's part; here its facts are values.

use std::fmt;

/// Who runs a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Where its process id means something: a machine, or a container in it.
    pub host: String,
    /// Which run of the host; none where the host does not tell.
    pub boot: Option<String>,
    /// The process id.
    pub process: u32,
    /// When the process started, in whatever unit the host counts; none where it does not tell.
    pub process_started: Option<u64>,
}

/// What can be seen of an owner's process, from where the question is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sight {
    /// The host that was looked at.
    pub host: String,
    /// Its run; none where it does not tell.
    pub boot: Option<String>,
    /// The process with the owner's id.
    pub process: Process,
}

/// What stands under a process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Process {
    /// Nobody could look.
    Unknown,
    /// Nothing.
    Gone,
    /// A process, and when it started; none where the host does not tell.
    Started(Option<u64>),
}

/// What proves that an owner is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Death {
    /// The host booted again.
    HostBooted,
    /// There is no process with its id.
    ProcessGone,
    /// Its id belongs to a process that started later.
    ProcessReplaced,
}

impl Death {
    /// Every proof.
    pub const ALL: [Death; 3] = [
        Death::HostBooted,
        Death::ProcessGone,
        Death::ProcessReplaced,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Death::HostBooted => "host_booted",
            Death::ProcessGone => "process_gone",
            Death::ProcessReplaced => "process_replaced",
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Death::HostBooted => "the host booted again",
            Death::ProcessGone => "the process is gone",
            Death::ProcessReplaced => "the process id belongs to a process that started later",
        })
    }
}

/// The proof that an owner is dead, if what was seen is one.
pub fn death(owner: Option<&Owner>, sight: &Sight) -> Option<Death> {
    let owner = owner?;
    if owner.host != sight.host {
        return None;
    }
    if let (Some(then), Some(now)) = (&owner.boot, &sight.boot)
        && then != now
    {
        return Some(Death::HostBooted);
    }
    match sight.process {
        Process::Unknown => None,
        Process::Gone => Some(Death::ProcessGone),
        Process::Started(now) => {
            let then = owner.process_started?;
            (now? > then).then_some(Death::ProcessReplaced)
        }
    }
}
