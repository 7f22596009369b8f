//! Waiting until a server has loaded its project. An empty answer before that is no answer (SPEC L6).

use std::time::Duration;

use crate::{
    limits::{FIRST_WORK, GRACE},
    servers::Readiness,
    supervisor::{Server, ServerState},
};

/// What a wait came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It has loaded, as far as it says.
    Ready,
    /// It was still loading when the time was up; the words are its own.
    StillLoading(String),
    /// It is gone.
    Gone(String),
}

/// Waits until `server` has loaded its project, at most `limit`. A document has to be open: several servers load nothing before.
pub(crate) async fn wait(server: &Server, limit: Duration) -> Wait {
    let until = tokio::time::Instant::now() + limit;
    let mut changes = server.changes();
    loop {
        // Marked as seen before looking, so that nothing that comes meanwhile is missed.
        changes.borrow_and_update();
        let (pending, check_again) = match look(server) {
            Look::Done(wait) => return wait,
            Look::Loading(what) => (what, None),
            Look::MayBegin(rest) => ("the project".to_owned(), Some(rest)),
        };
        let now = tokio::time::Instant::now();
        if now >= until {
            return Wait::StillLoading(pending);
        }
        let pause = check_again.unwrap_or(limit).min(until - now);
        // A time-out only means to look again.
        let _ = tokio::time::timeout(pause, changes.changed()).await;
    }
}

enum Look {
    Done(Wait),
    Loading(String),
    /// Nothing has begun, but it may yet within this time.
    MayBegin(Duration),
}

fn look(server: &Server) -> Look {
    match server.state() {
        ServerState::Gone(why) => return Look::Done(Wait::Gone(why)),
        ServerState::Loading(what) => return Look::Loading(what),
        ServerState::Ready => {}
    }
    match server.spec().readiness {
        Readiness::None => Look::Done(Wait::Ready),
        Readiness::ServerStatus => match server.quiescent() {
            Some(_) => Look::Done(Wait::Ready),
            // An older version that does not send it must not hold up every call.
            None if server.since_initialized() > GRACE * 10 => Look::Done(Wait::Ready),
            None => Look::MayBegin((GRACE * 10).saturating_sub(server.since_initialized())),
        },
        Readiness::Reports => {
            let begun = server.work().iter().any(|(_, work)| work.begun > 0);
            match FIRST_WORK
                .checked_sub(server.since_first_open().unwrap_or_else(|| server.since_initialized()))
            {
                Some(rest) if !begun && !rest.is_zero() => Look::MayBegin(rest),
                _ => Look::Done(Wait::Ready),
            }
        }
        Readiness::Progress => match server.since_first_open() {
            Some(since) if since < GRACE && server.work().is_empty() => {
                Look::MayBegin(GRACE.saturating_sub(since))
            }
            _ => Look::Done(Wait::Ready),
        },
    }
}
