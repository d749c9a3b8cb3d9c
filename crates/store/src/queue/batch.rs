//! Runs several requests as one transaction, and answers them after the commit.
//!
//! If the transaction can't be committed, each request runs in a separate transaction, so that only
//! the faulty one fails.

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::db::error::StoreError;

/// Requests per transaction: some milliseconds of work, so that the first answer isn't late and
/// enough requests share an fsync.
pub(super) const BATCH_MAX: usize = 256;

pub(super) trait Job: Send {
    /// Does the work and stores its outcome. Returns whether to keep what it wrote. May be called
    /// again after a rollback.
    fn run(&mut self, connection: &Connection) -> Stays;

    /// Delivers the outcome, or why the transaction failed.
    fn answer(self: Box<Self>, transaction: Result<(), StoreError>);
}

/// Whether to keep what a job wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    Yes,
    No,
}

/// A job made of a closure.
pub(super) struct Task<T, W> {
    work: W,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Task<T, W>
where
    T: Send + 'static,
    W: Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
{
    pub(super) fn new(work: W, reply: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self {
            work,
            outcome: None,
            reply,
        }
    }
}

impl Task<(), fn(&Connection) -> Result<(), StoreError>> {
    pub(super) fn wake_up() -> Box<dyn Job> {
        let (reply, _answer) = oneshot::channel();
        Box::new(Task::new(|_: &Connection| Ok(()), reply))
    }
}

impl<T, W> Job for Task<T, W>
where
    T: Send + 'static,
    W: Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
{
    fn run(&mut self, connection: &Connection) -> Stays {
        let outcome = (self.work)(connection);
        let stays = if outcome.is_ok() {
            Stays::Yes
        } else {
            Stays::No
        };
        self.outcome = Some(outcome);
        stays
    }

    fn answer(self: Box<Self>, transaction: Result<(), StoreError>) {
        let outcome = match (transaction, self.outcome) {
            // The job's error is more specific than that of the transaction that it broke.
            (_, Some(Err(error))) | (Err(error), _) => Err(error),
            (Ok(()), Some(Ok(value))) => Ok(value),
            (Ok(()), None) => Err(StoreError::Closed),
        };
        // The caller may have gone away and need no answer.
        drop(self.reply.send(outcome));
    }
}

/// Runs the jobs in one transaction and answers them.
pub(super) fn run(connection: &Connection, mut batch: Vec<Box<dyn Job>>) {
    match run_together(connection, &mut batch) {
        Ok(()) => answer_all(batch, &Ok(())),
        // Otherwise every job would wait for the same lock again, one after the other.
        Err(error @ StoreError::Busy(_)) => answer_all(batch, &Err(error)),
        Err(error) if batch.len() == 1 => answer_all(batch, &Err(error)),
        Err(_) => run_one_by_one(connection, batch),
    }
}

fn run_one_by_one(connection: &Connection, batch: Vec<Box<dyn Job>>) {
    let mut busy = None;
    for mut job in batch {
        let transaction = match &busy {
            Some(error) => Err(StoreError::clone(error)),
            None => run_together(connection, std::slice::from_mut(&mut job)),
        };
        if let Err(error @ StoreError::Busy(_)) = &transaction {
            busy = Some(error.clone());
        }
        job.answer(transaction);
    }
}

fn answer_all(batch: Vec<Box<dyn Job>>, transaction: &Result<(), StoreError>) {
    for job in batch {
        job.answer(transaction.clone());
    }
}

/// One transaction with a savepoint per job. After an error, nothing of it is in the database.
fn run_together(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    execute(connection, "BEGIN IMMEDIATE")?;
    let outcome = run_in_transaction(connection, batch);
    if outcome.is_err() && !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    outcome
}

fn run_in_transaction(
    connection: &Connection,
    batch: &mut [Box<dyn Job>],
) -> Result<(), StoreError> {
    for job in batch {
        execute(connection, "SAVEPOINT job")?;
        let stays = job.run(connection);
        // On some errors, such as a full disk, SQLite rolls back the whole transaction, including
        // earlier jobs.
        if connection.is_autocommit() {
            return Err(StoreError::Closed);
        }
        if stays == Stays::No {
            execute(connection, "ROLLBACK TO job")?;
        }
        execute(connection, "RELEASE job")?;
    }
    execute(connection, "COMMIT")
}

fn execute(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
