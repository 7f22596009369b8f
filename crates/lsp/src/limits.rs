//! Every limit of this crate, with its reason.

use std::time::Duration;

/// Largest message that a server may send. The largest honest ones (workspace symbols of a large project) are a few megabytes; a server
/// that announces more is out of step.
pub(crate) const MESSAGE_BYTES: usize = 64 << 20;
/// Largest header block or stretch of other output before a header that is skipped over.
pub(crate) const JUNK_BYTES: usize = 1 << 20;
/// Messages of ours that may wait for the server to read them. A server that is this far behind does not read at all.
pub(crate) const OUTGOING: usize = 1024;
/// Answers to the server that may wait; refresh storms of a thousand a second have been seen.
pub(crate) const REPLIES: usize = 8192;
/// Bytes of a server's last error output that are kept for `status` and error messages.
pub(crate) const STDERR_BYTES: usize = 4 << 10;

/// How long a server may take to answer `initialize`; the slowest one measured (a JVM) needs 10 s on a busy machine.
pub(crate) const INITIALIZE: Duration = Duration::from_secs(45);
/// How long one request may take.
pub(crate) const REQUEST: Duration = Duration::from_secs(15);
/// How long `textDocument/codeAction` may take: some servers index everything for auto-imports at the first one (5 s measured).
pub(crate) const CODE_ACTION: Duration = Duration::from_secs(30);
/// How long a call waits for a server to finish loading its project. rust-analyzer takes 8 to 21 s on small ones.
pub(crate) const READY: Duration = Duration::from_mins(1);
/// After the first document is open a server that reports progress begins to within this time.
pub(crate) const GRACE: Duration = Duration::from_millis(300);
/// Between two tries of a request that the server could not serve yet.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How often a request is repeated that the server gave up because something changed meanwhile.
pub(crate) const RETRIES: usize = 5;
/// How long a list of uses without even the declaration is not believed.
pub(crate) const EMPTY_USES: Duration = Duration::from_secs(3);
/// Between two questions for it.
pub(crate) const EMPTY_USES_PAUSE: Duration = Duration::from_millis(250);
/// A question with at least this limit that is not answered counts as a sign that the server hangs.
pub(crate) const HANG_LIMIT: Duration = Duration::from_secs(5);
/// Questions in a row that a server may let pass without a word of any kind before it is ended and started again. One that works at something for half a minute and is silent about it is as
/// good as gone to whoever asks.
pub(crate) const SILENT_ROW: usize = 2;
/// Questions of one kind in a row that it may leave unanswered while it answers others.
pub(crate) const SILENT_METHOD: usize = 3;
/// How long a server may take to answer `shutdown`.
pub(crate) const SHUTDOWN: Duration = Duration::from_secs(2);
/// How long a server may take to say its version when it is asked on the command line.
pub(crate) const PROBE: Duration = Duration::from_secs(10);

/// A server that nobody has asked for this long is stopped.
pub(crate) const IDLE: Duration = Duration::from_mins(15);
/// How often idle servers are looked for.
pub(crate) const IDLE_CHECK: Duration = Duration::from_secs(30);
/// Ends of a server within [`CRASH_WINDOW`] after which it is not started again by itself.
pub(crate) const CRASHES: usize = 5;
/// The time in which ends of a server are counted together.
pub(crate) const CRASH_WINDOW: Duration = Duration::from_mins(3);
/// The longest pause before a server is started again.
pub(crate) const BACK_OFF_MOST: Duration = Duration::from_secs(30);
/// A call waits out a pause of this length rather than answering that it has to be waited for.
pub(crate) const BACK_OFF_WAITED: Duration = Duration::from_secs(2);

/// Documents that are kept open in one server. Each costs the server memory (12 MB has been reported); the ones used last stay.
pub(crate) const OPEN_DOCUMENTS: usize = 64;
/// Largest file that is opened in a server.
pub(crate) const DOCUMENT_BYTES: u64 = 8 << 20;
/// Files whose published diagnostics are kept per server.
pub(crate) const PUBLISHED_FILES: usize = 4096;
/// Progress tokens that are remembered after their end.
pub(crate) const PROGRESS_TOKENS: usize = 256;
/// Registrations that a server may have at a time.
pub(crate) const REGISTRATIONS: usize = 1024;

/// Directories that are watched per server; the kernel's own limit for a user is usually 8192 to 65536.
pub(crate) const WATCHED_DIRECTORIES: usize = 4096;
/// Files that are told to a server as perhaps changed when the kernel lost events.
pub(crate) const RESCANNED_FILES: usize = 20_000;
/// Files that are opened because they have come, in a server that takes in others only after a while.
pub(crate) const OPENED_CREATED: usize = 16;
/// Files that have come and are kept open in a server that knows such only while they are. Less than [`OPEN_DOCUMENTS`], for others are opened too.
pub(crate) const ARRIVED_OPEN: usize = 48;
/// The same where each is compiled anew whenever something changes that it includes.
pub(crate) const ARRIVED_COMPILED: usize = 24;
/// Packages that have come about which a server is asked one by one (40 ms each in gopls); of more it is made to look at everything.
pub(crate) const PACKAGES_ASKED: usize = 16;
/// How long a server that takes in files only after a while is waited for where more came than that. pyright needs 70 ms for 40.
pub(crate) const FLOODED: Duration = Duration::from_secs(2);
/// It has taken in all when it has asked for no refresh for this long.
pub(crate) const FLOOD_QUIET: Duration = Duration::from_millis(100);
/// Files of a root of which it is remembered that they are there.
pub(crate) const KNOWN_FILES: usize = 50_000;
/// A server that reads its configuration anew after a while (pyright: half a second) has not done so before. A refresh that it asks for earlier is about something else.
pub(crate) const RECONFIGURES_AFTER: Duration = Duration::from_millis(400);
/// How long a server that reads its configuration anew after a while may take to say that it has.
pub(crate) const RECONFIGURED: Duration = Duration::from_secs(5);
/// A checker that has not begun this long after a save is made to by another one; each time after twice as long. It begins within 350 ms on an idle machine.
pub(crate) const SAVE_AGAIN: Duration = Duration::from_millis(700);
/// How often that is done at most: all of it before the checker is given up.
pub(crate) const SAVES_AGAIN: u32 = 3;
/// Changes that are sent in one notification.
pub(crate) const CHANGES_AT_ONCE: usize = 1000;

/// Uses that `references` lists (SPEC L4).
pub(crate) const REFERENCES: usize = 50;
/// Symbols that a workspace search lists (SPEC L4).
pub(crate) const WORKSPACE_SYMBOLS: usize = 100;
/// Symbols that an outline lists (SPEC L4).
pub(crate) const OUTLINE: usize = 200;
/// Places that the other navigation actions list.
pub(crate) const PLACES: usize = 50;
/// Calls in each direction that are listed.
pub(crate) const CALLS: usize = 50;
/// Code actions that are listed.
pub(crate) const ACTIONS: usize = 30;
/// Characters of a quoted line.
pub(crate) const LINE_CHARS: usize = 200;
/// Characters of what a server tells people.
pub(crate) const COMPLAINT_CHARS: usize = 500;
/// Characters of a hover text.
pub(crate) const HOVER_CHARS: usize = 8000;
/// Other lines that are named when a symbol is not on the line that was given.
pub(crate) const OTHER_LINES: usize = 8;
/// Directories that are looked into for root markers when no file is named.
pub(crate) const SCANNED_DIRECTORIES: usize = 2000;
/// For so long what a server says of its configuration may be about the same again.
pub(crate) const MISREAD_ONCE: Duration = Duration::from_secs(2);
/// How long after a server has said that a file is in no build it is made to look again, and how often.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);
pub(crate) const LOOKS_AGAIN: u32 = 2;
/// How soon after files have come or gone a server begins to look again, and how long that may take.
pub(crate) const RECHECK_BEGINS: Duration = Duration::from_millis(300);
pub(crate) const RECHECK: Duration = Duration::from_secs(10);
/// It is done when it has begun nothing more for this long.
pub(crate) const RECHECK_QUIET: Duration = Duration::from_millis(30);
/// How long a server that reads changed files by itself is given to, and how soon it is asked again whether it has. rust-analyzer needs 1 to 150 ms.
pub(crate) const READ_LATE: Duration = Duration::from_secs(3);
pub(crate) const READ_LATE_POLL: Duration = Duration::from_millis(2);
/// Files that are kept in mind because a server knows them only while they are open.
pub(crate) const UNINDEXED: usize = 1000;
/// How often a server is asked to look at everything where it is told of more meanwhile.
pub(crate) const DIAGNOSES: usize = 3;
/// How deep that search goes below the working directory.
pub(crate) const SCAN_DEPTH: usize = 6;
/// What changed less than this before that search may change again and look the same.
pub(crate) const SCAN_DOUBT: Duration = Duration::from_millis(50);
/// Servers that a call without a file may start.
pub(crate) const STARTED_AT_ONCE: usize = 6;

// Diagnostics, checkers, rename.

/// Problems that one answer lists; more would not be read.
pub(crate) const SHOWN_DIAGNOSTICS: usize = 50;
/// Characters of one problem's message: rustc's with all its notes fit, a type error that prints a whole type does not.
pub(crate) const SHOWN_MESSAGE_CHARS: usize = 1000;
/// Files below a directory that a server's edit may move or delete as one.
pub(crate) const MOVED_FILES: usize = 2000;
/// Characters of a new name; longer ones are a mistake.
pub(crate) const NAME_CHARS: usize = 255;
/// Errors that are told of a file which its server has not analysed.
pub(crate) const SYNTAX_ERRORS: usize = 5;
/// Problems in the `structured` part of an answer; programs take more than a model does.
pub(crate) const STRUCTURED_DIAGNOSTICS: usize = 500;
/// How long a project's checker may run: a first `cargo check` of a large workspace takes minutes.
pub(crate) const CHECKER_TIME: Duration = Duration::from_mins(5);
/// Bytes of a checker's output that are kept; its JSON has to be whole.
pub(crate) const CHECKER_OUTPUT: usize = 32 << 20;
/// Checkers that run side by side; each of them uses every core by itself.
pub(crate) const CHECKER_AT_ONCE: usize = 2;
/// Last lines of a failed checker's output that are shown.
pub(crate) const CHECKER_TAIL_LINES: usize = 8;
/// Roots of one language that are checked.
pub(crate) const CHECKED_ROOTS: usize = 20;
/// Translation units of a compilation database that are checked; a build checks them all and does it better.
pub(crate) const CHECKED_UNITS: usize = 60;
/// How long a server may take to answer a pull. Longer than a navigation: it may load the project first, and nobody waits for it inline.
pub(crate) const PULL: Duration = Duration::from_mins(1);
/// How long a server that has read a text which it had before may say nothing, before it is made to work it out anew. That costs it a whole rebuild, so it is not done at once.
pub(crate) const SAME: Duration = Duration::from_millis(250);
/// Registrations of a server come within this time after its start.
pub(crate) const REGISTRATION_GRACE: Duration = Duration::from_secs(2);
/// Code actions whose edits are worked out and staged; each is a request of its own and takes room in the staging area.
pub(crate) const STAGED_ACTIONS: usize = 8;
/// How long code actions wait for what a server that pushes has found, so that fixes are offered for it. The slowest needs 5 s when cold.
pub(crate) const FIXES_WAIT: Duration = Duration::from_secs(6);
/// How long a write is held up by diagnostics in all (SPEC W4).
pub(crate) const WRITE_INLINE: Duration = Duration::from_millis(500);
/// The part of it that may go to the state before the write. A warm server that has the file open needs a few milliseconds.
pub(crate) const BASELINE_SHARE: f64 = 0.4;
/// The part of it that may go to other files that are open, once those of the change are known, where it is not known which of them use what changed.
pub(crate) const OTHERS_INLINE: Duration = Duration::from_millis(60);
/// The same where it is known that none of them does. A server that does one thing at a time (pyright) needs some 40 ms to say that nothing is wrong with a dozen of them.
pub(crate) const UNCONCERNED_INLINE: Duration = Duration::from_millis(5);
/// How long a server that has started within this time may take for a file, in the background (the slowest needs 21 s for a small project).
pub(crate) const CHECK_COLD: Duration = Duration::from_secs(90);
/// How long a server that has run for a while may take for a file, in the background.
pub(crate) const CHECK_WARM: Duration = Duration::from_secs(30);
/// Files of one change that are verified one by one.
pub(crate) const VERIFIED_FILES: usize = 40;
/// Other files of which the state is asked for after a change.
pub(crate) const OTHER_FILES: usize = 12;
/// How long a server may take to name the files that use what a change is about to change, and to say what it thinks of them. The change waits for its share of the inline time only;
/// what the server finds in the changed file itself comes that much later.
pub(crate) const DEPENDANTS: Duration = Duration::from_secs(1);
/// Changed symbols whose users are looked for. An edit by hand touches one or two.
pub(crate) const CHANGED_SYMBOLS: usize = 8;
/// Writes whose late results are kept until somebody takes them.
pub(crate) const LATE_JOBS: usize = 64;
/// How long an answer about one file waits for a server that has started within this time.
pub(crate) const FILE_COLD: Duration = Duration::from_mins(1);
/// How long an answer about one file waits for a server that has run for a while.
pub(crate) const FILE_WARM: Duration = Duration::from_secs(20);
/// How long a server may take to work out a rename: it looks through the whole project.
pub(crate) const RENAME: Duration = Duration::from_mins(1);
/// How long a question about one file waits for a server to finish loading its project; then it is asked all the same, and the answer says so.
pub(crate) const READY_FILE: Duration = Duration::from_secs(30);
/// A server that always reports its loading has begun to within this time after its first document is open, on a busy machine too.
pub(crate) const FIRST_WORK: Duration = Duration::from_secs(10);
/// How long a question waits for the server to work in what changed in other files.
pub(crate) const SETTLE_OTHERS: Duration = Duration::from_secs(5);
/// How long one command of an installation may take; some packages are large and some networks slow.
pub(crate) const INSTALL: Duration = Duration::from_mins(10);
/// How long it is believed that a server's root and program are where they were found.
pub(crate) const FOUND_FOR: Duration = Duration::from_secs(2);
/// Directories and kinds of files for which that is remembered.
pub(crate) const FOUND_PLACES: usize = 512;
