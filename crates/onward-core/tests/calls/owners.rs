//! Owner processes: which observations prove that an owner is dead.

use onward_core::call::owner::{ProcessObservation, ProcessState, owner_exit};
use onward_core::call::{Owner, OwnerExit};

fn owner() -> Owner {
    Owner {
        host: "host-1".to_owned(),
        boot: Some("boot-1".to_owned()),
        process: 42,
        process_started: Some(1000),
    }
}

fn observation(process: ProcessState) -> ProcessObservation {
    ProcessObservation {
        host: "host-1".to_owned(),
        boot: Some("boot-1".to_owned()),
        process,
    }
}

#[test]
fn a_missing_process_is_dead() {
    assert_eq!(
        owner_exit(Some(&owner()), &observation(ProcessState::Missing)),
        Some(OwnerExit::ProcessExited)
    );
}

#[test]
fn a_running_process_is_alive() {
    assert_eq!(
        owner_exit(
            Some(&owner()),
            &observation(ProcessState::Running(Some(1000)))
        ),
        None
    );
}

#[test]
fn a_process_id_reused_by_a_later_process_proves_the_exit() {
    assert_eq!(
        owner_exit(
            Some(&owner()),
            &observation(ProcessState::Running(Some(1001)))
        ),
        Some(OwnerExit::ProcessReplaced)
    );
}

#[test]
fn a_process_that_started_earlier_proves_nothing() {
    assert_eq!(
        owner_exit(
            Some(&owner()),
            &observation(ProcessState::Running(Some(999)))
        ),
        None
    );
}

#[test]
fn a_reboot_proves_the_exit() {
    for process in [
        ProcessState::Unknown,
        ProcessState::Missing,
        ProcessState::Running(Some(1000)),
    ] {
        let observation = ProcessObservation {
            boot: Some("boot-2".to_owned()),
            ..observation(process)
        };
        assert_eq!(
            owner_exit(Some(&owner()), &observation),
            Some(OwnerExit::HostRebooted)
        );
    }
}

#[test]
fn an_unknown_owner_proves_nothing() {
    assert_eq!(owner_exit(None, &observation(ProcessState::Missing)), None);
}

#[test]
fn another_host_proves_nothing() {
    let observation = ProcessObservation {
        host: "host-2".to_owned(),
        boot: Some("boot-2".to_owned()),
        process: ProcessState::Missing,
    };
    assert_eq!(owner_exit(Some(&owner()), &observation), None);
}

#[test]
fn missing_observations_prove_nothing() {
    assert_eq!(
        owner_exit(Some(&owner()), &observation(ProcessState::Unknown)),
        None
    );
    assert_eq!(
        owner_exit(Some(&owner()), &observation(ProcessState::Running(None))),
        None
    );
    let owner = Owner {
        process_started: None,
        ..owner()
    };
    assert_eq!(
        owner_exit(
            Some(&owner),
            &observation(ProcessState::Running(Some(5000)))
        ),
        None
    );
}

#[test]
fn without_a_boot_id_the_process_decides() {
    let owner = Owner {
        boot: None,
        ..owner()
    };
    assert_eq!(
        owner_exit(Some(&owner), &observation(ProcessState::Missing)),
        Some(OwnerExit::ProcessExited)
    );
    assert_eq!(
        owner_exit(
            Some(&owner),
            &observation(ProcessState::Running(Some(1000)))
        ),
        None
    );
}
