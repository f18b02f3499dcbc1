//! Captures, sweeps and all else in any order: whatever is named can be fetched.

use proptest::prelude::*;

use super::*;

/// What can happen, in any order.
#[derive(Debug, Clone)]
enum Step {
    Capture {
        text: u8,
        chunks: u8,
    },
    /// The oldest capture that is under way becomes a snapshot of this conversation.
    Add(u8),
    /// Its process dies.
    Abandon,
    Wait(i64),
    Plan(Retention),
    /// What was planned last, however long ago; or now.
    Sweep(Option<Retention>),
    Keep(u8),
    Delete(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let retention = || {
        prop_oneof![
            Just(NEVER),
            Just(OLDER_AT_ONCE),
            Just(Retention {
                latest: Some(DAY),
                older: Some(HOUR)
            }),
        ]
    };
    let step = prop_oneof![
        4 => (0..4_u8, 1..5_u8).prop_map(|(text, chunks)| Step::Capture { text, chunks }),
        4 => (0..3_u8).prop_map(Step::Add),
        1 => Just(Step::Abandon),
        3 => prop_oneof![Just(GRACE / 4), Just(2 * HOUR), Just(2 * DAY)].prop_map(Step::Wait),
        2 => retention().prop_map(Step::Plan),
        3 => proptest::option::of(retention()).prop_map(Step::Sweep),
        1 => (0..3_u8).prop_map(Step::Keep),
        1 => (0..3_u8).prop_map(Step::Delete),
    ];
    proptest::collection::vec(step, 1..40)
}

async fn walk(in_folder: bool, steps: Vec<Step>) {
    let mut place = Place::new(engines::Place::file(), in_folder).await;
    let mut under_way: Vec<(CapturedSession, Vec<u8>)> = vec![];
    let mut planned = None;
    for step in steps {
        match step {
            Step::Capture { text: n, chunks } => {
                let text = text(n, usize::from(chunks) * 20_000);
                under_way.push((place.capture(&text).await, text));
            }
            Step::Add(n) if !under_way.is_empty() => {
                let (captured, text) = under_way.remove(0);
                place.add(n, &captured, text).await;
            }
            Step::Abandon if !under_way.is_empty() => drop(under_way.remove(0)),
            Step::Add(_) | Step::Abandon => {}
            Step::Wait(time) => place.now += time,
            Step::Plan(keep) => planned = Some(place.plan(keep).await),
            Step::Sweep(Some(keep)) => drop(place.sweep(keep).await),
            Step::Sweep(None) => {
                if let Some(plan) = planned.take() {
                    place.vault.sweep(&plan, &|_| {}).await.unwrap();
                }
            }
            Step::Keep(n) => {
                if let Some(id) = place.held.keys().nth(usize::from(n)).copied() {
                    let mut tx = place.vault.store.begin().await.unwrap();
                    tx.snapshots().keep(id, true).await.unwrap();
                    tx.commit().await.unwrap();
                }
            }
            Step::Delete(n) => {
                let mut tx = place.vault.store.begin().await.unwrap();
                tx.conversations()
                    .delete(ConversationId::from_parts(1, [n; 10]), 1)
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            }
        }
        place.verify().await;
    }
    // Nothing is held on to for ever either.
    for n in 0..3 {
        let mut tx = place.vault.store.begin().await.unwrap();
        tx.conversations()
            .delete(ConversationId::from_parts(1, [n; 10]), 1)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    place.now += 2 * HOUR;
    place.sweep(NEVER).await;
    let plan = place.plan(NEVER).await;
    assert_eq!((plan.chunks, plan.waiting, plan.strays.len()), (0, 0, 0));
    assert_eq!(place.objects(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24).min(500)
    ))]
    #[test]
    fn nothing_reachable_ever_goes(steps in steps(), in_folder in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(walk(in_folder, steps));
    }
}
