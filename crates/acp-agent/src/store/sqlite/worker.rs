//! The thread that has the database.
//!
//! SQLite blocks, so it has a thread of its own. What is asked for while the thread works is done in one
//! transaction afterwards: many sessions that stream at once do not pay for a transaction a token each.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::store::error::StoreError;
use crate::store::sqlite::failed::failed;

/// How many jobs wait at most; whoever has another one waits.
const QUEUE: usize = 64;

/// How many jobs are done in one transaction at most.
const BATCH: usize = 64;

/// Has the database. When it is dropped, the thread does what it was asked for and ends.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

/// Something to be done with the database.
trait Job: Send {
    fn writes(&self) -> bool;
    /// Does it. If it could not be done, nothing of it stays.
    fn work(&mut self, connection: &Connection) -> bool;
    /// Tells whoever waits for it, once the transaction has ended.
    fn end(self: Box<Self>, transaction: &Result<(), StoreError>);
}

struct Asked<T, F> {
    writes: bool,
    work: Option<F>,
    done: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Asked<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
{
    fn writes(&self) -> bool {
        self.writes
    }

    fn work(&mut self, connection: &Connection) -> bool {
        let done = self.work.take().map(|work| work(connection));
        let worked = matches!(done, Some(Ok(_)));
        self.done = done;
        worked
    }

    fn end(self: Box<Self>, transaction: &Result<(), StoreError>) {
        let result = match (self.done, transaction) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
            (Some(done), Ok(())) => done,
            (None, Ok(())) => Err(ended()),
        };
        // Whoever asked may have been dropped meanwhile.
        let _ = self.reply.send(result);
    }
}

fn ended() -> StoreError {
    StoreError::Failed("the thread that keeps sessions has ended".to_owned())
}

/// The thread, while it opens the database.
#[derive(Debug)]
pub(super) struct Starting {
    worker: Worker,
    opened: std::sync::mpsc::Receiver<Result<(), StoreError>>,
}

impl Starting {
    /// Blocks until the database is open.
    pub(super) fn wait(self) -> Result<Worker, StoreError> {
        self.opened.recv().map_err(|_| ended())??;
        Ok(self.worker)
    }
}

impl Worker {
    /// Starts the thread, which opens the database first.
    pub(super) fn start(
        open: impl FnOnce() -> Result<Connection, StoreError> + Send + 'static,
    ) -> Starting {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (done, opened) = std::sync::mpsc::sync_channel(1);
        let failed = done.clone();
        let work = move || {
            let (connection, opened) = match open() {
                Ok(connection) => (Some(connection), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // Whoever asked for it may not have waited.
            let _ = done.send(opened);
            if let Some(connection) = connection {
                run(connection, queue);
            }
        };
        let thread = std::thread::Builder::new().name("acp-sessions".to_owned());
        if let Err(e) = thread.spawn(work) {
            let error = StoreError::Failed(format!("cannot start a thread: {e}"));
            let _ = failed.send(Err(error));
        }
        Starting {
            worker: Self { jobs },
            opened,
        }
    }

    /// Has something done that changes nothing.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(false, work).await
    }

    /// Has something done. When this returns, it is kept.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(true, work).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Asked {
            writes,
            work: Some(work),
            done: None,
            reply,
        };
        self.jobs.send(Box::new(job)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

fn run(mut connection: Connection, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    let mut other = None;
    while let Some(first) = other.take().or_else(|| queue.blocking_recv()) {
        let writes = first.writes();
        let mut batch = vec![first];
        while batch.len() < BATCH {
            match queue.try_recv() {
                Ok(job) if job.writes() == writes => batch.push(job),
                job => {
                    other = job.ok();
                    break;
                }
            }
        }
        let result = transaction(&mut connection, writes, &mut batch);
        for job in batch {
            job.end(&result);
        }
    }
}

fn transaction(
    connection: &mut Connection,
    writes: bool,
    batch: &mut [Box<dyn Job>],
) -> Result<(), StoreError> {
    // One that begins to read and then writes could be refused, whatever it waited for.
    let behavior = if writes {
        TransactionBehavior::Immediate
    } else {
        TransactionBehavior::Deferred
    };
    let mut transaction = connection
        .transaction_with_behavior(behavior)
        .map_err(failed)?;
    for job in batch {
        one(&mut transaction, job.as_mut())?;
    }
    transaction.commit().map_err(failed)
}

/// A job that fails takes nothing of the others' with it.
fn one(transaction: &mut Transaction<'_>, job: &mut dyn Job) -> Result<(), StoreError> {
    let savepoint = transaction.savepoint().map_err(failed)?;
    if job.work(&savepoint) {
        savepoint.commit().map_err(failed)?;
    } else {
        // After some errors SQLite has given up the whole transaction by itself.
        savepoint.finish().map_err(failed)?;
    }
    Ok(())
}
