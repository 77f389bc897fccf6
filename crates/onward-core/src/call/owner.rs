//! Proof that the owner process of a call is dead.
//!
//! The owner is the process that runs the tool; for a hook, that is the agent, not the hook. A dead
//! owner interrupts its calls without waiting, so only proof counts: the host rebooted, the process
//! has exited, or its id belongs to a process that started later. An owner that is unknown, on
//! another host or not observable proves nothing; then only the timeout applies.
//!
//! The caller inspects the machine; this module compares the observed values.

use std::fmt;

/// The process that runs a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The scope of the process id: a machine or a container.
    pub host: String,
    /// The boot id of the host, if available.
    pub boot: Option<String>,
    /// The process id.
    pub process: u32,
    /// The start time of the process in the host's unit, if available.
    pub process_started: Option<u64>,
}

/// An observation of the process with the owner's id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessObservation {
    /// The observed host.
    pub host: String,
    /// The boot id of the host, if available.
    pub boot: Option<String>,
    /// The process with the owner's id.
    pub process: ProcessState,
}

impl ProcessObservation {
    /// An observation that proves nothing.
    pub const fn unknown() -> Self {
        Self {
            host: String::new(),
            boot: None,
            process: ProcessState::Unknown,
        }
    }
}

/// The observed state of a process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessState {
    /// Not observable.
    Unknown,
    /// No process has this id.
    Missing,
    /// A process has this id, with its start time if available.
    Running(Option<u64>),
}

/// Proof that an owner process is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerExit {
    /// The host rebooted.
    HostRebooted,
    /// No process has its id.
    ProcessExited,
    /// Its id belongs to a process that started later.
    ProcessReplaced,
}

impl OwnerExit {
    /// All proofs.
    pub const ALL: [OwnerExit; 3] = [
        OwnerExit::HostRebooted,
        OwnerExit::ProcessExited,
        OwnerExit::ProcessReplaced,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            OwnerExit::HostRebooted => "host_booted",
            OwnerExit::ProcessExited => "process_gone",
            OwnerExit::ProcessReplaced => "process_replaced",
        }
    }
}

impl fmt::Display for OwnerExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OwnerExit::HostRebooted => "the host rebooted",
            OwnerExit::ProcessExited => "the process has exited",
            OwnerExit::ProcessReplaced => "the process id belongs to a later process",
        })
    }
}

/// The proof that an owner is dead, if the observation is one.
pub fn owner_exit(owner: Option<&Owner>, observation: &ProcessObservation) -> Option<OwnerExit> {
    let owner = owner?;
    if owner.host != observation.host {
        return None;
    }
    if let (Some(then), Some(now)) = (&owner.boot, &observation.boot)
        && then != now
    {
        return Some(OwnerExit::HostRebooted);
    }
    match observation.process {
        ProcessState::Unknown => None,
        ProcessState::Missing => Some(OwnerExit::ProcessExited),
        ProcessState::Running(now) => {
            let then = owner.process_started?;
            (now? > then).then_some(OwnerExit::ProcessReplaced)
        }
    }
}
