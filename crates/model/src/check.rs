//! The invariants of a request.

use std::collections::HashSet;

use crate::{AssistantPart, Message, Request};

/// Whether every call of an assistant's message has its result in the message right after it, in the same order, and every
/// result its call; call ids and tool names are unique, and the last word is not the model's.
///
/// # Errors
/// The first rule that is broken, in words for a developer.
pub fn check_request(request: &Request) -> Result<(), String> {
    let mut names = HashSet::new();
    for tool in &request.tools {
        if !names.insert(tool.name.as_str()) {
            return Err(format!("the tool `{}` is listed twice", tool.name));
        }
    }
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        if let Message::Results { results } = message {
            let answered: Vec<&str> = results.iter().map(|result| result.id.as_str()).collect();
            if open.is_empty() {
                return Err(format!("message {index} holds results, but no call is open before it"));
            }
            if answered != open {
                return Err(format!(
                    "message {index} answers the calls {answered:?}, but the open calls are {open:?}"
                ));
            }
            open.clear();
            continue;
        }
        if !open.is_empty() {
            return Err(format!("message {index} follows the calls {open:?} without their results"));
        }
        if let Message::Assistant { parts } = message {
            for part in parts {
                if let AssistantPart::Call(call) = part {
                    if !seen.insert(call.id.as_str()) {
                        return Err(format!("the call id `{}` is used twice", call.id));
                    }
                    open.push(&call.id);
                }
            }
        }
    }
    if !open.is_empty() {
        return Err(format!("the conversation ends with the calls {open:?} unanswered"));
    }
    match request.messages.last() {
        None => Err("there is no message".to_owned()),
        Some(Message::Assistant { .. }) => {
            Err("the conversation ends with the model's own message".to_owned())
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::{ToolCall, ToolDefinition, ToolResult, UserPart};

    fn user() -> Message {
        Message::User { parts: vec![UserPart::Text { text: "hi".to_owned() }] }
    }

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| {
            AssistantPart::Call(ToolCall {
                id: (*id).to_owned(),
                tool: "read".to_owned(),
                arguments: json!({}),
                proof: None,
            })
        };
        Message::Assistant { parts: ids.iter().map(call).collect() }
    }

    fn results(ids: &[&str]) -> Message {
        let result = |id: &&str| ToolResult {
            id: (*id).to_owned(),
            tool: "read".to_owned(),
            is_error: false,
            content: vec![],
            structured: serde_json::Map::new(),
        };
        Message::Results { results: ids.iter().map(result).collect() }
    }

    fn check(messages: Vec<Message>) -> Result<(), String> {
        check_request(&Request { messages, ..Request::default() })
    }

    #[test]
    fn each_call_has_its_result_and_the_reverse() {
        assert_eq!(check(vec![user(), calls(&["a", "b"]), results(&["a", "b"]), user()]), Ok(()));
        assert_eq!(check(vec![user(), calls(&[]), user()]), Ok(()));
        insta::assert_snapshot!(
            [
                check(vec![]),
                check(vec![user(), calls(&[])]),
                check(vec![user(), calls(&["a"])]),
                check(vec![user(), calls(&["a"]), user()]),
                check(vec![user(), results(&["a"])]),
                check(vec![user(), calls(&["a", "b"]), results(&["a"])]),
                check(vec![user(), calls(&["a", "b"]), results(&["b", "a"])]),
                check(vec![user(), calls(&["a"]), results(&["a"]), calls(&["a"]), results(&["a"])]),
            ]
            .map(|result| result.unwrap_err())
            .join("\n")
        );
    }

    #[test]
    fn a_tool_is_listed_once() {
        let tool = ToolDefinition { name: "read".to_owned(), description: String::new(), schema: json!({}) };
        let request =
            Request { tools: vec![tool.clone(), tool], messages: vec![user()], ..Request::default() };
        assert_eq!(check_request(&request), Err("the tool `read` is listed twice".to_owned()));
    }
}
