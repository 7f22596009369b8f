//! Servers that take what they are given and do not answer (SPEC L7). One that has let several questions pass without a word, or the same kind of question again and again, is ended as if
//! it had died: the next call starts another. A slow server is told apart by what it says meanwhile.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{Server, ServerState};
use crate::limits::{HANG_LIMIT, SILENT_METHOD, SILENT_ROW};

/// What a server has left unanswered.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Questions in a row that ran out of time while nothing at all came from it.
    row: usize,
    /// When the last of them ran out of time: what was asked before that is no further sign.
    counted: Option<Instant>,
    /// The same by method, whatever else it said.
    methods: HashMap<String, (usize, Instant)>,
    /// For tests of what hanging costs, in which there is no program to start again.
    kept: bool,
}

/// Methods for which a server was started again in vain. Outlives the server.
pub(super) type Unanswered = Arc<Mutex<HashSet<String>>>;

/// When a question was put, and how much had been heard by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    at: Instant,
    received: u64,
}

impl Server {
    /// To be taken before a question is sent.
    pub(crate) fn asking(&self) -> Asked {
        Asked { at: Instant::now(), received: self.client.received() }
    }

    #[cfg(test)]
    pub(crate) fn keep_though_silent(&self) {
        self.silence.lock().unwrap().kept = true;
    }

    /// Notes that a question was answered, if only with a refusal.
    pub(super) fn answered(&self, method: &str) {
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        silence.row = 0;
        silence.methods.remove(method);
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(method);
    }

    /// Notes that a question ran out of its time, and ends the server where that is once too often.
    pub(crate) fn unanswered(&self, method: &str, asked: Asked, limit: Duration) {
        // What is asked with little patience proves nothing, and loading may take long.
        if limit < HANG_LIMIT || matches!(self.state(), ServerState::Loading(_) | ServerState::Gone(_)) {
            return;
        }
        let Some(why) = self.count_unanswered(method, asked) else { return };
        tracing::warn!(server = self.id(), %why, "a language server hangs");
        self.client.close(&why);
    }

    fn count_unanswered(&self, method: &str, asked: Asked) -> Option<String> {
        let now = Instant::now();
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        if silence.kept {
            return None;
        }
        if self.client.received() > asked.received {
            silence.row = 0;
        } else if silence.counted.is_none_or(|counted| asked.at >= counted) {
            silence.row += 1;
            silence.counted = Some(now);
        }
        let (count, last) = silence.methods.entry(method.to_owned()).or_insert((0, asked.at));
        if *count == 0 || asked.at >= *last {
            *count += 1;
            *last = now;
        }
        if silence.row >= SILENT_ROW {
            return Some(format!("it had not said a word to {} questions in a row", silence.row));
        }
        let count = silence.methods.get(method).map_or(0, |(count, _)| *count);
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        // If a new start did not help, another will not.
        (count >= SILENT_METHOD && unanswered.insert(method.to_owned()))
            .then(|| format!("it had not answered {method} {count} times in a row"))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::{
        RequestError,
        client::framing,
        servers::Table,
        supervisor::testing::{self, FarEnd},
    };

    const HOVER: &str = "textDocument/hover";
    const LIMIT: Duration = Duration::from_secs(15);

    fn server() -> (Server, FarEnd) {
        let spec = Table::shipped().unwrap().get("pyright").unwrap().clone();
        testing::server(spec, std::path::Path::new("/p"), json!({}))
    }

    async fn ask(server: &Server, method: &str) -> Result<Value, RequestError> {
        server.request(method, Value::Null, LIMIT).await
    }

    async fn say(far: &mut FarEnd, message: Value) {
        far.writer.write_all(&framing::frame(message.to_string().as_bytes())).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn two_questions_without_a_word_are_too_many() {
        let (server, _far) = server();
        // Asked together they are one sign.
        let (one, other) = tokio::join!(ask(&server, HOVER), ask(&server, "textDocument/definition"));
        assert_eq!((one, other), (Err(RequestError::TimedOut(LIMIT)), Err(RequestError::TimedOut(LIMIT))));
        assert_eq!(server.gone(), None);
        // With little patience it is none.
        let short = Duration::from_secs(1);
        assert_eq!(server.request(HOVER, Value::Null, short).await, Err(RequestError::TimedOut(short)));
        assert_eq!(server.gone(), None);
        assert_eq!(ask(&server, HOVER).await, Err(RequestError::TimedOut(LIMIT)));
        assert_eq!(server.gone().as_deref(), Some("it had not said a word to 2 questions in a row"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_speaks_is_slow_and_one_that_never_answers_a_kind_of_question_is_started_again_once()
     {
        let unanswered = Unanswered::default();
        for expected in [Some("it had not answered textDocument/hover 3 times in a row"), None] {
            let (mut server, mut far) = server();
            server.unanswered = unanswered.clone();
            for _ in 0..4 {
                if server.gone().is_some() {
                    break;
                }
                let note = json!({ "method": "window/logMessage", "params": { "message": "still here" } });
                let speaking = async {
                    tokio::time::sleep(LIMIT / 2).await;
                    say(&mut far, note).await;
                };
                let (answer, ()) = tokio::join!(ask(&server, HOVER), speaking);
                assert_eq!(answer, Err(RequestError::TimedOut(LIMIT)));
            }
            assert_eq!(server.gone().as_deref(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_wipes_the_slate() {
        let (server, mut far) = server();
        for id in [2, 4, 6] {
            assert_eq!(ask(&server, HOVER).await, Err(RequestError::TimedOut(LIMIT)));
            let answering = say(&mut far, json!({ "id": id, "result": 1 }));
            let (answer, ()) = tokio::join!(ask(&server, HOVER), answering);
            assert_eq!(answer, Ok(json!(1)));
        }
        assert_eq!(server.gone(), None);
    }
}
