//! `ask_user`: the only way for a run to ask a person (SPEC Q1, Q2).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use haft_tool::{Context, Output, Tier, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cards::{Answer, Answered, AskError, Card, CardKind, CardOption, Cards};

/// Asks the people of the conversation's space.
pub(crate) struct AskUser {
    cards: Arc<Cards>,
    /// `agent`, or the label of the worker that asks.
    from: String,
    /// How long a card waits.
    time: Duration,
}

impl AskUser {
    /// A question port on `cards`.
    pub(crate) fn new(cards: Arc<Cards>, from: String, time: Duration) -> Self {
        AskUser { cards, from, time }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// One question, complete in itself.
    question: String,
    /// What one has to know to answer: what you found, what depends on it.
    #[serde(default)]
    context: Option<String>,
    /// Answers on offer.
    #[serde(default)]
    options: Vec<Choice>,
    /// Whether the person may answer in words of their own. Needed when there are no options.
    #[serde(default)]
    allow_free_text: bool,
    /// Whether several options may be chosen.
    #[serde(default)]
    multi_select: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// What is chosen, in a few words.
    label: String,
    /// What choosing it means.
    #[serde(default)]
    description: Option<String>,
}

impl Tool for AskUser {
    type Arguments = Arguments;
    const NAME: &'static str = "ask_user";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Asks the person you work for, on a card that they answer, and waits for the answer. Use it when you cannot find out by looking and the \
         work would go a different way depending on the answer: a choice that is theirs, a requirement that is missing. Never put such a question \
         into a chat message instead: that ends your turn. Give options where you can, and what each would mean. A skipped question is to be \
         answered by an assumption of yours that you state; do not ask it again."
            .into()
    }

    async fn call(&self, arguments: Arguments, context: &Context) -> Result<Output, ToolError> {
        let card = card(arguments, self.from.clone())?;
        match self.cards.ask(card, Some(self.time), &context.cancel).await {
            Ok(Answered { number, answer }) => answered(number, answer, self.time),
            Err(AskError::Nobody) => Err(ToolError::model(
                "Nobody is attached who could answer, so the question was not asked. Go on with an assumption, state it, and do not ask again.",
            )
            .with_structured(fields("nobody", &[], "", None))),
            Err(AskError::Cancelled) => Err(ToolError::Cancelled),
            Err(AskError::Journal(error)) => Err(ToolError::operator(error.to_string())),
        }
    }
}

fn card(arguments: Arguments, from: String) -> Result<Card, ToolError> {
    let Arguments { question, context, options, allow_free_text, multi_select } = arguments;
    if question.trim().is_empty() {
        return Err(ToolError::model(
            "`question` is empty. Write the question that the person is to answer.",
        ));
    }
    if options.is_empty() && !allow_free_text {
        return Err(ToolError::model(
            "The person could not answer: there are no `options` and `allow_free_text` is false. Give at least one of the two.",
        ));
    }
    if multi_select && options.is_empty() {
        return Err(ToolError::model(
            "`multi_select` is true and there are no `options` to choose from. Give options, or leave it out.",
        ));
    }
    let mut labels = BTreeSet::new();
    for (at, option) in options.iter().enumerate() {
        let label = option.label.trim();
        if label.is_empty() {
            return Err(ToolError::model(format!(
                "`options[{at}].label` is empty. Give each option a label."
            )));
        }
        if !labels.insert(label) {
            return Err(ToolError::model(format!(
                "Two options have the label `{label}`: an answer could not be told apart. Give each option its own label."
            )));
        }
    }
    let options = options
        .into_iter()
        .map(|option| CardOption {
            label: option.label.trim().to_owned(),
            description: option.description.unwrap_or_default(),
        })
        .collect();
    Ok(Card {
        number: 0,
        kind: CardKind::Question,
        from,
        question: question.trim().to_owned(),
        context: context.unwrap_or_default(),
        options,
        allow_free_text,
        multi_select,
    })
}

fn answered(number: u64, answer: Answer, time: Duration) -> Result<Output, ToolError> {
    match answer {
        Answer::Chosen { selected, text } => {
            let mut words = match selected.as_slice() {
                [] => String::new(),
                [one] => format!("The person chose: {one}"),
                several => format!("The person chose: {}", several.join("; ")),
            };
            if !text.is_empty() {
                words.push_str(if selected.is_empty() {
                    "The person answered:\n"
                } else {
                    "\nand added:\n"
                });
                words.push_str(&text);
            }
            Ok(Output::text(words).structured(fields("answered", &selected, &text, Some(number))))
        }
        Answer::TimedOut => Err(ToolError::model(format!(
            "Nobody answered within {}. Nothing was chosen for them. Go on with an assumption, state it, and do not ask again.",
            in_words(time)
        ))
        .with_structured(fields("timed_out", &[], "", Some(number)))),
        // The card's kind lets nothing else through but a skip.
        _ => Ok(Output::text(
            "The person skipped the question. Go on with an assumption, state it, and do not ask again.",
        )
        .structured(fields("skipped", &[], "", Some(number)))),
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        1 => "1 second".to_owned(),
        seconds if seconds >= 120 && seconds.is_multiple_of(60) => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} seconds"),
    }
}

fn fields(outcome: &str, selected: &[String], text: &str, card: Option<u64>) -> Value {
    json!({"outcome": outcome, "selected": selected, "text": text, "card": card})
}
