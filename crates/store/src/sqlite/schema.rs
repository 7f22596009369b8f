//! Opening the file and bringing it up to the present format.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
    time::Instant,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::fault::Fault;
use crate::{StoreError, limits};

/// Marks the file as Haft's (`application_id`), so that a path mistyped to another program's database is not written to: "HAFT".
const APPLICATION: i32 = 0x4841_4654;

/// Step `n` brings format `n` to format `n + 1`. A step that was released never changes; a new one is added behind it.
const STEPS: &[&str] = &[include_str!("schema/0001.sql")];

/// A connection that may write, on a file that is there afterwards and has the present format.
pub(super) fn open_writer(path: &Path) -> Result<Connection, Fault> {
    make_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    settle(&connection)?;
    bring_up(&mut connection, STEPS)?;
    connection.pragma_update(None, "journal_size_limit", limits::LOG_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", limits::LOG_PAGES)?;
    Ok(connection)
}

/// A connection for reading. It is opened for writing all the same, because readers of a write-ahead log share memory with the writer;
/// `query_only` keeps it from changing anything.
pub(super) fn open_reader(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    settle(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn settle(connection: &Connection) -> Result<(), Fault> {
    connection.busy_timeout(limits::BUSY)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}

/// Transcripts hold what people and programs said, secrets among it: the file and the directories made for it are their owner's alone.
/// SQLite gives the files that it puts beside the database the same mode.
fn make_private(path: &Path) -> Result<(), Fault> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        private_directory(directory)?;
    }
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(file) => {
            // Left open for good: closing any descriptor of a file ends all locks that this process has on it (POSIX), those of a
            // store that another thread opened a moment ago too.
            std::mem::forget(file);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mode = fs::metadata(path)
                .map_err(|error| Fault::Io("looking at the file", error))?
                .permissions()
                .mode();
            if mode & 0o077 != 0
                && let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            {
                tracing::warn!(path = %path.display(), %error, "the database can be read by other users, and its mode cannot be changed");
            }
            Ok(())
        }
        Err(error) => Err(Fault::Io("creating the file", error)),
    }
}

pub(super) fn private_directory(directory: &Path) -> Result<(), Fault> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| Fault::Io("creating its directory", error))
}

/// Applies the steps that the file has not seen. All or nothing, and safe against another process doing the same at this moment.
fn bring_up(connection: &mut Connection, steps: &[&str]) -> Result<(), Fault> {
    let known = steps.len() as u32;
    // Nothing is written before the format is known, not even the journal mode.
    if format(connection, known)? == 0 {
        foreign(connection)?;
    }
    write_ahead(connection)?;
    if format(connection, known)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited for the lock.
    let found = format(&transaction, known)?;
    for step in &steps[found as usize..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

fn format(connection: &Connection, known: u32) -> Result<u32, Fault> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(StoreError::TooNew { found, known }.into());
    }
    if found > 0 && application(connection)? != APPLICATION {
        return Err(not_ours());
    }
    Ok(found)
}

fn foreign(connection: &Connection) -> Result<(), Fault> {
    // One statement, hence one view: another process may be laying out a fresh file right now.
    let strange: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema) AND (SELECT user_version FROM pragma_user_version) = 0",
        [],
        |row| row.get(0),
    )?;
    if strange { Err(not_ours()) } else { Ok(()) }
}

fn application(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

fn not_ours() -> Fault {
    Fault::Other(
        "This is another program's database. Choose another path; it has not been changed.".to_owned(),
    )
}

/// Switching to the write-ahead log is the one statement for which SQLite does not wait for a lock by itself.
fn write_ahead(connection: &Connection) -> Result<(), Fault> {
    let start = Instant::now();
    loop {
        let set =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match set {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Fault::Other(format!(
                    "The file system does not allow a write-ahead log (SQLite chose `{mode}`). Keep the database on a local disk."
                )));
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < limits::BUSY =>
            {
                std::thread::sleep(limits::LOCK_RETRY);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn count(connection: &Connection, sql: &str) -> i64 {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// The next format does not exist yet; a step made up here shows that an older file keeps what it holds.
    const NEXT: &str = "ALTER TABLE conversations ADD COLUMN colour TEXT NOT NULL DEFAULT 'none';";

    #[test]
    fn an_older_file_is_brought_up_with_everything_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("haft.db");
        let old = open_writer(&path).unwrap();
        old.execute_batch(
            "INSERT INTO conversations (id, space, directory, title, created_at_ms, updated_at_ms, extra)
             VALUES ('a', 's', '/d', 't', 1, 2, '{}');
             INSERT INTO events (conversation, sequence, at_ms, kind, data) VALUES (1, 1, 5, 'k', '{}');",
        )
        .unwrap();
        drop(old);

        let mut connection = Connection::open(&path).unwrap();
        bring_up(&mut connection, &[STEPS[0], NEXT]).unwrap();
        let colour: String = connection
            .query_row("SELECT colour FROM conversations WHERE id = 'a'", [], |row| row.get(0))
            .unwrap();
        assert_eq!((colour.as_str(), count(&connection, "SELECT count(*) FROM events")), ("none", 1));
        assert_eq!(count(&connection, "PRAGMA user_version"), 2);
        drop(connection);

        match open_writer(&path) {
            Err(Fault::Refused(StoreError::TooNew { found: 2, known: 1 })) => {}
            other => panic!("a newer file was not refused: {other:?}"),
        }
    }

    #[test]
    fn a_step_that_fails_leaves_the_older_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("haft.db");
        drop(open_writer(&path).unwrap());
        let mut connection = Connection::open(&path).unwrap();
        bring_up(&mut connection, &[STEPS[0], NEXT, "CREATE TABLE conversations (oops TEXT);"]).unwrap_err();
        assert_eq!(count(&connection, "PRAGMA user_version"), 1);
        let added = "SELECT count(*) FROM pragma_table_info('conversations') WHERE name = 'colour'";
        assert_eq!(count(&connection, added), 0);
        drop(connection);
        open_writer(&path).unwrap();
    }

    #[test]
    fn another_programs_database_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("theirs.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        let before = fs::read(&path).unwrap();
        assert!(matches!(open_writer(&path), Err(Fault::Other(_))));
        let numbered = directory.path().join("numbered.db");
        Connection::open(&numbered)
            .unwrap()
            .execute_batch("CREATE TABLE theirs (x); PRAGMA user_version = 1")
            .unwrap();
        assert!(matches!(open_writer(&numbered), Err(Fault::Other(_))));
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn many_may_create_the_file_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/er/haft.db");
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| open_writer(&path).map(drop))).collect();
            for handle in opened {
                handle.join().unwrap().unwrap();
            }
        });
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
}
