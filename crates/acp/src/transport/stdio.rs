//! A transport over stdin and stdout, which are then reserved for the protocol.

use std::io;

use super::Transport;

/// Reserves this process's stdin and stdout for the protocol.
///
/// On Unix, nothing else can use them from now on: what this process or its children print to stdout goes to stderr,
/// and stdin is empty. Pipes and sockets are read and written without blocking. Terminals, files and everything else
/// are read and written on separate threads.
///
/// Call this in a tokio runtime, and only once: a second call would get the replacements.
///
/// # Errors
/// stdin or stdout cannot be taken over, for example because it is closed.
pub fn stdio() -> io::Result<Transport> {
    #[cfg(unix)]
    return unix::claim_stdio();
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

    use super::super::pipe::GrowingPipe;
    use super::Transport;

    pub(super) fn claim_stdio() -> io::Result<Transport> {
        let input = clone_fd(io::stdin().as_fd())?;
        let output = clone_fd(io::stdout().as_fd())?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
        Ok(Transport::from_boxed(
            open_reader(input)?,
            open_writer(output)?,
        ))
    }

    /// Duplicates a file descriptor without letting child processes inherit the duplicate.
    fn clone_fd(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<OwnedFd> {
        fd.try_clone_to_owned()
    }

    /// The type of a file descriptor. Most editors use pipes, and those based on libuv use sockets.
    enum DescriptorKind {
        Pipe,
        Socket,
        Other,
    }

    fn read_descriptor_kind(file: &File) -> io::Result<DescriptorKind> {
        let kind = file.metadata()?.file_type();
        Ok(if kind.is_fifo() {
            DescriptorKind::Pipe
        } else if kind.is_socket() {
            DescriptorKind::Socket
        } else {
            DescriptorKind::Other
        })
    }

    fn open_reader(fd: OwnedFd) -> io::Result<super::super::TransportReader> {
        let file = File::from(fd);
        Ok(match read_descriptor_kind(&file)? {
            DescriptorKind::Pipe => Box::pin(pipe::Receiver::from_owned_fd(file.into())?),
            DescriptorKind::Socket => Box::pin(to_unix_stream(file)?),
            DescriptorKind::Other => Box::pin(tokio::fs::File::from_std(file)),
        })
    }

    fn open_writer(fd: OwnedFd) -> io::Result<super::super::TransportWriter> {
        let file = File::from(fd);
        Ok(match read_descriptor_kind(&file)? {
            DescriptorKind::Pipe => {
                Box::pin(GrowingPipe::new(pipe::Sender::from_owned_fd(file.into())?))
            }
            DescriptorKind::Socket => Box::pin(to_unix_stream(file)?),
            DescriptorKind::Other => Box::pin(tokio::fs::File::from_std(file)),
        })
    }

    fn to_unix_stream(file: File) -> io::Result<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }
}
