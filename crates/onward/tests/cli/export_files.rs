//! Files that `onward export` writes: private, and never through a link.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Output;

use crate::fixture::Fixture;
use crate::script::shell;

fn export(fixture: &Fixture, file: &str) -> Output {
    let (_, plan) = fixture
        .names
        .iter()
        .find(|(name, _)| name == "tides")
        .unwrap();
    let command = format!("umask 000; onward export {plan} --output {file}");
    shell(fixture, &command).output().expect("the shell starts")
}

#[test]
fn only_the_user_may_read_an_exported_file() {
    let fixture = Fixture::empty("export-mode").with_plans();
    let path = fixture.dir.write("existing.json", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    for file in ["new.json", "existing.json"] {
        let run = export(&fixture, file);
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        let metadata = fixture.dir.join(file).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{file}");
        assert!(fixture.dir.read(file).starts_with('{'));
    }
}

#[test]
fn does_not_export_through_a_link() {
    let fixture = Fixture::empty("export-link").with_plans();
    let target = fixture.dir.write("target", "precious");
    symlink(&target, fixture.dir.join("link.json")).unwrap();
    symlink(
        fixture.dir.join("missing"),
        fixture.dir.join("dangling.json"),
    )
    .unwrap();
    std::fs::hard_link(&target, fixture.dir.join("hard.json")).unwrap();
    for (file, code) in [("link.json", 4), ("dangling.json", 4), ("hard.json", 0)] {
        let run = export(&fixture, file);
        assert_eq!(run.status.code(), Some(code), "{file}: {run:?}");
    }
    assert_eq!(fixture.dir.read("target"), "precious");
    assert!(!fixture.dir.join("missing").exists());
}
