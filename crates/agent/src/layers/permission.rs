use std::sync::PoisonError;

use async_trait::async_trait;
use haft_system::Workdir;
use haft_tool::{Admission, Context, Layer, Next, Outcome, Place, Spec, ToolError, Touch};
use serde_json::{Value, json};

use crate::{
    cards::{Answer, AskError, Card, CardKind},
    guard::{Rule, Verdict},
    helper::Gate,
    transcript::Event,
};

/// What happens to a prompt before anybody is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approve {
    /// Every prompt is allowed (`--approve all`). What a rule denies stays denied.
    All,
    /// A prompt goes to the attached person; with none attached it is refused at once.
    #[default]
    None,
}

/// Holds every call against the guardrails, and asks a person where they say so (SPEC G1, Q3).
pub(crate) struct Permission {
    pub(crate) gate: Gate,
    pub(crate) workdir: Workdir,
}

#[async_trait]
impl Layer for Permission {
    fn place(&self) -> Place {
        Place::Guard
    }

    async fn around(&self, admission: Admission<'_>, context: Context, next: Next<'_>) -> Outcome {
        let Some(spec) = admission.spec else { return next.run(context).await };
        let verdict = self.gate.policy.read().unwrap_or_else(PoisonError::into_inner).judge(
            spec,
            admission.touches,
            &admission.call.arguments,
            &self.workdir,
        );
        let (why, always) = match verdict {
            Verdict::Allow { .. } => return next.run(context).await,
            Verdict::Deny { rule, reason } => {
                let reason = reason.map(|reason| format!(" Reason: {reason}")).unwrap_or_default();
                return refusal(
                    "rule",
                    format!(
                        "Refused by a guardrail: {rule}.{reason} Do not try to get around it; find another way or say what is needed."
                    ),
                );
            }
            Verdict::Prompt { .. } if self.gate.approve == Approve::All => return next.run(context).await,
            Verdict::Prompt { why, always } => (why, always),
        };
        let card = self.card(spec, &admission, &why, always.as_ref());
        match self.gate.cards.ask(card, None, &context.cancel).await.map(|answered| answered.answer) {
            Ok(Answer::Allowed { always: false }) => next.run(context).await,
            Ok(Answer::Allowed { always: true }) => match self.remember(always).await {
                Ok(()) => next.run(context).await,
                Err(outcome) => outcome,
            },
            Ok(Answer::Denied { reason }) if !reason.is_empty() => {
                refusal("person", format!("The person refused this call: {reason}"))
            }
            Ok(_) => refusal(
                "person",
                "The person refused this call. Do not repeat it; find another way or ask what they want."
                    .into(),
            ),
            Err(AskError::Nobody) => refusal(
                "nobody",
                format!(
                    "Not done: `{}` needs a person's permission, and nobody is attached who could give it. {why} \
                     Go on without it, or say what has to be allowed.",
                    spec.name
                ),
            ),
            Err(AskError::Cancelled) => ToolError::Cancelled.into(),
            Err(AskError::Journal(error)) => ToolError::operator(error.to_string()).into(),
        }
    }
}

impl Permission {
    fn card(&self, spec: &Spec, admission: &Admission<'_>, why: &str, always: Option<&Rule>) -> Card {
        let mut options =
            vec![crate::cards::CardOption { label: "once".into(), description: "allow this call".into() }];
        if let Some(rule) = always {
            options.push(crate::cards::CardOption {
                label: "always".into(),
                description: format!("allow from now on in this conversation: {rule}"),
            });
        }
        options.push(crate::cards::CardOption {
            label: "no".into(),
            description: "refuse it, with a reason if you like".into(),
        });
        Card {
            number: 0,
            kind: CardKind::Permission,
            from: self.gate.from.clone(),
            question: question(spec, admission.touches),
            context: format!("{why}\n{}", arguments(&admission.call.arguments)),
            options,
            allow_free_text: false,
            multi_select: false,
        }
    }

    /// "Always" without a rule that says what exactly is allowed from now on (a shell wrapper, say) holds once.
    async fn remember(&self, rule: Option<Rule>) -> Result<(), Outcome> {
        let Some(rule) = rule else { return Ok(()) };
        self.gate
            .journal
            .append(vec![Event::RuleAdded { rule: rule.clone() }])
            .await
            .map_err(|error| Outcome::from(ToolError::operator(error.to_string())))?;
        self.gate.policy.write().unwrap_or_else(PoisonError::into_inner).add(rule);
        Ok(())
    }
}

fn question(spec: &Spec, touches: &[Touch]) -> String {
    let what: Vec<String> = touches
        .iter()
        .map(|touch| match touch {
            Touch::Command(command) => command.clone(),
            Touch::Path(path, _) => path.display().to_string(),
        })
        .collect();
    if what.is_empty() {
        format!("Allow {}?", spec.name)
    } else {
        format!("Allow {}: {}?", spec.name, what.join(", "))
    }
}

/// Characters of an argument that a card shows; the whole is in the transcript.
const SHOWN_ARGUMENT: usize = 2_000;

fn arguments(arguments: &Value) -> String {
    let Value::Object(fields) = arguments else { return arguments.to_string() };
    let mut text = String::new();
    for (name, value) in fields {
        let value = match value {
            Value::String(value) => value.clone(),
            other => other.to_string(),
        };
        let shown: String = value.chars().take(SHOWN_ARGUMENT).collect();
        let cut = if shown.len() < value.len() {
            format!("… ({} bytes in all)", value.len())
        } else {
            String::new()
        };
        let separator = if shown.contains('\n') { ":\n" } else { ": " };
        text.push_str(&format!("{name}{separator}{shown}{cut}\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

fn refusal(by: &str, text: String) -> Outcome {
    let mut outcome = Outcome::error(text);
    outcome.structured.insert("refused_by".into(), json!(by));
    outcome
}
