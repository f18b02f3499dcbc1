//! Tables of prompts and histories, in their own file because they are longer than the code they
//! test.

use super::*;
use crate::{
    conversation::{Message, Role},
    script::builtin_scripts,
};

fn said(role: Role, texts: &[&str]) -> Message {
    Message {
        role,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        attachment: false,
    }
}

fn chosen(messages: Vec<Message>) -> Chosen {
    choose(
        &Conversation {
            messages,
            ..Conversation::default()
        },
        &builtin_scripts(),
    )
}

fn text_of(chosen: &Chosen) -> Option<&str> {
    chosen.step.as_ref().ok()?.as_ref()?.text.as_deref()
}

#[test]
fn the_last_mark_of_the_prompt_counts() {
    let table: [(&[&str], Option<&str>, Option<&str>); 11] = [
        (&["hi"], None, None),
        (
            &["#s:hello"],
            Some("hello"),
            Some("Hello from the scripted model."),
        ),
        (
            &["do #s:bash, then #s:hello."],
            Some("hello"),
            Some("Hello from the scripted model."),
        ),
        (
            &["#s:hello", "more words"],
            Some("hello"),
            Some("Hello from the scripted model."),
        ),
        (
            &["#s:bash", "<system-reminder>#s:hello</system-reminder>"],
            Some("bash"),
            Some("Running it."),
        ),
        (&[r#"x #j:[{"text":"a"}]# y"#], Some("json"), Some("a")),
        (
            &[r#"#j:[{"text":"a ]# b"}]#"#],
            Some("json"),
            Some("a ]# b"),
        ),
        (
            &[r##"#j:[{"text":"#s:hello"}]#"##],
            Some("json"),
            Some("#s:hello"),
        ),
        (
            &[r#"#j:[{"text":"a"}]# #s:bash"#],
            Some("bash"),
            Some("Running it."),
        ),
        (
            &["#s:bash", r#"#j:[{"text":"a"}]#"#],
            Some("json"),
            Some("a"),
        ),
        (&["## #s: #j: #j:x"], None, None),
    ];
    for (texts, script, text) in table {
        let found = chosen(vec![said(Role::User, texts)]);
        assert_eq!(found.script.as_deref(), script, "{texts:?}");
        assert_eq!(text_of(&found), text, "{texts:?}");
    }
}

#[test]
fn answers_since_the_prompt_are_the_step() {
    let mut messages = vec![
        said(Role::User, &["#s:hello"]),
        said(Role::Assistant, &["Hello"]),
        said(Role::User, &["#s:bash"]),
    ];
    assert_eq!(text_of(&chosen(messages.clone())), Some("Running it."));

    messages.push(said(Role::Assistant, &["Running it."]));
    messages.push(said(
        Role::User,
        &["<system-reminder>tool hints</system-reminder>"],
    ));
    messages.push(said(Role::Other, &["#s:hello"]));
    let second = chosen(messages.clone());
    assert_eq!((second.index, text_of(&second)), (1, Some("Bash done.")));

    messages.push(said(Role::Assistant, &["Bash done."]));
    messages.push(said(Role::User, &[]));
    let beyond = chosen(messages);
    assert_eq!((beyond.index, beyond.step), (2, Ok(None)));
}

#[test]
fn mistakes_in_scripts_show() {
    let table = [
        ("#s:helo", "no script is named `helo`"),
        (r#"#j:[{"txt":"a"}]#"#, "unknown field `txt`"),
        (r#"#j:[{"text":"a"}]"#, "must end with `]#`"),
        (
            r##"#j:[{"text":}]# and #j:[{"tools":[{"name":"Agent","inp":"#s:hello"}]}]#"##,
            "`inp`",
        ),
        ("#j:[", "EOF"),
    ];
    for (prompt, expected) in table {
        let error = chosen(vec![said(Role::User, &[prompt])]).step.unwrap_err();
        assert!(error.contains(expected), "{prompt}: {error}");
    }
}

#[test]
fn a_conversation_without_prompt_has_no_script() {
    assert_eq!(
        chosen(Vec::new()),
        Chosen {
            script: None,
            index: 0,
            step: Ok(None)
        }
    );
    assert_eq!(
        chosen(vec![said(Role::Assistant, &["#s:bash"])]).script,
        None
    );
}
