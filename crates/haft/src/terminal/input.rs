use std::{path::PathBuf, sync::Arc};

use rustyline::{DefaultEditor, error::ReadlineError};
use tokio::sync::{Mutex, MutexGuard, mpsc, oneshot};

/// What a person typed at a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The terminal's one line editor, in a thread of its own. Prompts wait for each other, so that a card and the chat's own prompt never read
/// the same line, and what a run shows waits for them.
#[derive(Clone)]
pub(crate) struct Input {
    requests: mpsc::Sender<(String, oneshot::Sender<Line>)>,
    turn: Arc<Mutex<()>>,
}

impl Input {
    /// Starts the editor; `history` is read now and written after each line.
    pub(crate) fn start(history: Option<PathBuf>) -> anyhow::Result<Self> {
        let mut editor = DefaultEditor::new()?;
        if let Some(path) = &history {
            // A first start has no history yet.
            drop(editor.load_history(path));
        }
        let (requests, mut receiver) = mpsc::channel::<(String, oneshot::Sender<Line>)>(1);
        std::thread::spawn(move || {
            while let Some((prompt, reply)) = receiver.blocking_recv() {
                let line = match editor.readline(&prompt) {
                    Ok(text) => {
                        if let Some(path) = &history
                            && !text.trim().is_empty()
                        {
                            // Losing a line of history is not worth a word in the middle of a conversation.
                            drop(editor.add_history_entry(text.as_str()));
                            drop(editor.save_history(path));
                        }
                        Line::Text(text)
                    }
                    Err(ReadlineError::Interrupted) => Line::Interrupt,
                    Err(ReadlineError::Eof) => Line::End,
                    Err(error) => {
                        tracing::warn!(%error, "the terminal cannot be read");
                        Line::End
                    }
                };
                drop(reply.send(line));
            }
        });
        Ok(Input { requests, turn: Arc::default() })
    }

    /// Shows a prompt and waits for a line.
    pub(crate) async fn ask(&self, prompt: &str) -> Line {
        self.screen().await.ask(prompt).await
    }

    /// The screen, for as long as the guard lives: nobody else writes into what is being asked.
    pub(crate) async fn screen(&self) -> Screen<'_> {
        Screen { input: self, _turn: self.turn.lock().await }
    }
}

/// See [`Input::screen`].
pub(crate) struct Screen<'a> {
    input: &'a Input,
    _turn: MutexGuard<'a, ()>,
}

impl Screen<'_> {
    /// Shows a prompt and waits for a line.
    pub(crate) async fn ask(&self, prompt: &str) -> Line {
        let (reply, answer) = oneshot::channel();
        if self.input.requests.send((prompt.to_owned(), reply)).await.is_err() {
            return Line::End;
        }
        answer.await.unwrap_or(Line::End)
    }
}
