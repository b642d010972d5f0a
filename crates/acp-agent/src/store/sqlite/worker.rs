//! The thread that owns the database connection.
//!
//! SQLite blocks, so it runs on a thread of its own. Jobs that arrive while the thread is busy are run together in one
//! transaction. This allows many sessions to stream at once without a transaction for each token.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::store::error::StoreError;
use crate::store::sqlite::error::store_error;

/// The capacity of the job queue. Senders wait while it is full.
const QUEUE_CAPACITY: usize = 64;

/// The maximum number of jobs in one transaction.
const MAX_BATCH_JOBS: usize = 64;

/// A handle to the database thread. When it is dropped, the thread finishes the queued jobs and exits.
#[derive(Debug)]
pub(super) struct SqliteWorker {
    jobs: mpsc::Sender<Box<dyn SqliteJob>>,
}

/// A job to run on the database thread.
trait SqliteJob: Send {
    fn writes(&self) -> bool;
    /// Runs the job. Returns `false` if the job failed and its changes must be rolled back.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Sends the result to the caller once the transaction has ended.
    fn finish(self: Box<Self>, transaction: &Result<(), StoreError>);
}

struct QueuedJob<T, F> {
    is_write: bool,
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> SqliteJob for QueuedJob<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
{
    fn writes(&self) -> bool {
        self.is_write
    }

    fn run(&mut self, connection: &Connection) -> bool {
        let done = self.work.take().map(|work| work(connection));
        let worked = matches!(done, Some(Ok(_)));
        self.result = done;
        worked
    }

    fn finish(self: Box<Self>, transaction: &Result<(), StoreError>) {
        let result = match (self.result, transaction) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
            (Some(done), Ok(())) => done,
            (None, Ok(())) => Err(worker_exited_error()),
        };
        // The caller may have been dropped meanwhile.
        let _ = self.reply.send(result);
    }
}

fn worker_exited_error() -> StoreError {
    StoreError::Failed("the session store thread has exited".to_owned())
}

impl SqliteWorker {
    /// Starts the thread, which opens the database. Blocks until it is open.
    pub(super) fn start(
        open: impl FnOnce() -> Result<Connection, StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(QUEUE_CAPACITY);
        let (opened, open_result) = std::sync::mpsc::sync_channel(1);
        let work = move || match open() {
            Ok(connection) => {
                // The caller waits for it, so it is received.
                let _ = opened.send(Ok(()));
                run_jobs(connection, queue);
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        };
        std::thread::Builder::new()
            .name("acp-sessions".to_owned())
            .spawn(work)
            .map_err(|e| StoreError::Failed(format!("cannot start a thread: {e}")))?;
        open_result.recv().map_err(|_| worker_exited_error())??;
        Ok(Self { jobs })
    }

    /// Runs a job that does not change the database.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(false, work).await
    }

    /// Runs a job that changes the database. When this returns, the change has been stored.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(true, work).await
    }

    async fn submit<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = QueuedJob {
            is_write: writes,
            work: Some(work),
            result: None,
            reply,
        };
        self.jobs
            .send(Box::new(job))
            .await
            .map_err(|_| worker_exited_error())?;
        answer.await.map_err(|_| worker_exited_error())?
    }
}

fn run_jobs(mut connection: Connection, mut queue: mpsc::Receiver<Box<dyn SqliteJob>>) {
    let mut other = None;
    while let Some(first) = other.take().or_else(|| queue.blocking_recv()) {
        let writes = first.writes();
        let mut batch = vec![first];
        while batch.len() < MAX_BATCH_JOBS {
            match queue.try_recv() {
                Ok(job) if job.writes() == writes => batch.push(job),
                job => {
                    other = job.ok();
                    break;
                }
            }
        }
        let result = run_transaction(&mut connection, writes, &mut batch);
        for job in batch {
            job.finish(&result);
        }
    }
}

fn run_transaction(
    connection: &mut Connection,
    writes: bool,
    batch: &mut [Box<dyn SqliteJob>],
) -> Result<(), StoreError> {
    // SQLite may reject a transaction that reads first and then writes, however long it waits.
    let behavior = if writes {
        TransactionBehavior::Immediate
    } else {
        TransactionBehavior::Deferred
    };
    let mut transaction = connection
        .transaction_with_behavior(behavior)
        .map_err(store_error)?;
    for job in batch {
        run_in_savepoint(&mut transaction, job.as_mut())?;
    }
    transaction.commit().map_err(store_error)
}

/// Runs a job in a savepoint, so that its failure does not affect other jobs.
fn run_in_savepoint(
    transaction: &mut Transaction<'_>,
    job: &mut dyn SqliteJob,
) -> Result<(), StoreError> {
    let savepoint = transaction.savepoint().map_err(store_error)?;
    if job.run(&savepoint) {
        savepoint.commit().map_err(store_error)?;
    } else {
        // After some errors SQLite has already rolled back the whole transaction.
        savepoint.finish().map_err(store_error)?;
    }
    Ok(())
}
