use std::{pin::Pin, time::Duration};

use async_trait::async_trait;
use futures::Stream;
use haft_tool::Content;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// A piece of what a person says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserPart {
    /// Words.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Media type.
        mime: String,
        /// Base64.
        data: String,
    },
}

/// A piece of what a model says. The order of pieces is kept: thinking belongs to the calls that follow it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantPart {
    /// Thinking. Providers want it back unchanged in tool turns, with whatever proof they attached to it.
    Thinking {
        /// What can be shown; may be empty (redacted, encrypted).
        text: String,
        /// The provider's proof: Anthropic's signature or redacted data, OpenAI's encrypted reasoning item, Gemini's thought
        /// signature. Opaque, given back only to the provider named in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Proof>,
    },
    /// Words.
    Text {
        /// The text.
        text: String,
    },
    /// A wish to have a tool called.
    Call(ToolCall),
}

/// Something opaque that only the provider that made it understands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The provider that made it (`anthropic`, `openai`, `gemini` …).
    pub provider: String,
    /// Its bytes, in whatever form that provider's adapter chose.
    pub data: Value,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id; made up where it gave none. Unique in the conversation.
    pub id: String,
    /// As the model wrote it.
    pub tool: String,
    /// The arguments; a string holding the raw text where the model did not write JSON.
    pub arguments: Value,
    /// See [`AssistantPart::Thinking`]; Gemini signs calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What a tool call came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The tool's name (Gemini wants it).
    pub tool: String,
    /// Whether it failed.
    pub is_error: bool,
    /// Texts, pictures and tables; tables are given to models as Markdown.
    pub content: Vec<Content>,
    /// Fields for programs. No provider is sent them; the script model's templates read them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub structured: Map<String, Value>,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A person, or Haft on a person's behalf.
    User {
        /// The pieces.
        parts: Vec<UserPart>,
    },
    /// The model.
    Assistant {
        /// The pieces, in order.
        parts: Vec<AssistantPart>,
    },
    /// The results of all calls of the assistant's message before it, in the order of the calls.
    Results {
        /// One per call.
        results: Vec<ToolResult>,
    },
}

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Unique.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: Value,
}

/// What a model is asked.
///
/// Invariants (checked in debug builds and by tests on every captured request): results follow the assistant message whose calls
/// they answer, one per call. The longer a conversation, the more of a request equals the one before it byte for byte:
/// providers' caches depend on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Instructions.
    pub system: String,
    /// The tools, in an order that does not change.
    pub tools: Vec<ToolDefinition>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Upper bound of the answer in tokens; the provider's own when absent.
    pub max_output_tokens: Option<u32>,
    /// How hard to think, where the model can.
    pub effort: Option<Effort>,
}

/// How hard a model should think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// Tokens of one answer, as the provider counted them; 0 where it did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// Input read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input written to it.
    pub cache_write_tokens: u64,
    /// Output, thinking included.
    pub output_tokens: u64,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had said what it wanted.
    EndTurn,
    /// It wants tools called.
    ToolCalls,
    /// It ran into the output bound.
    MaxTokens,
    /// The provider refused to go on.
    Refusal,
}

/// What comes out of a model, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// More words.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The model has begun to write a call of this tool.
    CallBegun {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
    },
    /// A failed attempt is being repeated; what was streamed of it is void and comes again.
    Retry {
        /// What went wrong, in words for a person.
        why: String,
        /// Which attempt comes next, 2 for the first repetition.
        attempt: u32,
        /// How long it waits before that.
        after: Duration,
    },
    /// The whole answer. Nothing comes after it.
    Done(Answer),
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The pieces, in order.
    pub parts: Vec<AssistantPart>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it took.
    pub usage: Usage,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// The conversation is too long for the model: compact it and ask again.
    #[error("the conversation is too long for {model}: {message}")]
    ContextTooLong {
        /// Which.
        model: String,
        /// The provider's words.
        message: String,
    },
    /// The key is missing or refused. Says which setting it comes from.
    #[error("{0}")]
    Auth(String),
    /// The provider is overloaded, unreachable or broke off, and the retries are used up.
    #[error("{model} did not answer after {attempts} attempt{}: {message}", if *attempts == 1 { "" } else { "s" })]
    Unavailable {
        /// Which.
        model: String,
        /// How often it was tried.
        attempts: u32,
        /// What it said last.
        message: String,
    },
    /// The provider says that the request is wrong; repeating it will not help.
    #[error("{model} refused the request: {message}")]
    Refused {
        /// Which.
        model: String,
        /// The provider's words.
        message: String,
    },
    /// The model's name or a provider's address is not right. Says what to write instead.
    #[error("{0}")]
    Settings(String),
    /// A script is used up or does not fit, a recording does not match.
    #[error("{0}")]
    Script(String),
    /// The run was stopped.
    #[error("cancelled")]
    Cancelled,
}

/// A stream of events that ends with [`Event::Done`] or an error.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<Event, ModelError>> + Send>>;

/// What is known of a model's limits and prices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Input and output together, in tokens.
    pub context_tokens: u32,
    /// US dollars per million tokens; unknown for most compatible servers.
    pub prices: Option<Prices>,
    /// Whether it takes pictures.
    pub images: bool,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Input.
    pub input: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache.
    pub cache_write: f64,
    /// Output.
    pub output: f64,
}

/// A language model.
#[async_trait]
pub trait Model: Send + Sync {
    /// `provider/NAME`, as a person wrote it.
    fn name(&self) -> &str;

    /// Limits and prices.
    fn profile(&self) -> Profile;

    /// Asks. Retries what is worth it by itself (429, 529, 5xx, a broken stream) and says so with [`Event::Retry`]. Returns soon after `cancel` fires;
    /// dropping the stream closes the connection.
    async fn ask(&self, request: &Request, cancel: CancellationToken) -> Result<EventStream, ModelError>;
}
