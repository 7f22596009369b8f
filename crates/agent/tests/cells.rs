//! A cell's `tool(…)` goes through every layer of its run (SPEC E4, R7).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use haft_agent::{
    Approve, Conversation, Event, Mode,
    cards::{Answer, CardKind},
};
use haft_tool::{Origin, Outcome};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{World, never, person};

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

async fn read(conversation: &Conversation, path: &str) -> Outcome {
    let arguments = json!({"path": path, "offset": 60000, "limit": 1});
    conversation.call("read", arguments, Origin::Console, never()).await
}

#[tokio::test]
async fn the_whole_of_long_output_is_in_the_transcript_and_can_be_read_after_all_files_are_gone() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let id = conversation.id().clone();
    let outcome = python(&conversation, "for n in range(100_000): print(n)").await;
    let file = outcome.structured["stdout_file"].as_str().unwrap().to_owned();
    let name = outcome.structured["stdout_artifact"].as_str().unwrap().to_owned();
    let whole: String = (0..100_000).map(|n| n.to_string() + "\n").collect();
    let artifact = world.host.store().artifact(&haft_store::ArtifactId(name.clone())).await.unwrap();
    assert_eq!(String::from_utf8(artifact.data).unwrap(), whole);
    let kept: Vec<_> = world
        .events(&conversation)
        .await
        .into_iter()
        .filter_map(|event| if let Event::CallFinished { kept, .. } = event { Some(kept) } else { None })
        .flatten()
        .collect();
    assert_eq!(
        kept.iter().map(|kept| (kept.artifact.0.as_str(), kept.bytes)).collect::<Vec<_>>(),
        [(name.as_str(), whole.len() as u64)]
    );
    let line = "60000\t59999\n[Lines 60000-60000 of 100000 are shown; read on with offset 60001.]";
    assert_eq!(read(&conversation, &file).await.first_text(), Some(line));
    // What is not shown and not long either.
    let outcome = python(&conversation, "print('x' * 25_000)").await;
    let short = outcome.structured["stdout_file"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(short).unwrap(), format!("{}\n", "x".repeat(25_000)));
    conversation.close().await.unwrap();
    drop(conversation);

    // Taken up on a machine that has the store and not the files.
    std::fs::remove_dir_all(world.root.path().join(".local/state/haft/outputs")).unwrap();
    let conversation = world.host.resume(&id, world.setup(Approve::All)).await.unwrap();
    assert_eq!(read(&conversation, &file).await.first_text(), Some(line));
    conversation.close().await.unwrap();
    drop(conversation);
    // And by a fork, whose own directory is another one.
    std::fs::remove_dir_all(world.root.path().join(".local/state/haft/outputs")).unwrap();
    let fork = world.host.fork(&id, None).await.unwrap();
    let conversation = world.host.resume(&fork, world.setup(Approve::All)).await.unwrap();
    assert_eq!(read(&conversation, &file).await.first_text(), Some(line));
    conversation.close().await.unwrap();
}

#[tokio::test]
async fn a_denied_call_of_a_cells_raises_in_the_rules_words_and_the_cell_goes_on() {
    let world = World::new().await;
    world.put(
        "haft.toml",
        "[[guardrails.rules]]\naction = \"deny\"\ntool = \"glob\"\nreason = \"not here\"\n[[guardrails.rules]]\naction = \"deny\"\ncommand = \"rm *\"\n",
    );
    let conversation = world.start(Approve::All).await;
    let direct = conversation.call("glob", json!({"pattern": "*"}), Origin::Console, never()).await;
    assert!(direct.is_error && direct.all_text().contains("not here"), "{}", direct.all_text());
    let code = "said = []
for name, arguments in [('glob', {'pattern': '*'}), ('shell', {'command': 'echo a && rm -rf x'})]:
    try: tool(name, arguments)
    except ToolError as error: said.append(str(error))
after = str(tool('read', {'path': 'haft.toml'}))
print(said[0], '|', said[1])
len(after) > 0";
    let outcome = python(&conversation, code).await;
    assert!(!outcome.is_error, "{}", outcome.all_text());
    assert_eq!(outcome.structured["result"], "True");
    // In the tool's own words, from a cell as from anybody.
    let stdout = outcome.structured["stdout"].as_str().unwrap();
    assert_eq!(stdout.split(" | ").next().unwrap(), direct.all_text());
    assert!(stdout.contains("rm *"), "{stdout}");
    // Not caught it fails the cell, and the run goes on.
    let outcome = python(&conversation, "kept = 1\ntool('glob', {'pattern': '*'})").await;
    assert_eq!(
        (outcome.is_error, &outcome.structured["error"]["name"], &outcome.structured["error"]["message"]),
        (true, &json!("ToolError"), &json!(direct.all_text()))
    );
    assert_eq!(python(&conversation, "kept").await.structured["result"], "1");
    let code = "try { await tool('glob', {pattern: '*'}) } catch (error) { console.log(error.message) }";
    let arguments = json!({"code": code, "description": "d", "language": "javascript"});
    let outcome = conversation.call("eval", arguments, Origin::Console, never()).await;
    assert_eq!(outcome.structured["stdout"].as_str().unwrap().trim_end(), direct.all_text());
    conversation.close().await.unwrap();
}

#[tokio::test]
async fn a_prompt_of_a_cells_call_is_a_card_and_the_answer_is_the_cells() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let mut asked = 0;
    let person = person(&conversation, move |card| {
        assert_eq!(card.kind, CardKind::Permission);
        asked += 1;
        Some(match asked {
            // The cell itself, then its first call; the second is refused.
            1 | 2 => Answer::Allowed { always: false },
            _ => Answer::Denied { reason: "leave it".into() },
        })
    });
    let code = "print(tool('shell', {'command': 'echo allowed'}))
try: tool('write', {'path': 'no.txt', 'content': 'x'})
except ToolError as error: print(error)
'went on'";
    let outcome = python(&conversation, code).await;
    assert_eq!(outcome.structured["result"], "'went on'", "{}", outcome.all_text());
    let stdout = outcome.structured["stdout"].as_str().unwrap();
    assert!(stdout.contains("allowed") && stdout.contains("leave it"), "{stdout}");
    assert!(!world.project().join("no.txt").exists());
    let questions: Vec<String> =
        person.cards.lock().unwrap().iter().map(|card| card.question.clone()).collect();
    assert_eq!(questions.len(), 3, "{questions:?}");
    conversation.close().await.unwrap();
}
