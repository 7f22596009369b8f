//! A cell's `tool(…)` goes through every layer of its run (SPEC E4, R7).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use haft_agent::{Approve, Event, Mode};
use haft_tool::Origin;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{World, never};

async fn python(conversation: &haft_agent::Conversation, code: &str) -> haft_tool::Outcome {
    let arguments = json!({"code": code, "description": "a cell of a test"});
    conversation.call("eval", arguments, Origin::Console, never()).await
}

#[tokio::test]
async fn a_cells_calls_are_recorded_with_their_outcomes() {
    let world = World::new().await;
    world.put("a.txt", "in the file\n");
    let conversation = world.start(Approve::All).await;
    let outcome = python(
        &conversation,
        "print(tool('read', {'path': 'a.txt'}))\ntool('write', {'path': 'b.txt', 'content': 'by a cell'})",
    )
    .await;
    assert!(!outcome.is_error, "{}", outcome.all_text());
    assert!(outcome.structured["stdout"].as_str().unwrap().contains("in the file"));
    assert_eq!(world.get("b.txt"), "by a cell");
    let mut begun = Vec::new();
    let mut ended = Vec::new();
    for event in world.events(&conversation).await {
        match event {
            Event::CallStarted { call, .. } => begun.push((call.id.0, call.tool, call.origin)),
            Event::CallFinished { id, outcome, .. } => ended.push((id.0, outcome.is_error)),
            _ => {}
        }
    }
    let eval = begun[0].0.clone();
    assert_eq!(
        begun,
        [
            (eval.clone(), "eval".to_owned(), Origin::Console),
            (format!("{eval}.1"), "read".to_owned(), Origin::Cell),
            (format!("{eval}.2"), "write".to_owned(), Origin::Cell),
        ]
    );
    assert_eq!(ended, [(format!("{eval}.1"), false), (format!("{eval}.2"), false), (eval, false)]);
    conversation.close().await.unwrap();
}

#[tokio::test]
async fn ceiling_and_guardrails_hold_for_cells() {
    let world = World::new().await;
    world.put(
        "haft.toml",
        "[[guardrails.rules]]\naction = \"deny\"\ntool = \"glob\"\nreason = \"not here\"\n",
    );
    let conversation = world.start(Approve::All).await;
    let outcome = python(&conversation, "tool('no_such_tool')").await;
    assert_eq!(outcome.structured["error"]["message"], "unknown tool: no_such_tool");
    // A person goes to plan mode while the cell runs: from then on what runs or writes is unknown.
    let code = "import time
shown = str(tool('shell', {'command': 'echo before'}))
open('ready', 'w').close()
while not __import__('os').path.exists('go'): time.sleep(0.01)
errors = []
for name, arguments in [('shell', {'command': 'echo after'}), ('write', {'path': 'c.txt', 'content': 'x'}), ('eval', {'code': '1', 'description': 'd'})]:
    try: tool(name, arguments)
    except ToolError as error: errors.append(str(error))
tool('read', {'path': 'haft.toml'})
errors";
    let running = python(&conversation, code);
    let change = async {
        while !world.project().join("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        conversation.set_mode(Mode::Plan).await.unwrap();
        world.put("go", "");
    };
    let (outcome, ()) = tokio::join!(running, change);
    assert_eq!(
        outcome.structured["result"],
        Value::from("['unknown tool: shell', 'unknown tool: write', 'unknown tool: eval']"),
        "{}",
        outcome.all_text()
    );
    assert!(!world.project().join("c.txt").exists());
    // In plan mode there is no eval.
    assert_eq!(python(&conversation, "1").await.first_text(), Some("unknown tool: eval"));
    conversation.close().await.unwrap();
}

#[tokio::test]
async fn tools_that_are_not_parallel_safe_do_not_wait_for_their_own_cell() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let outcome = python(&conversation, "tool('debug', {'op': 'status'}).structured['state']").await;
    assert_eq!(outcome.structured["result"], "'none'", "{}", outcome.all_text());
    let outcome = python(&conversation, "tool('eval', {'code': '1', 'description': 'd'})").await;
    assert!(outcome.all_text().contains("A cell cannot run another cell"), "{}", outcome.all_text());
    conversation.close().await.unwrap();
}

#[tokio::test]
async fn a_prompt_of_a_cells_call_is_a_refusal_where_nobody_is_there() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let outcome = python(&conversation, "1").await;
    assert!(outcome.is_error && outcome.structured.get("cell").is_none(), "{}", outcome.all_text());
    conversation.close().await.unwrap();
}
