//! Names, keys and addresses.

use haft_model::{ModelError, ProviderSettings, Setting, Settings, Shared, open, ways};
use pretty_assertions::assert_eq;

use crate::support::{KEY, ask, hello, server, stream};

fn refusal(name: &str, settings: &Settings) -> String {
    open(name, settings, &Shared::default())
        .err()
        .map_or_else(|| "opened".to_owned(), |error| error.to_string())
}

#[test]
fn what_a_person_is_told() {
    let bare = Settings::default();
    let newline = Settings {
        openai: ProviderSettings {
            api_key: Some(Setting::new("sk-\n1", "haft.toml")),
            base_url: Some(Setting::new("ftp://x", "haft.toml")),
            ..ProviderSettings::default()
        },
        ..Settings::default()
    };
    let wrong_key = Settings {
        openai: ProviderSettings { base_url: None, ..newline.openai.clone() },
        ..Settings::default()
    };
    insta::assert_snapshot!(
        [
            refusal("claude", &bare),
            refusal("anthropic/", &bare),
            refusal("anthropic/claude-sonnet-4-5", &bare),
            refusal("openai-chat/gpt-5", &bare),
            refusal("openai/gpt-5", &newline),
            refusal("openai/gpt-5", &wrong_key),
            refusal("script:no/such/file", &bare),
            refusal("replay:no/such/file", &bare),
        ]
        .join("\n\n")
    );
}

#[test]
fn no_key_is_needed_where_there_is_none() {
    let local = Settings {
        openai: ProviderSettings {
            base_url: Some(Setting::new("localhost:8080", "the test")),
            ..ProviderSettings::default()
        },
        ..Settings::default()
    };
    assert_eq!(refusal("ollama/qwen3", &Settings::default()), "opened");
    assert_eq!(refusal("openai-chat/local", &local), "opened");
    assert_eq!(refusal("openai/local", &local), "opened");
}

#[test]
fn every_way_can_be_opened_or_says_what_is_missing() {
    for line in ways().lines() {
        let name = line.trim_start_matches("- ").split([' ', ',']).next().unwrap();
        let error = open(name, &Settings::default(), &Shared::default()).err();
        assert!(!matches!(error, Some(ModelError::Settings(_))), "{line}: {error:?}");
    }
}

#[tokio::test]
async fn a_key_does_not_follow_to_another_address() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = server([stream(body)]).await;
    let settings = Settings {
        openai: ProviderSettings {
            api_key: Some(Setting::new(KEY, "the test")),
            ..ProviderSettings::default()
        },
        openai_chat: ProviderSettings {
            base_url: Some(Setting::new(server.uri(), "the test")),
            ..ProviderSettings::default()
        },
        ..Settings::default()
    };
    ask(&*open("openai-chat/local", &settings, &Shared::default()).unwrap(), &hello()).await;
    let sent = &server.received_requests().await.unwrap()[0];
    assert_eq!(sent.headers.get("authorization"), None);
}
