//! Background jobs of a conversation.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use haft_system::{CapturedOutput, Exit, Finished, ProcessSpec, RunBounds, RunEnd, SpawnError, Supervisor};
use haft_tool::ToolError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    limits::{ENDED_JOBS, JOB_OUTPUT_BYTES, RUNNING_JOBS, SHELL_BYTES},
    shell::{output, terminal::Plain},
};

/// The background jobs of one conversation. They outlive the runs that start them and end with the conversation:
/// [`Jobs::shutdown`], or at the latest the drop.
pub struct Jobs {
    supervisor: Supervisor,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    closed: bool,
    started: u64,
    /// By number. Jobs that are being started count already.
    jobs: BTreeMap<u64, Arc<Job>>,
    starting: usize,
}

/// One background job.
pub(crate) struct Job {
    number: u64,
    command: String,
    pid: u32,
    begin: Instant,
    output: Mutex<Ring>,
    end: CancellationToken,
    finished: watch::Receiver<Option<Finished>>,
}

/// Why a job could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    #[error(
        "{RUNNING_JOBS} background jobs are running, which is the most there may be: {0}. End one with {{\"job\": NAME, \
         \"action\": \"kill\"}} first."
    )]
    TooMany(String),
    #[error("The conversation is ending: no background job was started.")]
    Closed,
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

impl From<JobError> for ToolError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Spawn(error) => error.into(),
            other => ToolError::model(other.to_string()),
        }
    }
}

impl Jobs {
    /// No jobs yet.
    pub fn new(supervisor: Supervisor) -> Self {
        Jobs { supervisor, table: Mutex::default() }
    }

    /// Ends all jobs, and returns when they are dead. No job can be started any more.
    pub async fn shutdown(&self) {
        let jobs: Vec<Arc<Job>> = {
            let mut table = self.table();
            table.closed = true;
            table.jobs.values().cloned().collect()
        };
        for job in &jobs {
            job.end.cancel();
        }
        for job in &jobs {
            job.wait().await;
        }
    }

    /// Starts a job. `time` is `None` for as long as it likes.
    pub(crate) async fn start(
        &self,
        spec: ProcessSpec,
        command: &str,
        time: Option<Duration>,
    ) -> Result<Arc<Job>, JobError> {
        let place = self.take_place()?;
        let process = self.supervisor.spawn(spec).await?;
        let (finishing, finished) = watch::channel(None);
        let job = {
            let mut table = self.table();
            if table.closed {
                // Dropping the process ends it.
                return Err(JobError::Closed);
            }
            table.started += 1;
            let job = Arc::new(Job {
                number: table.started,
                command: command.to_owned(),
                pid: process.pid(),
                begin: Instant::now(),
                output: Mutex::default(),
                end: CancellationToken::new(),
                finished,
            });
            table.jobs.insert(job.number, Arc::clone(&job));
            table.forget_oldest();
            job
        };
        drop(place);
        let watched = Arc::clone(&job);
        tokio::spawn(async move {
            let bounds = RunBounds { time, capture_bytes: 0 };
            let finished =
                process.run_to_end(bounds, &watched.end, &mut |piece| watched.output().push(piece)).await;
            finishing.send_replace(Some(finished));
        });
        Ok(job)
    }

    /// The job of that name. The error names those that there are.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Job>, ToolError> {
        let table = self.table();
        let number = name.strip_prefix("job_").unwrap_or(name).parse().ok();
        if let Some(job) = number.and_then(|number: u64| table.jobs.get(&number)) {
            return Ok(Arc::clone(job));
        }
        let known: Vec<String> = table.jobs.values().map(|job| format!("{job} ({})", job.state())).collect();
        Err(ToolError::model(if known.is_empty() {
            format!("There is no background job `{name}`: none was started in this conversation.")
        } else {
            format!("There is no background job `{name}`. There are: {}.", known.join(", "))
        }))
    }

    /// All jobs, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.table().jobs.values().cloned().collect()
    }

    fn take_place(&self) -> Result<Place<'_>, JobError> {
        let mut table = self.table();
        if table.closed {
            return Err(JobError::Closed);
        }
        let running: Vec<String> = table
            .jobs
            .values()
            .filter(|job| job.finished().is_none())
            .map(|job| format!("{job} ({})", job.command_line()))
            .collect();
        if running.len() + table.starting >= RUNNING_JOBS {
            return Err(JobError::TooMany(running.join(", ")));
        }
        table.starting += 1;
        Ok(Place { jobs: self })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in self.table().jobs.values() {
            job.end.cancel();
        }
    }
}

impl Table {
    fn forget_oldest(&mut self) {
        let ended: Vec<u64> =
            self.jobs.iter().filter(|(_, job)| job.finished().is_some()).map(|(number, _)| *number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(ENDED_JOBS)) {
            self.jobs.remove(number);
        }
    }
}

/// Counts a job that is being started, so that many at once do not pass the limit together.
struct Place<'a> {
    jobs: &'a Jobs,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.jobs.table().starting -= 1;
    }
}

impl Job {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// The command on one line, cut.
    pub(crate) fn command_line(&self) -> String {
        const SHOWN: usize = 100;
        let line = self.command.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// How it ended, if it has.
    pub(crate) fn finished(&self) -> Option<Finished> {
        self.finished.borrow().clone()
    }

    /// `running`, or how it ended.
    pub(crate) fn state(&self) -> String {
        self.finished().map_or_else(|| "running".to_owned(), |finished| ending(&finished))
    }

    /// Since its start, or what it took.
    pub(crate) fn elapsed(&self) -> Duration {
        self.finished().map_or_else(|| self.begin.elapsed(), |finished| finished.elapsed)
    }

    /// Returns when the job has ended.
    pub(crate) async fn wait(&self) {
        // An error means that the task that would tell was ended together with the runtime.
        let _ = self.finished.clone().wait_for(Option::is_some).await;
    }

    /// Asks it to end: TERM, two seconds, KILL, for the whole tree.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// All bytes that it wrote.
    pub(crate) fn output_bytes(&self) -> u64 {
        self.output().written
    }

    /// What it wrote since this was last asked.
    pub(crate) fn news(&self) -> News {
        // Asked first: once it has ended, no more is added.
        let ended = self.finished().is_some();
        self.output().news(ended)
    }

    fn output(&self) -> MutexGuard<'_, Ring> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job_{}", self.number)
    }
}

/// How something ended, in a few words.
pub(crate) fn ending(finished: &Finished) -> String {
    match (finished.end, &finished.exit) {
        (RunEnd::Exited, exit) => exit.to_string(),
        (RunEnd::TimedOut, Exit::Unknown(_)) => format!("timed out; {}", finished.exit),
        (RunEnd::TimedOut, _) => "timed out".to_owned(),
        (RunEnd::Cancelled, Exit::Unknown(_)) => format!("killed; {}", finished.exit),
        (RunEnd::Cancelled, _) => "killed".to_owned(),
    }
}

/// Output that was not looked at before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// Bytes that were dropped before anybody looked at them, because newer ones took their place.
    pub(crate) lost: u64,
    /// The rest, with its middle left out where it is long.
    pub(crate) output: CapturedOutput,
}

/// The last bytes of a job's output, without terminal control sequences.
#[derive(Default)]
struct Ring {
    plain: Plain,
    kept: VecDeque<u8>,
    /// Position of the first kept byte in all that was shown or could have been.
    start: u64,
    /// Position up to which somebody has looked.
    seen: u64,
    /// Bytes as the job wrote them.
    written: u64,
}

impl Ring {
    fn push(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        let plain = self.plain.push(bytes);
        self.kept.extend(&plain);
        let excess = self.kept.len().saturating_sub(JOB_OUTPUT_BYTES);
        self.kept.drain(..excess);
        self.start += excess as u64;
    }

    fn news(&mut self, ended: bool) -> News {
        let lost = self.start.saturating_sub(self.seen);
        let from = usize::try_from(self.seen.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let mut bytes: Vec<u8> = self.kept.iter().skip(from).copied().collect();
        if !ended {
            bytes.truncate(output::complete(&bytes));
        }
        self.seen = self.seen.max(self.start) + bytes.len() as u64;
        let total = bytes.len() as u64;
        let output = if bytes.len() > SHELL_BYTES {
            let tail = bytes.split_off(bytes.len() - SHELL_BYTES / 2);
            bytes.truncate(SHELL_BYTES / 2);
            CapturedOutput { head: bytes, tail, total }
        } else {
            CapturedOutput { head: bytes, tail: Vec::new(), total }
        };
        News { lost, output }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn news(lost: u64, head: &[u8]) -> News {
        let output = CapturedOutput { head: head.to_vec(), tail: Vec::new(), total: head.len() as u64 };
        News { lost, output }
    }

    #[test]
    fn each_byte_is_news_once() {
        let mut ring = Ring::default();
        assert_eq!(ring.news(false), news(0, b""));
        ring.push(b"one \x1b[1mtwo\xc3");
        assert_eq!(ring.news(false), news(0, b"one two"));
        ring.push(b"\xa9!");
        assert_eq!(ring.news(false), news(0, "é!".as_bytes()));
        ring.push(b"\xc3");
        assert_eq!(ring.news(true), news(0, b"\xc3"));
        assert_eq!((ring.news(true), ring.written), (news(0, b""), 15));
    }

    #[test]
    fn what_was_dropped_before_it_was_seen_is_counted() {
        let mut ring = Ring::default();
        ring.push(b"seen");
        ring.news(false);
        ring.push(&vec![b'x'; JOB_OUTPUT_BYTES]);
        ring.push(b"end");
        let News { lost, output } = ring.news(true);
        assert_eq!((lost, output.total, output.tail.ends_with(b"xend")), (3, JOB_OUTPUT_BYTES as u64, true));
        assert_eq!(output.head.len() + output.tail.len(), SHELL_BYTES);
        assert_eq!(ring.news(true), news(0, b""));
    }
}
