//! Requests made one transaction.
//!
//! In: jobs. Out: their answers, after the commit. Refused: nothing; where the whole can't be committed, each job is tried in a transaction of its own,
//! so that only the one to blame fails.

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::db::error::StoreError;

/// Jobs in one transaction: some milliseconds of work, so that the first one's answer isn't late, and an fsync shared by enough.
pub(super) const BATCH_MAX: usize = 256;

/// A request that waits for the writer.
pub(super) trait Job: Send {
    /// Does the work and keeps its outcome; says whether it may stay. May be called again after its effect was rolled back.
    fn run(&mut self, connection: &Connection) -> Stays;

    /// Hands the outcome over, or why the transaction did not come about.
    fn answer(self: Box<Self>, transaction: Result<(), StoreError>);
}

/// Whether what a job wrote is to stay.
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
    /// A job that does nothing.
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
            // Its own error says more than that of the transaction it spoilt.
            (_, Some(Err(error))) | (Err(error), _) => Err(error),
            (Ok(()), Some(Ok(value))) => Ok(value),
            (Ok(()), None) => Err(StoreError::Closed),
        };
        // A caller that went away doesn't need its answer.
        drop(self.reply.send(outcome));
    }
}

/// Runs the jobs in one transaction and answers them.
pub(super) fn run(connection: &Connection, mut batch: Vec<Box<dyn Job>>) {
    match run_together(connection, &mut batch) {
        Ok(()) => answer_all(batch, &Ok(())),
        // Everybody would wait for the same lock again, one after the other.
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

/// One transaction, a savepoint a job. An error means that nothing of it is there.
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
        // Some errors, such as a full disk, make SQLite roll the whole transaction back, and the jobs before this one with it.
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
