//! What is asked at one time, and in which order it is answered.
//!
//! A model calls several tools at once, and each may ask. The server (1.18.33) takes "no" for a no to
//! everything that it asks at that time, and "always" for a yes to all of it that the rule covers. So
//! both wait until there is nothing else that nobody has decided about.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Requests for permission that the server has not settled.
#[derive(Debug, Default)]
pub struct Desk {
    asked: BTreeMap<String, Pending>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Pending {
    /// Nobody has said anything yet.
    Undecided,
    Held(Value),
    /// The server was told.
    Told,
}

impl Desk {
    pub fn asked(&mut self, id: &str) {
        self.asked
            .entry(id.to_owned())
            .or_insert(Pending::Undecided);
    }

    /// The server has settled it; gives what can be said to it now.
    pub fn settled(&mut self, id: &str) -> Vec<(String, Value)> {
        self.asked.remove(id);
        self.release()
    }

    /// Somebody has decided; gives what can be said to the server now, in order.
    pub fn decided(&mut self, id: &str, body: Value) -> Vec<(String, Value)> {
        if body["reply"] == "once" {
            self.asked.insert(id.to_owned(), Pending::Told);
            let mut now = vec![(id.to_owned(), body)];
            now.extend(self.release());
            return now;
        }
        self.asked.insert(id.to_owned(), Pending::Held(body));
        self.release()
    }

    /// What nobody has decided about.
    pub fn undecided(&self) -> Vec<String> {
        let open = self.asked.iter();
        let open = open.filter(|(_, pending)| **pending == Pending::Undecided);
        open.map(|(id, _)| id.clone()).collect()
    }

    fn release(&mut self) -> Vec<(String, Value)> {
        if self.asked.values().any(|one| *one == Pending::Undecided) {
            return vec![];
        }
        let mut held: Vec<(String, Value)> = vec![];
        for (id, pending) in &mut self.asked {
            if let Pending::Held(body) = pending {
                held.push((id.clone(), std::mem::take(body)));
                *pending = Pending::Told;
            }
        }
        let denies = |(_, body): &(String, Value)| body["reply"] == "reject";
        let (no, mut yes): (Vec<_>, Vec<_>) = held.into_iter().partition(denies);
        if !no.is_empty() {
            // What one may always do must not allow what is denied beside it.
            for (_, body) in &mut yes {
                *body = json!({"reply": "once"});
            }
        }
        yes.into_iter().chain(no).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk(ids: &[&str]) -> Desk {
        let mut desk = Desk::default();
        for id in ids {
            desk.asked(id);
        }
        desk
    }

    fn says(reply: &str) -> Value {
        json!({"reply": reply})
    }

    fn told(said: Vec<(String, Value)>) -> String {
        let word =
            |(id, body): (String, Value)| format!("{id} {}", body["reply"].as_str().unwrap());
        said.into_iter().map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn alone_everything_is_said_at_once() {
        for reply in ["once", "always", "reject"] {
            let said = told(desk(&["a"]).decided("a", says(reply)));
            assert_eq!(said, format!("a {reply}"));
        }
    }

    #[test]
    fn a_no_waits_for_those_beside_it() {
        let mut desk = desk(&["a", "b", "c"]);
        assert_eq!(told(desk.decided("b", says("reject"))), "");
        assert_eq!(desk.undecided(), ["a", "c"]);
        assert_eq!(told(desk.decided("a", says("once"))), "a once");
        assert_eq!(told(desk.decided("c", says("once"))), "c once, b reject");
        assert_eq!(told(desk.settled("b")), "");
    }

    #[test]
    fn always_allows_nothing_that_is_denied() {
        let mut two = desk(&["a", "b"]);
        assert_eq!(told(two.decided("a", says("always"))), "");
        assert_eq!(told(two.decided("b", says("reject"))), "a once, b reject");
        let mut two = desk(&["a", "b"]);
        assert_eq!(told(two.decided("a", says("always"))), "");
        assert_eq!(told(two.decided("b", says("always"))), "a always, b always");
    }

    #[test]
    fn what_the_server_settles_is_not_waited_for() {
        let mut two = desk(&["a", "b"]);
        assert_eq!(told(two.decided("a", says("reject"))), "");
        assert_eq!(told(two.settled("b")), "a reject");
        // Nothing is said twice.
        assert_eq!(told(two.settled("zork")), "");
    }
}
