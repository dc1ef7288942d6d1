-- The cache of one user of one app at one vendor, version 4 (PRAGMA user_version); its
-- application id is "UCCa", 1430471521 (PRAGMA application_id), or 0 in a file that was made before there was one.
--
-- Ids are compared by bytes (BINARY). A position is three columns: major, minor, tail (see MessagePosition).
-- A payload is the JSON record of the item (records.schema.json); columns beside it are what is queried or local.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE channels (
  id TEXT PRIMARY KEY,
  -- 0: only heard of, through a message; 1: payload is the channel's.
  is_known INTEGER NOT NULL DEFAULT 0,
  is_member INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER,
  -- NULL: unknown. unread_is_least: at least so many.
  unread INTEGER,
  unread_is_least INTEGER NOT NULL DEFAULT 0,
  read_major INTEGER,
  read_minor INTEGER,
  read_tail TEXT,
  -- A read mark that the server has not got yet.
  mark_is_due INTEGER NOT NULL DEFAULT 0,
  -- Everything up to here was cleared by the user.
  cleared_major INTEGER,
  cleared_minor INTEGER,
  cleared_tail TEXT,
  -- Of this device alone.
  is_pinned_here INTEGER NOT NULL DEFAULT 0,
  is_hidden_here INTEGER NOT NULL DEFAULT 0,
  local_extension TEXT,
  draft TEXT,
  payload TEXT,
  -- The connected user's own view of the channel, as the vendor tells it.
  view TEXT
) STRICT;

CREATE TABLE members (
  channel TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
  user TEXT NOT NULL,
  state TEXT NOT NULL,
  payload TEXT NOT NULL,
  profile TEXT NOT NULL,
  PRIMARY KEY (channel, user)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  -- Also the row of the search index. The creation time in ms times 2^20, plus a counter: rows stand in the order of
  -- time, so that the newest hits of a search are read first and no others.
  row INTEGER PRIMARY KEY,
  channel TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
  -- id and position are NULL until the server has committed the message.
  id TEXT,
  local_id TEXT,
  client_id TEXT,
  sender TEXT,
  major INTEGER,
  minor INTEGER,
  tail TEXT,
  local_order INTEGER,
  created_at INTEGER NOT NULL,
  edited_at INTEGER,
  -- sent, pending, unknown, failed
  state TEXT NOT NULL,
  is_recalled INTEGER NOT NULL DEFAULT 0,
  -- Counts as unread when somebody else wrote it after the read mark.
  is_countable INTEGER NOT NULL DEFAULT 1,
  -- visible, hidden (for this user), duplicate (of the message with id duplicate_of)
  visibility TEXT NOT NULL DEFAULT 'visible',
  duplicate_of TEXT,
  thread_parent TEXT,
  -- The ChatError of a failed message.
  error TEXT,
  local_extension TEXT,
  payload TEXT NOT NULL,
  -- The id of the message that it answers.
  reply_to TEXT,
  -- Of a message of this device alone, which has neither id nor position, and is sent: it stands behind everything up to
  -- here. Read when pages are shown, and by nothing that speaks of ranges, marks or the server.
  after_major INTEGER,
  after_minor INTEGER,
  after_tail TEXT
) STRICT;

CREATE UNIQUE INDEX messages_id ON messages (channel, id) WHERE id IS NOT NULL;
CREATE UNIQUE INDEX messages_local ON messages (local_id) WHERE local_id IS NOT NULL;
CREATE INDEX messages_client ON messages (channel, sender, client_id) WHERE client_id IS NOT NULL;
-- Pages of the main list and of threads are walks along these two.
CREATE INDEX messages_page ON messages (channel, major, minor, tail)
  WHERE major IS NOT NULL AND visibility = 'visible' AND thread_parent IS NULL;
CREATE INDEX messages_thread ON messages (channel, thread_parent, major, minor, tail)
  WHERE major IS NOT NULL AND visibility = 'visible' AND thread_parent IS NOT NULL;
-- What quotes a message that is recalled.
CREATE INDEX messages_answers ON messages (channel, reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX messages_waiting ON messages (channel, local_order) WHERE id IS NULL;
-- Messages of this device alone, as they stand; among those of one place in the order of rows, which is that of time.
CREATE INDEX messages_here ON messages (channel, after_major, after_minor, after_tail) WHERE after_major IS NOT NULL;

-- What is known without holes: from low to high (both ends included) the cache holds every message of the main list.
-- The lowest possible low: nothing older exists. The highest possible high: live, newer ones arrive by themselves.
CREATE TABLE ranges (
  channel TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
  low_major INTEGER NOT NULL,
  low_minor INTEGER NOT NULL,
  low_tail TEXT NOT NULL,
  high_major INTEGER NOT NULL,
  high_minor INTEGER NOT NULL,
  high_tail TEXT NOT NULL,
  PRIMARY KEY (channel, low_major, low_minor, low_tail)
) STRICT, WITHOUT ROWID;

-- Where reading goes on: `changes` in the log of edits of a channel; `stream`, with an empty channel, in what the vendor
-- pushes.
CREATE TABLE cursors (
  name TEXT NOT NULL,
  channel TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name, channel)
) STRICT, WITHOUT ROWID;

-- Messages that the server has not confirmed. Stands alone, so that it can be saved from a damaged file.
CREATE TABLE outbox (
  -- The order of sending within a channel.
  turn INTEGER PRIMARY KEY AUTOINCREMENT,
  local_id TEXT NOT NULL UNIQUE,
  channel TEXT NOT NULL,
  client_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- Tries that were begun.
  attempts INTEGER NOT NULL DEFAULT 0,
  -- queued, flying (a try may have reached the server), parked (outcome unknown, not to be sent again), failed
  state TEXT NOT NULL DEFAULT 'queued',
  -- The newest position known before the first try: where to begin looking for it.
  seen_major INTEGER,
  seen_minor INTEGER,
  seen_tail TEXT,
  -- The message record of the draft, and the bytes or the path of its attachment while not uploaded.
  payload TEXT NOT NULL,
  source_path TEXT,
  source_bytes BLOB
) STRICT;

CREATE INDEX outbox_queue ON outbox (channel, turn);

-- Hidden for this user on this device; kept apart, since the message may not be here yet.
CREATE TABLE hidden (
  channel TEXT NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (channel, id)
) STRICT, WITHOUT ROWID;

-- Terms are made by SearchTerms: words, and pairs of characters where a script has no spaces. Tags are channel, sender
-- and kind, so that a filter costs no more than a word, and the first two characters of each word. Beginnings of these
-- lengths are kept as lists of their own; two is left out, because every pair would stand there a second time.
CREATE VIRTUAL TABLE search USING fts5 (
  terms, tags, content = '', tokenize = 'ascii', columnsize = 0, prefix = '1 3 4 5 6'
);
