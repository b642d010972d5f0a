//! stdin and stdout, kept for the protocol alone.

use std::io;

use super::Transport;

/// Takes this process's stdin and stdout for the protocol.
///
/// On Unix nothing else reaches them from here on: what this process or its children print to
/// stdout goes to stderr, and what they read from stdin is empty. Pipes and sockets are read and
/// written without blocking; anything else (a terminal, a file) through threads of their own.
///
/// Must be called within a Tokio runtime, and once: the second time it finds the stand-ins.
///
/// # Errors
/// stdin or stdout cannot be taken, for example because it is closed.
pub fn stdio() -> io::Result<Transport> {
    #[cfg(unix)]
    return unix::claim();
    #[cfg(not(unix))]
    Ok(Transport::new(tokio::io::stdin(), tokio::io::stdout()))
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::FileTypeExt;

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::super::pipe::Growing;
    use super::Transport;

    pub(super) fn claim() -> io::Result<Transport> {
        let input = keep(io::stdin().as_fd())?;
        let output = keep(io::stdout().as_fd())?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
        Ok(Transport::of_boxed(reader(input)?, writer(output)?))
    }

    /// A private copy, which children do not inherit.
    fn keep(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<OwnedFd> {
        fd.try_clone_to_owned()
    }

    /// What sort of thing a descriptor is. Editors use pipes; those built on libuv use sockets.
    enum Kind {
        Pipe,
        Socket,
        Other,
    }

    fn kind(file: &File) -> io::Result<Kind> {
        let kind = file.metadata()?.file_type();
        Ok(if kind.is_fifo() {
            Kind::Pipe
        } else if kind.is_socket() {
            Kind::Socket
        } else {
            Kind::Other
        })
    }

    fn reader(fd: OwnedFd) -> io::Result<super::super::Reader> {
        let file = File::from(fd);
        Ok(match kind(&file)? {
            Kind::Pipe => Box::pin(pipe::Receiver::from_owned_fd(file.into())?),
            Kind::Socket => Box::pin(socket(file)?),
            Kind::Other => Box::pin(tokio::fs::File::from_std(file)),
        })
    }

    fn writer(fd: OwnedFd) -> io::Result<super::super::Writer> {
        let file = File::from(fd);
        Ok(match kind(&file)? {
            Kind::Pipe => Box::pin(Growing::new(pipe::Sender::from_owned_fd(file.into())?)),
            Kind::Socket => Box::pin(socket(file)?),
            Kind::Other => Box::pin(tokio::fs::File::from_std(file)),
        })
    }

    fn socket(file: File) -> io::Result<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }
}
