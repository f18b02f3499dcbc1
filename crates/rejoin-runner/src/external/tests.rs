use super::*;

const NAME: &str = "mark";

fn sent() -> SentPrompt {
    SentPrompt {
        id: "id".into(),
        mark: Some(NAME.into()),
        from: Some(10_000_000),
        until: Some(20_000_000),
        reply: None,
    }
}

fn reading(times: &[Option<i64>]) -> Reading {
    let entries = times.iter().map(|&at| ReadEntry::Prompt {
        id: NAME.into(),
        text: "words".into(),
        at,
    });
    Reading {
        entries: entries.collect(),
        ..Reading::default()
    }
}

/// Counts the prompts that are attributed to a user.
fn by_users(times: &[Option<i64>]) -> usize {
    by_hand(&reading(times), &[sent()], &[]).0.len()
}

#[test]
fn a_prompt_that_its_cli_repeats_within_the_turn_is_ours() {
    assert_eq!(by_users(&[Some(11_000_000), Some(19_000_000)]), 0);
}

#[test]
fn the_same_words_after_the_turn_are_a_users() {
    assert_eq!(by_users(&[Some(11_000_000), Some(21_000_000)]), 1);
}

#[test]
fn without_times_the_second_is_a_users() {
    assert_eq!(by_users(&[None, None]), 1);
}
