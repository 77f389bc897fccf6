//! What proves that an owner is dead, and what does not.

use onward_core::call::owner::{Process, Sight, death};
use onward_core::call::{Death, Owner};

fn owner() -> Owner {
    Owner {
        host: "pier".to_owned(),
        boot: Some("monday".to_owned()),
        process: 42,
        process_started: Some(1000),
    }
}

fn sight(process: Process) -> Sight {
    Sight {
        host: "pier".to_owned(),
        boot: Some("monday".to_owned()),
        process,
    }
}

#[test]
fn a_process_that_is_gone_is_dead() {
    assert_eq!(
        death(Some(&owner()), &sight(Process::Gone)),
        Some(Death::ProcessGone)
    );
}

#[test]
fn a_process_that_stands_there_is_alive() {
    assert_eq!(
        death(Some(&owner()), &sight(Process::Started(Some(1000)))),
        None
    );
}

#[test]
fn an_id_that_belongs_to_a_later_process_is_a_death() {
    assert_eq!(
        death(Some(&owner()), &sight(Process::Started(Some(1001)))),
        Some(Death::ProcessReplaced)
    );
}

#[test]
fn an_id_that_belongs_to_an_earlier_process_proves_nothing() {
    assert_eq!(
        death(Some(&owner()), &sight(Process::Started(Some(999)))),
        None
    );
}

#[test]
fn a_host_that_booted_again_took_its_processes_along() {
    for process in [
        Process::Unknown,
        Process::Gone,
        Process::Started(Some(1000)),
    ] {
        let sight = Sight {
            boot: Some("tuesday".to_owned()),
            ..sight(process)
        };
        assert_eq!(death(Some(&owner()), &sight), Some(Death::HostBooted));
    }
}

#[test]
fn an_unknown_owner_is_no_proof() {
    assert_eq!(death(None, &sight(Process::Gone)), None);
}

#[test]
fn another_host_proves_nothing() {
    let sight = Sight {
        host: "dock".to_owned(),
        boot: Some("tuesday".to_owned()),
        process: Process::Gone,
    };
    assert_eq!(death(Some(&owner()), &sight), None);
}

#[test]
fn what_cannot_be_looked_at_proves_nothing() {
    assert_eq!(death(Some(&owner()), &sight(Process::Unknown)), None);
    assert_eq!(death(Some(&owner()), &sight(Process::Started(None))), None);
    let owner = Owner {
        process_started: None,
        ..owner()
    };
    assert_eq!(
        death(Some(&owner), &sight(Process::Started(Some(5000)))),
        None
    );
}

#[test]
fn a_host_that_does_not_tell_its_boots_is_judged_by_the_process() {
    let owner = Owner {
        boot: None,
        ..owner()
    };
    assert_eq!(
        death(Some(&owner), &sight(Process::Gone)),
        Some(Death::ProcessGone)
    );
    assert_eq!(
        death(Some(&owner), &sight(Process::Started(Some(1000)))),
        None
    );
}
