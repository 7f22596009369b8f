//! Workers with a git worktree of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "these tests set up a repository from outside")]

mod support;

use std::{path::Path, process::Command};

use haft_agent::{Approve, Conversation};
use haft_tool::{Origin, Outcome};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use support::{World, calls, never, words, write};

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn repository(world: &World) {
    git(&world.project(), &["init", "--quiet"]);
    world.put("a.txt", "one\n");
    world.put("b.txt", "old\n");
    git(&world.project(), &["add", "--all"]);
    git(&world.project(), &["commit", "--quiet", "--message", "first"]);
    // Not committed, and the worker sees it all the same.
    world.put("a.txt", "one\ntwo\n");
}

async fn call(conversation: &Conversation, tool: &str, arguments: Value) -> Outcome {
    conversation.call(tool, arguments, Origin::Console, never()).await
}

async fn spawn(conversation: &Conversation) -> Outcome {
    call(conversation, "vibe_spawn", json!({"brief": "Work.", "label": "apart", "worktree": true})).await
}

async fn wait(conversation: &Conversation) -> String {
    let arguments = json!({"worker_id": "w1", "timeout_seconds": 60});
    call(conversation, "vibe_wait", arguments).await.all_text()
}

#[tokio::test]
async fn what_a_worker_did_in_its_worktree_comes_back_as_a_staged_edit() {
    let world = World::acted(|scene| match scene.step {
        0 => calls("r", &[("read", json!({"path": "a.txt"}))]),
        1 => {
            assert!(scene.heard().contains("two"), "what was not committed is there: {}", scene.heard());
            calls(
                "w",
                &[
                    ("edit", json!({"path": "a.txt", "old": "two", "new": "three"})),
                    write("new.txt", "made\n"),
                    ("shell", json!({"command": "rm b.txt"})),
                ],
            )
        }
        2 => words("First turn."),
        3 => calls("x", &[("edit", json!({"path": "a.txt", "old": "three", "new": "four"}))]),
        _ => words("Second turn."),
    })
    .await;
    repository(&world);
    let conversation = world.direct(Approve::All).await;
    let spawned = spawn(&conversation).await;
    assert!(!spawned.is_error, "{spawned:?}");
    let first = wait(&conversation).await;
    assert!(first.contains("Its changes to a.txt, b.txt, new.txt are staged as `edit_1`"), "{first}");
    assert!(first.contains("-two\n+three"), "{first}");
    assert_eq!((world.get("a.txt").as_str(), world.get("b.txt").as_str()), ("one\ntwo\n", "old\n"));
    let accepted = call(&conversation, "resolve", json!({"edit_id": "edit_1", "action": "accept"})).await;
    assert!(!accepted.is_error, "{accepted:?}");
    assert_eq!((world.get("a.txt").as_str(), world.get("new.txt").as_str()), ("one\nthree\n", "made\n"));
    assert!(!world.project().join("b.txt").exists());
    // The next turn builds on what was accepted.
    call(&conversation, "vibe_send", json!({"worker_id": "w1", "message": "More."})).await;
    let second = wait(&conversation).await;
    assert!(second.contains("Its changes to a.txt are staged as `edit_2`"), "{second}");
    call(&conversation, "resolve", json!({"edit_id": "edit_2", "action": "accept"})).await;
    assert_eq!(world.get("a.txt"), "one\nfour\n");
    assert_eq!(git(&world.project(), &["worktree", "list"]).lines().count(), 2);
    call(&conversation, "vibe_kill", json!({"worker_id": "w1"})).await;
    assert_eq!(git(&world.project(), &["worktree", "list"]).lines().count(), 1);
    assert_eq!(
        git(&world.project(), &["log", "--oneline"]).lines().count(),
        1,
        "no commit is made in the repository's branch"
    );
    conversation.close().await.unwrap();
}

#[tokio::test]
async fn a_file_that_changed_in_the_meantime_is_named_and_nothing_is_staged() {
    let world = World::acted(|scene| match scene.step {
        0 => calls(
            "w",
            &[
                write("new.txt", "made\n"),
                ("shell", json!({"command": "echo theirs > a.txt; until [ -e go ]; do sleep 0.02; done"})),
            ],
        ),
        _ => words("Done."),
    })
    .await;
    repository(&world);
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation).await;
    let worktree = conversation
        .with_transcript(|transcript| transcript.workers().get(1).unwrap().worktree.clone())
        .unwrap();
    world.put("a.txt", "mine\n");
    std::fs::write(worktree.path.join("go"), "").unwrap();
    let report = wait(&conversation).await;
    assert!(report.contains("these files have changed in your directory since it began: a.txt."), "{report}");
    assert_eq!(world.get("a.txt"), "mine\n");
    conversation.close().await.unwrap();
}

#[tokio::test]
async fn without_a_repository_there_is_no_worktree_and_no_worker() {
    let world = World::acted(|_| words("Done.")).await;
    let conversation = world.direct(Approve::All).await;
    let refused = spawn(&conversation).await;
    assert!(refused.is_error);
    let text = refused.all_text();
    assert!(
        text.starts_with("No worker was spawned: the working directory is not in a git repository that can be used: git: fatal: not a git repository"),
        "{text}"
    );
    assert!(text.ends_with("Without `worktree` it works in your directory."), "{text}");
    assert_eq!(conversation.workers(), []);
    conversation.close().await.unwrap();
}
