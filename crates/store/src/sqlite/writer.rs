//! The one thread that writes.
//!
//! Writes that wait at the same time share a transaction, so that many conversations cost one wait for the disk. Each stands in a
//! savepoint of its own: one that is refused takes nothing with it. Nobody who asked for the disk gets an answer before the transaction
//! is on it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    vec,
};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::fault::Fault;
use crate::{Result, StoreError, limits};

/// What a write has outlived when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// The end of this process. A power cut may take it until a later write has reached the disk, or the time of [`limits::SYNC`] has passed.
    Process,
    /// A power cut.
    Disk,
}

pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    path: PathBuf,
    later: Arc<Later>,
}

/// What whoever is going to ask for [`Message::Sync`] goes by.
#[derive(Default)]
struct Later {
    /// Whether somebody is going to ask.
    is_asked: AtomicBool,
    /// How many writes there were.
    writes: AtomicU64,
}

/// Lets others ask when it is dropped, even if that is because the runtime has ended.
struct Asking(Arc<Later>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.is_asked.store(false, Ordering::Release);
    }
}

enum Message {
    Write(Box<dyn Job>),
    /// What was answered before it was on the disk is to be brought there. `is_quiet`: nobody has written for a while.
    Sync {
        is_quiet: bool,
    },
}

impl Writer {
    /// The thread lives as long as the writer.
    pub(super) fn start(connection: Connection, path: PathBuf) -> Result<Writer> {
        let (queue, jobs) = mpsc::channel(limits::WRITE_QUEUE);
        let database = path.clone();
        std::thread::Builder::new()
            .name("haft-store".to_owned())
            .spawn(move || serve(&connection, jobs, &database))
            .map_err(|error| Fault::Io("starting the writer's thread", error).at(&path))?;
        Ok(Writer { queue, path, later: Arc::default() })
    }

    /// Runs `work` in a transaction and answers when it is as safe as `durability` says. `committed` runs then on the writer's thread,
    /// even when the caller has gone away.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
        committed: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job = Write { durability, work: Some(work), outcome: None, committed, answer };
        self.queue.send(Message::Write(Box::new(job))).await.map_err(|_| self.stopped())?;
        self.later.writes.fetch_add(1, Ordering::Relaxed);
        if durability == Durability::Process {
            self.sync_later();
        }
        match answered.await {
            Ok(outcome) => outcome.map_err(|fault| fault.at(&self.path)),
            Err(_) => Err(self.stopped()),
        }
    }

    /// Sees to it that what is not waited for is on the disk soon all the same.
    fn sync_later(&self) {
        if self.later.is_asked.swap(true, Ordering::AcqRel) {
            return;
        }
        // The end of the store does not wait for this: closing brings everything to the disk.
        let (later, queue) = (Arc::clone(&self.later), self.queue.downgrade());
        tokio::spawn(async move {
            let asking = Asking(later);
            let later = &asking.0;
            let mut is_quiet = false;
            for _ in 0..limits::SYNC_ROUNDS {
                let before = later.writes.load(Ordering::Relaxed);
                tokio::time::sleep(limits::SYNC).await;
                is_quiet = later.writes.load(Ordering::Relaxed) == before;
                if is_quiet {
                    break;
                }
            }
            drop(asking);
            if let Some(queue) = queue.upgrade() {
                // An error says that the store is closed.
                drop(queue.send(Message::Sync { is_quiet }).await);
            }
        });
    }

    fn stopped(&self) -> StoreError {
        Fault::Other("The writer has stopped. This is a mistake in Haft; start it again.".to_owned())
            .at(&self.path)
    }
}

/// A write on its way through the thread, its types erased.
trait Job: Send {
    /// What the transaction has to outlive before the caller is told.
    fn durability(&self) -> Durability;

    /// Does the work; false if it is to be undone.
    fn work(&mut self, connection: &Connection) -> bool;

    /// Tells the caller what came of it, given how the transaction ended.
    fn finish(self: Box<Self>, transaction: std::result::Result<(), Fault>);
}

struct Write<W, T, C> {
    durability: Durability,
    work: Option<W>,
    outcome: Option<std::result::Result<T, Fault>>,
    committed: C,
    answer: oneshot::Sender<std::result::Result<T, Fault>>,
}

impl<W, T, C> Job for Write<W, T, C>
where
    W: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send,
    T: Send,
    C: FnOnce(&T) + Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn work(&mut self, connection: &Connection) -> bool {
        self.outcome = self.work.take().map(|work| work(connection));
        matches!(self.outcome, Some(Ok(_)))
    }

    fn finish(self: Box<Self>, transaction: std::result::Result<(), Fault>) {
        let outcome = match (transaction, self.outcome) {
            (Ok(()), Some(Ok(value))) => {
                (self.committed)(&value);
                Ok(value)
            }
            // A refusal is about what the file held, and that has not changed whatever became of the others.
            (_, Some(Err(fault))) => Err(fault),
            (Err(fault), _) => Err(fault),
            (Ok(()), None) => {
                Err(Fault::Other("A write was left out. This is a mistake in Haft.".to_owned()))
            }
        };
        // The caller may have gone away; what it asked for is done all the same.
        let _ = self.answer.send(outcome);
    }
}

fn serve(connection: &Connection, mut queue: mpsc::Receiver<Message>, path: &Path) {
    let mut batch = Vec::with_capacity(limits::WRITE_BATCH);
    let mut is_on_disk = true;
    loop {
        // `blocking_recv` waits for the first; the rest of the queue comes along without waiting.
        let Some(first) = queue.blocking_recv() else { return };
        let mut next = Some(first);
        let mut sync = None;
        while let Some(message) = next {
            match message {
                Message::Write(job) => batch.push(job),
                Message::Sync { is_quiet } => sync = Some(is_quiet),
            }
            next = if batch.len() < limits::WRITE_BATCH { queue.try_recv().ok() } else { None };
        }
        let mut waiting = std::mem::take(&mut batch).into_iter();
        while waiting.len() > 0 {
            is_on_disk = transact(connection, &mut waiting, path) == Durability::Disk;
        }
        if let Some(is_quiet) = sync
            && !is_on_disk
        {
            match bring_to_disk(connection, is_quiet) {
                Ok(()) => is_on_disk = true,
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "the record could not be brought to the disk");
                }
            }
        }
    }
}

/// Brings every write so far to the disk, and while nobody writes, what has gathered in the log into the database.
fn bring_to_disk(connection: &Connection, is_quiet: bool) -> rusqlite::Result<()> {
    // Only a commit that writes something waits for the disk. This one writes what stands there.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let format: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    transaction.pragma_update(None, "user_version", format)?;
    transaction.commit()?;
    if is_quiet {
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    }
    Ok(())
}

/// Takes at least one job out of `waiting`, and all of them unless the transaction breaks on the way. Answers what the transaction has
/// outlived.
fn transact(connection: &Connection, waiting: &mut vec::IntoIter<Box<dyn Job>>, path: &Path) -> Durability {
    // In write-ahead mode a commit under NORMAL waits for nothing, and the next one under FULL takes it along to the disk. The setting
    // cannot change inside a transaction, so the most careful of those who share it decides.
    let durability = waiting.as_slice().iter().map(|job| job.durability()).max().unwrap_or(Durability::Disk);
    let mut taken = Vec::with_capacity(waiting.len());
    match attempt(connection, waiting, &mut taken, durability) {
        Ok(()) => {
            taken.into_iter().for_each(|job| job.finish(Ok(())));
            durability
        }
        Err(error) => {
            if !connection.is_autocommit()
                && let Err(error) = connection.execute_batch("ROLLBACK")
            {
                tracing::error!(path = %path.display(), %error, "a broken transaction could not be rolled back");
            }
            if taken.is_empty() {
                // Not even the beginning worked; the first in line is told, so that the line gets shorter.
                taken.extend(waiting.next());
            }
            let words = Fault::from(error).words();
            for job in taken {
                job.finish(Err(Fault::Other(words.clone())));
            }
            Durability::Process
        }
    }
}

fn attempt(
    connection: &Connection,
    waiting: &mut vec::IntoIter<Box<dyn Job>>,
    taken: &mut Vec<Box<dyn Job>>,
    durability: Durability,
) -> rusqlite::Result<()> {
    let level = match durability {
        Durability::Process => "NORMAL",
        Durability::Disk => "FULL",
    };
    connection.pragma_update(None, "synchronous", level)?;
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for mut job in waiting {
        connection.prepare_cached("SAVEPOINT job")?.execute([])?;
        let keep = job.work(connection);
        taken.push(job);
        if !keep {
            // Fails when a full disk made SQLite give up the whole transaction; then nothing of it may be acknowledged.
            connection.prepare_cached("ROLLBACK TO job")?.execute([])?;
        }
        connection.prepare_cached("RELEASE job")?.execute([])?;
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use rusqlite::Connection;

    use super::*;

    fn insert(number: i64) -> impl FnOnce(&Connection) -> std::result::Result<(), Fault> {
        move |connection| {
            connection.execute("INSERT INTO kept VALUES (?1, randomblob(3000))", [number])?;
            Ok(())
        }
    }

    fn job<W>(work: W) -> (Box<dyn Job>, oneshot::Receiver<std::result::Result<(), Fault>>)
    where
        W: FnOnce(&Connection) -> std::result::Result<(), Fault> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let durability = Durability::Disk;
        (
            Box::new(Write { durability, work: Some(work), outcome: None, committed: |(): &()| (), answer }),
            answered,
        )
    }

    fn told(answers: Vec<oneshot::Receiver<std::result::Result<(), Fault>>>) -> Vec<bool> {
        answers.into_iter().map(|mut answer| answer.try_recv().unwrap().is_ok()).collect()
    }

    fn numbers(connection: &Connection) -> Vec<i64> {
        let mut statement = connection.prepare("SELECT number FROM kept ORDER BY number").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(std::result::Result::unwrap).collect()
    }

    fn run(connection: &Connection, jobs: Vec<Box<dyn Job>>) {
        let mut waiting = jobs.into_iter();
        while waiting.len() > 0 {
            transact(connection, &mut waiting, Path::new("test.db"));
        }
    }

    #[test]
    fn a_refused_write_takes_nothing_with_it() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE kept (number INTEGER, filler BLOB)").unwrap();
        let (one, first) = job(insert(1));
        let (two, second) = job(|connection| {
            insert(2)(connection)?;
            Err(StoreError::NotFound { what: "thing", name: "x".to_owned() }.into())
        });
        let (three, third) = job(insert(3));
        run(&connection, vec![one, two, three]);
        assert_eq!(told(vec![first, second, third]), [true, false, true]);
        assert_eq!(numbers(&connection), [1, 3]);
    }

    #[test]
    fn the_most_careful_of_a_batch_decides_how_it_is_kept() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE kept (number INTEGER, filler BLOB)").unwrap();
        let level = |durabilities: &[Durability]| -> i64 {
            let jobs = durabilities.iter().map(|durability| {
                let (answer, _) = oneshot::channel();
                let committed = |(): &()| ();
                let work = Some(insert(1));
                Box::new(Write { durability: *durability, work, outcome: None, committed, answer })
                    as Box<dyn Job>
            });
            run(&connection, jobs.collect());
            connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap()
        };
        let (normal, full) = (1, 2);
        assert_eq!(level(&[Durability::Process, Durability::Process]), normal);
        assert_eq!(level(&[Durability::Process, Durability::Disk]), full);
        assert_eq!(level(&[Durability::Process]), normal);
        assert_eq!(level(&[Durability::Disk]), full);
    }

    #[test]
    fn a_full_disk_in_mid_batch_acknowledges_only_what_is_kept() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE kept (number INTEGER, filler BLOB); PRAGMA max_page_count = 12")
            .unwrap();
        let (jobs, answers): (Vec<_>, Vec<_>) = (0..40).map(|number| job(insert(number))).unzip();
        run(&connection, jobs);
        let told = told(answers);
        let acknowledged: Vec<i64> = (0..40).filter(|number| told[*number as usize]).collect();
        assert_eq!(numbers(&connection), acknowledged);
        assert!(acknowledged.len() < 40, "the disk was meant to be full");
        connection.execute_batch("PRAGMA max_page_count = 1000").unwrap();
        let (after, answer) = job(insert(99));
        run(&connection, vec![after]);
        assert_eq!(self::told(vec![answer]), [true]);
    }

    #[test]
    fn a_transaction_that_sqlite_gave_up_acknowledges_none_of_its_writes() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE kept (number INTEGER, filler BLOB)").unwrap();
        let (one, first) = job(insert(1));
        let (two, second) = job(|connection| {
            // What SQLite does by itself on some errors.
            connection.execute_batch("ROLLBACK")?;
            Err(Fault::Other("lost".to_owned()))
        });
        let (three, third) = job(insert(3));
        run(&connection, vec![one, two, three]);
        assert_eq!(told(vec![first, second, third]), [false, false, true]);
        assert_eq!(numbers(&connection), [3]);
    }
}
