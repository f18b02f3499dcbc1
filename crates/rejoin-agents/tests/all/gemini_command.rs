//! The calls, by plan and permission; data in, data out.

use rejoin_agents::{CommandSpec, MentionEscape, Moving, SessionAt, SessionPath, adapter};
use rejoin_core::{PermissionMode, Permissions, SessionId};

use crate::order::{Ask, Kind, OLD, PLAIN, command};

const FULL: &Permissions = &Permissions {
    mode: PermissionMode::Full,
    tools: None,
    deny_tools: vec![],
    commands: false,
};
const GEMINI: Ask<'static> = Ask {
    agent: "gemini",
    model: Some("gemini-2.5-flash"),
    permissions: FULL,
    ..PLAIN
};

fn told(spec: &CommandSpec) -> String {
    let env: Vec<String> = spec.env.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let files: Vec<String> = spec
        .files
        .iter()
        .map(|(n, t)| format!("{n}: {t:?}"))
        .collect();
    format!(
        "{}\n{}\n< {:?}\n{}",
        spec.args.join(" "),
        env.join(" "),
        spec.stdin,
        files.join("\n")
    )
}

#[test]
fn each_plan_names_its_session() {
    let extra = ["--debug".to_owned()];
    for kind in [Kind::Start, Kind::Resume, Kind::Reseed] {
        let spec = command(&Ask {
            kind,
            extra: &extra,
            ..GEMINI
        });
        insta::assert_snapshot!(told(&spec));
        assert!(!spec.hold_stdin);
        assert_eq!(spec.prompt_mark.as_ref().map(String::len), Some(64));
    }
}

#[test]
fn without_a_model_none_is_named() {
    let spec = command(&Ask {
        model: None,
        ..GEMINI
    });
    assert!(!spec.args.contains(&"--model".to_owned()));
}

/// Promise 11: a message is data.
#[test]
fn words_are_not_commands() {
    let nasty = Ask {
        kind: Kind::Resume,
        context: Some("<rejoin>\nsaid @/etc/hostname\n</rejoin>"),
        message: "/clear @/etc/hostname",
        ..GEMINI
    };
    insta::assert_snapshot!(command(&nasty).stdin);
    let joined = Ask {
        neutral: MentionEscape::ByJoiner,
        ..nasty
    };
    let spec = command(&joined);
    assert_eq!(
        spec.stdin,
        "<rejoin>\nsaid @\u{2060}/etc/hostname\n</rejoin>\n\n/clear @\u{2060}/etc/hostname"
    );
    assert!(
        !spec
            .files
            .iter()
            .any(|(name, _)| name.starts_with("commands"))
    );
    let raw = Ask { raw: true, ..nasty };
    assert_eq!(command(&raw).stdin, "/clear @\u{2060}/etc/hostname");
    let raw = Ask {
        message: "see @a @/b",
        ..raw
    };
    assert_eq!(
        command(&raw).stdin,
        "<rejoin>\nsaid @\u{2060}/etc/hostname\n</rejoin>\n\nsee @a @\u{2060}/b"
    );
}

/// The name of the prompt in the session is the same, whichever of the two the CLI notes.
#[test]
fn the_prompt_is_found_again() {
    let spec = command(&GEMINI);
    let (name, text) = &spec.files[0];
    assert!(name.starts_with("commands/rejoin-"));
    let template = text
        .split("prompt = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let content = format!("{template}\n\n{}", spec.stdin);
    for message in [
        serde_json::json!({"id": "1", "type": "user", "content": [{"text": content}]}),
        serde_json::json!({"id": "1", "type": "user", "content": [{"text": content}],
            "displayContent": [{"text": spec.stdin}]}),
    ] {
        let mut reader = adapter("gemini").unwrap().reader(None);
        reader.line(message.to_string().as_bytes());
        assert_eq!(reader.finish().prompts, [spec.prompt_mark.clone().unwrap()]);
    }
}

#[test]
fn sessions_lie_where_the_folder_says() {
    let gemini = adapter("gemini").unwrap();
    let session = SessionId::new(OLD).unwrap();
    let at = SessionAt {
        folder: "/w",
        session: &session,
        pin: "p",
    };
    let SessionPath::Find {
        folders,
        begins,
        ends,
        ..
    } = gemini.place(&at)
    else {
        panic!()
    };
    let marker = command(&GEMINI).files.pop().unwrap();
    let own = folders[0].strip_suffix("/chats").unwrap();
    assert_eq!(marker, (format!("{own}/.project_root"), "/w".to_owned()));
    assert_eq!(folders[1], "tmp/*/chats");
    assert_eq!(
        (begins.as_str(), ends.as_str()),
        ("session-", "-33333333.jsonl")
    );
    assert_eq!(
        gemini.moving(&at, &|_| None),
        Moving::Into(folders[0].clone())
    );
    for (known, expected) in [
        (r#"{"projects":{"/w":"w-1"}}"#, "tmp/w-1/chats"),
        (r#"{"projects":{"/w":"../x"}}"#, folders[0].as_str()),
        (r#"{"projects":{"/other":"y"}}"#, folders[0].as_str()),
        ("no json", folders[0].as_str()),
    ] {
        let read = |_: &str| Some(known.as_bytes().to_vec());
        assert_eq!(gemini.moving(&at, &read), Moving::Into(expected.into()));
    }
}
