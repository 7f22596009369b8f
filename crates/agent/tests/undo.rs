//! Taking back what the last run did to files.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;

use haft_agent::{Approve, Event};
use pretty_assertions::assert_eq;
use serde_json::json;

use support::{Puppet, World, calls, never, said, words, write};

fn files(world: &World) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(world.project())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

const PATCH: &str = "*** Begin Patch\n*** Delete File: gone.txt\n*** Update File: old.txt\n*** Move to: new.txt\n@@\n-one\n+two\n*** End Patch\n";

async fn a_run_that_changes_much(world: &World) -> std::sync::Arc<haft_agent::Conversation> {
    world.put("edited.txt", "a\r\nb\r\n");
    world.put("gone.txt", "was here\n");
    world.put("old.txt", "one\n");
    let conversation = world.start(Approve::All).await;
    let model = Puppet::new([
        calls("r", &[("read", json!({"path": "edited.txt"})), ("read", json!({"path": "old.txt"}))]),
        calls(
            "a",
            &[write("made.txt", "1\n"), ("edit", json!({"path": "edited.txt", "old": "a", "new": "c"}))],
        ),
        calls(
            "b",
            &[
                ("apply_patch", json!({"patch": PATCH})),
                ("edit", json!({"path": "edited.txt", "old": "b", "new": "d"})),
            ],
        ),
        calls("c", &[("shell", json!({"command": "echo shell > by_shell.txt"}))]),
        words("Done."),
    ]);
    conversation.run(&model, said("Change."), never()).await.unwrap();
    assert_eq!(
        files(world),
        BTreeMap::from([
            ("by_shell.txt".into(), b"shell\n".to_vec()),
            ("edited.txt".into(), b"c\r\nd\r\n".to_vec()),
            ("made.txt".into(), b"1\n".to_vec()),
            ("new.txt".into(), b"two\n".to_vec()),
        ])
    );
    conversation
}

#[tokio::test]
async fn the_last_runs_changes_are_taken_back_and_the_model_is_told() {
    let world = World::new().await;
    let conversation = a_run_that_changes_much(&world).await;
    let undone = conversation.undo().await.unwrap();
    assert_eq!(undone, ["edited.txt", "gone.txt", "made.txt", "new.txt", "old.txt"]);
    assert_eq!(
        files(&world),
        BTreeMap::from([
            ("by_shell.txt".into(), b"shell\n".to_vec()),
            ("edited.txt".into(), b"a\r\nb\r\n".to_vec()),
            ("gone.txt".into(), b"was here\n".to_vec()),
            ("old.txt".into(), b"one\n".to_vec()),
        ])
    );
    assert_eq!(
        conversation.undo().await.unwrap_err().to_string(),
        "the last run changed no files, apart from what its shell commands may have done"
    );
    let model = Puppet::new([words("I see.")]);
    conversation.run(&model, said("What now?"), never()).await.unwrap();
    let heard = serde_json::to_string(&model.asked()[0].messages).unwrap();
    assert!(heard.contains("The person has undone the file changes of the last run."), "{heard}");
}

#[tokio::test]
async fn one_file_that_has_changed_since_refuses_the_whole_undo() {
    let world = World::new().await;
    let conversation = a_run_that_changes_much(&world).await;
    world.put("made.txt", "mine\n");
    world.put("gone.txt", "again\n");
    let before = files(&world);
    assert_eq!(
        conversation.undo().await.unwrap_err().to_string(),
        "nothing was undone: these files have been changed since the run: gone.txt, made.txt"
    );
    assert_eq!(files(&world), before);
    let events = world.events(&conversation).await;
    assert!(!events.iter().any(|event| matches!(event, Event::ChangesUndone { .. })));
}

#[tokio::test]
async fn only_the_last_run_is_undone_also_after_a_restart() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let first = Puppet::new([calls("a", &[write("a.txt", "1")]), words("Done.")]);
    conversation.run(&first, said("Write a."), never()).await.unwrap();
    let second = Puppet::new([calls("b", &[write("b.txt", "2")]), words("Done.")]);
    conversation.run(&second, said("Write b."), never()).await.unwrap();
    conversation.close().await.unwrap();
    let again = world.host.resume(conversation.id(), world.setup(Approve::All)).await.unwrap();
    assert_eq!(again.undo().await.unwrap(), ["b.txt"]);
    assert_eq!(files(&world), BTreeMap::from([("a.txt".into(), b"1".to_vec())]));
}

#[tokio::test]
async fn a_file_that_was_deleted_and_written_anew_is_as_before() {
    let world = World::new().await;
    world.put("a.txt", "a\n");
    world.put("b.txt", "b\n");
    let conversation = world.start(Approve::All).await;
    let patch = "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n";
    let model = Puppet::new([
        calls("p", &[("apply_patch", json!({"patch": patch}))]),
        calls("w", &[write("b.txt", "c\n")]),
        words("Done."),
    ]);
    conversation.run(&model, said("Replace."), never()).await.unwrap();
    // Deleted and written anew is one change of one file.
    assert_eq!(conversation.undo().await.unwrap(), ["b.txt"]);
    assert_eq!(world.get("b.txt"), "b\n");
}
