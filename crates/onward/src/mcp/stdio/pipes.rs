//! Standard input and output as async streams, if they are pipes or sockets.
//!
//! Async I/O requires non-blocking mode, which applies to the open file description and so to every
//! descriptor that shares it. A stream that standard error shares is therefore left blocking:
//! writers of error messages expect writes to succeed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;

pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A stream that the runtime can poll.
enum Pollable {
    Pipe(OwnedFd),
    Socket(UnixStream),
}

pub(super) fn input() -> Option<Input> {
    if is_shared(&io::stdin(), &io::stderr()).unwrap_or(true) {
        return None;
    }
    Some(match Pollable::from_fd(&io::stdin())? {
        Pollable::Pipe(fd) => Box::new(Receiver::from_owned_fd(fd).ok()?),
        Pollable::Socket(socket) => Box::new(socket),
    })
}

pub(super) fn output() -> Option<Output> {
    if is_shared(&io::stdout(), &io::stderr()).unwrap_or(true) {
        return None;
    }
    Some(match Pollable::from_fd(&io::stdout())? {
        Pollable::Pipe(fd) => Box::new(Sender::from_owned_fd(fd).ok()?),
        Pollable::Socket(socket) => Box::new(socket),
    })
}

impl Pollable {
    fn from_fd(fd: &impl AsFd) -> Option<Self> {
        let fd = fd.as_fd().try_clone_to_owned().ok()?;
        let (fd, kind) = file_type(fd)?;
        if kind.is_fifo() {
            return Some(Self::Pipe(fd));
        }
        kind.is_socket().then_some(())?;
        let socket = std::os::unix::net::UnixStream::from(fd);
        socket.set_nonblocking(true).ok()?;
        UnixStream::from_std(socket).ok().map(Self::Socket)
    }
}

fn file_type(fd: OwnedFd) -> Option<(OwnedFd, std::fs::FileType)> {
    let file = File::from(fd);
    let kind = file.metadata().ok()?.file_type();
    Some((file.into(), kind))
}

/// Whether both descriptors refer to the same pipe, socket or file.
fn is_shared(one: &impl AsFd, other: &impl AsFd) -> io::Result<bool> {
    let inode = |fd: &dyn AsFd| {
        let file = File::from(fd.as_fd().try_clone_to_owned()?);
        let metadata = file.metadata()?;
        io::Result::Ok((metadata.dev(), metadata.ino()))
    };
    Ok(inode(one)? == inode(other)?)
}
