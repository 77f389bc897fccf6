//! Standard input and output as they can be waited for, where they are pipes or sockets.
//!
//! Whatever is waited for must not block, and that holds for all who share it. So an end that errors
//! go to as well is left as it is: whoever writes those expects them to be taken.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Where messages come from.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// Where answers go.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// The kinds of ends that can be waited for.
enum End {
    Pipe(OwnedFd),
    Socket(UnixStream),
}

pub(super) fn input() -> Option<Input> {
    if is_shared(&io::stdin(), &io::stderr()).unwrap_or(true) {
        return None;
    }
    Some(match End::of(&io::stdin())? {
        End::Pipe(end) => Box::new(Receiver::from_owned_fd(end).ok()?),
        End::Socket(end) => Box::new(end),
    })
}

pub(super) fn output() -> Option<Output> {
    if is_shared(&io::stdout(), &io::stderr()).unwrap_or(true) {
        return None;
    }
    Some(match End::of(&io::stdout())? {
        End::Pipe(end) => Box::new(Sender::from_owned_fd(end).ok()?),
        End::Socket(end) => Box::new(end),
    })
}

impl End {
    fn of(end: &impl AsFd) -> Option<Self> {
        let end = end.as_fd().try_clone_to_owned().ok()?;
        let (end, kind) = kind(end)?;
        if kind.is_fifo() {
            return Some(Self::Pipe(end));
        }
        kind.is_socket().then_some(())?;
        let socket = std::os::unix::net::UnixStream::from(end);
        socket.set_nonblocking(true).ok()?;
        UnixStream::from_std(socket).ok().map(Self::Socket)
    }
}

fn kind(end: OwnedFd) -> Option<(OwnedFd, std::fs::FileType)> {
    let file = File::from(end);
    let kind = file.metadata().ok()?.file_type();
    Some((file.into(), kind))
}

/// Whether both lead to the same place.
fn is_shared(one: &impl AsFd, other: &impl AsFd) -> io::Result<bool> {
    let place = |end: &dyn AsFd| {
        let file = File::from(end.as_fd().try_clone_to_owned()?);
        let about = file.metadata()?;
        io::Result::Ok((about.dev(), about.ino()))
    };
    Ok(place(one)? == place(other)?)
}
