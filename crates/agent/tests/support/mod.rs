//! A host over a directory of its own, and a model that is told what to answer.

#![allow(clippy::unnecessary_wraps, reason = "lists of answers hold failures too")]
#![allow(dead_code, reason = "every test file uses a part of this")]

pub(crate) mod workers;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures::stream;
use haft_agent::{
    Approve, Conversation, Event, Frame, Host, Mode, OpenModel, Setup,
    cards::{Answer as CardAnswer, Attachment, Card},
    config::{Config, Overrides},
};
use haft_model::{
    Answer, AssistantPart, Event as ModelEvent, EventStream, Model, ModelError, Profile, Request, StopReason,
    ToolCall, Usage, UserPart,
};
use haft_system::Environment;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A home, a project in it, and a host.
pub(crate) struct World {
    pub(crate) root: TempDir,
    pub(crate) host: Host,
}

impl World {
    pub(crate) async fn new() -> Self {
        let root = TempDir::new().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        let host = Self::host(root.path()).await;
        World { root, host }
    }

    /// Another host over the same state, as another process would be.
    pub(crate) async fn host(root: &Path) -> Host {
        let path = std::fs::read_to_string("/proc/self/environ").unwrap();
        let path = path.split('\0').find_map(|variable| variable.strip_prefix("PATH=")).unwrap().to_owned();
        let environment =
            Environment::of([("HOME", root.as_os_str()), ("PATH", path.as_ref())], root.join("project"));
        Host::open(environment).await.unwrap()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        std::fs::write(self.project().join(name), text).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap()
    }

    pub(crate) fn setup(&self, approve: Approve) -> Setup {
        let config = Config::load(self.host.environment(), &self.project(), Overrides::default()).unwrap();
        Setup { space: "default".into(), mode: Mode::Agent, approve, config }
    }

    /// With models for explorers and workers, which `play` acts.
    pub(crate) async fn acted(
        play: impl Fn(&Scene<'_>) -> Result<Answer, ModelError> + Send + Sync + 'static,
    ) -> Self {
        let World { root, host } = World::new().await;
        World { root, host: host.with_models(Arc::new(Troupe(Arc::new(play)))) }
    }

    pub(crate) fn staffed(&self, mode: Mode, approve: Approve) -> Setup {
        let overrides = Overrides {
            fast: Some("test/fast".into()),
            good: Some("test/good".into()),
            ..Overrides::default()
        };
        let config = Config::load(self.host.environment(), &self.project(), overrides).unwrap();
        Setup { space: "default".into(), mode, approve, config }
    }

    pub(crate) async fn direct(&self, approve: Approve) -> Arc<Conversation> {
        Arc::new(self.host.start(&self.project(), self.staffed(Mode::Vibe, approve)).await.unwrap())
    }

    pub(crate) async fn start(&self, approve: Approve) -> Arc<Conversation> {
        Arc::new(self.host.start(&self.project(), self.setup(approve)).await.unwrap())
    }

    /// All events of a conversation, in order.
    pub(crate) async fn events(&self, conversation: &Conversation) -> Vec<Event> {
        let stored = self.host.store().read(conversation.id(), 0, 10_000).await.unwrap();
        stored.iter().map(|stored| Event::from_stored(stored).unwrap()).collect()
    }
}

pub(crate) fn said(text: &str) -> Vec<UserPart> {
    vec![UserPart::Text { text: text.into() }]
}

pub(crate) fn never() -> CancellationToken {
    CancellationToken::new()
}

/// One answer of the model.
pub(crate) fn words(text: &str) -> Result<Answer, ModelError> {
    Ok(Answer {
        parts: vec![AssistantPart::Text { text: text.into() }],
        stop: StopReason::EndTurn,
        usage: usage(),
    })
}

/// An answer with calls; ids are made from `id`.
pub(crate) fn calls(id: &str, calls: &[(&str, Value)]) -> Result<Answer, ModelError> {
    let parts = calls
        .iter()
        .enumerate()
        .map(|(at, (tool, arguments))| {
            AssistantPart::Call(ToolCall {
                id: format!("{id}_{at}"),
                tool: (*tool).into(),
                arguments: arguments.clone(),
                proof: None,
            })
        })
        .collect();
    Ok(Answer { parts, stop: StopReason::ToolCalls, usage: usage() })
}

fn usage() -> Usage {
    Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }
}

/// Gives its answers in order and keeps what it was asked.
pub(crate) struct Puppet {
    pub(crate) name: &'static str,
    answers: Mutex<Vec<Result<Answer, ModelError>>>,
    pub(crate) requests: Mutex<Vec<Request>>,
    pub(crate) context_tokens: u32,
    /// Answers given so far.
    pub(crate) given: AtomicUsize,
}

impl Puppet {
    pub(crate) fn new(answers: impl IntoIterator<Item = Result<Answer, ModelError>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Puppet {
            name: "test/puppet",
            answers: Mutex::new(answers),
            requests: Mutex::default(),
            context_tokens: 100_000,
            given: AtomicUsize::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl Model for Puppet {
    fn name(&self) -> &'static str {
        self.name
    }

    fn profile(&self) -> Profile {
        Profile { context_tokens: self.context_tokens, prices: None, images: true }
    }

    async fn ask(&self, request: &Request, _: CancellationToken) -> Result<EventStream, ModelError> {
        haft_model::check_request(request).unwrap();
        self.requests.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop().expect("the test gave too few answers");
        self.given.fetch_add(1, Ordering::SeqCst);
        let answer = answer?;
        let mut events: Vec<Result<ModelEvent, ModelError>> = answer
            .parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::Text { text } => Some(Ok(ModelEvent::Text(text.clone()))),
                _ => None,
            })
            .collect();
        events.push(Ok(ModelEvent::Done(answer)));
        Ok(Box::pin(stream::iter(events)))
    }
}

/// The arguments of a `write`.
pub(crate) fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "content": content}))
}

/// What an acting model sees.
pub(crate) struct Scene<'a> {
    /// Its name.
    pub(crate) model: &'a str,
    /// The first thing that was said to it.
    pub(crate) brief: String,
    /// How often it was asked before.
    pub(crate) step: usize,
    pub(crate) request: &'a Request,
}

impl Scene<'_> {
    /// All that was said to it, results included, as one text.
    pub(crate) fn heard(&self) -> String {
        serde_json::to_string(&self.request.messages).unwrap()
    }
}

type Play = Arc<dyn Fn(&Scene<'_>) -> Result<Answer, ModelError> + Send + Sync>;

struct Troupe(Play);

impl OpenModel for Troupe {
    fn open(&self, name: &str, _: &Config) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(Actor { name: name.to_owned(), play: self.0.clone(), asked: AtomicUsize::default() }))
    }
}

struct Actor {
    name: String,
    play: Play,
    asked: AtomicUsize,
}

#[async_trait]
impl Model for Actor {
    fn name(&self) -> &str {
        &self.name
    }

    fn profile(&self) -> Profile {
        Profile { context_tokens: 100_000, prices: None, images: true }
    }

    async fn ask(&self, request: &Request, _: CancellationToken) -> Result<EventStream, ModelError> {
        haft_model::check_request(request).unwrap();
        let brief = request.messages.first().map(|message| serde_json::to_string(message).unwrap());
        let step = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer =
            (self.play)(&Scene { model: &self.name, brief: brief.unwrap_or_default(), step, request })?;
        Ok(Box::pin(stream::iter([Ok(ModelEvent::Done(answer))])))
    }
}

/// A person who answers every card as `answer` says, and keeps the cards.
pub(crate) struct Person {
    _attached: Attachment,
    pub(crate) cards: Arc<Mutex<Vec<Card>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Person {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn person(
    conversation: &Arc<Conversation>,
    mut answer: impl FnMut(&Card) -> Option<CardAnswer> + Send + 'static,
) -> Person {
    let attached = conversation.cards().attach();
    let cards = Arc::new(Mutex::new(Vec::new()));
    let mut frames = conversation.watch();
    let task = tokio::spawn({
        let (conversation, cards) = (conversation.clone(), cards.clone());
        async move {
            while let Ok(frame) = frames.recv().await {
                let Frame::Event(event) = frame else { continue };
                let Event::CardOpened { card } = &event.1 else { continue };
                cards.lock().unwrap().push(card.clone());
                if let Some(answer) = answer(card) {
                    conversation.cards().answer(card.number, answer).unwrap();
                }
            }
        }
    });
    Person { _attached: attached, cards, task }
}

/// Waits for what has to come to pass; how long it takes is not what is tested.
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "{what} did not come to pass");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Processes whose command line holds the word `mark`.
pub(crate) fn processes(mark: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
        .count()
}
