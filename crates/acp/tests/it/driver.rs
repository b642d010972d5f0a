//! Tests of the driver: what happens when it is dropped or part of the connection fails, and where work runs.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use acp::agent::Turn;
use acp::client::connect_with;
use acp::testing::{NoopClient, PromptAgent, ScriptedPeer, start_client};
use acp::v1::StopReason;
use acp::{CloseReason, Error, Options, Transport};
use tokio::io::AsyncWrite;

use crate::common::with_timeout;

#[tokio::test]
async fn pending_requests_fail_when_the_driver_is_dropped() {
    let (transport, mut peer) = ScriptedPeer::pair();
    let (handshake, driver) = connect_with(transport, NoopClient, Options::new());
    let driver = tokio::spawn(driver);
    let handshake = tokio::spawn(handshake);
    peer.expect_request("initialize").await;
    driver.abort();
    let error = with_timeout("the handshake fails", handshake)
        .await
        .unwrap();
    let closed = matches!(error, Err(Error::Closed(CloseReason::Local)));
    assert!(closed, "{error:?}");
}

#[tokio::test]
async fn dropping_an_unpolled_driver_ends_the_connection() {
    let (transport, _peer) = ScriptedPeer::pair();
    let agent = PromptAgent(async |_: Turn, _| Ok(StopReason::EndTurn));
    let (conn, driver) = acp::agent::start(transport, agent, Options::new());
    drop(driver);
    assert!(conn.is_closed());
    let reason = with_timeout("it has ended", conn.closed()).await;
    assert!(matches!(reason, CloseReason::Local));
}

fn assert_writer_stopped(error: &Error) {
    let Error::Closed(CloseReason::Transport(error)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.to_string(), "the writer stopped unexpectedly");
}

#[tokio::test]
async fn a_connection_ends_if_its_writer_is_dropped() {
    let (transport, _peer) = ScriptedPeer::pair();
    // An executor that drops its tasks.
    let options = Options::new().spawn_work(drop);
    let (handshake, driver) = connect_with(transport, NoopClient, options);
    tokio::spawn(driver);
    let error = with_timeout("the handshake fails", handshake)
        .await
        .unwrap_err();
    assert_writer_stopped(&error);
}

/// A stream that panics on writes.
struct PanickingStream;

impl AsyncWrite for PanickingStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        panic!("it was written to");
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_connection_ends_when_its_writer_panics() {
    let (ours, _theirs) = tokio::io::duplex(1024);
    let (reader, _) = tokio::io::split(ours);
    let transport = Transport::new(reader, PanickingStream);
    let handshake = start_client(transport, NoopClient, Options::new());
    let error = with_timeout("the handshake fails", handshake)
        .await
        .unwrap_err();
    assert_writer_stopped(&error);
}

/// A stream whose writes fail, and that records whether it was closed.
struct FailingStream(Arc<AtomicBool>);

impl AsyncWrite for FailingStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::Error::other("it is full")))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_failed_writer_is_not_closed() {
    let (ours, _theirs) = tokio::io::duplex(1024);
    let (reader, _) = tokio::io::split(ours);
    let closed = Arc::new(AtomicBool::new(false));
    let transport = Transport::new(reader, FailingStream(Arc::clone(&closed)));
    let (handshake, driver) = connect_with(transport, NoopClient, Options::new());
    let (reason, handshake) = tokio::join!(with_timeout("the connection ends", driver), handshake);
    let CloseReason::Transport(error) = reason else {
        panic!("{reason:?}");
    };
    assert_eq!(error.to_string(), "it is full");
    assert!(handshake.unwrap_err().is_closed());
    assert!(!closed.load(Ordering::Relaxed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spawned_work_can_be_cancelled_while_it_blocks_its_thread() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let options = Options::new().spawn_work(move |task| {
        counted.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(task);
    });
    let agent = PromptAgent(async |turn: Turn, _| {
        turn.send_message("I compute.").await?;
        // The writer was woken from this thread, which would run it next.
        tokio::task::yield_now().await;
        while !turn.is_cancelled() {
            std::thread::yield_now();
        }
        Ok(StopReason::EndTurn)
    });
    let (ours, theirs) = acp::transport::memory();
    let (_, driver) = acp::agent::start(theirs, agent, options);
    tokio::spawn(driver);
    let client = start_client(ours, NoopClient, Options::new())
        .await
        .unwrap();
    let session = client.new_session("/").await.unwrap();
    let cancel = async {
        acp::testing::wait_for_thread(session.thread(), |thread| thread.items().len() == 2).await;
        session.cancel().await.unwrap();
    };
    let turn = async { tokio::join!(session.prompt("Compute"), cancel).0 };
    let stopped = with_timeout("the turn ends", turn).await.unwrap();
    assert_eq!(stopped, StopReason::Cancelled);
    // The writer and the turn.
    assert!(begun.load(Ordering::Relaxed) >= 2);
}
