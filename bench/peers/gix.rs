//! Prints the changes in a checkout with gix, to compare with `git status`, which Onward's fingerprint
//! uses. `bench/peers/gix` builds it outside of the workspace.
//!
//! Argument: the checkout. Prints one path per line; untracked directories are collapsed.

use std::error::Error;

use gix::progress::Discard;
use gix::status::UntrackedFiles;

fn main() -> Result<(), Box<dyn Error>> {
    let checkout = std::env::args_os().nth(1).ok_or("missing argument: the checkout")?;
    let repository = gix::open(std::path::PathBuf::from(checkout))?;
    println!("{}", repository.head_id()?);
    let status = repository
        .status(Discard)?
        .untracked_files(UntrackedFiles::Collapsed);
    for change in status.into_iter(None)? {
        println!("{}", change?.location());
    }
    Ok(())
}
