//! Conversations, events and leases, as rows.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use serde_json::{Map, Value};

use super::fault::Fault;
use crate::{ConversationId, ConversationRecord, Lease, NewEvent, Sequence, StoreError, StoredEvent};

type Result<T> = std::result::Result<T, Fault>;

const RECORD: &str = "SELECT id, space, directory, parent, title, created_at_ms, updated_at_ms, last_sequence, extra FROM conversations";

/// SQLite counts with a sign. A caller's number beyond that is beyond every event, and must not wrap to before the first.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn create(connection: &Connection, record: &ConversationRecord) -> Result<()> {
    insert(connection, record, 0).map(drop)
}

fn insert(connection: &Connection, record: &ConversationRecord, last: Sequence) -> Result<i64> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO conversations
                (id, space, directory, parent, title, created_at_ms, updated_at_ms, last_sequence, extra)
             VALUES (:id, :space, :directory, :parent, :title, :created, :updated, :last, :extra)
             ON CONFLICT (id) DO NOTHING",
        )?
        .execute(named_params! {
            ":id": record.id.0,
            ":space": record.space,
            ":directory": record.directory,
            ":parent": record.parent.as_ref().map(|parent| &parent.0),
            ":title": record.title,
            ":created": record.created_at_ms,
            ":updated": record.updated_at_ms,
            ":last": signed(last),
            ":extra": json(&record.extra)?,
        })?;
    if inserted == 0 {
        return Err(StoreError::Exists(record.id.clone()).into());
    }
    Ok(connection.last_insert_rowid())
}

pub(super) fn fork(
    connection: &Connection,
    from: &ConversationId,
    upto: Sequence,
    new: &ConversationRecord,
) -> Result<()> {
    let origin = standing(connection, from)?;
    if upto > origin.last {
        let name = format!("{upto} of conversation {from}, which stands at {}", origin.last);
        return Err(StoreError::NotFound { what: "event", name }.into());
    }
    let number = insert(connection, new, upto)?;
    connection
        .prepare_cached(
            "INSERT INTO events (conversation, sequence, at_ms, kind, data)
             SELECT ?1, sequence, at_ms, kind, data FROM events WHERE conversation = ?2 AND sequence <= ?3",
        )?
        .execute(params![number, origin.number, signed(upto)])?;
    Ok(())
}

pub(super) fn conversation(connection: &Connection, id: &ConversationId) -> Result<ConversationRecord> {
    connection
        .prepare_cached(&format!("{RECORD} WHERE id = ?1"))?
        .query_row([&id.0], record)
        .optional()?
        .ok_or_else(|| no_conversation(id))?
}

pub(super) fn conversations(connection: &Connection, space: Option<&str>) -> Result<Vec<ConversationRecord>> {
    // Names grow with age, so they settle the order of conversations used within the same millisecond.
    let sql = format!("{RECORD} WHERE ?1 IS NULL OR space = ?1 ORDER BY updated_at_ms DESC, id DESC");
    connection.prepare_cached(&sql)?.query_map([space], record)?.map(|row| row?).collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<Result<ConversationRecord>> {
    let id = ConversationId(row.get(0)?);
    let extra: String = row.get(8)?;
    let extra: Map<String, Value> = match serde_json::from_str(&extra) {
        Ok(extra) => extra,
        Err(error) => return Ok(Err(damaged(&format!("conversation {id}"), &error))),
    };
    Ok(Ok(ConversationRecord {
        id,
        space: row.get(1)?,
        directory: row.get(2)?,
        parent: row.get::<_, Option<String>>(3)?.map(ConversationId),
        title: row.get(4)?,
        created_at_ms: row.get(5)?,
        updated_at_ms: row.get(6)?,
        last_sequence: row.get::<_, i64>(7)? as Sequence,
        extra,
    }))
}

pub(super) fn set_title(connection: &Connection, id: &ConversationId, title: &str) -> Result<()> {
    let changed = connection
        .prepare_cached("UPDATE conversations SET title = ?2 WHERE id = ?1")?
        .execute([&id.0, title])?;
    if changed == 0 { Err(no_conversation(id)) } else { Ok(()) }
}

/// Where a conversation stands and who may write it.
struct Standing {
    number: i64,
    last: Sequence,
    revision: u64,
    owner: Option<String>,
    until_ms: i64,
}

fn standing(connection: &Connection, id: &ConversationId) -> Result<Standing> {
    connection
        .prepare_cached(
            "SELECT number, last_sequence, lease_revision, lease_owner, lease_until_ms FROM conversations WHERE id = ?1",
        )?
        .query_row([&id.0], |row| {
            Ok(Standing {
                number: row.get(0)?,
                last: row.get::<_, i64>(1)? as Sequence,
                revision: row.get::<_, i64>(2)? as u64,
                owner: row.get(3)?,
                until_ms: row.get(4)?,
            })
        })
        .optional()?
        .ok_or_else(|| no_conversation(id))
}

impl Standing {
    fn check(&self, lease: &Lease) -> Result<()> {
        if self.revision == lease.revision && self.owner.as_deref() == Some(lease.owner.as_str()) {
            Ok(())
        } else {
            Err(StoreError::LeaseLost(lease.conversation.clone()).into())
        }
    }
}

pub(super) fn append(
    connection: &Connection,
    lease: &Lease,
    expected: Sequence,
    events: &[NewEvent],
    now_ms: i64,
) -> Result<Sequence> {
    let standing = standing(connection, &lease.conversation)?;
    standing.check(lease)?;
    if standing.last != expected {
        return Err(StoreError::Conflict { expected, actual: standing.last }.into());
    }
    if events.is_empty() {
        return Ok(expected);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (conversation, sequence, at_ms, kind, data) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut last = expected;
    for event in events {
        last += 1;
        insert.execute(params![
            standing.number,
            signed(last),
            event.at_ms,
            event.kind,
            json(&event.data)?
        ])?;
    }
    connection
        .prepare_cached("UPDATE conversations SET last_sequence = ?2, updated_at_ms = ?3 WHERE number = ?1")?
        .execute(params![standing.number, signed(last), now_ms])?;
    Ok(last)
}

pub(super) fn events(
    connection: &Connection,
    id: &ConversationId,
    after: Sequence,
    limit: usize,
) -> Result<Vec<StoredEvent>> {
    let number: Option<i64> = connection
        .prepare_cached("SELECT number FROM conversations WHERE id = ?1")?
        .query_row([&id.0], |row| row.get(0))
        .optional()?;
    let number = number.ok_or_else(|| no_conversation(id))?;
    let mut statement = connection.prepare_cached(
        "SELECT sequence, at_ms, kind, data FROM events WHERE conversation = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
    )?;
    let mut rows = statement.query(params![number, signed(after), signed(limit as u64)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let sequence = row.get::<_, i64>(0)? as Sequence;
        // A hole could only come from damage; what follows it would look like the whole story.
        if sequence != after + 1 + events.len() as u64 {
            let missing = after + 1 + events.len() as u64;
            return Err(Fault::Other(format!(
                "Event {missing} of conversation {id} is missing: the file is damaged. Restore it from a backup."
            )));
        }
        let data = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
        let data = serde_json::from_str(data)
            .map_err(|error| damaged(&format!("event {sequence} of conversation {id}"), &error))?;
        events
            .push(StoredEvent { sequence, event: NewEvent { kind: row.get(2)?, data, at_ms: row.get(1)? } });
    }
    Ok(events)
}

pub(super) fn acquire(
    connection: &Connection,
    id: &ConversationId,
    owner: &str,
    now_ms: i64,
    ttl_ms: i64,
    is_alive: &dyn Fn(&str) -> bool,
) -> Result<Lease> {
    let standing = standing(connection, id)?;
    if let Some(holder) = standing.owner
        && standing.until_ms > now_ms
        && is_alive(&holder)
    {
        return Err(StoreError::Held { conversation: id.clone(), owner: holder }.into());
    }
    let revision = standing.revision + 1;
    connection
        .prepare_cached(
            "UPDATE conversations SET lease_owner = ?2, lease_revision = ?3, lease_until_ms = ?4 WHERE number = ?1",
        )?
        .execute(params![standing.number, owner, signed(revision), now_ms.saturating_add(ttl_ms)])?;
    Ok(Lease { conversation: id.clone(), owner: owner.to_owned(), revision })
}

pub(super) fn renew(connection: &Connection, lease: &Lease, now_ms: i64, ttl_ms: i64) -> Result<()> {
    let standing = standing(connection, &lease.conversation)?;
    standing.check(lease)?;
    connection
        .prepare_cached("UPDATE conversations SET lease_until_ms = ?2 WHERE number = ?1")?
        .execute(params![standing.number, now_ms.saturating_add(ttl_ms)])?;
    Ok(())
}

pub(super) fn release(connection: &Connection, lease: &Lease) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE conversations SET lease_owner = NULL, lease_until_ms = 0
             WHERE id = ?1 AND lease_owner = ?2 AND lease_revision = ?3",
        )?
        .execute(params![lease.conversation.0, lease.owner, signed(lease.revision)])?;
    Ok(())
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Fault::Other(format!("The event cannot be written as JSON: {error}.")))
}

fn damaged(what: &str, error: &serde_json::Error) -> Fault {
    Fault::Other(format!(
        "The stored JSON of {what} cannot be read: {error}. The file is damaged; restore it from a backup."
    ))
}

fn no_conversation(id: &ConversationId) -> Fault {
    StoreError::NotFound { what: "conversation", name: id.0.clone() }.into()
}
