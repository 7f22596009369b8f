-- A lease belongs to its conversation's row: whoever appends reads and writes that row anyway.
-- lease_revision never goes down; lease_owner is NULL while nobody holds it.
CREATE TABLE conversations (
    number         INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    space          TEXT NOT NULL,
    directory      TEXT NOT NULL,
    parent         TEXT,
    title          TEXT NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL,
    last_sequence  INTEGER NOT NULL DEFAULT 0,
    extra          TEXT NOT NULL,
    lease_revision INTEGER NOT NULL DEFAULT 0,
    lease_owner    TEXT,
    lease_until_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX conversations_by_use ON conversations (updated_at_ms);

-- data is JSON, and the store does not look into it.
CREATE TABLE events (
    conversation INTEGER NOT NULL REFERENCES conversations (number),
    sequence     INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    data         TEXT NOT NULL,
    PRIMARY KEY (conversation, sequence)
) STRICT;

-- data is NULL where the bytes are in a file beside the database.
CREATE TABLE artifacts (
    id   TEXT PRIMARY KEY,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    data BLOB
) STRICT;
