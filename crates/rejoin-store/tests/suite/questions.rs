//! What agents ask people: kept with the turn that waits for it, answered once.

use rejoin_core::{
    Asked, Choice, Given, MessageId, QuestionId, QuestionKind, QuestionState, TurnStatus,
};
use rejoin_store::{Error, NewAnswer, NewQuestion, Store};
use serde_json::json;

use super::engines::Place;
use super::turns::store_with;

on_both_engines!(
    a_turn_waits_until_all_is_answered,
    the_first_answer_wins,
    two_answers_at_once_leave_no_turn_waiting,
    an_answer_to_a_gone_question_is_withdrawn_with_its_message,
);

fn question(n: u8) -> NewQuestion {
    NewQuestion {
        id: QuestionId::from_parts(u64::from(n), [n; 10]),
        asked: Asked {
            call_id: format!("call-{n}"),
            kind: QuestionKind::Approval,
            tool: "Bash".into(),
            input: json!({"command": "x\u{0}y"}),
            questions: vec![],
        },
    }
}

fn given(decision: Choice) -> Given {
    Given {
        decision,
        message: Some("so\u{0}".into()),
        answers: [("1".to_owned(), vec!["a".to_owned()])].into(),
    }
}

fn new_answer<'a>(question: QuestionId, given: &'a Given, by: &'a str) -> NewAnswer<'a> {
    NewAnswer {
        question,
        given,
        by,
        key: None,
        now: 4,
    }
}

async fn status(store: &Store, turn: rejoin_core::TurnId) -> TurnStatus {
    let mut read = store.read().await.unwrap();
    read.turns().get(turn).await.unwrap().unwrap().status
}

async fn a_turn_waits_until_all_is_answered(place: Place) {
    let (store, c, turns) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    let asked = [question(1), question(2)];
    tx.questions().add(c, turns[0], 1, 3, &asked).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(status(&store, turns[0]).await, TurnStatus::Waiting);
    let mut read = store.read().await.unwrap();
    assert_eq!(read.questions().waiting_turns().await.unwrap(), turns);
    drop(read);
    for (n, expected) in [(1, TurnStatus::Waiting), (2, TurnStatus::Running)] {
        let mut tx = store.begin().await.unwrap();
        let (id, said) = (question(n).id, given(Choice::Deny));
        tx.questions()
            .answer(&new_answer(id, &said, "me"))
            .await
            .unwrap();
        tx.questions().resume_if_answered(turns[0]).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(status(&store, turns[0]).await, expected);
    }
    let mut read = store.read().await.unwrap();
    let stored = read.questions().of(turns[0]).await.unwrap();
    assert_eq!(stored[0].asked, question(1).asked);
    assert_eq!(stored[1].given, Some(given(Choice::Deny)));
    assert!(read.questions().waiting_turns().await.unwrap().is_empty());
}

async fn the_first_answer_wins(place: Place) {
    let (store, c, turns) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    let asked = [question(1), question(2)];
    tx.questions().add(c, turns[0], 1, 3, &asked).await.unwrap();
    let id = question(1).id;
    tx.questions()
        .answer(&new_answer(id, &given(Choice::Allow), "me"))
        .await
        .unwrap();
    let second = tx
        .questions()
        .answer(&new_answer(id, &given(Choice::Deny), "you"))
        .await;
    assert!(matches!(second, Err(Error::Conflict(_))), "{second:?}");
    drop(tx);
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    tx.questions().add(c, turns[0], 1, 3, &asked).await.unwrap();
    tx.questions()
        .answer(&new_answer(id, &given(Choice::Allow), "me"))
        .await
        .unwrap();
    tx.questions().forget_pending(turns[0]).await.unwrap();
    tx.commit().await.unwrap();
    let mut read = store.read().await.unwrap();
    let states: Vec<_> = (read.questions().of(turns[0]).await.unwrap().iter())
        .map(|q| (q.state, q.by.clone()))
        .collect();
    let expected = [
        (QuestionState::Answered, Some("me".to_owned())),
        (QuestionState::Gone, None),
    ];
    assert_eq!(states, expected);
}

/// Each of two people answers one of the two questions, at the same time.
async fn two_answers_at_once_leave_no_turn_waiting(place: Place) {
    let (store, c, turns) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    let asked = [question(1), question(2)];
    tx.questions().add(c, turns[0], 1, 3, &asked).await.unwrap();
    tx.commit().await.unwrap();
    let other = place.open().await;
    let answer = async |store: &Store, n: u8| {
        let mut tx = store.begin().await.unwrap();
        let said = given(Choice::Allow);
        tx.questions()
            .answer(&new_answer(question(n).id, &said, "me"))
            .await
            .unwrap();
        tx.questions().resume_if_answered(turns[0]).await.unwrap();
        tx.commit().await.unwrap();
    };
    tokio::join!(answer(&store, 1), answer(&other, 2));
    assert_eq!(status(&store, turns[0]).await, TurnStatus::Running);
}

async fn an_answer_to_a_gone_question_is_withdrawn_with_its_message(place: Place) {
    let (store, c, turns) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    let asked = [question(1)];
    tx.questions().add(c, turns[0], 1, 3, &asked).await.unwrap();
    tx.questions().forget_pending(turns[0]).await.unwrap();
    let (said, message) = (given(Choice::Deny), MessageId::from_parts(9, [9; 10]));
    let answer = new_answer(asked[0].id, &said, "me");
    assert!(tx.questions().answer_gone(&answer, message).await.unwrap());
    assert!(!tx.questions().answer_gone(&answer, message).await.unwrap());
    let stored = tx.questions().get(asked[0].id).await.unwrap().unwrap();
    assert_eq!(stored.answer_message, Some(message));
    tx.messages().withdraw(message).await.unwrap();
    let stored = tx.questions().get(asked[0].id).await.unwrap().unwrap();
    assert_eq!((stored.state, stored.by), (QuestionState::Gone, None));
}
