//! `haft chat`: the agent in the terminal.

use std::{collections::HashMap, io::IsTerminal, process::ExitCode, sync::Arc};

use anyhow::bail;
use haft_agent::{Conversation, Event, Frame, Host, Mode, RunEnd};
use haft_model::{Model, Usage, UserPart};
use haft_system::{Environment, clock};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::run::{ensure_title, picture};
use crate::{
    cli,
    output::{err, out, out_piece},
    session::{self, Opening},
    terminal::{
        Answering, Input, Line, Markdown, Running, answer_cards, call_line, coloured_diff, colours,
        outcome_line, plain, spent_line,
    },
};

const HELP: &str = "\
/plan            look, change nothing; only you can leave it
/vibe            the agent may also put workers to work and direct them
/agent           back to work
/model NAME      use another model from now on
/image FILE      send a picture with your next message
/tools           what the agent can use now
/cost            tokens and cost so far
/status          what is alive: workers, processes, open cards
/undo            put back what the last run changed in files (not what its shell commands or workers did)
/fork            go on in a copy of this conversation
/resume ID       go on with another conversation
/quit            leave (also Ctrl-D, or Ctrl-C twice)
Ctrl-C stops what the agent is doing. A line that ends in \\ goes on in the next.";

/// Talks until the person leaves.
pub(crate) async fn chat(environment: Environment, arguments: cli::Chat) -> anyhow::Result<ExitCode> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "`haft chat` is a conversation at a terminal; for a single task use `haft run TASK`, for programs `haft console`"
        );
    }
    let opening = Opening::prepare(&environment, &arguments.place, Some(&arguments.which)).await?;
    let model = session::open_model(opening.config(), arguments.record.as_deref())?;
    let (host, conversation) = opening.conversation().await?;
    let conversation = Arc::new(conversation);
    let input = Input::start(environment.state_dir().map(|state| state.join("chat_history")))?;
    let running = Running::default();
    let mut chat = Chat {
        person: answer_cards(conversation.clone(), input.clone(), running.clone()),
        host,
        conversation,
        input,
        running,
        model,
        pictures: Vec::new(),
        colours: colours(&environment),
        arguments,
        environment,
    };
    let result = chat.talk().await;
    chat.conversation.close().await?;
    chat.host.shutdown().await;
    result?;
    err(format_args!("Go on later with: haft chat --resume {}", chat.conversation.id()));
    Ok(ExitCode::SUCCESS)
}

struct Chat {
    host: Host,
    conversation: Arc<Conversation>,
    /// Cards are answered between runs too: workers go on.
    person: Answering,
    input: Input,
    running: Running,
    model: Arc<dyn Model>,
    pictures: Vec<UserPart>,
    colours: bool,
    arguments: cli::Chat,
    environment: Environment,
}

impl Chat {
    async fn talk(&mut self) -> anyhow::Result<()> {
        out(format_args!(
            "haft {} · {} · {} mode · {}\n/help lists the commands, Ctrl-D leaves.",
            env!("CARGO_PKG_VERSION"),
            self.model.name(),
            self.conversation.mode(),
            self.conversation.workdir().root().display(),
        ))?;
        for warning in self.conversation.config().warnings() {
            err(format_args!("· {warning}"));
        }
        let mut leaving = false;
        loop {
            let prompt = match self.conversation.mode() {
                Mode::Agent => "\n› ",
                Mode::Plan => "\nplan › ",
                Mode::Vibe => "\nvibe › ",
            };
            let mut text = match self.input.ask(prompt).await {
                Line::Text(text) => text,
                Line::Interrupt if leaving => return Ok(()),
                Line::Interrupt => {
                    leaving = true;
                    err("Ctrl-C again to leave.");
                    continue;
                }
                Line::End => return Ok(()),
            };
            leaving = false;
            while text.ends_with('\\') {
                text.pop();
                text.push('\n');
                match self.input.ask("… ").await {
                    Line::Text(more) => text.push_str(&more),
                    Line::Interrupt | Line::End => break,
                }
            }
            let line = text.trim();
            if line.is_empty() {
                continue;
            }
            if let Some(command) = line.strip_prefix('/') {
                if !self.command(command).await? {
                    return Ok(());
                }
                continue;
            }
            self.turn(line).await?;
        }
    }

    /// Carries out a command; false when it was to leave.
    async fn command(&mut self, command: &str) -> anyhow::Result<bool> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        match name {
            "help" | "?" => out(HELP)?,
            "quit" | "exit" | "q" => return Ok(false),
            "plan" => {
                self.set_mode(Mode::Plan).await?;
                out("Plan mode: the agent can look and change nothing. /agent leaves it.")?;
            }
            "agent" => {
                self.set_mode(Mode::Agent).await?;
                out("Agent mode.")?;
            }
            "vibe" => {
                self.set_mode(Mode::Vibe).await?;
                out("Vibe mode: the agent can put workers to work. /agent leaves it and stops them.")?;
            }
            "status" => self.status()?,
            "undo" => match self.conversation.undo().await {
                Ok(files) => {
                    for file in files {
                        out(format_args!("{} is as it was", plain(&file)))?;
                    }
                    out("What shell commands and workers did is not covered.")?;
                }
                Err(error) => err(error),
            },
            "fork" => {
                let fork = self.host.fork(self.conversation.id(), None).await?;
                self.go_on(&fork.0).await?;
            }
            "resume" if rest.is_empty() => err("/resume ID: `haft conversations` lists them"),
            "resume" => self.go_on(rest).await?,
            "model" if rest.is_empty() => {
                out(format_args!("{}; another one with /model provider/NAME", self.model.name()))?
            }
            "model" => {
                let mut models = cli::Models { model: Some(rest.to_owned()), fast: None, good: None };
                std::mem::swap(&mut models, &mut self.arguments.place.models);
                let opened = session::load_config(
                    &self.environment,
                    &self.arguments.place.dir,
                    &self.arguments.place.models,
                )
                .and_then(|config| session::open_model(&config, self.arguments.record.as_deref()));
                match opened {
                    Ok(model) => {
                        out(format_args!("{} from now on.", model.name()))?;
                        self.model = model;
                    }
                    Err(error) => {
                        self.arguments.place.models = models;
                        err(format_args!("{error:#}"));
                    }
                }
            }
            "image" => match picture(&self.environment.directory().join(rest)) {
                Ok(picture) => {
                    self.pictures.push(picture);
                    out("It goes with your next message.")?;
                }
                Err(error) => err(format_args!("{error:#}")),
            },
            "tools" => {
                for tool in self.conversation.tools() {
                    out(format_args!("{:12} {}", tool.name, tool.tier))?;
                }
            }
            "cost" => out(spent_line(&self.conversation.spent()))?,
            _ => err(format_args!("There is no command /{name}. {HELP}")),
        }
        Ok(true)
    }

    /// Changes the mode and shows what comes of it.
    async fn set_mode(&self, mode: Mode) -> anyhow::Result<()> {
        let mut frames = self.conversation.watch();
        self.conversation.set_mode(mode).await?;
        while let Ok(frame) = frames.try_recv() {
            if let Frame::Event(event) = frame
                && let Event::Notice { text } = &event.1
            {
                err(format_args!("· {}", plain(text)));
            }
        }
        Ok(())
    }

    fn status(&self) -> std::io::Result<()> {
        out(format_args!(
            "{} · {} · {} mode",
            self.conversation.id(),
            self.model.name(),
            self.conversation.mode()
        ))?;
        for worker in self.conversation.workers() {
            out(format_args!("worker   {}", plain(&worker.in_words())))?;
        }
        // Servers, adapters, kernels, jobs: everything that runs was started by the one supervisor.
        for process in self.host.running() {
            let seconds = (clock::now_ms() - process.started_ms).max(0) / 1000;
            out(format_args!("process  {} {}, for {seconds} s", process.pid, plain(&process.label)))?;
        }
        let cards: Vec<String> = self.conversation.with_transcript(|transcript| {
            transcript
                .open_cards()
                .map(|card| format!("card     {} from {}: {}", card.number, card.from, card.question))
                .collect()
        });
        for card in cards {
            out(plain(&card))?;
        }
        Ok(())
    }

    /// Goes on with another conversation; where that cannot be, this one goes on.
    async fn go_on(&mut self, id: &str) -> anyhow::Result<()> {
        let which = cli::Which { resume: Some(id.to_owned()), go_on: false };
        let mut place = cli::Place { mode: None, ..self.arguments.place.clone() };
        place.dir = self.conversation.workdir().root().to_owned();
        let opened = match Opening::prepare(&self.environment, &place, Some(&which)).await {
            Ok(opening) => opening.conversation().await,
            Err(error) => Err(error),
        };
        let (host, conversation) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                err(format_args!("{error:#}"));
                return Ok(());
            }
        };
        let conversation = Arc::new(conversation);
        let earlier = std::mem::replace(&mut self.conversation, conversation.clone());
        self.person = answer_cards(conversation, self.input.clone(), self.running.clone());
        earlier.close().await?;
        std::mem::replace(&mut self.host, host).shutdown().await;
        out(format_args!(
            "{} in {}, {} mode. The one before: /resume {}",
            self.conversation.id(),
            self.conversation.workdir().root().display(),
            self.conversation.mode(),
            earlier.id(),
        ))?;
        Ok(())
    }

    async fn turn(&mut self, text: &str) -> anyhow::Result<()> {
        let mut parts = vec![UserPart::Text { text: text.to_owned() }];
        parts.append(&mut self.pictures);
        ensure_title(&self.conversation, text).await?;
        let cancel = interruptible()?;
        self.running.set(Some(cancel.token.clone()));
        let watcher = tokio::spawn(watch(self.conversation.watch(), self.input.clone(), self.colours));
        let end = self.conversation.run(self.model.as_ref(), parts, cancel.token.clone()).await;
        if end.is_err() {
            watcher.abort();
        }
        let shown = watcher.await;
        self.running.set(None);
        drop(cancel);
        match end? {
            RunEnd::Completed => {}
            RunEnd::Interrupted => err("· stopped"),
            RunEnd::Stopped { why } => err(format_args!("· stopped: {why}. Say `go on` to let it.")),
            RunEnd::Failed { error } => err(format_args!("· {error}")),
            RunEnd::Lost => err("· the run was lost"),
        }
        shown??;
        let spent = self.conversation.spent();
        if spent.usage != Usage::default() {
            err(format_args!("· {}", spent_line(&spent)));
        }
        Ok(())
    }
}

/// A cancellation that Ctrl-C fires, as long as it lives. A second Ctrl-C leaves at once.
struct Interruptible {
    token: CancellationToken,
    listener: tokio::task::JoinHandle<()>,
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

fn interruptible() -> anyhow::Result<Interruptible> {
    let token = CancellationToken::new();
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let listener = tokio::spawn({
        let token = token.clone();
        async move {
            interrupt.recv().await;
            token.cancel();
            interrupt.recv().await;
            haft_system::end_now(crate::output::INTERRUPTED);
        }
    });
    Ok(Interruptible { token, listener })
}

/// Shows a run until it is over.
async fn watch(mut frames: broadcast::Receiver<Frame>, input: Input, colours: bool) -> std::io::Result<()> {
    let mut calls: HashMap<String, String> = HashMap::new();
    let mut markdown = Markdown::new(colours);
    let mut streaming = false;
    loop {
        let frame = match frames.recv().await {
            Ok(frame) => frame,
            Err(RecvError::Lagged(lost)) => {
                err(format_args!("· {lost} live pieces were not shown; the transcript has everything"));
                continue;
            }
            Err(RecvError::Closed) => return Ok(()),
        };
        let _screen = input.screen().await;
        match frame {
            Frame::Text(text) => {
                streaming = true;
                out_piece(&markdown.push(&text))?;
            }
            Frame::Thinking(_) | Frame::CallBegun { .. } => {}
            Frame::Progress { text, .. } => {
                for line in text.lines() {
                    err(format_args!("  {}", plain(line)));
                }
            }
            Frame::Retry { why, attempt, after } => {
                out_piece(&markdown.finish())?;
                err(format_args!(
                    "\n· {why}; attempt {attempt} in {:.1} s, what was written so far is void",
                    after.as_secs_f64()
                ));
            }
            Frame::Event(event) => match &event.1 {
                Event::AssistantMessage { .. } if streaming => {
                    streaming = false;
                    out_piece(&format!("{}\n", markdown.finish()))?;
                }
                Event::CallStarted { call, .. } => {
                    calls.insert(call.id.0.clone(), call.tool.clone());
                    err(call_line(&call.tool, &call.arguments));
                }
                Event::CallFinished { id, outcome, ms, .. } => {
                    let tool = calls.remove(&id.0).unwrap_or_default();
                    err(outcome_line(&tool, outcome, *ms));
                    let writes =
                        matches!(tool.as_str(), "write" | "edit" | "apply_patch") && !outcome.is_error;
                    if let Some(diff) =
                        outcome.first_text().filter(|_| writes).and_then(|text| coloured_diff(text, colours))
                    {
                        err(diff);
                    }
                }
                Event::Notice { text } => err(format_args!("· {}", plain(text))),
                Event::Compacted { .. } => {
                    err("· the conversation was long and has been summarised for the model")
                }
                Event::RunFinished { .. } => return Ok(()),
                _ => {}
            },
        }
    }
}
