//! The process supervisor: every program that Haft runs is started here, and none outlives its owner.
//!
//! Between Haft and each program stands a guard, a small process that ends the program and everything the program has
//! started when the program ends, when Haft asks, or when Haft itself is gone, be it by SIGKILL (the `guard` module tells how).
//!
//! ```no_run
//! # async fn example() -> Result<(), haft_system::SpawnError> {
//! use haft_system::{Environment, ProcessSpec, RunBounds, Supervisor};
//! use tokio_util::sync::CancellationToken;
//!
//! let supervisor = Supervisor::new(Environment::capture());
//! let spec = ProcessSpec::new("git", "/some/repository").arg("status");
//! let bounds = RunBounds { time: Some(std::time::Duration::from_secs(10)), capture_bytes: 64 << 10 };
//! let finished = supervisor.run(spec, bounds, &CancellationToken::new(), &mut |_| {}).await?;
//! assert!(finished.exit.success());
//! # Ok(())
//! # }
//! ```

mod capture;
mod guard;
mod look;
mod monitor;
mod orphans;
mod run;
mod spec;
mod supervisor;
mod tree;
mod wire;

pub use capture::CapturedOutput;
pub use look::{ProcessGlimpse, ProcessWatch, below, may_trace, owns_connection};
pub use run::{Finished, RunBounds, RunEnd};
pub use spec::{Exit, OutputMode, ProcessSpec, SpawnError, StderrMode, StdinMode};
pub use supervisor::{
    Process, ProcessChannel, ProcessInfo, ProcessStderr, ProcessStdin, ProcessStdout, Supervisor,
};
