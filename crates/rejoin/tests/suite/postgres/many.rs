//! Many at once: each conversation is whole, and the server is not overrun.

use std::process::Child;

use rejoin_testkit::{Done, World};

use super::REJOIN;

const CONVERSATIONS: usize = 64;
/// Senders at a time.
const AT_ONCE: usize = 16;

#[test]
fn sixty_four_conversations() {
    let Some(world) = World::new(REJOIN).on_server() else {
        return;
    };
    let keys: Vec<String> = (0..CONVERSATIONS).map(|n| format!("c{n}")).collect();
    for (turn, said) in ["one", "two"].into_iter().enumerate() {
        for some in keys.chunks(AT_ONCE) {
            let send = |key: &String| {
                let text = format!("{said} of {key}.");
                world.spawn(&["send", "--json", "-a", "demo", "-k", key, &text])
            };
            let senders: Vec<Child> = some.iter().map(send).collect();
            for (key, sender) in some.iter().zip(senders) {
                let answer = Done::of(sender).ok().json();
                let text = answer["text"].as_str().unwrap();
                assert!(text.contains(&format!("{said} of {key}.")), "{text}");
                assert_eq!(text.matches(" of c").count(), turn + 1, "{text}");
            }
        }
    }
    let listed = world.run(&["list", "--json", "-n", "100"]).ok().json();
    let all = listed["conversations"].as_array().unwrap();
    assert_eq!(all.len(), CONVERSATIONS);
    assert!(all.iter().all(|c| c["state"] == "idle"), "{listed}");
    world.assert_quiet();
}
