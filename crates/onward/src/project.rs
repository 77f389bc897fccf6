//! The project of a directory: the plans of one repository belong together, whichever agent,
//! worktree or subdirectory they were worked on from.
//!
//! The project is the nearest directory with an `.onward/config.toml`, otherwise the root of the
//! git checkout, otherwise the directory itself. A directory in a worktree counts as the same
//! directory of the main checkout. No process is started, because every hook event looks up the
//! project.
//!
//! Files in the directory are not trusted. A `.git` file that claims to be a worktree counts only
//! if the repository lists that worktree, so that an unpacked archive cannot select the plans of
//! another repository.

use std::path::{Path, PathBuf};

use crate::config::home;
use crate::fingerprint::checkout;

/// The file that marks the directory of a project.
const MARKER: &str = ".onward/config.toml";

/// The project of a directory, as a path.
pub(crate) fn key(directory: &Path) -> PathBuf {
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    let Some(checkout) = checkout(&directory) else {
        return marked(&directory, None).unwrap_or(directory);
    };
    let main = main_checkout(&checkout).unwrap_or_else(|| checkout.clone());
    if let Some(inside) = marked(&directory, Some(&checkout)) {
        return match inside.strip_prefix(&checkout) {
            Ok(path) if !path.as_os_str().is_empty() => main.join(path),
            Ok(_) | Err(_) => main,
        };
    }
    // A marker above the checkout joins several repositories.
    let above = main.parent().and_then(|above| marked(above, None));
    above.unwrap_or(main)
}

/// The directory of a project as it is checked out here: like [`key`], except that a worktree is a
/// separate directory.
pub(crate) fn root(directory: &Path) -> PathBuf {
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    let Some(checkout) = checkout(&directory) else {
        return marked(&directory, None).unwrap_or(directory);
    };
    let inside = marked(&directory, Some(&checkout));
    let above = || checkout.parent().and_then(|above| marked(above, None));
    inside.or_else(above).unwrap_or(checkout)
}

/// The nearest marked directory, up to and including `root`. Without it, up to the home directory:
/// a marker there would join all projects of the user.
fn marked(directory: &Path, root: Option<&Path>) -> Option<PathBuf> {
    let home = home().and_then(|home| home.canonicalize().ok());
    for folder in directory.ancestors() {
        if Some(folder) == home.as_deref() && root.is_none() {
            return None;
        }
        if folder.join(MARKER).is_file() {
            return Some(folder.to_owned());
        }
        if Some(folder) == root {
            return None;
        }
    }
    None
}

/// The main checkout of a worktree; of a bare repository, the repository. `None` if the checkout is
/// not a worktree.
fn main_checkout(checkout: &Path) -> Option<PathBuf> {
    let link = checkout.join(".git");
    let text = read_small(&link)?;
    let own = checkout.join(text.strip_prefix("gitdir:")?.trim());
    let common = own.join(read_small(&own.join("commondir"))?.trim());
    let listed = own.join(read_small(&own.join("gitdir"))?.trim());
    if listed.canonicalize().ok()? != link.canonicalize().ok()? {
        return None;
    }
    let common = common.canonicalize().ok()?;
    match common.parent() {
        Some(main) if common.file_name().is_some_and(|name| name == ".git") => {
            Some(main.to_owned())
        }
        Some(_) | None => Some(common),
    }
}

/// The text of a file that git writes, if it is one.
fn read_small(path: &Path) -> Option<String> {
    const MAX_BYTES: u64 = 16 << 10;
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use onward_testbed::{TestDir, git};

    use super::*;

    fn mark(folder: &Path) {
        fs::create_dir_all(folder.join(".onward")).expect("create `.onward`");
        fs::write(folder.join(MARKER), "").expect("write the marker");
    }

    /// A repository `main` with the subdirectory `app`, and its worktree `tree`.
    fn repository(test: &str) -> (TestDir, PathBuf) {
        let dir = TestDir::new(test);
        let root = dir.path().canonicalize().expect("the directory exists");
        fs::create_dir_all(root.join("main/app")).expect("create the checkout");
        fs::write(root.join("main/app/file"), "text").expect("write a file");
        git(&root.join("main"), &["init", "-q"]);
        git(&root.join("main"), &["add", "."]);
        git(&root.join("main"), &["commit", "-q", "-m", "first"]);
        git(&root.join("main"), &["worktree", "add", "-q", "../tree"]);
        (dir, root)
    }

    #[test]
    fn subdirectories_and_worktrees_belong_to_the_main_checkout() {
        let (_dir, root) = repository("project-worktree");
        for folder in ["main", "main/app", "tree", "tree/app"] {
            assert_eq!(key(&root.join(folder)), root.join("main"), "{folder}");
        }
    }

    #[test]
    fn the_root_of_a_worktree_is_the_worktree() {
        let (_dir, root_dir) = repository("project-root");
        for (folder, expected) in [("main/app", "main"), ("tree/app", "tree"), ("tree", "tree")] {
            assert_eq!(
                root(&root_dir.join(folder)),
                root_dir.join(expected),
                "{folder}"
            );
        }
        mark(&root_dir.join("tree/app"));
        assert_eq!(root(&root_dir.join("tree/app")), root_dir.join("tree/app"));
    }

    #[test]
    fn a_marked_directory_is_the_same_project_in_every_worktree() {
        let (_dir, root) = repository("project-marked");
        for checkout in ["main", "tree"] {
            mark(&root.join(checkout).join("app"));
            let app = root.join(checkout).join("app");
            assert_eq!(key(&app), root.join("main/app"), "{checkout}");
            assert_eq!(key(&root.join(checkout)), root.join("main"), "{checkout}");
        }
    }

    #[test]
    fn a_marker_above_joins_repositories_and_plain_directories() {
        let (_dir, root) = repository("project-above");
        mark(&root);
        fs::create_dir_all(root.join("plain/deep")).expect("create a directory");
        for folder in ["main/app", "tree", "plain/deep", "plain"] {
            assert_eq!(key(&root.join(folder)), root, "{folder}");
        }
    }

    #[test]
    fn a_directory_without_git_and_marker_is_its_own_project() {
        let dir = TestDir::new("project-plain");
        let root = dir.path().canonicalize().expect("the directory exists");
        assert_eq!(key(&root), root);
        assert_eq!(key(&root.join("missing")), root.join("missing"));
    }

    #[test]
    fn a_git_file_that_the_repository_does_not_list_selects_no_other_project() {
        let (_dir, root) = repository("project-forged");
        let forged = root.join("forged");
        fs::create_dir(&forged).expect("create a directory");
        fs::copy(root.join("tree/.git"), forged.join(".git")).expect("copy the link");
        assert_eq!(key(&forged), forged);
    }
}
