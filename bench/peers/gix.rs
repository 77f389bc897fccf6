//! What has changed in a checkout, by gix: the peer beside `git status`, which Onward's fingerprint waits
//! for. It is built by `bench/peers/gix` outside of the workspace.
//!
//! Argument: the checkout. Prints a name per line; folders that are not known as one.

use std::error::Error;

use gix::progress::Discard;
use gix::status::UntrackedFiles;

fn main() -> Result<(), Box<dyn Error>> {
    let checkout = std::env::args_os().nth(1).ok_or("name a checkout")?;
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
